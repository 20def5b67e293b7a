"""Distinct mask rows, kept as differences.

A row is described by a *root*, a row that is already stored (or NO_BASE: no bit set), and the tokens whose bits are
flipped on it, ascending. Equal descriptions are one row. Nothing is made dense at compile time.

Rows of neighbouring states differ from their root in thousands of words and from each other in a few (the states of a
pattern inside a string, say). So what's stored, `RowStore.tables`, is the difference from the nearest of: the root, the
latest rows of the same root, and its *leaders*, rows that were far from every candidate when they came. Both sets are
short, so the cost is linear in the number of rows. Numbers of rows stay.

Measured on 171 real schemas, patches from the root alone and from the nearest: p50 17,700 and 7,100, p99 1,340,000 and
250,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.jit import kernel
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.tables import NO_BASE, RowTables, starts

I32 = npt.NDArray[np.int32]
Array = np.ndarray[Any, Any]

FEW = 4
"""Words that aren't worth a search."""
LATEST, LEADERS = 32, 128
LINK_WORDS = 200
MAX_DEPTH = 10
"""Own rows that a candidate may stand on: where a row is used, all of them are xor-ed. Each costs a worker as much as
`LINK_WORDS` more words would, so a candidate must save them, or a twentieth of a row where that's less. The format
allows 16 rows.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """`number` is global; the row's content is that of `root` with `flipped` tokens' bits inverted."""

    number: int
    root: int
    flipped: I32


class RowStore:
    """Rows of one artifact (or pack), numbered from `first` on. `size_of` gives the number of tokens in a row below."""

    def __init__(
        self,
        vocab_size: int,
        first: int = 0,
        limits: Limits | None = None,
        size_of: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.words = (vocab_size + 31) // 32
        self.first, self.size_of = first, size_of
        self.limit = (limits or Limits()).mask_bytes
        self.known: dict[tuple[int, bytes], Row] = {}
        self.rows: list[Row] = []
        self.sizes: list[int] = []
        """The number of tokens in each row."""

    def add(self, root: int, flipped: I32, gain: int | None = None) -> Row:
        """The row of this description. `gain`: how many more tokens than the root it has; default: all that's flipped.

        Raises LimitExceeded for `mask_bytes`.
        """
        key = (root, flipped.tobytes())
        found = self.known.get(key)
        if found is None:
            size = 4 * self.words * (len(self.rows) + 1)
            if size > self.limit:
                raise LimitExceeded("mask_bytes", self.limit, size, "rows")
            found = self.known[key] = Row(self.first + len(self.rows), root, flipped)
            self.rows.append(found)
            self.sizes.append(self.root_size(root) + (len(flipped) if gain is None else gain))
        return found

    def root_size(self, root: int) -> int:
        if root == NO_BASE:
            return 0
        return self.sizes[root - self.first] if root >= self.first else self.size_of(root)

    def tables(self) -> RowTables:
        """The rows as patches on their nearest bases."""
        roots = np.array([r.root for r in self.rows], dtype=np.int64)
        group = np.unique(roots, return_inverse=True)[1]
        start = starts(len(r.flipped) for r in self.rows)
        token = np.concatenate([np.zeros(0, dtype=np.int32), *(r.flipped for r in self.rows)])
        own_root = np.where((roots == NO_BASE) | (roots < self.first), -1, roots - self.first)
        whole_start, word, xor = words_of(token, start)
        base = place_rows(own_root, group.astype(np.int64), whole_start, word, xor, self.words)
        patch_start, patch_word, patch_xor = make_patches(base, whole_start, word, xor, self.words)
        return RowTables(
            row_base=np.where(base < 0, roots, base + self.first).astype(np.uint32),
            patch_start=patch_start.astype(np.uint32),
            patch_word=patch_word,
            patch_xor=patch_xor,
        )


@kernel
def words_of(token: Array, start: Array) -> tuple[Array, Array, Array]:
    """Rows of ascending tokens as rows of (word, bits), a word once."""
    out_start = np.zeros(len(start), np.int64)
    word = np.empty(len(token), np.uint32)
    bits = np.empty(len(token), np.uint32)
    n = 0
    for i in range(len(start) - 1):
        out_start[i] = n
        last = -1
        for k in range(start[i], start[i + 1]):
            w = token[k] >> 5
            if w != last:
                word[n], bits[n] = w, 0
                last = w
                n += 1
            bits[n - 1] |= np.uint32(1) << np.uint32(token[k] & 31)
    out_start[len(start) - 1] = n
    return out_start, word[:n].copy(), bits[:n].copy()


@kernel
def differing_words(dense: Array, count: int, word: Array, xor: Array, low: int, high: int, least: int) -> int:
    """Words in which a row, `dense` with `count` words that aren't 0, differs from the row `word[low:high]`; at least
    `least` when it isn't less.
    """
    if abs(high - low - count) >= least:
        return least
    differ = count
    for k in range(low, high):
        x = dense[word[k]]
        if x == xor[k]:
            differ -= 1
        elif x == 0:
            differ += 1
    return differ


@kernel
def place_rows(own_root: Array, group: Array, start: Array, word: Array, xor: Array, words: int) -> Array:
    """For each row the own row of the same root that it's put on, -1: its root.

    `own_root`: the own row that is the root, -1 when it isn't an own one. `group`: the root, numbered densely.
    """
    n = len(own_root)
    base = np.full(n, -1, np.int64)
    depth = np.zeros(n, np.int64)
    groups = 0
    for g in group:
        groups = max(groups, g + 1)
    latest = np.full((groups, LATEST), -1, np.int64)
    leaders = np.full((groups, LEADERS), -1, np.int64)
    n_latest, n_leaders = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    dense = np.zeros(words, np.uint32)
    link = min(LINK_WORDS, words // 20)
    for i in range(n):
        low, high = start[i], start[i + 1]
        count = high - low
        if own_root[i] >= 0:
            depth[i] = depth[own_root[i]] + 1
        if count <= FEW:
            continue
        for k in range(low, high):
            dense[word[k]] = xor[k]
        g, least = group[i], count
        have = min(n_latest[g], LATEST)
        for j in range(have + n_leaders[g]):
            c = leaders[g, j - have] if j >= have else latest[g, j]
            room = least - link * (depth[c] + 1)
            if room <= 0:
                continue
            differ = differing_words(dense, count, word, xor, start[c], start[c + 1], room)
            if differ < room:
                least, base[i] = differ + least - room, c
        if base[i] >= 0:
            depth[i] = depth[base[i]] + 1
        if depth[i] < MAX_DEPTH:
            if 4 * least > count and n_leaders[g] < LEADERS:
                leaders[g, n_leaders[g]] = i
                n_leaders[g] += 1
            else:
                latest[g, n_latest[g] % LATEST] = i
                n_latest[g] += 1
        for k in range(low, high):
            dense[word[k]] = 0
    return base


@kernel
def make_patches(base: Array, start: Array, word: Array, xor: Array, words: int) -> tuple[Array, Array, Array]:
    """Each row as (word, xor) pairs on its base; both rows are differences from the same root."""
    out_start = np.zeros(len(start), np.int64)
    out_word = np.empty(len(word), np.uint32)  # no row gets longer
    out_xor = np.empty(len(word), np.uint32)
    n = 0
    for i in range(len(base)):
        out_start[i] = n
        a, a_end = start[i], start[i + 1]
        b, b_end = 0, 0
        if base[i] >= 0:
            b, b_end = start[base[i]], start[base[i] + 1]
        while a < a_end or b < b_end:
            w = words
            if a < a_end:
                w = int(word[a])
            if b < b_end:
                w = min(w, int(word[b]))
            x = np.uint32(0)
            if a < a_end and word[a] == w:
                x ^= xor[a]
                a += 1
            if b < b_end and word[b] == w:
                x ^= xor[b]
                b += 1
            if x != 0:
                out_word[n], out_xor[n] = w, x
                n += 1
    out_start[len(start) - 1] = n
    return out_start, out_word[:n].copy(), out_xor[:n].copy()
