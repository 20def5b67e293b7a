"""What can go wrong for a caller of the registry, as exceptions with fields.

`reason` is stable and is what callers branch on; `metadata` holds the values that the message mentions. How
a reason becomes a gRPC status is decided in `maskwright.registry.service.status` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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
