"""The one place where a failure becomes a gRPC status.

Every status carries a google.rpc.ErrorInfo; a refused source also a DiagnosticList, errors first, as many
as fit in the trailing metadata; a failure that may pass also a RetryInfo. Failures nobody foresaw are
INTERNAL, with a reference that the log holds beside the traceback: no message of theirs is sent, since it
may hold anything.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from maskwright.v1 import types_pb2

from ..faults import Reason, RegistryError
from ..store import BlobNotFound, BlobTooLarge, CorruptBlob, StoreUnavailable, SwapUnsupported
from .messages import diagnostic_message, digest_message

DOMAIN = "maskwright"
MAX_DETAIL_BYTES = 4096
"""Of diagnostics in one status: trailing metadata is 8 KiB by default, in base64, beside the message."""
MAX_MESSAGE = 500

CODES = {
    Reason.INVALID_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.SOURCE_REFUSED: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.INVALID_TOKENIZER: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.INVALID_SIGNATURE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.DIGEST_MISMATCH: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.TOKENIZER_DIFFERS: grpc.StatusCode.ALREADY_EXISTS,
    Reason.UNKNOWN_TOKENIZER: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_PROFILE: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_ARTIFACT: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_BLOB: grpc.StatusCode.NOT_FOUND,
    Reason.OFFSET_TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    Reason.UNREADABLE_FORMAT: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.REQUEST_ID_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    Reason.UNKNOWN_NAME: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_VERSION: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_CHANNEL: grpc.StatusCode.NOT_FOUND,
    Reason.NOT_IN_VERSION: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.REVOKED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.CHANNEL_MOVED: grpc.StatusCode.ABORTED,
    Reason.NO_EARLIER_VERSION: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.TOO_MANY_VERSIONS: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.VERSION_IN_USE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.NAMES_UNSUPPORTED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.REVISION_TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    Reason.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Reason.QUOTA_EXCEEDED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.QUEUE_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.COMPILE_TIMEOUT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.COMPILE_MEMORY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.COMPILER_CRASHED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.TOKENIZER_TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.CORRUPT_BLOB: grpc.StatusCode.DATA_LOSS,
    Reason.STORE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
}
_log = logging.getLogger(__name__)


def as_registry_error(error: Exception) -> RegistryError:
    """Any exception as one with a reason."""
    if isinstance(error, RegistryError):
        return error
    if isinstance(error, CorruptBlob):
        return RegistryError(Reason.CORRUPT_BLOB, str(error), {"key": error.key})
    if isinstance(error, BlobNotFound):
        return RegistryError(Reason.UNKNOWN_BLOB, str(error), {"key": error.key})
    if isinstance(error, BlobTooLarge):
        return RegistryError(Reason.CORRUPT_BLOB, str(error), {"key": error.key, "size": str(error.size)})
    if isinstance(error, SwapUnsupported):
        return RegistryError(Reason.NAMES_UNSUPPORTED, str(error), {"key": error.key})
    if isinstance(error, StoreUnavailable):
        return RegistryError(
            Reason.STORE_UNAVAILABLE, str(error), {"key": error.key}, retry_after_seconds=1.0
        )
    reference = secrets.token_hex(8)
    _log.error("internal error %s", reference, exc_info=error)
    return RegistryError(Reason.INTERNAL, f"internal error {reference}", {"reference": reference})


def status_of(error: Exception) -> Status:
    """The google.rpc.Status of a failure."""
    known = as_registry_error(error)
    code = CODES[known.reason].value[0]
    message = known.message if len(known.message) <= MAX_MESSAGE else known.message[: MAX_MESSAGE - 1] + "…"
    status = Status(code=code, message=message)
    _pack(status, ErrorInfo(reason=known.reason, domain=DOMAIN, metadata=known.metadata))
    if known.diagnostics:
        _pack(status, _diagnostics(known))
    if known.retry_after_seconds is not None:
        delay = Duration()
        delay.FromMilliseconds(int(known.retry_after_seconds * 1000))
        _pack(status, RetryInfo(retry_delay=delay))
    return status


def _diagnostics(error: RegistryError) -> types_pb2.DiagnosticList:
    ordered = sorted(error.diagnostics, key=lambda d: d.get("severity") != "error")
    listed, room = types_pb2.DiagnosticList(), MAX_DETAIL_BYTES
    for position, diagnostic in enumerate(ordered):
        message = diagnostic_message(diagnostic)
        room -= message.ByteSize()
        if room < 0:
            listed.omitted = len(ordered) - position
            break
        listed.diagnostics.append(message)
    if listed.omitted and error.all_diagnostics is not None:
        listed.all.CopyFrom(digest_message(error.all_diagnostics))
    return listed


def _pack(status: Status, message: Any) -> None:
    detail = AnyMessage()
    detail.Pack(message)
    status.details.append(detail)
