"""What the client raises, with the fields that a caller may branch on.

A failed call carries a google.rpc.Status in its trailing metadata. It's read through
`maskwright.v1.status_pb2`, which has the same wire form, so that a worker needs no package beyond protobuf.
A server that isn't ours, or a proxy, may send none: then `reason` is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from maskwright.v1 import status_pb2, types_pb2
from maskwright.workers.errors import PortableError

STATUS_KEY = "grpc-status-details-bin"
_SEVERITIES = {
    types_pb2.SEVERITY_ERROR: "error",
    types_pb2.SEVERITY_WARNING: "warning",
    types_pb2.SEVERITY_NOTE: "note",
}


class ClientError(PortableError):
    """Anything that the client raises about a registry."""


class CorruptDownload(ClientError):
    """Bytes received don't have the digest asked for."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(f"expected {expected}, received {found}")


class ArtifactRevoked(ClientError):
    """The artifact was revoked and mustn't be used, cached or not. `why` is empty where only the cache knows."""

    def __init__(self, hash_: str, why: str = "") -> None:
        self.hash, self.why = hash_, why
        super().__init__(f"artifact {hash_} was revoked{f': {why}' if why else ''}")


class ArtifactUntrusted(ClientError):
    """No trusted key signed the artifact, so it isn't used, cached or not.

    trusted: ids of the keys that would do. wrong: ids of those under which a signature came that isn't theirs.
    """

    def __init__(self, hash_: str, trusted: tuple[str, ...], wrong: tuple[str, ...] = ()) -> None:
        self.hash, self.trusted, self.wrong = hash_, trusted, wrong
        what = f"the signature by {', '.join(wrong)} is wrong" if wrong else "no trusted key signed it"
        super().__init__(f"artifact {hash_}: {what} (trusted: {', '.join(trusted)})")


class CallFailed(ClientError):
    """A call ended with an error.

    code: the gRPC code's name. reason: stable, as the RPC's comment lists. metadata: the values that the
    message mentions. diagnostics: in the JSON form of the compiler's; `omitted` more were left out of the
    status, and are in the blob `all_diagnostics` (a hash) where the registry kept them. retry_after: seconds
    after which another try may succeed, None where the server names none.
    """

    def __init__(
        self,
        code: str,
        message: str,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        diagnostics: list[dict[str, Any]] | None = None,
        omitted: int = 0,
        all_diagnostics: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.code, self.message, self.reason = code, message, reason
        self.metadata = dict(metadata or {})
        self.diagnostics = list(diagnostics or [])
        self.omitted, self.all_diagnostics = omitted, all_diagnostics
        self.retry_after = retry_after
        super().__init__(f"{reason or code}: {message}")


class SourceRefused(CallFailed):
    """The source or the tokenizer file was refused; `diagnostics` say why."""


class ServiceUnavailable(CallFailed):
    """No answer, or none in time; another try may succeed."""


def call_failed(error: grpc.RpcError) -> CallFailed:
    """The typed form of a gRPC error."""
    raw = next((v for k, v in error.trailing_metadata() or () if k == STATUS_KEY), None)
    found: dict[str, Any] = {}
    if raw is not None:
        try:
            found = _read_status(status_pb2.RpcStatus.FromString(raw))
        except DecodeError:
            found = {}
    return _typed(error.code().name, error.details() or "", found)


def failure_of(status: status_pb2.RpcStatus) -> CallFailed:
    """The typed form of a status that came inside a message."""
    codes = {code.value[0]: code.name for code in grpc.StatusCode}
    return _typed(codes.get(status.code, "UNKNOWN"), status.message, _read_status(status))


def _typed(code: str, message: str, found: dict[str, Any]) -> CallFailed:
    kind: type[CallFailed] = CallFailed
    if found.get("reason") in ("SOURCE_REFUSED", "INVALID_TOKENIZER"):
        kind = SourceRefused
    elif code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        kind = ServiceUnavailable
    return kind(code, message, **found)


def _read_status(status: status_pb2.RpcStatus) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        for detail in status.details:
            name = detail.type_url.rpartition("/")[2]
            if name == "google.rpc.ErrorInfo":
                info = status_pb2.RpcErrorInfo.FromString(detail.value)
                found.update(reason=info.reason, metadata=dict(info.metadata))
            elif name == "google.rpc.RetryInfo":
                delay = status_pb2.RpcRetryInfo.FromString(detail.value).retry_delay
                found.update(retry_after=delay.ToMilliseconds() / 1000)
            elif name == types_pb2.DiagnosticList.DESCRIPTOR.full_name:
                found.update(_read_diagnostics(types_pb2.DiagnosticList.FromString(detail.value)))
    except DecodeError:
        return found
    return found


def _read_diagnostics(listed: types_pb2.DiagnosticList) -> dict[str, Any]:
    return {
        "diagnostics": [diagnostic_fields(d) for d in listed.diagnostics],
        "omitted": listed.omitted,
        "all_diagnostics": listed.all.hash,
    }


def diagnostic_fields(message: types_pb2.Diagnostic) -> dict[str, Any]:
    """A diagnostic in the compiler's JSON form; fields that aren't set are left out."""
    fields: dict[str, Any] = {
        "code": message.code,
        "severity": _SEVERITIES.get(message.severity, ""),
        "message": message.message,
    }
    for name in ("source", "pointer", "hint"):
        if message.HasField(name):
            fields[name] = getattr(message, name)
    if message.HasField("span"):
        fields["span"] = [message.span.start, message.span.end]
    if message.HasField("detail"):
        fields["detail"] = plain_numbers(MessageToDict(message.detail))
    return fields


def plain_numbers(value: Any) -> Any:
    """A Struct's values with the doubles that are whole numbers as int."""
    if isinstance(value, dict):
        return {k: plain_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain_numbers(v) for v in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    return value
