"""What the client sends and gives back, between messages and plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict

from maskwright.v1 import compiler_pb2, registry_pb2, tokenizer_pb2, types_pb2
from maskwright.workers.client.errors import plain_numbers
from maskwright.workers.client.signing import Signature

_Message = TypeVar("_Message")
UPLOAD_CHUNK = 1 << 20
_KINDS = {
    "json_schema": types_pb2.SOURCE_KIND_JSON_SCHEMA,
    "regex": types_pb2.SOURCE_KIND_REGEX,
    "lark": types_pb2.SOURCE_KIND_LARK,
    "gbnf": types_pb2.SOURCE_KIND_GBNF,
    "tools": types_pb2.SOURCE_KIND_TOOLS,
}
_FIELDS = types_pb2.CompileOptions.DESCRIPTOR.fields_by_name


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


def compile_request(
    source: str | Mapping[str, Any] | bool,
    fingerprint: str,
    *,
    kind: str = "json_schema",
    options: Mapping[str, Any] | None = None,
    limits_profile: str = "",
    validate_only: bool = False,
    request_id: str = "",
    resources: Mapping[str, Any] | None = None,
) -> compiler_pb2.CompileRequest:
    """The arguments of `RegistryClient.compile` as a message. Raises ValueError."""
    if kind not in _KINDS:
        raise ValueError(f"no such kind: {kind}")
    return compiler_pb2.CompileRequest(
        source=_text(source),
        kind=_KINDS[kind],
        options=options_message(options or {}),
        tokenizer_fingerprint=fingerprint,
        limits_profile=limits_profile,
        validate_only=validate_only,
        request_id=request_id,
        resources={uri: _text(schema) for uri, schema in (resources or {}).items()},
    )


def message(kind: Callable[..., _Message], **fields: Any) -> _Message:
    """A message with these fields. Raises ValueError that names the field whose value is out of range."""
    try:
        return kind(**fields)
    except ValueError as error:
        for name, value in fields.items():
            try:
                kind(**{name: value})
            except ValueError:
                raise ValueError(f"{name} can't be {value!r:.80}") from error
        raise


def _text(source: Any) -> str:
    return source if isinstance(source, str) else json.dumps(source, ensure_ascii=False)


def options_message(options: Mapping[str, Any]) -> types_pb2.CompileOptions:
    """CompileOptions by name as a message. Raises ValueError for an unknown name or value."""
    message = types_pb2.CompileOptions()
    for name, value in options.items():
        if name == "whitespace" and isinstance(value, int):
            message.whitespace = types_pb2.CompileOptions.WHITESPACE_INDENT
            message.indent = value
        elif name not in _FIELDS or name == "indent":
            raise ValueError(f"no such option: {name}")
        elif _FIELDS[name].enum_type is not None:
            setattr(message, name, _choice(name, value))
        elif value is not None:
            try:
                setattr(message, name, value)
            except TypeError as error:
                raise ValueError(f"{name} can't be {value!r}") from error
    return message


def _choice(name: str, value: Any) -> Any:
    enum = _FIELDS[name].enum_type
    found = enum.values_by_name.get(f"{name}_{value}".upper().replace("-", "_"))
    if found is None:
        raise ValueError(f"{name} can't be {value!r}")
    return found.number


def upload_messages(data: bytes, name: str, beside: Mapping[str, bytes]) -> Iterator[tokenizer_pb2.RegisterRequest]:
    digest = types_pb2.Digest(hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    companions = [tokenizer_pb2.RegisterRequest.Companion(name=n, data=d) for n, d in beside.items()]
    header = tokenizer_pb2.RegisterRequest.Header(digest=digest, name=name, beside=companions)
    yield tokenizer_pb2.RegisterRequest(header=header)
    for start in range(0, len(data), UPLOAD_CHUNK):
        yield tokenizer_pb2.RegisterRequest(data=data[start : start + UPLOAD_CHUNK])


def digest_of(message: types_pb2.Digest) -> BlobDigest:
    return BlobDigest(message.hash, message.size_bytes)


def tokenizer_of(message: types_pb2.Tokenizer, created: bool = False) -> RegisteredTokenizer:
    return RegisteredTokenizer(
        fingerprint=message.fingerprint,
        name=message.name,
        vocab_size=message.vocab_size,
        pack=digest_of(message.pack),
        stop_token_ids=tuple(message.stop_token_ids),
        logits_width=message.logits_width,
        created=created,
    )


def compiled_source(message: types_pb2.ArtifactInfo, cached: bool) -> CompiledSource:
    return CompiledSource(
        key=message.artifact_key,
        artifact=digest_of(message.artifact),
        pack=digest_of(message.pack),
        fingerprint=message.tokenizer_fingerprint,
        compiler_version=message.compiler_version,
        report=plain_numbers(MessageToDict(message.report)),
        cached=cached,
    )


def signature_message(signature: Signature) -> types_pb2.Signature:
    return types_pb2.Signature(key_id=signature.key_id, public_key=signature.public_key, signature=signature.signature)


def signatures_of(reply: registry_pb2.GetSignaturesResponse) -> list[Signature]:
    return [Signature(s.key_id, s.public_key, s.signature) for s in reply.signatures]
