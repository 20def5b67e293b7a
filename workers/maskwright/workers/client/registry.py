"""A blocking client of one registry. May be shared between threads.

Calls that failed because the service was unavailable or its queue full are tried again, after the delay that
it names or with growing pauses; a download goes on from where it broke. Everything fetched is checked against
its digest before it's used or kept.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
    types_pb2,
)
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials, channel_arguments, metadata, traced
from maskwright.workers.client.errors import (
    ArtifactRevoked,
    CallFailed,
    CorruptDownload,
    call_failed,
    diagnostic_fields,
    failure_of,
    plain_numbers,
)
from maskwright.workers.client.lock import Lock, LockedArtifact
from maskwright.workers.client.names import NameCalls, named_request

if TYPE_CHECKING:
    from maskwright.workers import Artifact, VocabularyPack

_Result = TypeVar("_Result")
READABLE_MAJORS = (1,)
UPLOAD_CHUNK = 1 << 20
_KINDS = {
    "json_schema": types_pb2.SOURCE_KIND_JSON_SCHEMA,
    "regex": types_pb2.SOURCE_KIND_REGEX,
    "lark": types_pb2.SOURCE_KIND_LARK,
    "gbnf": types_pb2.SOURCE_KIND_GBNF,
    "tools": types_pb2.SOURCE_KIND_TOOLS,
}
COMPANIONS = ("generation_config.json", "tokenizer_config.json", "config.json")
_CHOICES = ("property_order", "residual", "regex_dialect", "formats", "grammar_fallback")


@dataclass(frozen=True)
class BlobDigest:
    """SHA-256 in hexadecimal, and bytes."""

    hash: str
    size: int


@dataclass(frozen=True)
class RegisteredTokenizer:
    """`created`: it wasn't known before. `vocab_size`: the highest token id + 1."""

    fingerprint: str
    name: str
    vocab_size: int
    pack: BlobDigest
    stop_token_ids: tuple[int, ...]
    logits_width: int
    created: bool = False


@dataclass(frozen=True)
class CompiledSource:
    """An artifact that the registry holds. `cached`: no compilation ran for this call.

    Found by name: `version` of that, as of `revision`.
    """

    key: str
    artifact: BlobDigest
    pack: BlobDigest
    fingerprint: str
    compiler_version: str
    report: dict[str, Any]
    cached: bool = True
    version: int = 0
    revision: int = 0


