"""Mask rows: dense ones, and those that are a dense row with some words changed.

A dense row is a view of 32-bit words: the mask of text tokens, bit t % 32 of word t // 32. Nobody writes to
one after it's made. A stored row is an earlier row with a patch, some words xor-ed; so a chain of at most
`tables.MAX_CHAIN` patches leads from each row to a dense one. How a row is used:

    few        the empty row with at most `FEW_WORDS` set (states within a literal): always cleared and set, which
               costs no more than a copy from memory, and takes a hundredth of it
    patched    others, the first time: the dense row is copied into the bitmask and patched there, two microseconds a
               patch
    dense      then it's kept as it stands in the bitmask, and from then on it's one copy
    composed   if it isn't stored at all: made dense by compose.py

Rows of a vocabulary pack are made dense once for all artifacts of the pack. Dense rows of all its artifacts
together are bounded by `DENSE_BYTES`, and the least recently used are dropped: see `Recent`. Threads may race to make a
row: they do the same work twice and store equal values; whoever reads a row that's dropped keeps it alive.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.workers.compose import Composer
from maskwright.workers.tables import Rows, held_bytes

if TYPE_CHECKING:
    from maskwright.workers.lazy import LazyContexts

FEW_WORDS = 128
"""Set words that aren't worth a dense row."""
DENSE_BYTES = 256 << 20

U32 = npt.NDArray[np.uint32]


