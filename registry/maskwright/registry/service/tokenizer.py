"""TokenizerService: Register and List."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc

from maskwright.v1 import tokenizer_pb2, tokenizer_pb2_grpc

from ..catalog import Catalog, TokenizerRecord
from ..compiling import ChildPool, ReadTokenizer, Refused
from ..content import Digest
from ..faults import Reason, RegistryError, invalid_request
from ..workspace import Workspace, safe_name
from .messages import digest_of, tokenizer_message

READ_SECONDS = 300.0
MAX_PAGE, DEFAULT_PAGE = 1000, 100
ReadTask = Callable[[str], ReadTokenizer | Refused]


class TokenizerServicer(tokenizer_pb2_grpc.TokenizerServiceServicer):
    """Reads tokenizer files in the pool's children, since a hostile file must not stop the server."""

    def __init__(
        self, catalog: Catalog, workspace: Workspace, pool: ChildPool, task: ReadTask, max_bytes: int
    ) -> None:
        self._catalog, self._workspace, self._pool = catalog, workspace, pool
        self._task, self._max_bytes = task, max_bytes

    async def Register(
        self, requests: AsyncIterator[tokenizer_pb2.RegisterRequest], context: grpc.aio.ServicerContext
    ) -> tokenizer_pb2.RegisterResponse:
        header = await _header(requests)
        data = await self._receive(requests, digest_of(header.digest, "header.digest"))
        name = safe_name(header.name)
        path = await asyncio.to_thread(self._workspace.add, name, data)
        result = await self._pool.run(self._task, str(path), seconds=READ_SECONDS)
        if isinstance(result, Refused):
            first = result.diagnostics[0]["message"]
            raise RegistryError(Reason.INVALID_TOKENIZER, first, diagnostics=result.diagnostics)
        record, created = await asyncio.to_thread(self._keep, name, data, result)
        return tokenizer_pb2.RegisterResponse(tokenizer=tokenizer_message(record), created=created)

    async def List(
        self, request: tokenizer_pb2.ListRequest, context: grpc.aio.ServicerContext
    ) -> tokenizer_pb2.ListResponse:
        size = request.page_size or DEFAULT_PAGE
        if not 0 < size <= MAX_PAGE:
            raise invalid_request("page_size", f"must be from 1 to {MAX_PAGE}")
        records = await asyncio.to_thread(self._catalog.tokenizers, request.page_token, size + 1)
        page = records[:size]
        return tokenizer_pb2.ListResponse(
            tokenizers=[tokenizer_message(r) for r in page],
            next_page_token=page[-1].fingerprint if len(records) > size else "",
        )

    async def _receive(self, requests: AsyncIterator[tokenizer_pb2.RegisterRequest], wanted: Digest) -> bytes:
        received = bytearray()
        async for request in requests:
            received += request.data
            if max(len(received), wanted.size) > self._max_bytes:
                raise RegistryError(
                    Reason.TOKENIZER_TOO_LARGE,
                    f"more than {self._max_bytes} bytes",
                    {"limit": str(self._max_bytes)},
                )
        data = bytes(received)
        found = Digest.of(data)
        if found != wanted:
            raise RegistryError(
                Reason.DIGEST_MISMATCH,
                f"announced {wanted}, received {found}",
                {"expected": str(wanted), "found": str(found)},
            )
        return data

    def _keep(self, name: str, data: bytes, result: ReadTokenizer) -> tuple[TokenizerRecord, bool]:
        known = self._catalog.tokenizer(result.fingerprint)
        if known is not None:
            return known, False
        file, pack = self._catalog.content.put(data), self._catalog.content.put(result.pack)
        record = TokenizerRecord(
            result.fingerprint, name, result.vocab_size, file.hash, file.size, pack.hash, pack.size
        )
        kept = self._catalog.add_tokenizer(record)
        return kept, kept == record


async def _header(
    requests: AsyncIterator[tokenizer_pb2.RegisterRequest],
) -> tokenizer_pb2.RegisterRequest.Header:
    async for request in requests:
        if request.WhichOneof("part") == "header":
            return request.header
        break
    raise invalid_request("header", "must be the first message")
