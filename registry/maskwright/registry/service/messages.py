"""Between wire messages and the registry's own values. Bad fields raise `faults.invalid_request`."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.struct_pb2 import Struct

from maskwright.compiler.options import CompileOptions
from maskwright.v1 import types_pb2

from ..catalog import ArtifactRecord, TokenizerRecord
from ..content import Digest
from ..faults import invalid_request

KINDS: dict[types_pb2.SourceKind, str] = {
    types_pb2.SOURCE_KIND_JSON_SCHEMA: "json_schema",
    types_pb2.SOURCE_KIND_REGEX: "regex",
    types_pb2.SOURCE_KIND_LARK: "lark",
}
KIND_NUMBERS = {name: number for number, name in KINDS.items()}
_SEVERITIES = {
    "error": types_pb2.SEVERITY_ERROR,
    "warning": types_pb2.SEVERITY_WARNING,
    "note": types_pb2.SEVERITY_NOTE,
}
_CHOICES: dict[str, dict[int, str]] = {
    "property_order": {1: "declared", 2: "any"},
    "residual": {1: "refuse", 2: "allow"},
    "regex_dialect": {1: "ecma262", 2: "python"},
    "formats": {1: "enforce", 2: "annotate"},
}
_Options = types_pb2.CompileOptions


def options_of(message: types_pb2.CompileOptions) -> CompileOptions:
    """The compiler's options; unset fields keep its defaults."""
    chosen: dict[str, Any] = {}
    if message.whitespace == _Options.WHITESPACE_COMPACT:
        chosen["whitespace"] = "compact"
    elif message.whitespace == _Options.WHITESPACE_INDENT:
        chosen["whitespace"] = message.indent
    elif message.whitespace not in (_Options.WHITESPACE_UNSPECIFIED, _Options.WHITESPACE_FLEXIBLE):
        raise invalid_request("options.whitespace", f"unknown value {message.whitespace}")
    for name, values in _CHOICES.items():
        number = getattr(message, name)
        if number:
            if number not in values:
                raise invalid_request(f"options.{name}", f"unknown value {number}")
            chosen[name] = values[number]
    for name in ("max_whitespace", "max_nesting"):
        if message.HasField(name):
            chosen[name] = getattr(message, name)
    try:
        return CompileOptions(**chosen)
    except ValueError as error:
        raise invalid_request("options", str(error)) from error


def kind_of(number: types_pb2.SourceKind) -> str:
    if number not in KINDS:
        raise invalid_request("kind", f"unknown value {number}")
    return KINDS[number]


def digest_of(message: types_pb2.Digest, field_name: str) -> Digest:
    try:
        return Digest(message.hash, message.size_bytes)
    except ValueError as error:
        raise invalid_request(field_name, str(error)) from error


def digest_message(digest: Digest) -> types_pb2.Digest:
    return types_pb2.Digest(hash=digest.hash, size_bytes=digest.size)


def diagnostic_message(diagnostic: dict[str, Any]) -> types_pb2.Diagnostic:
    """From the JSON form of a diagnostic."""
    message = types_pb2.Diagnostic(
        code=diagnostic["code"],
        severity=_SEVERITIES.get(diagnostic.get("severity", "error"), types_pb2.SEVERITY_UNSPECIFIED),
        message=diagnostic["message"],
        source=diagnostic.get("source"),
        pointer=diagnostic.get("pointer"),
        hint=diagnostic.get("hint"),
    )
    if "span" in diagnostic:
        message.span.start, message.span.end = diagnostic["span"]
    if diagnostic.get("detail"):
        message.detail.CopyFrom(struct(diagnostic["detail"]))
    return message


def struct(values: dict[str, Any]) -> Struct:
    """JSON values as a Struct; every number becomes a double, as Struct has no other."""
    message = Struct()
    message.update(values)
    return message


def artifact_message(record: ArtifactRecord, report: dict[str, Any]) -> types_pb2.ArtifactInfo:
    return types_pb2.ArtifactInfo(
        artifact_key=record.artifact_key,
        artifact=digest_message(record.artifact),
        pack=digest_message(record.pack),
        tokenizer_fingerprint=record.fingerprint,
        compiler_version=record.compiler_version,
        kind=KIND_NUMBERS[record.kind],
        source_hash=record.source_hash,
        report=struct(report),
    )


def tokenizer_message(record: TokenizerRecord) -> types_pb2.Tokenizer:
    return types_pb2.Tokenizer(
        fingerprint=record.fingerprint,
        name=record.name,
        vocab_size=record.vocab_size,
        file=digest_message(record.file),
        pack=digest_message(record.pack),
        stop_token_ids=json.loads(record.stop_token_ids),
        logits_width=record.logits_width,
    )