class Recent:
    """The dense rows of a pack's artifacts that were used lately, at most `most`.

    Two queues of half that size. New rows enter the first; who leaves it is set aside (`RowPool.aside`) and enters the
    second; who's used there goes back to the first, and who leaves the second unused is dropped. So a row that's used
    once in as many new rows as a queue holds is never made twice, as with a list in order of use, but a hit, the common
    case, keeps no books.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._new: deque[tuple[weakref.ref[RowPool], int]] = deque()
        self._aside: deque[tuple[weakref.ref[RowPool], int]] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._new) + len(self._aside)

    def add(self, pool: RowPool, index: int) -> None:
        """A row that has just been made, or is used again."""
        with self._lock:
            self._new.append((weakref.ref(pool), index))
            if len(self._new) <= (self.most + 1) // 2:
                return
            oldest = self._new.popleft()
            if (owner := oldest[0]()) is not None and (row := owner.dense[oldest[1]]) is not None:
                owner.aside[oldest[1]] = row
                owner.dense[oldest[1]] = None
                self._aside.append(oldest)
            if len(self._aside) > self.most // 2:
                left, index = self._aside.popleft()
                if (owner := left()) is not None:
                    owner.aside.pop(index, None)


class RowPool:
    """All rows of an artifact or a pack by index: row number + 1, so that 0 is the empty row.

    dense: for each index the dense row, or None. aside: rows that will be dropped unless they're used. recent: of a
    pack's pool, for all its artifacts.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_base_of",
        "_composer",
        "_empty",
        "_few",
        "_first",
        "_first_composed",
        "_patch_word",
        "_patch_xor",
        "_start",
        "_word",
        "_words",
        "_xor",
        "aside",
        "dense",
        "recent",
        "tables",
    )  # fmt: skip

    def __init__(
        self, rows: Rows, words: int, base: RowPool | None, composer: Composer | LazyContexts | None = None
    ) -> None:
        self.tables, self._words, self._base, self._composer = rows, words, base, composer
        self._first = rows.first_row + 1
        self._first_composed = self._first + len(rows.base)
        self._patch_word, self._patch_xor = rows.patch_word, rows.patch_xor
        # Single values are read from views: three times as fast as from arrays.
        self._start, self._word, self._xor = rows.patch_start.data, rows.patch_word.data, rows.patch_xor.data
        self._base_of = rows.base.data
        self._few: dict[int, tuple[npt.NDArray[np.int64], U32]] = {}
        own: list[memoryview | None] = [None] * (len(rows.base) + (composer.count if composer else 0))
        self._empty: memoryview = base._empty if base else np.zeros(words, np.uint32).data
        first: list[memoryview | None] = base.dense if base else [self._empty]
        self.dense: list[memoryview | None] = first + own
        self.aside: dict[int, memoryview] = {}
        self.recent: Recent = base.recent if base else Recent(max(DENSE_BYTES // (4 * words), 2))

    @property
    def n_rows(self) -> int:
        """The global count of stored rows: numbers below it exist."""
        return self.tables.n_rows

    def fill(self, view: memoryview, words: U32, index: int) -> None:
        """Writes any row into a bitmask's, [words] of 32 bits, given as a view and as an array."""
        few = self._few.get(index)
        if few is not None:
            view[:] = self._empty
            words[few[0]] = few[1]
            return
        row = self.dense[index]
        if row is None and self.aside:
            row = self._again(index)
        if row is not None:
            view[:] = row
        elif self._first <= index < self._first_composed:
            self._patch(view, words, index)
            if index not in self._few:
                self._keep(index, memoryview(view.tobytes()).cast("I"))
        else:
            view[:] = self.expand(index)

    def _patch(self, view: memoryview, words: U32, index: int) -> None:
        """Writes an own stored row."""
        start, word, xor, first = self._start, self._patch_word, self._patch_xor, self._first
        own = index - first
        base = self._base_of[own]
        begin, end = start[own], start[own + 1]
        if not base:
            view[:] = self._empty
            few = (word[begin:end], xor[begin:end])
            words[few[0]] = few[1]
            if end - begin <= FEW_WORDS:
                self._few[index] = few
            return
        chain = [(begin, end)]
        while (row := self.dense[base]) is None and (own := base - first) >= 0:
            chain.append((start[own], start[own + 1]))
            base = self._base_of[own]
        view[:] = self.expand(base) if row is None else row
        if not base:
            begin, end = chain.pop()
            words[word[begin:end]] = xor[begin:end]
        for begin, end in chain:
            words[word[begin:end]] ^= xor[begin:end]

    def bit(self, index: int, token: int) -> int:
        """Whether a token, an id within the row, is in any row."""
        at, value = token >> 5, 0
        while (row := self.dense[index]) is None and self._first <= index < self._first_composed:
            own = index - self._first
            end = self._start[own + 1]
            place = bisect_left(self._word, at, self._start[own], end)
            if place < end and self._word[place] == at:
                value ^= self._xor[place]
            index = self._base_of[own]
        value ^= (self.expand(index) if row is None else row)[at]
        return value >> (token & 31) & 1

    def expand(self, index: int) -> memoryview:
        """The dense row, made if it isn't there."""
        row = self.dense[index]
        if row is None:
            row = self._again(index)
        if row is not None:
            return row
        base = self._base
        if index < self._first:
            assert base is not None
            row = self.dense[index] = base.expand(index)
            return row
        if index >= self._first_composed:
            row = self._compose(index)
        else:
            words = np.empty(self._words, np.uint32)
            row = words.data
            self._patch(row, words, index)
        self._keep(index, row)
        return row

    def _again(self, index: int) -> memoryview | None:
        """A row that was set aside, back among those in use."""
        row = self.aside.pop(index, None)
        if row is not None:
            self._keep(index, row)
        return row

    def _keep(self, index: int, row: memoryview) -> None:
        """Remembers an own row."""
        self.dense[index] = row
        if self._base is not None:
            self.recent.add(self, index)

    def _compose(self, index: int) -> memoryview:
        composer = self._composer
        assert composer is not None
        number = index - self._first_composed
        return composer.compose(number, self.expand(composer.base_index(number)))

    def memory(self) -> int:
        """Bytes of the tables and of the rows that this pool made itself. An estimate."""
        own = {id(row) for row in (*self.dense[self._first :], *self.aside.values()) if row is not None}
        composer = self._composer.memory() if self._composer else 0
        made = (4 * self._words + 300) * len(own) + 400 * len(self._few)
        return held_bytes(self.tables) + composer + 8 * len(self.dense) + made
