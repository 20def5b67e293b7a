"""What one caller may use, at one replica: so many calls a second, compilations at once, fetched bytes a second.

Rates are token buckets that hold `BURST_SECONDS` of their rate. A fetch is counted when its size is known, so a
bucket may go below nothing; the caller waits until it's filled again. A limit of 0 is none. Callers are known by
name: those who aren't authenticated share one. What's known, or being compiled for somebody else, is no compilation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..faults import Reason, RegistryError

BURST_SECONDS = 10.0
_KEPT = 10_000


@dataclass(frozen=True)
class QuotaLimits:
    calls_per_second: float = 0.0
    compiles_at_once: int = 0
    fetch_bytes_per_second: float = 0.0

    def __post_init__(self) -> None:
        if min(self.calls_per_second, self.compiles_at_once, self.fetch_bytes_per_second) < 0:
            raise ValueError("quotas must not be negative")


class Quotas:
    """Belongs to one event loop."""

    def __init__(self, limits: QuotaLimits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._calls = _Buckets("calls_per_second", limits.calls_per_second, now)
        self._bytes = _Buckets("fetch_bytes_per_second", limits.fetch_bytes_per_second, now)
        self._compiling: Counter[str] = Counter()

    def count_call(self, caller: str) -> None:
        """Raises RegistryError QUOTA_EXCEEDED, as all methods."""
        self._calls.take(caller, 1.0)

    def count_fetch(self, caller: str, size: int) -> None:
        self._bytes.take(caller, float(size))

    @contextmanager
    def compiling(self, caller: str) -> Iterator[None]:
        """Around one compilation."""
        limit = self.limits.compiles_at_once
        if limit and self._compiling[caller] >= limit:
            raise _exceeded("compiles_at_once", limit, 1.0)
        self._compiling[caller] += 1
        try:
            yield
        finally:
            self._compiling[caller] -= 1
            if not self._compiling[caller]:
                del self._compiling[caller]


class _Buckets:
    def __init__(self, quota: str, rate: float, now: Callable[[], float]) -> None:
        self._quota, self._rate, self._now = quota, rate, now
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, amount: float) -> None:
        if not self._rate:
            return
        now, most = self._now(), max(1.0, self._rate * BURST_SECONDS)
        level, since = self._levels.get(caller, (most, now))
        level = min(most, level + (now - since) * self._rate)
        if level < min(amount, 1.0):
            raise _exceeded(self._quota, self._rate, (1.0 - level) / self._rate)
        if len(self._levels) >= _KEPT:
            self._levels.clear()  # rather a moment's generosity than memory without bound
        self._levels[caller] = (level - amount, now)


def _exceeded(quota: str, limit: float, retry_after: float) -> RegistryError:
    return RegistryError(
        Reason.QUOTA_EXCEEDED,
        f"the caller's quota {quota} is {limit:g}",
        {"quota": quota, "limit": f"{limit:g}"},
        retry_after_seconds=retry_after,
    )
