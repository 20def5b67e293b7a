"""Distinct mask rows, kept as differences.

A row is described by a *root*, a row that is already stored (or NO_BASE: no bit set), and the tokens whose bits are
flipped on it, ascending. Equal descriptions are one row. What is stored is the shorter of: the difference from the
root, the difference from a row with the same root that the caller suggests. So a control's rows in many contexts,
which differ in a few tokens each, cost those tokens only, and nothing is made dense at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.tables import NO_BASE, RowTables, starts

I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]

MAX_DEPTH = 8
"""Rows that a row may stand on; the format allows 16, and a row on a context's row adds one."""


@dataclass(frozen=True, slots=True)
class Row:
    """`number` is global; the row's content is that of `root` with `flipped` tokens' bits inverted."""

    number: int
    root: int
    flipped: I32


class RowStore:
    """Rows of one artifact (or pack), numbered from `first` on."""

    def __init__(self, vocab_size: int, first: int = 0, limits: Limits | None = None) -> None:
        self.row_bytes = (vocab_size + 31) // 32 * 4
        self.first = first
        self.limit = (limits or Limits()).mask_bytes
        self.known: dict[tuple[int, bytes], Row] = {}
        self.base: list[int] = []
        self.depth: dict[int, int] = {}
        self.word: list[U32] = []
        self.xor: list[U32] = []

    def add(self, root: int, flipped: I32, near: list[Row]) -> Row:
        """The row of this description. `near`: rows that may differ in less than the root does."""
        key = (root, flipped.tobytes())
        found = self.known.get(key)
        if found is not None:
            return found
        if self.row_bytes * (len(self.base) + 1) > self.limit:
            raise LimitExceeded("mask_bytes", self.limit, self.row_bytes * (len(self.base) + 1), "rows")
        base, patch = root, flipped
        for row in near:
            if row.root == root and len(patch) and self.depth[row.number] < MAX_DEPTH:
                other = symmetric_difference(flipped, row.flipped)
                if len(other) < len(patch):
                    base, patch = row.number, other
        found = self.known[key] = Row(self.first + len(self.base), root, flipped)
        self.depth[found.number] = self.depth.get(base, 0) + 1
        word, xor = words_of(patch)
        self.base.append(base)
        self.word.append(word)
        self.xor.append(xor)
        return found

    def sizes(self, pack_row: Callable[[int], U32]) -> list[int]:
        """The number of tokens in each row. `pack_row` gives a row below `first`, dense."""
        kept: dict[int, U32] = {}
        bases = set(self.base)
        out = []
        for i, (base, word, xor) in enumerate(zip(self.base, self.word, self.xor, strict=True)):
            if base == NO_BASE:
                words = np.zeros(self.row_bytes // 4, dtype=np.uint32)
            else:
                words = (kept[base] if base >= self.first else pack_row(base)).copy()
            words[word] ^= xor
            out.append(int(np.bitwise_count(words).sum()))
            if self.first + i in bases:
                kept[self.first + i] = words
        return out

    def tables(self) -> RowTables:
        empty = np.zeros(0, dtype=np.uint32)
        return RowTables(
            row_base=np.array(self.base, dtype=np.uint32),
            patch_start=starts(map(len, self.word)),
            patch_word=np.concatenate([empty, *self.word]),
            patch_xor=np.concatenate([empty, *self.xor]),
        )


def symmetric_difference(a: I32, b: I32) -> I32:
    """Of ascending arrays without doubles: what is in one of them only, ascending."""
    both = np.sort(np.concatenate([a, b]), kind="stable")
    if len(both) < 2:
        return both
    same = both[1:] == both[:-1]
    keep = np.ones(len(both), dtype=np.bool_)
    keep[1:] &= ~same
    keep[:-1] &= ~same
    return both[keep]


def words_of(tokens: I32) -> tuple[U32, U32]:
    """Ascending tokens as (word, bits) pairs, a word once."""
    word = (tokens >> 5).astype(np.uint32)
    bit = np.uint32(1) << (tokens & 31).astype(np.uint32)
    if not len(word):
        return word, bit
    first = np.flatnonzero(np.concatenate([[True], word[1:] != word[:-1]]))
    return word[first], np.bitwise_or.reduceat(bit, first)
