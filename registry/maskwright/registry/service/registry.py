"""RegistryService: Resolve and Fetch; the rest is in `names`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc

from maskwright.v1 import registry_pb2

from ..catalog import ArtifactRecord, Catalog
from ..content import Digest
from ..faults import Reason, RegistryError, check_digest, invalid_request
from ..hot_blobs import HotBlobs
from ..names import Artifact, Journal, State, Version, check_name, namespace_of
from ..names.changes import check_served, find_channel, find_name, find_version
from ..security import current_caller
from ..security.quotas import Quotas
from ..telemetry import Metrics
from ..usage import Usage
from .messages import artifact_message, digest_message, digest_of
from .names import NamesServicer

_PREAMBLE = 10
"""Bytes of an artifact up to its format major: eight of magic, two of little-endian integer."""

_KEPT_MAJORS = 100_000


class RegistryServicer(NamesServicer):
    """Looks up and streams over one catalog. Belongs to one event loop."""

    def __init__(
        self,
        catalog: Catalog,
        journal: Journal,
        hot: HotBlobs,
        chunk_bytes: int,
        quotas: Quotas,
        metrics: Metrics,
    ) -> None:
        super().__init__(catalog, journal)
        self._hot, self._chunk_bytes, self._quotas, self._metrics = hot, chunk_bytes, quotas, metrics
        self.usage = Usage(catalog.index)
        self._majors: dict[str, int] = {}

    async def Resolve(
        self, request: registry_pb2.ResolveRequest, context: grpc.aio.ServicerContext
    ) -> registry_pb2.ResolveResponse:
        if request.WhichOneof("by") == "named":
            name = check_name(request.named.name)
            current_caller().require("read", namespace_of(name))
            return await asyncio.to_thread(self._resolve_named, request, name)
        return await asyncio.to_thread(self._resolve, request, self._record)

    async def Fetch(
        self, request: registry_pb2.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[registry_pb2.FetchResponse]:
        self._check_served(request.digest.hash)
        data = self._hot.find(request.digest.hash)
        digest = (
            await asyncio.to_thread(self._catalog.content.find, digest_of(request.digest, "digest").hash)
            if data is None
            else Digest(request.digest.hash, len(data))
        )
        _check_range(request, digest)
        self._quotas.count_fetch(current_caller().name, digest.size - request.offset)
        self._metrics.hot.labels("no" if data is None else "yes").inc()
        if data is None and digest.size <= self._hot.max_bytes // 4:
            data = await asyncio.to_thread(self._hot.read, digest)
        pieces = self._stream(digest, request.offset) if data is None else self._slices(data, request.offset)
        response = registry_pb2.FetchResponse(digest=digest_message(digest))
        async for response.offset, response.data in pieces:
            yield response
            response = registry_pb2.FetchResponse()
        self._metrics.fetch_bytes.inc(digest.size - request.offset)
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

    def _resolve(
        self,
        request: registry_pb2.ResolveRequest,
        find: Callable[[registry_pb2.ResolveRequest], ArtifactRecord | None],
    ) -> registry_pb2.ResolveResponse:
        record = find(request)
        if record is None:
            name = request.artifact_key or request.artifact_hash or request.named.name
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, f"no artifact {name!r}", {"artifact": name})
        self._check_served(record.artifact_hash)
        major = self._major(record.artifact)
        if request.readable_majors and major not in request.readable_majors:
            raise RegistryError(
                Reason.UNREADABLE_FORMAT, f"the artifact has format {major}", {"major": str(major)}
            )
        report = self._catalog.get_json(record.report)
        return registry_pb2.ResolveResponse(info=artifact_message(record, report), format_major=major)

    def _major(self, digest: Digest) -> int:
        """The format major of an artifact."""
        major = self._majors.get(digest.hash)
        if major is None:
            data = self._hot.find(digest.hash) or self._catalog.content.get_prefix(digest, _PREAMBLE)
            major = int.from_bytes(data[8:_PREAMBLE], "little")
            if len(self._majors) >= _KEPT_MAJORS:
                self._majors.clear()
            self._majors[digest.hash] = major
        return major

    def _resolve_named(
        self, request: registry_pb2.ResolveRequest, name: str
    ) -> registry_pb2.ResolveResponse:
        version, revision = self._version(request, name)
        artifact = _choose(version, request.tokenizer_fingerprint)
        response = self._resolve(request, lambda _: self._catalog.artifact(artifact.artifact_key))
        response.version, response.revision = version.version, revision
        return response

    def _version(self, request: registry_pb2.ResolveRequest, name: str) -> tuple[Version, int]:
        """From what's known here; the store is asked where that's too old or doesn't have it."""

        def look(state: State) -> tuple[Version, int]:
            known = find_name(state, name)
            at = request.named.WhichOneof("at")
            number = request.named.version if at == "version" else known.latest
            if at == "channel":
                number = find_channel(known, name, request.named.channel).version
            return find_version(known, name, number), state.revision

        known = self._journal.read(lambda state: state.revision)
        if known < request.min_revision:
            known = self._journal.catch_up()
        if known < request.min_revision:
            found = {"min_revision": str(request.min_revision), "revision": str(known)}
            message = f"revision {request.min_revision}, of {known}"
            raise RegistryError(Reason.REVISION_TOO_LARGE, message, found)
        try:
            return self._journal.read(look)
        except RegistryError:
            self._journal.catch_up()
            return self._journal.read(look)

    def _check_served(self, hash_: str) -> None:
        self._journal.read(lambda state: check_served(state, hash_))

    def _record(self, request: registry_pb2.ResolveRequest) -> ArtifactRecord | None:
        by = request.WhichOneof("by")
        if by is None:
            raise invalid_request("by", "missing")
        check_digest(getattr(request, by), by)
        if by == "artifact_key":
            return self._catalog.artifact(request.artifact_key)
        return self._catalog.artifact_by_hash(request.artifact_hash)


def _choose(version: Version, fingerprint: str) -> Artifact:
    """The version's artifact for a vocabulary, or its only one."""
    fitting = [a for a in version.artifacts if fingerprint in ("", a.fingerprint)]
    if len(fitting) == 1:
        return fitting[0]
    held = ",".join(a.fingerprint for a in version.artifacts)
    what = f"no artifact for {fingerprint}" if fingerprint else "several artifacts; name a vocabulary"
    message = f"{version.name}@{version.version} holds {what}"
    raise RegistryError(Reason.NOT_IN_VERSION, message, {"fingerprints": held[:2000]})


def _check_range(request: registry_pb2.FetchRequest, found: Digest) -> None:
    if request.digest.size_bytes not in (0, found.size):
        raise invalid_request("digest.size_bytes", f"the blob has {found.size} bytes")
    if not 0 <= request.offset <= found.size:
        raise RegistryError(
            Reason.OFFSET_TOO_LARGE,
            f"offset {request.offset} of {found.size} bytes",
            {"offset": str(request.offset), "size": str(found.size)},
        )
