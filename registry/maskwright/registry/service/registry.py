"""RegistryService: Resolve and Fetch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from maskwright.v1 import registry_pb2, registry_pb2_grpc

from ..catalog import ArtifactRecord, Catalog
from ..content import Digest
from ..faults import Reason, RegistryError, invalid_request
from .messages import artifact_message, digest_message, digest_of

_PREAMBLE = 10
"""Bytes of an artifact up to its format major: eight of magic, two of little-endian integer."""


class RegistryServicer(registry_pb2_grpc.RegistryServiceServicer):
    """Looks up and streams over one catalog."""

    def __init__(self, catalog: Catalog, chunk_bytes: int) -> None:
        self._catalog, self._chunk_bytes = catalog, chunk_bytes

    async def Resolve(
        self, request: registry_pb2.ResolveRequest, context: grpc.aio.ServicerContext
    ) -> registry_pb2.ResolveResponse:
        return await asyncio.to_thread(self._resolve, request)

    async def Fetch(
        self, request: registry_pb2.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[registry_pb2.FetchResponse]:
        digest = await asyncio.to_thread(self._find, request)
        chunks = self._catalog.content.chunks(digest, request.offset, self._chunk_bytes)
        first = registry_pb2.FetchResponse(digest=digest_message(digest))
        while (piece := await asyncio.to_thread(next, chunks, None)) is not None:
            first.offset, first.data = piece
            yield first
            first = registry_pb2.FetchResponse()
        await asyncio.to_thread(self._catalog.index.count_fetch, digest.hash)

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

    def _find(self, request: registry_pb2.FetchRequest) -> Digest:
        wanted = digest_of(request.digest, "digest")
        found = self._catalog.content.find(wanted.hash)
        if wanted.size not in (0, found.size):
            raise invalid_request("digest.size_bytes", f"the blob has {found.size} bytes")
        if not 0 <= request.offset <= found.size:
            raise RegistryError(
                Reason.OFFSET_TOO_LARGE,
                f"offset {request.offset} of {found.size} bytes",
                {"offset": str(request.offset), "size": str(found.size)},
            )
        return found


def digest_of_hash(hash_: str, field_name: str) -> Digest:
    """A digest of unknown size; raises for what isn't a hash."""
    try:
        return Digest(hash_, 0)
    except ValueError as error:
        raise invalid_request(field_name, str(error)) from error
