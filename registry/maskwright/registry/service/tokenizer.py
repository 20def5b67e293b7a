"""TokenizerService: Register and List."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import grpc

from maskwright.v1 import tokenizer_pb2, tokenizer_pb2_grpc

from ..catalog import Catalog, TokenizerRecord
from ..compiling import ChildPool, ReadTokenizer, Refused
from ..content import Digest
from ..faults import Reason, RegistryError, invalid_request
from ..workspace import COMPANIONS, Workspace, safe_name
from .messages import digest_of, tokenizer_message

READ_SECONDS = 300.0
MAX_PAGE, DEFAULT_PAGE = 1000, 100
MAX_COMPANION = 4 << 20
ReadTask = Callable[[str], ReadTokenizer | Refused]


@dataclass(frozen=True)
class _Upload:
    name: str
    data: bytes
    beside: dict[str, bytes]


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
        upload = _Upload(safe_name(header.name), data, _companions(header))
        path = await asyncio.to_thread(self._workspace.add, upload.name, upload.data, upload.beside)
        result = await self._pool.run(self._task, str(path), seconds=READ_SECONDS)
        if isinstance(result, Refused):
            first = result.diagnostics[0]["message"]
            raise RegistryError(Reason.INVALID_TOKENIZER, first, diagnostics=result.diagnostics)
        record, created = await asyncio.to_thread(self._keep, upload, result)
        if created:
            self._pool.refresh()
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
        too_large = wanted.size > self._max_bytes
        while not too_large and (part := await _next(requests)) is not None:
            received += part.data
            too_large = len(received) > self._max_bytes
        if too_large:
            message, limit = f"more than {self._max_bytes} bytes", {"limit": str(self._max_bytes)}
            raise RegistryError(Reason.TOKENIZER_TOO_LARGE, message, limit)
        data = bytes(received)
        found = Digest.of(data)
        if found != wanted:
            raise RegistryError(
                Reason.DIGEST_MISMATCH,
                f"announced {wanted}, received {found}",
                {"expected": str(wanted), "found": str(found)},
            )
        return data

    def _keep(self, upload: _Upload, result: ReadTokenizer) -> tuple[TokenizerRecord, bool]:
        """The record that's kept, and whether it is new."""
        known = self._catalog.tokenizer(result.fingerprint)
        created = known is None
        if known is None:
            known = self._catalog.add_tokenizer(self._record(upload, result))
        stops = json.dumps(result.stop_token_ids)
        if (known.stop_token_ids, known.logits_width) != (stops, result.logits_width):
            raise RegistryError(
                Reason.TOKENIZER_DIFFERS,
                "this vocabulary is registered with other stop tokens or another logits width",
                {
                    "fingerprint": known.fingerprint,
                    "registered": f"{known.stop_token_ids} {known.logits_width}",
                    "sent": f"{stops} {result.logits_width}",
                },
            )
        return known, created

    def _record(self, upload: _Upload, result: ReadTokenizer) -> TokenizerRecord:
        put = self._catalog.content.put
        file, pack = put(upload.data), put(result.pack)
        beside = [(name, *_pair(put(data))) for name, data in sorted(upload.beside.items())]
        return TokenizerRecord(
            fingerprint=result.fingerprint,
            name=upload.name,
            vocab_size=result.vocab_size,
            file_hash=file.hash,
            file_size=file.size,
            pack_hash=pack.hash,
            pack_size=pack.size,
            stop_token_ids=json.dumps(result.stop_token_ids),
            logits_width=result.logits_width,
            beside=json.dumps(beside),
        )


async def _header(
    requests: AsyncIterator[tokenizer_pb2.RegisterRequest],
) -> tokenizer_pb2.RegisterRequest.Header:
    first = await _next(requests)
    if first is None or first.WhichOneof("part") != "header":
        raise invalid_request("header", "must be the first message")
    return first.header


async def _next(
    requests: AsyncIterator[tokenizer_pb2.RegisterRequest],
) -> tokenizer_pb2.RegisterRequest | None:
    return await anext(aiter(requests), None)


def _companions(header: tokenizer_pb2.RegisterRequest.Header) -> dict[str, bytes]:
    beside = {c.name: c.data for c in header.beside}
    for name, data in beside.items():
        if name not in COMPANIONS:
            raise invalid_request("header.beside", f"{name!r} isn't one of {', '.join(COMPANIONS)}")
        if len(data) > MAX_COMPANION:
            raise invalid_request("header.beside", f"{name} has {len(data)} bytes, more than {MAX_COMPANION}")
    return beside


def _pair(digest: Digest) -> tuple[str, int]:
    return digest.hash, digest.size
