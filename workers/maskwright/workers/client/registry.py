"""A blocking client of one registry. May be shared between threads.

Calls that failed because the service was unavailable or its queue full are tried again, after the delay that
it names or with growing pauses; a download goes on from where it broke. Everything fetched is checked against
its digest before it's used or kept; with trusted keys, artifacts against their signatures too, cached or not.
A cache that can't be written costs downloads, not answers.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.protobuf.json_format import MessageToDict

from maskwright.v1 import (
    compiler_pb2,
    compiler_pb2_grpc,
    registry_pb2,
    registry_pb2_grpc,
    tokenizer_pb2,
    tokenizer_pb2_grpc,
)
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials, channel_arguments, metadata
from maskwright.workers.client.download import Download
from maskwright.workers.client.errors import (
    ArtifactRevoked,
    ArtifactUntrusted,
    CallFailed,
    call_failed,
    diagnostic_fields,
    failure_of,
    plain_numbers,
)
from maskwright.workers.client.lock import Lock, LockedArtifact
from maskwright.workers.client.messages import (
    BlobDigest,
    CompiledSource,
    RegisteredTokenizer,
    compile_request,
    compiled_source,
    tokenizer_of,
    upload_messages,
)
from maskwright.workers.client.names import NameCalls, named_request
from maskwright.workers.client.signing import Signature, TrustedKeys
from maskwright.workers.client.tracing import call_span, traced

if TYPE_CHECKING:
    from maskwright.workers import Artifact, VocabularyPack

_Result = TypeVar("_Result")
READABLE_MAJORS = (1,)
COMPANIONS = ("generation_config.json", "tokenizer_config.json", "config.json")
LONGEST_PAUSE = 30.0
_log = logging.getLogger(__name__)

class RegistryClient(NameCalls):
    """Calls the registry at `address` (host:port); close it, or use it in `with`.

    cache: a folder's cache; default that of the worker runtime (`$MASKWRIGHT_CACHE`, else
    `~/.cache/maskwright`). timeout: seconds for one call. attempts: tries of a call that may be tried
    again. credentials: TLS and token; default those of the environment (`Credentials.from_environment`).
    trusted_keys: only artifacts that one of them signed are used; default those of $MASKWRIGHT_TRUSTED_KEYS, and
    without any the registry is believed.

    Raises KeyFileError, OSError where keys or certificates can't be read.
    """

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
            grpc.insecure_channel(address, options)
            if secure is None
            else grpc.secure_channel(address, secure, options)
        )
        self._stubs = make_stubs(self._channel)
        self._packs: dict[str, VocabularyPack] = {}
        self._packs_lock = threading.Lock()

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    @property
    def _arguments(self) -> dict[str, Any]:
        return traced(self._plain_arguments)

    def register_tokenizer(self, tokenizer: str | Path | bytes, name: str = "") -> RegisteredTokenizer:
        """Sends a tokenizer file: a path, or bytes with the file's `name`. Idempotent.

        With a file named tokenizer.json go the configuration files beside it, which tell stop tokens.
        Raises SourceRefused for a file that can't be used, CallFailed, ServiceUnavailable, OSError.
        """
        beside: dict[str, bytes] = {}
        if isinstance(tokenizer, bytes):
            data, name = tokenizer, name or "tokenizer.json"
        else:
            path = Path(tokenizer)
            data, name = path.read_bytes(), name or path.name
            if path.name == "tokenizer.json":
                files = [path.with_name(n) for n in COMPANIONS]
                beside = {f.name: f.read_bytes() for f in files if f.is_file()}
        register = self._stubs["TokenizerService"].Register
        reply = self._call(  # each attempt sends it from its beginning
            "TokenizerService/Register", lambda: register(upload_messages(data, name, beside), **self._arguments)
        )
        return tokenizer_of(reply.tokenizer, reply.created)

    def tokenizers(self) -> list[RegisteredTokenizer]:
        """All tokenizers, by fingerprint."""
        found: list[RegisteredTokenizer] = []
        request = tokenizer_pb2.ListRequest()
        while True:
            reply = self._ask("TokenizerService/List", request)
            found += [tokenizer_of(t) for t in reply.tokenizers]
            request.page_token = reply.next_page_token
            if not request.page_token:
                return found

    def compile(
        self,
        source: str | Mapping[str, Any] | bool,
        fingerprint: str,
        *,
        kind: str = "json_schema",
        options: Mapping[str, Any] | None = None,
        limits_profile: str = "",
        validate_only: bool = False,
        request_id: str = "",
        resources: Mapping[str, Any] | None = None,
    ) -> CompiledSource:
        """Compiles a source for a registered tokenizer, or finds what it compiled to before.

        source: the text, or a JSON value. kind: "json_schema", "regex", "lark", "gbnf", "tools" (a list of tools or
        a document with it). options: names and values of the compiler's `CompileOptions`. Raises SourceRefused,
        CallFailed, ServiceUnavailable, ValueError.
        """
        request = compile_request(
            source,
            fingerprint,
            kind=kind,
            options=options,
            limits_profile=limits_profile,
            validate_only=validate_only,
            request_id=request_id,
            resources=resources,
        )
        reply = self._ask("CompilerService/Compile", request)
        return compiled_source(reply.info, reply.cached)

    def resolve(
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
        """What the registry knows of an artifact: by name (`tool`, `tool@7`, `tool:prod`), key or hash.

        fingerprint: the vocabulary, where the version holds several. min_revision: not from an older state.
        Raises ArtifactRevoked, CallFailed, ServiceUnavailable.
        """
        by: dict[str, Any] = {"artifact_key": key} if key else {"artifact_hash": hash}
        if name:
            by = named_request(name, version, channel, fingerprint, min_revision)
        request = registry_pb2.ResolveRequest(readable_majors=READABLE_MAJORS, **by)
        reply = self._ask("RegistryService/Resolve", request)
        found = compiled_source(reply.info, True)
        return replace(found, version=reply.version, revision=reply.revision)

    def precompile(self, items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, CompiledSource | CallFailed]]:
        """(place, result or failure) of many compilations, as they're done. Items are `compile`'s arguments.

        Not tried again as a whole. Raises CallFailed, ServiceUnavailable, ValueError.
        """
        request = compiler_pb2.PrecompileRequest(items=[compile_request(**item) for item in items])
        try:
            for reply in self._stubs["CompilerService"].Precompile(request, metadata=self._arguments["metadata"]):
                if reply.HasField("failed"):
                    yield reply.index, failure_of(reply.failed)
                else:
                    yield reply.index, compiled_source(reply.done.info, reply.done.cached)
        except grpc.RpcError as error:
            raise call_failed(error) from error

    def explain(
        self,
        source: str | Mapping[str, Any] | bool,
        fingerprint: str,
        *,
        kind: str = "json_schema",
        options: Mapping[str, Any] | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> tuple[bool, list[dict[str, Any]], dict[str, Any]]:
        """(accepted, diagnostics, report) of a source; nothing is kept."""
        compiled = compile_request(source, fingerprint, kind=kind, options=options, resources=resources)
        fields = {f.name: getattr(compiled, f.name) for f in compiler_pb2.ExplainRequest.DESCRIPTOR.fields}
        request = compiler_pb2.ExplainRequest(**fields)
        reply = self._ask("CompilerService/Explain", request)
        diagnostics = [diagnostic_fields(d) for d in reply.diagnostics]
        return reply.accepted, diagnostics, plain_numbers(MessageToDict(reply.info.report))

    def capabilities(self) -> dict[str, Any]:
        """The server's versions, kinds, limits and sizes."""
        request = compiler_pb2.GetCapabilitiesRequest()
        reply = self._ask("CompilerService/GetCapabilities", request)
        fields: dict[str, Any] = MessageToDict(reply, preserving_proto_field_name=True)
        return fields

    def health(self) -> str:
        """What the standard health service tells: "SERVING", "NOT_SERVING", "UNKNOWN". Needs no token."""
        check = self._channel.unary_unary("/grpc.health.v1.Health/Check")
        # HealthCheckResponse has one field: 1, the status. Workers needn't have its package.
        seconds = self._plain_arguments["timeout"]
        reply: bytes = self._call("grpc.health.v1.Health/Check", lambda: check(b"", timeout=seconds))
        return {b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}.get(reply, "UNKNOWN")

    def fetch(self, digest: str | BlobDigest, kind: str = "blob") -> bytes:
        """A blob's verified bytes, from disk or the registry. kind: "artifact", "pack" or "blob".

        Raises ArtifactUntrusted (of an artifact, where keys are trusted), ArtifactRevoked, CorruptDownload,
        CallFailed, ServiceUnavailable.
        """
        wanted = self._usable(digest, kind)
        data = self.cache.read(kind, wanted.hash)
        if data is None:
            data = self._download(wanted)
            keep(self.cache, kind, wanted.hash, data)
        return data

    def fetch_path(self, digest: str | BlobDigest, kind: str = "blob") -> Path:
        """Like `fetch`, the file on disk. Raises OSError too, where the cache can't be written."""
        wanted = self._usable(digest, kind)
        found = self.cache.find(kind, wanted.hash)
        return found or self.cache.put(kind, wanted.hash, self._download(wanted))

    def _usable(self, digest: str | BlobDigest, kind: str) -> BlobDigest:
        """What may be used: not revoked; an artifact, where keys are trusted, signed by one of them."""
        wanted = digest if isinstance(digest, BlobDigest) else BlobDigest(digest, 0)
        if self.cache.is_revoked(wanted.hash):
            raise ArtifactRevoked(wanted.hash)
        if kind == "artifact" and self._trusted is not None:
            self._check_signed(self._trusted, wanted.hash)
        return wanted

    def _check_signed(self, trusted: TrustedKeys, hash_: str) -> None:
        try:
            trusted.check(hash_, self.cache.find_signatures(hash_))
            return
        except ArtifactUntrusted:
            found = self.signatures(hash_, trusted.ids)
        trusted.check(hash_, found)
        keep_signatures(self.cache, hash_, found)

    def load_artifact(self, digest: str | BlobDigest) -> Artifact:
        """The artifact with its pack, each fetched at most once per host.

        Raises what `fetch` raises, and `maskwright.workers.ArtifactError`.
        """
        from maskwright.workers import Artifact
        from maskwright.workers.container import read_container

        data = self.fetch(digest, "artifact")
        return Artifact.from_bytes(data, self.load_pack(str(read_container(data).header.get("pack"))))

    def load_pack(self, digest: str | BlobDigest) -> VocabularyPack:
        """The vocabulary pack, mapped once per client."""
        from maskwright.workers import VocabularyPack

        hash_ = digest.hash if isinstance(digest, BlobDigest) else digest
        with self._packs_lock:
            if hash_ not in self._packs:
                try:
                    self._packs[hash_] = VocabularyPack.load(self.fetch_path(digest, "pack"))
                except OSError as error:
                    _log.warning("the pack isn't mapped from disk (%s), but held in memory", error)
                    self._packs[hash_] = VocabularyPack.from_bytes(self.fetch(digest, "pack"))
            return self._packs[hash_]

    def warm(self, lock: Lock, fingerprint: str = "") -> list[LockedArtifact]:
        """Brings what a lock file names to disk, packs too, eight at a time; with a vocabulary only its own.

        Raises what `fetch` raises.
        """
        chosen = [a for a in lock.artifacts if fingerprint in ("", a.fingerprint)]
        wanted = {("pack", BlobDigest(a.pack, a.pack_size)) for a in chosen}
        wanted |= {("artifact", BlobDigest(a.artifact, a.artifact_size)) for a in chosen}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: self.fetch_path(item[1], item[0]), sorted(wanted, key=str)))
        return chosen

    def all_diagnostics(self, hash_: str) -> list[dict[str, Any]]:
        """The whole list that a `SourceRefused` had to cut short: its `all_diagnostics`."""
        listed: list[dict[str, Any]] = json.loads(self.fetch(hash_))
        return listed

    def _download(self, wanted: BlobDigest) -> bytes:
        download = Download(wanted)

        def go_on() -> None:
            for chunk in self._stubs["RegistryService"].Fetch(download.request(), **self._arguments):
                download.take(chunk)

        self._call("RegistryService/Fetch", go_on)
        return download.finish()

    def _ask(self, method: str, request: Any) -> Any:
        service, _, name = method.partition("/")
        return self._call(method, lambda: getattr(self._stubs[service], name)(request, **self._arguments))

    def _call(self, method: str, call: Callable[[], _Result]) -> _Result:
        """Every call here may be tried again: it changes nothing, or is the same when done twice."""
        with call_span(method, self.address) as span:
            for attempt in range(1, self._attempts + 1):
                try:
                    return call()
                except grpc.RpcError as error:
                    span.failed(error.code().name)
                    time.sleep(pause_before(error, attempt, self._attempts, self.cache))
        raise AssertionError("unreachable: the last attempt returns or raises")