class RegistryClient(NameCalls):
    """Calls the registry at `address` (host:port); close it, or use it in `with`.

    cache: a folder's cache; default that of the worker runtime (`$MASKWRIGHT_CACHE`, else
    `~/.cache/maskwright`). timeout: seconds for one call. attempts: tries of a call that may be tried
    again. credentials: TLS and token; default those of the environment (`Credentials.from_environment`).
    """

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
            grpc.insecure_channel(address, options)
            if secure is None
            else grpc.secure_channel(address, secure, options)
        )
        # The generated stubs are untyped.
        self._compiler: Any = compiler_pb2_grpc.CompilerServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._registry: Any = registry_pb2_grpc.RegistryServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._tokenizer: Any = tokenizer_pb2_grpc.TokenizerServiceStub(self._channel)  # type: ignore[no-untyped-call]
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
        reply = self._call(
            lambda: self._tokenizer.Register(_upload(data, name, beside), **self._arguments)
        )
        return _tokenizer(reply.tokenizer, reply.created)

    def tokenizers(self) -> list[RegisteredTokenizer]:
        """All tokenizers, by fingerprint."""
        found: list[RegisteredTokenizer] = []
        token = ""
        while True:
            reply = self._list(token)
            found += [_tokenizer(t) for t in reply.tokenizers]
            token = reply.next_page_token
            if not token:
                return found

    def _list(self, token: str) -> tokenizer_pb2.ListResponse:
        request = tokenizer_pb2.ListRequest(page_token=token)
        reply: tokenizer_pb2.ListResponse = self._call(
            lambda: self._tokenizer.List(request, **self._arguments)
        )
        return reply

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
        )
        reply = self._call(lambda: self._compiler.Compile(request, **self._arguments))
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
        reply = self._call(lambda: self._registry.Resolve(request, **self._arguments))
        found = compiled_source(reply.info, True)
        return replace(found, version=reply.version, revision=reply.revision)

    def precompile(self, items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, CompiledSource | CallFailed]]:
        """(place, result or failure) of many compilations, as they're done. Items are `compile`'s arguments.

        Not tried again as a whole. Raises CallFailed, ServiceUnavailable, ValueError.
        """
        request = compiler_pb2.PrecompileRequest(items=[compile_request(**item) for item in items])
        try:
            for reply in self._compiler.Precompile(request, metadata=self._arguments["metadata"]):
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
    ) -> tuple[bool, list[dict[str, Any]], dict[str, Any]]:
        """(accepted, diagnostics, report) of a source; nothing is kept."""
        compiled = compile_request(source, fingerprint, kind=kind, options=options)
        fields = {f.name: v for f, v in compiled.ListFields()}
        request = compiler_pb2.ExplainRequest(**fields)
        reply = self._call(lambda: self._compiler.Explain(request, **self._arguments))
        diagnostics = [diagnostic_fields(d) for d in reply.diagnostics]
        return reply.accepted, diagnostics, plain_numbers(MessageToDict(reply.info.report))

    def capabilities(self) -> dict[str, Any]:
        """The server's versions, kinds, limits and sizes."""
        request = compiler_pb2.GetCapabilitiesRequest()
        reply = self._call(lambda: self._compiler.GetCapabilities(request, **self._arguments))
        fields: dict[str, Any] = MessageToDict(reply, preserving_proto_field_name=True)
        return fields

    def health(self) -> str:
        """What the standard health service tells: "SERVING", "NOT_SERVING", "UNKNOWN". Needs no token."""
        check = self._channel.unary_unary("/grpc.health.v1.Health/Check")
        # HealthCheckResponse has one field: 1, the status. Workers needn't have its package.
        reply: bytes = self._call(lambda: check(b"", timeout=self._plain_arguments["timeout"]))
        return {b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}.get(reply, "UNKNOWN")

    def fetch(self, digest: str | BlobDigest, kind: str = "blob") -> bytes:
        """A blob's verified bytes, from disk or the registry. kind: "artifact", "pack" or "blob".

        Raises CorruptDownload, CallFailed, ServiceUnavailable.
        """
        return self.fetch_path(digest, kind).read_bytes()

    def fetch_path(self, digest: str | BlobDigest, kind: str = "blob") -> Path:
        """Like `fetch`, the file on disk."""
        wanted = digest if isinstance(digest, BlobDigest) else BlobDigest(digest, 0)
        if self.cache.is_revoked(wanted.hash):
            raise ArtifactRevoked(wanted.hash)
        found = self.cache.find(kind, wanted.hash)
        return found or self.cache.put(kind, wanted.hash, self._download(wanted))

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
                self._packs[hash_] = VocabularyPack.load(self.fetch_path(digest, "pack"))
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
        received = bytearray()
        digest = types_pb2.Digest(hash=wanted.hash, size_bytes=wanted.size)

        def go_on() -> None:
            request = registry_pb2.FetchRequest(digest=digest, offset=len(received))
            for chunk in self._registry.Fetch(request, **self._arguments):
                if chunk.offset != len(received):
                    raise CorruptDownload(f"bytes from {len(received)}", f"bytes from {chunk.offset}")
                received.extend(chunk.data)

        self._call(go_on)
        found = hashlib.sha256(received).hexdigest()
        if found != wanted.hash or wanted.size not in (0, len(received)):
            raise CorruptDownload(f"{wanted.hash}/{wanted.size}", f"{found}/{len(received)}")
        return bytes(received)

    def _call(self, call: Callable[[], _Result]) -> _Result:
        """Every call here may be tried again: it changes nothing, or is the same when done twice."""
        for attempt in range(1, self._attempts + 1):
            try:
                return call()
            except grpc.RpcError as error:
                time.sleep(pause_before(error, attempt, self._attempts, self.cache))
        raise AssertionError("unreachable: the last attempt returns or raises")


