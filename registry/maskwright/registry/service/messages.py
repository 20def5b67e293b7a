"""Between wire messages and the registry's own values. Bad fields raise `faults.invalid_request`."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from google.protobuf.struct_pb2 import Struct

from maskwright.compiler.options import CompileOptions
from maskwright.v1 import registry_pb2, types_pb2

from ..catalog import ArtifactRecord, TokenizerRecord
from ..content import Digest
from ..faults import invalid_request
from ..names import Entry, Name, Version

KINDS: dict[types_pb2.SourceKind, str] = {
    types_pb2.SOURCE_KIND_JSON_SCHEMA: "json_schema",
    types_pb2.SOURCE_KIND_REGEX: "regex",
    types_pb2.SOURCE_KIND_LARK: "lark",
    types_pb2.SOURCE_KIND_GBNF: "gbnf",
    types_pb2.SOURCE_KIND_TOOLS: "tools",
}
KIND_NUMBERS = {name: number for number, name in KINDS.items()}
_SEVERITIES = {
    "error": types_pb2.SEVERITY_ERROR,
    "warning": types_pb2.SEVERITY_WARNING,
    "note": types_pb2.SEVERITY_NOTE,
}
_Options = types_pb2.CompileOptions
_LAYOUT = ("whitespace", "indent")
_CHOICES: dict[str, dict[int, str]] = {
    field.name: {
        value.number: value.name.removeprefix(f"{field.name.upper()}_").lower().replace("_", "-")
        for value in field.enum_type.values
        if value.number
    }
    for field in _Options.DESCRIPTOR.fields
    if field.enum_type is not None and field.name not in _LAYOUT
}
_PLAIN = [f.name for f in _Options.DESCRIPTOR.fields if f.enum_type is None and f.name not in _LAYOUT]


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
    for name in _PLAIN:
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


def version_message(version: Version, known: Name, revoked: Container[str]) -> registry_pb2.Version:
    artifacts = [
        registry_pb2.VersionedArtifact(
            tokenizer_fingerprint=a.fingerprint,
            artifact_key=a.artifact_key,
            artifact=types_pb2.Digest(hash=a.artifact_hash, size_bytes=a.artifact_size),
        )
        for a in version.artifacts
    ]
    return registry_pb2.Version(
        name=version.name,
        version=version.version,
        artifacts=artifacts,
        note=version.note,
        published_at=version.at,
        published_by=version.by,
        revision=version.revision,
        pinned=version.pinned,
        channels=sorted(n for n, c in known.channels.items() if c.version == version.version),
        revoked=any(a.artifact_hash in revoked for a in version.artifacts),
    )


def change_message(entry: Entry) -> registry_pb2.Change:
    """Of a kind that isn't on the wire only the revision."""
    kind = registry_pb2.Change.Kind.DESCRIPTOR.values_by_name.get(f"KIND_{entry.kind.upper()}")
    if kind is None:
        return registry_pb2.Change(revision=entry.revision)
    fields = entry.fields
    return registry_pb2.Change(
        revision=entry.revision,
        kind=kind.number,
        name=fields.get("name", ""),
        channel=fields.get("channel", ""),
        version=fields.get("version", 0),
        artifact_hash=fields.get("artifact_hash", ""),
        reason=fields.get("reason", ""),
        at=entry.at,
        by=entry.by,
        versions=fields.get("versions", ()),
    )
