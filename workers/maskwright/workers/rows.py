"""Mask rows: dense ones, and thin ones that are a dense row with a few words changed.

A dense row is a view of 32-bit words: the mask of text tokens, bit t % 32 of word t // 32. Nobody writes to
one after it's made. A stored row is an earlier row with some words xor-ed. Fresh memory is what costs when a
row is used for the first time (four pages at 128k tokens), so own rows get none before they've earned it:

    thin     at most `THIN_WORDS` words are xor-ed on a dense row (the states inside a literal): kept as that
    row and the patches, so
             filling a mask is a copy and a few stores
    composed not stored at all: made dense on first use (compose.py)
    others   the first `LATE` uses xor the words in the caller's mask itself, the next makes the row dense

Rows of a vocabulary pack are made dense on first use, once for all artifacts of the pack. Threads may race to
make a row: they do the same work twice and store equal values.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from maskwright.workers.compose import Composer
from maskwright.workers.tables import Rows

THIN_WORDS = 16
LATE = 2

Thin = tuple[memoryview, list[tuple[int, int]]]
"""A dense row and the (word, xor) patches on it, in any order; a word may come twice."""


class RowPool:
    """All rows of an artifact or a pack by index: row number + 1, so that 0 is the empty row.

    dense: for each index the dense row, or None. thin: the rows used so far, None for those that aren't thin.
    """

    __slots__ = (
        "_base",
        "_base_of",
        "_composer",
        "_first",
        "_first_composed",
        "_start",
        "_uses",
        "_word",
        "_words",
        "_xor",
        "dense",
        "tables",
        "thin",
    )

    def __init__(self, rows: Rows, words: int, base: RowPool | None, composer: Composer | None = None) -> None:
        self.tables, self._words, self._base = rows, words, base
        self._first = rows.first_row + 1
        self._start, self._word, self._xor = rows.patch_start.data, rows.patch_word.data, rows.patch_xor.data
        self._base_of = rows.base.data
        self.thin: dict[int, Thin | None] = {}
        self._uses: dict[int, int] = {}
        self._composer = composer
        self._first_composed = self._first + len(rows.base)
        own: list[memoryview | None] = [None] * (len(rows.base) + (composer.count if composer else 0))
        self.dense: list[memoryview | None] = base.dense + own if base else [np.zeros(words, np.uint32).data, *own]

    @property
    def n_rows(self) -> int:
        """The global count: rows below it exist."""
        return self.tables.n_rows

    def fill(self, view: memoryview, index: int) -> None:
        """Writes any row into `view`, [words] of 32 bits."""
        if index >= self._first_composed:
            view[:] = self.expand(index)
            return
        thin = self.thin[index] if index in self.thin else self._make_thin(index)
        if thin:
            view[:] = thin[0]
            for word, xor in thin[1]:
                view[word] ^= xor
        elif self._uses.get(index, 0) >= LATE:
            view[:] = self.expand(index)
        else:
            self._uses[index] = self._uses.get(index, 0) + 1
            chain, base = self._chain(index)
            view[:] = base
            self._flip(np.frombuffer(view, np.uint32), chain)

    def bit(self, index: int, token: int) -> int:
        """Whether a token, an id within the row, is in any row."""
        at, shift = token >> 5, token & 31
        if index >= self._first_composed:
            return self.expand(index)[at] >> shift & 1
        thin = self.thin[index] if index in self.thin else self._make_thin(index)
        if thin:
            value: int = thin[0][at]
            for word, xor in thin[1]:
                if word == at:
                    value ^= xor
            return value >> shift & 1
        chain, base = self._chain(index)
        value = base[at]
        for own in chain:
            end = self._start[own + 1]
            place = bisect_left(self._word, at, self._start[own], end)
            if place < end and self._word[place] == at:
                value ^= self._xor[place]
        return value >> shift & 1

    def expand(self, index: int) -> memoryview:
        """The dense row, made if it isn't there."""
        if index >= self._first_composed:
            return self._compose(index)
        chain, row = self._chain(index)
        if any(self._start[own] < self._start[own + 1] for own in chain):
            words = np.array(row)
            self._flip(words, chain)
            row = words.data
        self.dense[index] = row
        return row

    def _compose(self, index: int) -> memoryview:
        row = self.dense[index]
        if row is None:
            composer, base = self._composer, self._base
            assert composer is not None and base is not None
            number = index - self._first_composed
            at = composer.base_index(number)
            row = self.dense[index] = composer.compose(number, base.dense[at] or base.expand(at)).data
        return row

    def _flip(self, words: np.ndarray[tuple[int], np.dtype[np.uint32]], chain: list[int]) -> None:
        for own in chain:
            part = slice(self._start[own], self._start[own + 1])
            words[self.tables.patch_word[part]] ^= self.tables.patch_xor[part]

    def _chain(self, index: int) -> tuple[list[int], memoryview]:
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
            index = self._base_of[own]
            row = self.dense[index]
        return chain, row

    def _make_thin(self, index: int) -> Thin | None:
        """Keeps a row as thin if it is; remembers when it isn't."""
        start, patch_word, patch_xor = self._start, self._word, self._xor
        pairs: list[tuple[int, int]] = []
        at, row = index, self.dense[index]
        while row is None:
            own = at - self._first
            if own < 0:
                row = self.dense[at] = self._base.expand(at)  # type: ignore[union-attr]
                break
            first, end = start[own], start[own + 1]
            if len(pairs) + end - first > THIN_WORDS:
                self.thin[index] = None
                return None
            pairs.extend([(patch_word[i], patch_xor[i]) for i in range(first, end)])
            at = self._base_of[own]
            row = self.dense[at]
        self.thin[index] = thin = (row, pairs)
        return thin

    def memory(self) -> int:
        """Bytes of the rows that this pool made itself, thin and dense. An estimate."""
        own = {id(row) for row in self.dense[self._first :] if row is not None}
        return 4 * self._words * len(own) + 300 * len(self.thin)