def pause_before(error: grpc.RpcError, attempt: int, attempts: int, cache: DiskCache) -> float:
    """Seconds before the next attempt, or raises the error's typed form. A revoked artifact leaves the cache."""
    failed = call_failed(error)
    if failed.reason == "REVOKED":
        hash_ = failed.metadata.get("artifact_hash", "")
        cache.revoke(hash_)
        raise ArtifactRevoked(hash_, failed.metadata.get("why", "")) from error
    if attempt == attempts or not (failed.code == "UNAVAILABLE" or failed.retry_after is not None):
        raise failed from error
    return failed.retry_after or 0.1 * 2**attempt


def compile_request(
    source: str | Mapping[str, Any] | bool,
    fingerprint: str,
    *,
    kind: str = "json_schema",
    options: Mapping[str, Any] | None = None,
    limits_profile: str = "",
    validate_only: bool = False,
    request_id: str = "",
) -> compiler_pb2.CompileRequest:
    """The arguments of `RegistryClient.compile` as a message. Raises ValueError."""
    if kind not in _KINDS:
        raise ValueError(f"no such kind: {kind}")
    return compiler_pb2.CompileRequest(
        source=source if isinstance(source, str) else json.dumps(source, ensure_ascii=False),
        kind=_KINDS[kind],
        options=options_message(options or {}),
        tokenizer_fingerprint=fingerprint,
        limits_profile=limits_profile,
        validate_only=validate_only,
        request_id=request_id,
    )


def options_message(options: Mapping[str, Any]) -> types_pb2.CompileOptions:
    """CompileOptions by name as a message. Raises ValueError for an unknown name or value."""
    message = types_pb2.CompileOptions()
    for name, value in options.items():
        if name == "whitespace":
            if isinstance(value, int):
                message.whitespace = types_pb2.CompileOptions.WHITESPACE_INDENT
                message.indent = value
            else:
                message.whitespace = _choice(name, value)
        elif name in _CHOICES:
            setattr(message, name, _choice(name, value))
        elif name in ("max_whitespace", "max_nesting", "grammar_start", "grammar_strict"):
            if value is not None:
                setattr(message, name, value)
        else:
            raise ValueError(f"no such option: {name}")
    return message


def _choice(name: str, value: Any) -> Any:
    enum = types_pb2.CompileOptions.DESCRIPTOR.fields_by_name[name].enum_type
    found = enum.values_by_name.get(f"{name}_{value}".upper())
    if found is None:
        raise ValueError(f"{name} can't be {value!r}")
    return found.number


def _upload(data: bytes, name: str, beside: Mapping[str, bytes]) -> Iterator[tokenizer_pb2.RegisterRequest]:
    digest = types_pb2.Digest(hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    companions = [tokenizer_pb2.RegisterRequest.Companion(name=n, data=d) for n, d in beside.items()]
    header = tokenizer_pb2.RegisterRequest.Header(digest=digest, name=name, beside=companions)
    yield tokenizer_pb2.RegisterRequest(header=header)
    for start in range(0, len(data), UPLOAD_CHUNK):
        yield tokenizer_pb2.RegisterRequest(data=data[start : start + UPLOAD_CHUNK])


def _digest(message: types_pb2.Digest) -> BlobDigest:
    return BlobDigest(message.hash, message.size_bytes)


def _tokenizer(message: types_pb2.Tokenizer, created: bool = False) -> RegisteredTokenizer:
    return RegisteredTokenizer(
        fingerprint=message.fingerprint,
        name=message.name,
        vocab_size=message.vocab_size,
        pack=_digest(message.pack),
        stop_token_ids=tuple(message.stop_token_ids),
        logits_width=message.logits_width,
        created=created,
    )


def compiled_source(message: types_pb2.ArtifactInfo, cached: bool) -> CompiledSource:
    return CompiledSource(
        key=message.artifact_key,
        artifact=_digest(message.artifact),
        pack=_digest(message.pack),
        fingerprint=message.tokenizer_fingerprint,
        compiler_version=message.compiler_version,
        report=plain_numbers(MessageToDict(message.report)),
        cached=cached,
    )
