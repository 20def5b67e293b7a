"""Does a service honour conditional writes? Tried, not believed: some accept the headers and ignore them.

For each of If-None-Match and If-Match: a write whose condition holds must succeed, one whose condition doesn't
must be refused, and of `WRITERS` that race, exactly one must win. A service that passes may still fail under
other loads; one that fails can't be used for names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from .interface import PreconditionFailed, StoreCapabilities, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .s3 import S3Store

WRITERS, ROUNDS = 8, 2


class RequestRefused(StoreUnavailable):
    """The service finds the request malformed or doesn't implement it."""


def probe(store: S3Store) -> StoreCapabilities:
    """What the store keeps its word on. Raises StoreUnavailable where it can't be written at all."""
    base = f"probe/{secrets.token_hex(8)}"
    used = [f"{base}/{n}" for n in range(2 * ROUNDS)]
    try:
        next(store.list("probe/"), None)  # no bucket, no permission, no service: told as such
        absent = all(_absent_holds(store, key) for key in used[:ROUNDS])
        swap = absent and all(_swap_holds(store, key) for key in used[ROUNDS:])
    finally:
        for key in used:
            with suppress(StoreError):
                store.delete(key)
    return StoreCapabilities(put_if_absent=absent, compare_and_swap=swap)


def _absent_holds(store: S3Store, key: str) -> bool:
    try:
        won = _race(lambda number: store.put_if_absent(key, b"%d" % number))
        return won == 1 and not store.put_if_absent(key, b"late")
    except (PreconditionFailed, RequestRefused):
        return False


def _swap_holds(store: S3Store, key: str) -> bool:
    try:
        first = store.compare_and_swap(key, None, b"first")
        second = store.compare_and_swap(key, first, b"second")
        if _swaps(store, key, first, b"stale"):
            return False
        won = _race(lambda number: _swaps(store, key, second, b"%d" % number))
        return won == 1
    except (PreconditionFailed, RequestRefused):
        return False


def _swaps(store: S3Store, key: str, expected: str, data: bytes) -> bool:
    try:
        store.compare_and_swap(key, expected, data)
    except PreconditionFailed:
        return False
    return True


def _race(write: Callable[[int], bool]) -> int:
    """How many of the racing writers were told that they won."""
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(write, range(WRITERS)))
