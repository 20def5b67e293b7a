"""Mask rows: dense ones, and thin ones that are a dense row with a few words changed.

A dense row is a view of 32-bit words: the mask of text tokens, bit t % 32 of word t // 32. Nobody writes to
one after it's made. A stored row is an earlier row with some words xor-ed. It is, when it's used first,

    thin      if at most `THIN_WORDS` words are xor-ed on a dense row (the states inside a literal): kept as
              that row and the patches, since fresh memory (four pages at 128k tokens) costs more than a few
              stores
    composed  if it isn't stored at all: made dense by compose.py
    dense     otherwise: a copy of the dense row it stands on, with the words xor-ed

Rows of a vocabulary pack are made dense once for all artifacts of the pack. Dense rows of all its artifacts
together are bounded: beyond `DENSE_BYTES` the oldest are dropped, and made again when they're used again.
Threads may race to make a row: they do the same work twice and store equal values; whoever reads a row that's
dropped keeps it alive.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from maskwright.workers.compose import Composer
from maskwright.workers.tables import Rows

if TYPE_CHECKING:
    from maskwright.workers.lazy import LazyContexts

THIN_WORDS = 8
DENSE_BYTES = 256 << 20

Thin = tuple[memoryview, list[tuple[int, int]]]
"""A dense row and the (word, xor) patches on it, in any order; a word may come twice."""


class RowPool:
    """All rows of an artifact or a pack by index: row number + 1, so that 0 is the empty row.

    dense: for each index the dense row, or None. thin: the rows used so far, None for those that aren't thin.
    made: of a pack's pool, where its artifacts' dense rows are, oldest first; at most `most` of them.
    """

    __slots__ = (
        "__weakref__", "_base", "_base_of", "_composer", "_first", "_first_composed", "_start", "_word", "_words",
        "_xor", "dense", "made", "most", "tables", "thin",
    )  # fmt: skip

    def __init__(
        self, rows: Rows, words: int, base: RowPool | None, composer: Composer | LazyContexts | None = None
    ) -> None:
        self.tables, self._words, self._base, self._composer = rows, words, base, composer
        self._first = rows.first_row + 1
        self._first_composed = self._first + len(rows.base)
        self._start, self._word, self._xor = rows.patch_start.data, rows.patch_word.data, rows.patch_xor.data
        self._base_of = rows.base.data
        own: list[memoryview | None] = [None] * (len(rows.base) + (composer.count if composer else 0))
        empty: list[memoryview | None] = [np.zeros(words, np.uint32).data]
        self.dense: list[memoryview | None] = (base.dense if base else empty) + own
        self.thin: dict[int, Thin | None] = {}
        self.made: deque[tuple[weakref.ref[RowPool], int]] = base.made if base else deque()
        self.most = max(DENSE_BYTES // (4 * words), 1)

    @property
    def n_rows(self) -> int:
        """The global count of stored rows: numbers below it exist."""
        return self.tables.n_rows

    def fill(self, view: memoryview, index: int) -> None:
        """Writes any row into `view`, [words] of 32 bits."""
        thin = self.thin[index] if index in self.thin else self._make_thin(index)
        if thin:
            view[:] = thin[0]
            for word, xor in thin[1]:
                view[word] ^= xor
        else:
            view[:] = self.expand(index)

    def bit(self, index: int, token: int) -> int:
        """Whether a token, an id within the row, is in any row."""
        at = token >> 5
        thin = self.thin[index] if index in self.thin else self._make_thin(index)
        if not thin:
            return self.expand(index)[at] >> (token & 31) & 1
        value: int = thin[0][at]
        for word, xor in thin[1]:
            if word == at:
                value ^= xor
        return value >> (token & 31) & 1

    def expand(self, index: int) -> memoryview:
        """The dense row, made if it isn't there."""
        row = self.dense[index]
        if row is not None:
            return row
        base = self._base
        if index < self._first:
            assert base is not None
            row = self.dense[index] = base.expand(index)
            return row
        row = self._compose(index) if index >= self._first_composed else self._patch(index)
        self.dense[index] = row
        if base is not None:
            self.made.append((weakref.ref(self), index))
            if len(self.made) > base.most:
                pool, oldest = self.made.popleft()
                if (owner := pool()) is not None:
                    owner.dense[oldest] = None
                    owner.thin.clear()  # thin rows may stand on it
        return row

    def _patch(self, index: int) -> memoryview:
        chain, row = self._chain(index)
        words = np.array(row)
        rows, start = self.tables, self._start
        if len(chain) == 1 and row is self.dense[0]:
            part = slice(start[chain[0]], start[chain[0] + 1])
            words[rows.patch_word[part]] = rows.patch_xor[part]
            return words.data
        for own in chain:
            part = slice(start[own], start[own + 1])
            words[rows.patch_word[part]] ^= rows.patch_xor[part]
        return words.data

    def _compose(self, index: int) -> memoryview:
        composer = self._composer
        assert composer is not None
        number = index - self._first_composed
        return composer.compose(number, self.expand(composer.base_index(number))).data

    def _chain(self, index: int) -> tuple[list[int], memoryview]:
        """Own rows whose patches make this row, at most `tables.MAX_CHAIN`, on top of a dense one."""
        chain: list[int] = []
        row = self.dense[index]
        while row is None:
            own = index - self._first
            if own < 0:
                return chain, self.expand(index)
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
                row = self.expand(at)
                break
            first, end = (start[own], start[own + 1]) if at < self._first_composed else (0, THIN_WORDS + 1)
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
