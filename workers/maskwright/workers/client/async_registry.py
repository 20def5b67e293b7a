"""The client for asyncio: resolve, compile, fetch, load, watch, with the same checks and the same disk cache.

Files are read and written in threads; calls are gRPC's own asyncio. Belongs to one event loop. What's missing here is
rare enough for `RegistryClient` in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from maskwright.v1 import compiler_pb2_grpc, registry_pb2, registry_pb2_grpc, types_pb2
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials, channel_arguments, metadata, traced
from maskwright.workers.client.errors import ArtifactRevoked, CorruptDownload, call_failed
from maskwright.workers.client.names import Change, change_of, named_request
from maskwright.workers.client.registry import (
    READABLE_MAJORS,
    BlobDigest,
    CompiledSource,
    compile_request,
    compiled_source,
    pause_before,
)

if TYPE_CHECKING:
    from maskwright.workers import Artifact

_Result = TypeVar("_Result")


class AsyncRegistryClient:
    """Calls the registry at `address`; use it in `async with`. The arguments are `RegistryClient`'s."""

    def __init__(
        self,
        address: str,
        *,
        cache: DiskCache | None = None,
        timeout: float = 120.0,
        attempts: int = 4,
        credentials: Credentials | None = None,
    ) -> None:
        from maskwright.workers.artifact import cache_directory

        self.cache = cache or DiskCache(cache_directory())
        self._attempts = attempts
        credentials = Credentials.from_environment() if credentials is None else credentials
        self._plain_arguments = {"timeout": timeout, "metadata": metadata(credentials)}
        secure, options = channel_arguments(address, credentials)
        self._channel = (
            grpc.aio.insecure_channel(address, options)
            if secure is None
            else grpc.aio.secure_channel(address, secure, options)
        )
        # The generated stubs are untyped.
        self._compiler: Any = compiler_pb2_grpc.CompilerServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._registry: Any = registry_pb2_grpc.RegistryServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._fetching: dict[str, asyncio.Task[Path]] = {}

    async def __aenter__(self) -> AsyncRegistryClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channel.close()

    async def compile(
        self,
        source: str | Mapping[str, Any] | bool,
        fingerprint: str,
        *,
        kind: str = "json_schema",
        options: Mapping[str, Any] | None = None,
        limits_profile: str = "",
        request_id: str = "",
    ) -> CompiledSource:
        """As `RegistryClient.compile`. Cancelling it stops the compilation, unless others wait for it too."""
        request = compile_request(
            source, fingerprint, kind=kind, options=options, limits_profile=limits_profile, request_id=request_id
        )
        reply = await self._call(lambda: self._compiler.Compile(request, **self._arguments))
        return compiled_source(reply.info, reply.cached)

    async def resolve(
        self,
        name: str = "",
        *,
        version: int | None = None,
        channel: str = "",
        fingerprint: str = "",
        min_revision: int = 0,
        key: str = "",
        hash: str = "",
    ) -> CompiledSource:
        """As `RegistryClient.resolve`."""
        by: dict[str, Any] = {"artifact_key": key} if key else {"artifact_hash": hash}
        if name:
            by = named_request(name, version, channel, fingerprint, min_revision)
        request = registry_pb2.ResolveRequest(readable_majors=READABLE_MAJORS, **by)
        reply = await self._call(lambda: self._registry.Resolve(request, **self._arguments))
        found = compiled_source(reply.info, True)
        return replace(found, version=reply.version, revision=reply.revision)

    async def fetch(self, digest: str | BlobDigest, kind: str = "blob") -> bytes:
        """As `RegistryClient.fetch`."""
        path = await self.fetch_path(digest, kind)
        return await asyncio.to_thread(path.read_bytes)

    async def fetch_path(self, digest: str | BlobDigest, kind: str = "blob") -> Path:
        """As `RegistryClient.fetch_path`; what several ask for at once is downloaded once."""
        wanted = digest if isinstance(digest, BlobDigest) else BlobDigest(digest, 0)
        if self.cache.is_revoked(wanted.hash):
            raise ArtifactRevoked(wanted.hash)
        task = self._fetching.get(wanted.hash)
        if task is None:
            task = asyncio.ensure_future(self._find_or_download(wanted, kind))
            self._fetching[wanted.hash] = task
            task.add_done_callback(lambda _: self._fetching.pop(wanted.hash, None))
        return await asyncio.shield(task)

    async def load_artifact(self, digest: str | BlobDigest) -> Artifact:
        """As `RegistryClient.load_artifact`, checks included, in a thread."""
        from maskwright.workers import Artifact, VocabularyPack
        from maskwright.workers.container import read_container

        data = await self.fetch(digest, "artifact")
        container = await asyncio.to_thread(read_container, data)
        pack = await self.fetch_path(str(container.header.get("pack")), "pack")
        return await asyncio.to_thread(lambda: Artifact.from_bytes(data, VocabularyPack.load(pack)))

    async def warm(self, digests: Sequence[BlobDigest], kind: str = "artifact") -> None:
        """Brings blobs to disk, several at a time."""
        slots = asyncio.Semaphore(8)

        async def one(digest: BlobDigest) -> None:
            async with slots:
                await self.fetch_path(digest, kind)

        await asyncio.gather(*(one(d) for d in digests))

    async def watch(
        self, after: int = 0, names: Sequence[str] = ()
    ) -> AsyncIterator[tuple[int, Change | None]]:
        """As `RegistryClient.watch`."""
        request = registry_pb2.WatchRequest(after_revision=after, names=names)
        stream = self._registry.Watch(request, metadata=self._arguments["metadata"])
        try:
            async for message in stream:
                yield message.revision, change_of(message)
        except grpc.RpcError as error:
            raise call_failed(error) from error
        finally:
            stream.cancel()

    @property
    def _arguments(self) -> dict[str, Any]:
        return traced(self._plain_arguments)

    async def _find_or_download(self, wanted: BlobDigest, kind: str) -> Path:
        found = await asyncio.to_thread(self.cache.find, kind, wanted.hash)
        if found is not None:
            return found
        data = await self._download(wanted)
        return await asyncio.to_thread(self.cache.put, kind, wanted.hash, data)

    async def _download(self, wanted: BlobDigest) -> bytes:
        received = bytearray()
        digest = types_pb2.Digest(hash=wanted.hash, size_bytes=wanted.size)

        async def go_on() -> None:
            request = registry_pb2.FetchRequest(digest=digest, offset=len(received))
            async for chunk in self._registry.Fetch(request, **self._arguments):
                if chunk.offset != len(received):
                    raise CorruptDownload(f"bytes from {len(received)}", f"bytes from {chunk.offset}")
                received.extend(chunk.data)

        await self._call(go_on)
        found = hashlib.sha256(received).hexdigest()
        if found != wanted.hash or wanted.size not in (0, len(received)):
            raise CorruptDownload(f"{wanted.hash}/{wanted.size}", f"{found}/{len(received)}")
        return bytes(received)

    async def _call(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        for attempt in range(1, self._attempts + 1):
            try:
                return await call()
            except grpc.RpcError as error:
                await asyncio.sleep(pause_before(error, attempt, self._attempts, self.cache))
        raise AssertionError("unreachable: the last attempt returns or raises")
