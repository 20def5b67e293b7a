"""Rows put on the row they differ least from.

The token automaton gives a row as differences from its *root*, a row of the pack or the empty one, or from a row of
the same root. Rows of neighbouring states differ from their root in thousands of words and from each other in a few
(the states of a pattern inside a string, say). So a row with many patches is compared with earlier rows of its root:
the latest, and *leaders*, rows that were far from every candidate when they came. It's put on the nearest. Both sets
are short, so the cost is linear in the number of rows: 8 ms for 180 rows of a 128k vocabulary, 0.2 s for 1,400.
Numbers of rows stay.

Measured on 171 real schemas: patches p50 17,700 -> 7,100, p99 1,340,000 -> 250,000.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.tokens.tables import RowTables, starts
from maskwright.workers.tables import MAX_CHAIN

FEW = 24
"""Patches that aren't worth a search."""
LATEST, LEADERS = 16, 64
DEPTH = 6
"""Own rows that a candidate may stand on: where a row is used, all of them are xor-ed. The format's limit is higher.
"""

Array = npt.NDArray[Any]
Patch = tuple[Array, Array]
"""Words, ascending, and what is xor-ed on them."""


class _Candidates:
    """Rows of one root: their positions and their differences from the root, dense."""

    __slots__ = ("latest", "leaders")

    def __init__(self) -> None:
        self.latest: deque[tuple[int, Array]] = deque(maxlen=LATEST)
        self.leaders: list[tuple[int, Array]] = []

    def nearest(self, dense: Array, least: int) -> tuple[int, Array] | None:
        """The one that differs in the fewest words, if in fewer than `least`."""
        best = None
        for position, other in (*self.latest, *self.leaders):
            n = int(np.count_nonzero(dense != other))
            if n < least:
                least, best = n, (position, other)
        return best

    def add(self, position: int, dense: Array, *, far: bool) -> None:
        """Keeps a row for those to come."""
        if far and len(self.leaders) < LEADERS:
            self.leaders.append((position, dense))
        else:
            self.latest.append((position, dense))


def rebase_rows(t: RowTables, first_row: int) -> RowTables:
    """The same rows with fewer patches. `first_row`: the global number of the first own row."""
    return _Rebaser(t, first_row).run()


class _Rebaser:
    def __init__(self, t: RowTables, first_row: int) -> None:
        self.t, self.first = t, first_row
        self.words = int(t.patch_word.max(initial=0)) + 1
        self.base: list[int] = t.row_base.tolist()
        self.root: list[int] = []
        self.depth: list[int] = []
        self.whole: list[Patch] = []  # differences from the root
        self.groups: dict[int, _Candidates] = {}

    def run(self) -> RowTables:
        bounds = self.t.patch_start.tolist()
        out = [self.place(i, slice(*bounds[i : i + 2])) for i in range(len(self.base))]
        empty = np.zeros(0, np.uint32)
        return RowTables(
            np.array(self.base, np.uint32),
            starts(len(words) for words, _ in out),
            np.concatenate([empty, *(words for words, _ in out)]),
            np.concatenate([empty, *(xors for _, xors in out)]),
        )

    def place(self, i: int, part: slice) -> Patch:
        """Chooses row i's base; its patch on that."""
        patch = self.t.patch_word[part], self.t.patch_xor[part]
        below = self.base[i] - self.first
        if 0 <= below < len(self.base):
            self.root.append(self.root[below])
            self.depth.append(self.depth[below] + 1)
            self.whole.append(_merge(patch, self.whole[below]))
        else:
            self.root.append(self.base[i])
            self.depth.append(0)
            self.whole.append(patch)
        if self.depth[i] >= MAX_CHAIN:
            self.base[i], self.depth[i], patch = self.root[i], 0, self.whole[i]
        return self.search(i, patch) if len(patch[0]) > FEW else patch

    def search(self, i: int, patch: Patch) -> Patch:
        words, xors = self.whole[i]
        dense = np.zeros(self.words, np.uint32)
        dense[words] = xors
        group = self.groups.setdefault(self.root[i], _Candidates())
        found = group.nearest(dense, min(len(patch[0]), len(words)))
        if found is not None:
            below, other = found
            self.base[i], self.depth[i] = self.first + below, self.depth[below] + 1
            at = np.flatnonzero(dense != other)
            patch = at.astype(np.uint32), dense[at] ^ other[at]
        elif len(words) < len(patch[0]):
            self.base[i], self.depth[i], patch = self.root[i], 0, self.whole[i]
        if self.depth[i] < DEPTH:
            group.add(i, dense, far=4 * len(patch[0]) > len(words))
        return patch


def _merge(one: Patch, two: Patch) -> Patch:
    """Both patches as one, without words that come out unchanged."""
    words, place = np.unique(np.concatenate([one[0], two[0]]), return_inverse=True)
    xors = np.zeros(len(words), np.uint32)
    np.bitwise_xor.at(xors, place, np.concatenate([one[1], two[1]]))
    return words[xors != 0], xors[xors != 0]
