"""Mask rows: dense ones, and thin ones that are a dense row with a few bytes changed.

A dense row is a bytearray of 4 * words bytes: the mask of text tokens, bit t % 32 of word t // 32. Nobody
writes to one after it's made. A stored row is an earlier row with some words xor-ed. Fresh memory is what
costs when a row is used for the first time (four pages at 128k tokens), so own rows get none before they've
earned it:

    thin     at most `THIN_WORDS` words differ from a dense row (the states inside a literal): kept as that
    row and the bytes that
             differ; filling a mask is a copy and a few stores
    others   the first use flips the words in the caller's mask itself, the second makes the row dense

Rows of a vocabulary pack are made dense on first use, once for all artifacts of the pack. Threads may race to
make a row: they do the same work twice and store equal values.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from maskwright.workers.tables import Rows

THIN_WORDS = 8

Thin = tuple[bytearray, tuple[tuple[int, int], ...], dict[int, int]]
"""A dense row, (byte index, value) where this row differs, and the same as a dictionary."""


class RowPool:
    """All rows of an artifact or a pack by index: row number + 1, so that 0 is the empty row. `dense[index]`:
    made rows.
    """

    __slots__ = ("_base", "_first", "_rows", "_size", "_start", "_used", "_word", "_xor", "dense", "thin")

    def __init__(self, rows: Rows, words: int, base: RowPool | None) -> None:
        self._rows, self._size, self._base = rows, 4 * words, base
        self._first = rows.first_row + 1
        self._start, self._word, self._xor = rows.patch_start.data, rows.patch_word.data, rows.patch_xor.data
        self.thin: dict[int, Thin] = {}
        self._used: set[int] = set()
        own: list[bytearray | None] = [None] * len(rows.base)
        self.dense: list[bytearray | None] = (
            [bytearray(self._size), *own] if base is None else base.dense + own
        )

    @property
    def n_rows(self) -> int:
        """The global count: rows below it exist."""
        return self._rows.n_rows

    def fill(self, view: memoryview, index: int) -> None:
        """Writes a row that isn't in `dense` (or is) into `view`, bytes of the row's length."""
        thin = self.thin.get(index)
        if thin is not None:
            base, changes, _ = thin
            view[:] = base
            for at, value in changes:
                view[at] = value
            return
        chain, base = self._chain(index)
        if not chain:
            view[:] = base
        elif self._make_thin(index, chain, base):
            self.fill(view, index)
        elif index in self._used:
            view[:] = self.expand(index)
        else:
            self._used.add(index)
            view[:] = base
            words = np.frombuffer(view, np.uint32)
            for own in chain:
                self._flip(words, own)

    def bit(self, index: int, token: int) -> int:
        """Whether a token, an id within the row, is in a row that isn't in `dense` (or is)."""
        thin = self.thin.get(index)
        at = token >> 3
        if thin is not None:
            value = thin[2].get(at)
            return (thin[0][at] if value is None else value) >> (token & 7) & 1
        chain, base = self._chain(index)
        bit = base[at] >> (token & 7) & 1
        for own in chain:
            start, end = self._start[own], self._start[own + 1]
            place = bisect_left(self._word, token >> 5, start, end)
            if place < end and self._word[place] == token >> 5:
                bit ^= self._xor[place] >> (token & 31) & 1
        return bit

    def expand(self, index: int) -> bytearray:
        """The dense row, made if it isn't there."""
        chain, row = self._chain(index)
        if chain:
            row = self.dense[index] = self._apply(row, chain)
        return row

    def _flip(self, words: np.ndarray[tuple[int], np.dtype[np.uint32]], own: int) -> None:
        start, end = self._start[own], self._start[own + 1]
        words[self._rows.patch_word[start:end]] ^= self._rows.patch_xor[start:end]

    def _chain(self, index: int) -> tuple[list[int], bytearray]:
        """Own rows whose patches make this row, at most `tables.MAX_CHAIN`, on top of a dense one."""
        chain: list[int] = []
        row = self.dense[index]
        while row is None:
            own = index - self._first
            if own < 0:
                assert self._base is not None
                row = self.dense[index] = self._base.expand(index)
                break
            chain.append(own)
            index = int(self._rows.base[own])
            row = self.dense[index]
        return chain, row

    def _apply(self, row: bytearray, chain: list[int]) -> bytearray:
        if all(self._start[own] == self._start[own + 1] for own in chain):
            return row
        out = bytearray(row)
        words = np.frombuffer(out, np.uint32)
        for own in chain:
            self._flip(words, own)
        return out

    def _make_thin(self, index: int, chain: list[int], base: bytearray) -> bool:
        """Keeps the row as thin if it is; whether it is."""
        if sum(self._start[own + 1] - self._start[own] for own in chain) > THIN_WORDS:
            return False
        flips: dict[int, int] = {}
        for own in chain:
            start, end = self._start[own], self._start[own + 1]
            for word, xor in zip(self._word[start:end].tolist(), self._xor[start:end].tolist(), strict=True):
                flips[word] = flips.get(word, 0) ^ xor
        changes = {
            4 * word + i: base[4 * word + i] ^ (xor >> 8 * i & 255)
            for word, xor in flips.items()
            for i in range(4)
            if xor >> 8 * i & 255
        }
        self.thin[index] = (base, tuple(changes.items()), changes)
        return True

    def memory(self) -> int:
        """Bytes of the rows that this pool made itself, thin and dense. An estimate."""
        own = {id(row) for row in self.dense[self._first :] if row is not None}
        return len(own) * self._size + 600 * len(self.thin)
