"""What a blob store must do: put-if-absent, get, range, head, list, compare-and-swap.

A key is one or more segments of `[A-Za-z0-9_@+=.-]` joined by `/`; no segment begins with a dot. A blob
becomes visible whole or not at all. Calls block; a server runs them in threads. Every implementation passes
the one suite in `tests/stores`.

`etag` is opaque and names a blob's content: equal etags mean equal bytes. Stores know nothing about digests
in keys; `maskwright.registry.content` adds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

MAX_KEY = 512
_SEGMENT = re.compile(r"(?!\.)[A-Za-z0-9_@+=.\-]{1,200}")


@dataclass(frozen=True)
class BlobInfo:
    """What `head` tells of a blob. `modified`: when it was written, Unix time by the store's clock."""

    key: str
    size: int
    etag: str
    modified: float


@dataclass(frozen=True)
class StoreCapabilities:
    """What a store keeps its word on, also between racing writers.

    put_if_absent: exactly one of racing writers wins.
    compare_and_swap: exactly one of racing swaps from the same etag wins.
    """

    put_if_absent: bool
    compare_and_swap: bool


class StoreError(Exception):
    """Something about a store; `key` names the blob."""

    def __init__(self, key: str, message: str) -> None:
        self.key = key
        super().__init__(f"{message}: {key}")


class BlobNotFound(StoreError):
    """No blob has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key, "no such blob")


class PreconditionFailed(StoreError):
    """compare_and_swap found another etag than expected; `found` is None where there's no blob."""

    def __init__(self, key: str, expected: str | None, found: str | None) -> None:
        self.expected, self.found = expected, found
        super().__init__(key, f"expected etag {expected}, found {found}")


class CorruptBlob(StoreError):
    """The bytes held aren't the bytes that were put."""

    def __init__(self, key: str, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(key, f"expected {expected}, found {found}")


class BlobTooLarge(StoreError):
    """A blob has more bytes than the caller takes."""

    def __init__(self, key: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(key, f"{size} bytes, more than {limit}")


class StoreUnavailable(StoreError):
    """The store can't be used now: no space, no permission, no answer. Trying again may help."""


class SwapUnsupported(StoreError):
    """The store was found not to compare and swap, so it can't hold names, channels or anything that changes."""

    def __init__(self, key: str) -> None:
        super().__init__(key, "this store doesn't compare and swap; names can't be kept in it")


class BlobStore(Protocol):
    """Bytes under keys. All methods may raise StoreUnavailable, and ValueError for a malformed key."""

    def capabilities(self) -> StoreCapabilities:
        """What this store guarantees."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Writes a blob unless the key is taken; says whether it did. Durable on return."""

    def get(self, key: str, max_bytes: int | None = None) -> bytes:
        """The whole blob. Raises BlobNotFound, BlobTooLarge."""

    def get_tagged(self, key: str, max_bytes: int | None = None) -> tuple[bytes, str]:
        """The whole blob and its etag, from one state of it. Raises BlobNotFound, BlobTooLarge."""

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Bytes `start` to `start + length`, fewer at the end of the blob. Raises BlobNotFound."""

    def head(self, key: str) -> BlobInfo:
        """Size and etag; may cost a read of the blob. Raises BlobNotFound."""

    def size(self, key: str) -> int:
        """Size only, without reading. Raises BlobNotFound."""

    def list(self, prefix: str) -> Iterator[str]:
        """Keys that begin with `prefix`, in order of their characters."""

    def compare_and_swap(self, key: str, expected: str | None, data: bytes) -> str:
        """Replaces the blob whose etag is `expected` (None: creates it) and returns the new etag.

        Raises PreconditionFailed, SwapUnsupported. Where an answer got lost on the way, PreconditionFailed may
        be raised for a swap that was done and then replaced by another's: read the blob to know.
        """

    def delete(self, key: str) -> bool:
        """Removes a blob; says whether there was one."""


def check_key(key: str) -> str:
    """The key itself, or ValueError."""
    if len(key) > MAX_KEY or not all(_SEGMENT.fullmatch(s) for s in key.split("/")):
        raise ValueError(f"malformed key {key!r}")
    return key
