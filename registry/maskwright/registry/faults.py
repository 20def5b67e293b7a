"""What can go wrong for a caller of the registry, as exceptions with fields.

`reason` is stable and is what callers branch on; `metadata` holds the values that the message mentions. How
a reason becomes a gRPC status is decided in `maskwright.registry.service.status` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from maskwright.workers.digests import is_digest

from .content import Digest


class Reason(StrEnum):
    INVALID_REQUEST = "INVALID_REQUEST"
    """A field of the request is missing or out of range; metadata: field."""
    SOURCE_REFUSED = "SOURCE_REFUSED"
    """The source can't be compiled, for a reason of its own; with diagnostics."""
    INVALID_TOKENIZER = "INVALID_TOKENIZER"
    """A tokenizer file that can't be used; with diagnostics."""
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    """Bytes sent don't have the digest announced; metadata: expected, found."""
    TOKENIZER_DIFFERS = "TOKENIZER_DIFFERS"
    """The same vocabulary with other stop tokens or logits width; metadata: fingerprint, registered, sent."""
    UNKNOWN_TOKENIZER = "UNKNOWN_TOKENIZER"
    UNKNOWN_PROFILE = "UNKNOWN_PROFILE"
    UNKNOWN_ARTIFACT = "UNKNOWN_ARTIFACT"
    UNKNOWN_BLOB = "UNKNOWN_BLOB"
    OFFSET_TOO_LARGE = "OFFSET_TOO_LARGE"
    UNREADABLE_FORMAT = "UNREADABLE_FORMAT"
    """The artifact's format major isn't one that the caller reads; metadata: major."""
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    """A request id came back with another request."""
    UNKNOWN_NAME = "UNKNOWN_NAME"
    UNKNOWN_VERSION = "UNKNOWN_VERSION"
    UNKNOWN_CHANNEL = "UNKNOWN_CHANNEL"
    NOT_IN_VERSION = "NOT_IN_VERSION"
    """The version holds nothing for this vocabulary, or several and none was named; metadata: fingerprints."""
    REVOKED = "REVOKED"
    """The artifact isn't served any more; metadata: artifact_hash, why."""
    CHANNEL_MOVED = "CHANNEL_MOVED"
    """The channel doesn't point where the caller expected; metadata: expected, found."""
    INVALID_SIGNATURE = "INVALID_SIGNATURE"
    """A signature that its own public key doesn't verify; metadata: key_id, artifact_hash."""
    NO_EARLIER_VERSION = "NO_EARLIER_VERSION"
    """The channel can't be rolled back: nothing before it is left that may be served."""
    TOO_MANY_VERSIONS = "TOO_MANY_VERSIONS"
    VERSION_IN_USE = "VERSION_IN_USE"
    """A channel points to the version, or it's pinned."""
    NAMES_UNSUPPORTED = "NAMES_UNSUPPORTED"
    """The store doesn't compare and swap, so it can't hold names."""
    REVISION_TOO_LARGE = "REVISION_TOO_LARGE"
    """Watch was asked to go on after a revision that there isn't yet."""
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    """The caller lacks a scope or a namespace; metadata: scope, namespace."""
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    """The caller's own limit; metadata: quota."""
    QUEUE_FULL = "QUEUE_FULL"
    """As many compilations wait as may; trying again later helps."""
    COMPILE_TIMEOUT = "COMPILE_TIMEOUT"
    COMPILE_MEMORY = "COMPILE_MEMORY"
    COMPILER_CRASHED = "COMPILER_CRASHED"
    TOKENIZER_TOO_LARGE = "TOKENIZER_TOO_LARGE"
    CORRUPT_BLOB = "CORRUPT_BLOB"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    INTERNAL = "INTERNAL"


@dataclass(eq=False)
class RegistryError(Exception):
    """One failed call. `diagnostics` are in the JSON form of `Diagnostic.to_json`."""

    reason: Reason
    message: str
    metadata: dict[str, str] = field(default_factory=dict)
    diagnostics: Sequence[dict[str, Any]] = ()
    all_diagnostics: Digest | None = None
    retry_after_seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


def invalid_request(field_name: str, message: str) -> RegistryError:
    """A request whose field `field_name` can't be used."""
    return RegistryError(Reason.INVALID_REQUEST, f"{field_name}: {message}", {"field": field_name})


def check_digest(text: str, field_name: str) -> str:
    """The text, which names an artifact, a key or a vocabulary. Raises RegistryError INVALID_REQUEST."""
    if not is_digest(text):
        raise invalid_request(field_name, "must be 64 hexadecimal digits")
    return text