def make_stubs(channel: Any) -> dict[str, Any]:
    """The generated stubs, which are untyped, by service."""
    return {
        "CompilerService": compiler_pb2_grpc.CompilerServiceStub(channel),  # type: ignore[no-untyped-call]
        "RegistryService": registry_pb2_grpc.RegistryServiceStub(channel),  # type: ignore[no-untyped-call]
        "TokenizerService": tokenizer_pb2_grpc.TokenizerServiceStub(channel),  # type: ignore[no-untyped-call]
    }


def pause_before(error: grpc.RpcError, attempt: int, attempts: int, cache: DiskCache) -> float:
    """Seconds before the next attempt, or raises the error's typed form. A revoked artifact leaves the cache."""
    failed = call_failed(error)
    if failed.reason == "REVOKED":
        hash_ = failed.metadata.get("artifact_hash", "")
        remember_revoked(cache, hash_)
        raise ArtifactRevoked(hash_, failed.metadata.get("why", "")) from error
    if attempt == attempts or not (failed.code == "UNAVAILABLE" or failed.retry_after is not None):
        raise failed from error
    # Callers that failed together don't come back together.
    pause = failed.retry_after or 0.1 * 2 ** min(attempt, 10)
    return min(pause, LONGEST_PAUSE) * random.uniform(1.0, 1.3)


def keep(cache: DiskCache, kind: str, hash_: str, data: bytes) -> None:
    """Puts a blob into the cache where that can be written."""
    try:
        cache.put(kind, hash_, data)
    except OSError as error:
        _log.warning("%s isn't kept on disk: %s", hash_, error)


def keep_signatures(cache: DiskCache, hash_: str, signatures: Sequence[Signature]) -> None:
    try:
        cache.put_signatures(hash_, signatures)
    except OSError as error:
        _log.warning("signatures of %s aren't kept on disk: %s", hash_, error)


def remember_revoked(cache: DiskCache, hash_: str) -> None:
    """A registry's word that an artifact mustn't be used; no word that can be used names no artifact."""
    try:
        cache.revoke(hash_)
    except (OSError, ValueError) as error:
        _log.warning("that %r is revoked isn't kept on disk: %s", hash_, error)


