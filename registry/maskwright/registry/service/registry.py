"""RegistryService: Resolve and Fetch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from maskwright.v1 import registry_pb2, registry_pb2_grpc

from ..catalog import ArtifactRecord, Catalog
from ..content import Digest
from ..faults import Reason, RegistryError, invalid_request
from ..hot_blobs import HotBlobs
from ..usage import Usage
from .messages import artifact_message, digest_message, digest_of

_PREAMBLE = 10
"""Bytes of an artifact up to its format major: eight of magic, two of little-endian integer."""


class RegistryServicer(registry_pb2_grpc.RegistryServiceServicer):
    """Looks up and streams over one catalog. Belongs to one event loop."""

    def __init__(self, catalog: Catalog, hot: HotBlobs, chunk_bytes: int) -> None:
        self._catalog, self._hot, self._chunk_bytes = catalog, hot, chunk_bytes
        self.usage = Usage(catalog.index)

    async def Resolve(
        self, request: registry_pb2.ResolveRequest, context: grpc.aio.ServicerContext
    ) -> registry_pb2.ResolveResponse:
        return await asyncio.to_thread(self._resolve, request)

    async def Fetch(
        self, request: registry_pb2.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[registry_pb2.FetchResponse]:
        data = self._hot.find(request.digest.hash)
        digest = (
            await asyncio.to_thread(self._catalog.content.find, digest_of(request.digest, "digest").hash)
            if data is None
            else Digest(request.digest.hash, len(data))
        )
        _check_range(request, digest)
        if data is None and digest.size <= self._hot.max_bytes // 4:
            data = await asyncio.to_thread(self._hot.read, digest)
        pieces = self._stream(digest, request.offset) if data is None else self._slices(data, request.offset)
        response = registry_pb2.FetchResponse(digest=digest_message(digest))
        async for response.offset, response.data in pieces:
            yield response
            response = registry_pb2.FetchResponse()
        self.usage.count(digest.hash)

    async def _slices(self, data: bytes, offset: int) -> AsyncIterator[tuple[int, bytes]]:
        """Pieces of bytes in memory; one empty piece where nothing is left."""
        yield offset, data[offset : offset + self._chunk_bytes]
        for start in range(offset + self._chunk_bytes, len(data), self._chunk_bytes):
            yield start, data[start : start + self._chunk_bytes]

    async def _stream(self, digest: Digest, offset: int) -> AsyncIterator[tuple[int, bytes]]:
        """Pieces from the store, the next one being read while one is sent."""
        chunks = self._catalog.content.chunks(digest, offset, self._chunk_bytes)
        coming = asyncio.ensure_future(asyncio.to_thread(next, chunks, None))
        while (piece := await coming) is not None:
            coming = asyncio.ensure_future(asyncio.to_thread(next, chunks, None))
            yield piece

    def _resolve(self, request: registry_pb2.ResolveRequest) -> registry_pb2.ResolveResponse:
        record = self._record(request)
        if record is None:
            name = request.artifact_key or request.artifact_hash
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, f"no artifact {name!r}", {"artifact": name})
        preamble = self._catalog.content.get_prefix(record.artifact, _PREAMBLE)
        major = int.from_bytes(preamble[8:], "little")
        if request.readable_majors and major not in request.readable_majors:
            raise RegistryError(
                Reason.UNREADABLE_FORMAT, f"the artifact has format {major}", {"major": str(major)}
            )
        report = self._catalog.get_json(record.report)
        return registry_pb2.ResolveResponse(info=artifact_message(record, report), format_major=major)

    def _record(self, request: registry_pb2.ResolveRequest) -> ArtifactRecord | None:
        by = request.WhichOneof("by")
        if by is None:
            raise invalid_request("by", "missing")
        digest_of_hash(getattr(request, by), by)
        if by == "artifact_key":
            return self._catalog.artifact(request.artifact_key)
        return self._catalog.artifact_by_hash(request.artifact_hash)


def _check_range(request: registry_pb2.FetchRequest, found: Digest) -> None:
    if request.digest.size_bytes not in (0, found.size):
        raise invalid_request("digest.size_bytes", f"the blob has {found.size} bytes")
    if not 0 <= request.offset <= found.size:
        raise RegistryError(
            Reason.OFFSET_TOO_LARGE,
            f"offset {request.offset} of {found.size} bytes",
            {"offset": str(request.offset), "size": str(found.size)},
        )


def digest_of_hash(hash_: str, field_name: str) -> Digest:
    """A digest of unknown size; raises for what isn't a hash."""
    try:
        return Digest(hash_, 0)
    except ValueError as error:
        raise invalid_request(field_name, str(error)) from error
