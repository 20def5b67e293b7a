"""Counts of fetches, written to the index now and then rather than at each fetch.

A killed server loses the counts of the last `FLUSH_SECONDS`. Nothing depends on them but reports.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from .index import Index

FLUSH_SECONDS = 2.0


class Usage:
    """Belongs to one event loop."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._counts: Counter[str] = Counter()
        self._flushing: asyncio.Task[None] | None = None

    def count(self, hash_: str) -> None:
        """One more fetch of a blob."""
        self._counts[hash_] += 1
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(self._flush_later())

    async def close(self) -> None:
        """Writes what has been counted; nothing may be counted afterwards."""
        if self._flushing is not None:
            self._flushing.cancel()
        await self._flush()

    async def _flush(self) -> None:
        counts, self._counts = self._counts, Counter()
        if counts:
            await asyncio.to_thread(self._index.count_fetches, counts)

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_SECONDS)
        self._flushing = None
        await self._flush()
