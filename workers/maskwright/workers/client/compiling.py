"""Tokenizers, compilations, and what the registry knows of an artifact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from maskwright.v1 import compiler_pb2, registry_pb2, tokenizer_pb2
from maskwright.workers.client.calls import Ask, Calls, Local, Steps, Stream
from maskwright.workers.client.errors import CallFailed, diagnostic_fields, failure_of, plain_numbers
from maskwright.workers.client.messages import (
    CompiledSource,
    RegisteredTokenizer,
    compile_request,
    compiled_source,
    message,
    tokenizer_of,
    upload_messages,
)
from maskwright.workers.client.names import named_request

READABLE_MAJORS = (1,)
COMPANIONS = ("generation_config.json", "tokenizer_config.json", "config.json")
_HEALTH = {b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}
"""HealthCheckResponse has one field: 1, the status. Workers needn't have its package."""


class CompileCalls(Calls):
    """Those of `RegistryCalls` for tokenizers and compilations."""

    def register_tokenizer(self, tokenizer: str | Path | bytes, name: str = "") -> Steps[RegisteredTokenizer]:
        """Sends a tokenizer file: a path, or bytes with the file's `name`. Idempotent.

        With a file named tokenizer.json go the configuration files beside it, which tell stop tokens.
        Raises SourceRefused for a file that can't be used, CallFailed, ServiceUnavailable, OSError.
        """
        beside: dict[str, bytes] = {}
        if isinstance(tokenizer, bytes):
            data, name = tokenizer, name or "tokenizer.json"
        else:
            path = Path(tokenizer)
            data, beside = yield Local(lambda: _read_tokenizer(path))
            name = name or path.name
        asked = Ask("TokenizerService/Register", lambda: upload_messages(data, name, beside))
        reply = yield from self.attempt(asked)
        return tokenizer_of(reply.tokenizer, reply.created)

    def tokenizers(self) -> Steps[list[RegisteredTokenizer]]:
        """All tokenizers, by fingerprint."""
        replies = yield from self.ask_pages("TokenizerService/List", tokenizer_pb2.ListRequest())
        return [tokenizer_of(t) for reply in replies for t in reply.tokenizers]

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
    ) -> Steps[CompiledSource]:
        """Compiles a source for a registered tokenizer, or finds what it compiled to before.

        source: the text, or a JSON value. kind: "json_schema", "regex", "lark", "gbnf", "tools" (a list of tools or
        a document with it). options: names and values of the compiler's `CompileOptions`. Giving the call up (under
        asyncio by cancelling it) stops the compilation, unless others wait for it too. Raises SourceRefused,
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
        reply = yield from self.ask("CompilerService/Compile", request)
        return compiled_source(reply.info, reply.cached)

    def precompile(self, items: Sequence[Mapping[str, Any]]) -> Stream[tuple[int, CompiledSource | CallFailed]]:
        """(place, result or failure) of many compilations, as they're done. Items are `compile`'s arguments.

        Not tried again as a whole. Raises CallFailed, ServiceUnavailable, ValueError.
        """
        request = compiler_pb2.PrecompileRequest(items=[compile_request(**item) for item in items])
        return Stream("CompilerService/Precompile", request, _read_precompiled)

    def explain(
        self,
        source: str | Mapping[str, Any] | bool,
        fingerprint: str,
        *,
        kind: str = "json_schema",
        options: Mapping[str, Any] | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> Steps[tuple[bool, list[dict[str, Any]], dict[str, Any]]]:
        """(accepted, diagnostics, report) of a source; nothing is kept."""
        compiled = compile_request(source, fingerprint, kind=kind, options=options, resources=resources)
        fields = {f.name: getattr(compiled, f.name) for f in compiler_pb2.ExplainRequest.DESCRIPTOR.fields}
        reply = yield from self.ask("CompilerService/Explain", compiler_pb2.ExplainRequest(**fields))
        diagnostics = [diagnostic_fields(d) for d in reply.diagnostics]
        return reply.accepted, diagnostics, plain_numbers(MessageToDict(reply.info.report))

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
    ) -> Steps[CompiledSource]:
        """What the registry knows of an artifact: by name (`tool`, `tool@7`, `tool:prod`), key or hash.

        fingerprint: the vocabulary, where the version holds several. min_revision: not from an older state.
        Raises ArtifactRevoked, CallFailed, ServiceUnavailable.
        """
        by: dict[str, Any] = {"artifact_key": key} if key else {"artifact_hash": hash}
        if name:
            by = named_request(name, version, channel, fingerprint, min_revision)
        request = message(registry_pb2.ResolveRequest, readable_majors=READABLE_MAJORS, **by)
        reply = yield from self.ask("RegistryService/Resolve", request)
        found = compiled_source(reply.info, True)
        return replace(found, version=reply.version, revision=reply.revision)

    def capabilities(self) -> Steps[dict[str, Any]]:
        """The server's versions, kinds, limits and sizes."""
        reply = yield from self.ask("CompilerService/GetCapabilities", compiler_pb2.GetCapabilitiesRequest())
        fields: dict[str, Any] = MessageToDict(reply, preserving_proto_field_name=True)
        return fields

    def health(self) -> Steps[str]:
        """What the standard health service tells: "SERVING", "NOT_SERVING", "UNKNOWN". Needs no token."""
        reply: bytes = yield from self.ask("grpc.health.v1.Health/Check", b"")
        return _HEALTH.get(reply, "UNKNOWN")


def _read_tokenizer(path: Path) -> tuple[bytes, dict[str, bytes]]:
    files = [path.with_name(n) for n in COMPANIONS] if path.name == "tokenizer.json" else []
    return path.read_bytes(), {f.name: f.read_bytes() for f in files if f.is_file()}


def _read_precompiled(reply: compiler_pb2.PrecompileResponse) -> tuple[int, CompiledSource | CallFailed]:
    if reply.HasField("failed"):
        return reply.index, failure_of(reply.failed)
    return reply.index, compiled_source(reply.done.info, reply.done.cached)
