"""The client for asyncio: resolve, compile, fetch, load, watch, with the same checks and the same disk cache.

Files are read and written in threads; calls are gRPC's own asyncio. Belongs to one event loop. What's missing here is
rare enough for `RegistryClient` in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from maskwright.v1 import registry_pb2
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials, channel_arguments, metadata
from maskwright.workers.client.download import Download
from maskwright.workers.client.errors import ArtifactRevoked, ArtifactUntrusted, call_failed
from maskwright.workers.client.messages import (
    BlobDigest,
    CompiledSource,
    compile_request,
    compiled_source,
    signatures_of,
)
from maskwright.workers.client.names import Change, change_of, named_request
from maskwright.workers.client.registry import READABLE_MAJORS, keep, keep_signatures, make_stubs, pause_before
from maskwright.workers.client.signing import TrustedKeys
from maskwright.workers.client.tracing import call_span, traced

if TYPE_CHECKING:
    from maskwright.workers import Artifact, VocabularyPack

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
        trusted_keys: TrustedKeys | None = None,
    ) -> None:
        from maskwright.workers.artifact import cache_directory

        self.address, self.cache = address, cache or DiskCache(cache_directory())
        self._attempts, self._trusted = attempts, trusted_keys or TrustedKeys.from_environment()
        credentials = Credentials.from_environment() if credentials is None else credentials
        self._plain_arguments = {"timeout": timeout, "metadata": metadata(credentials)}
        secure, options = channel_arguments(address, credentials)
        self._channel = (
            grpc.aio.insecure_channel(address, options)
            if secure is None
            else grpc.aio.secure_channel(address, secure, options)
        )
        self._stubs = make_stubs(self._channel)
        self._packs: dict[str, VocabularyPack] = {}
        self._fetching: dict[str, asyncio.Task[bytes]] = {}

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
        resources: Mapping[str, Any] | None = None,
    ) -> CompiledSource:
        """As `RegistryClient.compile`. Cancelling it stops the compilation, unless others wait for it too."""
        request = compile_request(
            source,
            fingerprint,
            kind=kind,
            options=options,
            limits_profile=limits_profile,
            request_id=request_id,
            resources=resources,
        )
        reply = await self._ask("CompilerService/Compile", request)
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
        reply = await self._ask("RegistryService/Resolve", request)
        found = compiled_source(reply.info, True)
        return replace(found, version=reply.version, revision=reply.revision)

    async def fetch(self, digest: str | BlobDigest, kind: str = "blob") -> bytes:
        """As `RegistryClient.fetch`."""
        wanted = await self._usable(digest, kind)
        return await asyncio.shield(self._shared(wanted, kind))

    async def fetch_path(self, digest: str | BlobDigest, kind: str = "blob") -> Path:
        """As `RegistryClient.fetch_path`."""
        wanted = await self._usable(digest, kind)
        found = await asyncio.to_thread(self.cache.find, kind, wanted.hash)
        if found is not None:
            return found
        data = await asyncio.shield(self._shared(wanted, kind))
        return await asyncio.to_thread(self.cache.put, kind, wanted.hash, data)

    def _shared(self, wanted: BlobDigest, kind: str) -> asyncio.Task[bytes]:
        """What several ask for at once is read or downloaded once."""
        task = self._fetching.get(wanted.hash)
        if task is None:
            task = asyncio.ensure_future(self._read_or_download(wanted, kind))
            self._fetching[wanted.hash] = task
            task.add_done_callback(lambda _: self._fetching.pop(wanted.hash, None))
        return task

    async def _usable(self, digest: str | BlobDigest, kind: str) -> BlobDigest:
        wanted = digest if isinstance(digest, BlobDigest) else BlobDigest(digest, 0)
        if self.cache.is_revoked(wanted.hash):
            raise ArtifactRevoked(wanted.hash)
        if kind == "artifact" and self._trusted is not None:
            await self._check_signed(self._trusted, wanted.hash)
        return wanted

    async def _check_signed(self, trusted: TrustedKeys, hash_: str) -> None:
        try:
            trusted.check(hash_, await asyncio.to_thread(self.cache.find_signatures, hash_))
            return
        except ArtifactUntrusted:
            request = registry_pb2.GetSignaturesRequest(artifact_hash=hash_, key_ids=trusted.ids)
            found = signatures_of(await self._ask("RegistryService/GetSignatures", request))
        trusted.check(hash_, found)
        await asyncio.to_thread(keep_signatures, self.cache, hash_, found)

    async def load_artifact(self, digest: str | BlobDigest) -> Artifact:
        """As `RegistryClient.load_artifact`, checks included, in a thread."""
        from maskwright.workers import Artifact
        from maskwright.workers.container import read_container

        data = await self.fetch(digest, "artifact")
        container = await asyncio.to_thread(read_container, data)
        pack = await self._load_pack(str(container.header.get("pack")))
        return await asyncio.to_thread(Artifact.from_bytes, data, pack)

    async def _load_pack(self, hash_: str) -> VocabularyPack:
        from maskwright.workers import VocabularyPack

        if hash_ not in self._packs:
            try:
                path = await self.fetch_path(hash_, "pack")
                self._packs[hash_] = await asyncio.to_thread(VocabularyPack.load, path)
            except OSError:
                data = await self.fetch(hash_, "pack")
                self._packs[hash_] = await asyncio.to_thread(VocabularyPack.from_bytes, data)
        return self._packs[hash_]

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
        stream = self._stubs["RegistryService"].Watch(request, metadata=self._arguments["metadata"])
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

    async def _read_or_download(self, wanted: BlobDigest, kind: str) -> bytes:
        data = await asyncio.to_thread(self.cache.read, kind, wanted.hash)
        if data is None:
            data = await self._download(wanted)
            await asyncio.to_thread(keep, self.cache, kind, wanted.hash, data)
        return data

    async def _download(self, wanted: BlobDigest) -> bytes:
        download = Download(wanted)

        async def go_on() -> None:
            async for chunk in self._stubs["RegistryService"].Fetch(download.request(), **self._arguments):
                download.take(chunk)

        await self._call("RegistryService/Fetch", go_on)
        return download.finish()

    async def _ask(self, method: str, request: Any) -> Any:
        service, _, name = method.partition("/")
        return await self._call(method, lambda: getattr(self._stubs[service], name)(request, **self._arguments))

    async def _call(self, method: str, call: Callable[[], Awaitable[_Result]]) -> _Result:
        with call_span(method, self.address) as span:
            for attempt in range(1, self._attempts + 1):
                try:
                    return await call()
                except grpc.RpcError as error:
                    span.failed(error.code().name)
                    await asyncio.sleep(pause_before(error, attempt, self._attempts, self.cache))
        raise AssertionError("unreachable: the last attempt returns or raises")
