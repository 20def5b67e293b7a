"""Distinct mask rows, kept as differences.

A row is made dense once (32-bit words), named by its content, and stored as the words in which it differs from the
nearest of a few candidates: the all-zero row, the rows the caller suggests, and the latest rows.
"""

from __future__ import annotations

import hashlib
from collections import deque

import numpy as np
import numpy.typing as npt

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.kernels import nearest, set_bits
from maskwright.compiler.tokens.tables import NO_BASE, RowTables, starts

Words = npt.NDArray[np.uint32]
LATEST = 6


class RowStore:
    """Rows of one artifact (or pack), numbered from `first` on."""

    def __init__(self, vocab_size: int, first: int = 0, limits: Limits | None = None) -> None:
        self.words = (vocab_size + 31) // 32
        self.first = first
        self.limit = (limits or Limits()).mask_bytes
        self.zero: Words = np.zeros(self.words, dtype=np.uint32)
        self.numbers: dict[bytes, int] = {}
        self.base: list[int] = []
        self.patch_word: list[Words] = []
        self.patch_xor: list[Words] = []
        self.latest: deque[tuple[int, Words]] = deque(maxlen=LATEST)
        self.counts: list[int] = []

    def dense(self, tokens: npt.NDArray[np.int32]) -> Words:
        """The row with exactly these tokens' bits."""
        row = self.zero.copy()
        set_bits(row, tokens)
        return row

    def add(self, row: Words, suggested: list[tuple[int, Words]]) -> int:
        """The number of this row. `suggested`: (global number, dense) of rows that may be near."""
        name = hashlib.blake2b(row.tobytes(), digest_size=16).digest()
        found = self.numbers.get(name)
        if found is not None:
            return found
        found = self.numbers[name] = self.first + len(self.base)
        if 4 * self.words * (len(self.base) + 1) > self.limit:
            raise LimitExceeded("mask_bytes", self.limit, 4 * self.words * (len(self.base) + 1), "rows")
        candidates = [(NO_BASE, self.zero), *suggested, *self.latest]
        best, _ = nearest(np.stack([c[1] for c in candidates]), row)
        number, base = candidates[best]
        where = np.flatnonzero(row != base)
        self.base.append(number)
        self.patch_word.append(where.astype(np.uint32))
        self.patch_xor.append(row[where] ^ base[where])
        self.latest.append((found, row))
        self.counts.append(int(np.bitwise_count(row).sum()))
        return found

    def tables(self) -> RowTables:
        empty = np.zeros(0, dtype=np.uint32)
        return RowTables(
            row_base=np.array(self.base, dtype=np.uint32),
            patch_start=starts(map(len, self.patch_word)),
            patch_word=np.concatenate([empty, *self.patch_word]),
            patch_xor=np.concatenate([empty, *self.patch_xor]),
        )
