"""Mask rows, expanded on first use and kept: a row is a copy of its base row with some 32-bit words xor-ed.

An expanded row is a bytearray of 4 * words bytes in the machine's byte order: the mask of text tokens, bit t
% 32 of word t // 32. Nobody writes to one after it's made. Rows of a vocabulary pack are expanded once for
all artifacts of the pack. Cost of a first use: one copy of the base (16 KB at 128k tokens, about 1 µs) and
the patches.
"""

from __future__ import annotations

import numpy as np

from maskwright.workers.tables import Rows

_FEW = 8


class RowPool:
    """All rows of an artifact by global number; row number r is `dense[r + 1]` once it's expanded."""

    __slots__ = ("_base", "_rows", "_size", "dense")

    def __init__(self, rows: Rows, words: int, base: RowPool | None) -> None:
        self._rows, self._size, self._base = rows, 4 * words, base
        self.dense: list[bytearray | None] = [None] * (rows.n_rows + 1)
        if base is None:
            self.dense[0] = bytearray(self._size)
        else:
            self.dense[: len(base.dense)] = base.dense

    @property
    def n_rows(self) -> int:
        """The global count: rows below it exist."""
        return self._rows.n_rows

    def expand(self, index: int) -> bytearray:
        """The row at `dense[index]`, made if it isn't there."""
        chain = []
        row = self.dense[index]
        while row is None:
            own = index - 1 - self._rows.first_row
            if own < 0:
                assert self._base is not None
                row = self.dense[index] = self._base.expand(index)
                break
            chain.append((index, own))
            index = int(self._rows.base[own])
            row = self.dense[index]
        for index, own in reversed(chain):
            row = self.dense[index] = self._patch(row, own)
        return row

    def _patch(self, row: bytearray, own: int) -> bytearray:
        rows = self._rows
        start, end = int(rows.patch_start[own]), int(rows.patch_start[own + 1])
        if start == end:
            return row
        out = bytearray(row)
        words, xors = rows.patch_word[start:end], rows.patch_xor[start:end]
        if end - start <= _FEW:
            view = memoryview(out).cast("I")
            for word, xor in zip(words.tolist(), xors.tolist(), strict=True):
                view[word] ^= xor
        else:
            dense = np.frombuffer(out, np.uint32)
            dense[words] ^= xors
        return out

    def expanded_bytes(self) -> int:
        """Memory of the rows that this pool made itself, in bytes."""
        first = self._rows.first_row + 1
        own = {id(row) for row in self.dense[first:] if row is not None}
        return len(own) * self._size
