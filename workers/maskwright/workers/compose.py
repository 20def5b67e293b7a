"""Rows that an artifact doesn't store: a pack control's local mask with the residual tokens that a context
accepts.

The pack knows for each of its controls which tokens leave its frame, and with which residual; a context is a
vector of bits, one for each residual of its frame. So a row is one gather of bits, and an OR of the tokens whose bit is
set: some twenty microseconds, once. Compilers leave such rows out for controls that decoding seldom meets (`hot` in the
pack).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.workers.errors import ArtifactError
from maskwright.workers.tables import Contexts

if TYPE_CHECKING:
    from maskwright.workers.pack import VocabularyPack

Bits = npt.NDArray[np.bool_]
_ONE = np.uint32(1)


class Composer:
    """The composed rows of one artifact, numbered as `Contexts.composed_*`. `count`: their number."""

    __slots__ = ("_bits", "_contexts", "_pack", "count")

    def __init__(self, contexts: Contexts, pack: VocabularyPack) -> None:
        self._contexts, self._pack = contexts, pack
        self.count = len(contexts.composed_context)
        self._bits: dict[int, Bits] = {}

    def base_index(self, number: int) -> int:
        """The index (row + 1) of the pack's row that it stands on."""
        return int(self._pack.control_row[self._contexts.composed_control[number]]) + 1

    def compose(self, number: int, base: memoryview) -> memoryview:
        """The row, dense, on its base; the base itself where nothing is added. Raises ArtifactError when the pack's
        residual tokens aren't all text, or the artifact's bits don't inflate.
        """
        contexts, pack = self._contexts, self._pack
        residuals, control = pack.residuals, int(contexts.composed_control[number])
        part = slice(residuals.start[control], residuals.start[control + 1])
        if part.start == part.stop:
            return base
        accepted = self._accepted(int(contexts.composed_context[number]))
        token = residuals.token[part][accepted.take(residuals.place[part])].astype(np.intp)
        if not len(token):
            return base
        word, bit = token >> 5, np.left_shift(_ONE, (token & 31).astype(np.uint32))
        if (bit & ~pack.text_words.take(word)).any():
            raise ArtifactError("residual_token", None, f"control {control} has a token that isn't text")
        words = np.array(base)
        np.bitwise_or.at(words, word, bit)
        return words.data

    def memory(self) -> int:
        """Bytes of what's kept to compose rows. An estimate."""
        return self._contexts.bits.memory() + sum([bits.nbytes + 200 for bits in list(self._bits.values())])

    def _accepted(self, q: int) -> Bits:
        """[residuals of the context's frame, rounded up to bytes]"""
        found = self._bits.get(q)
        if found is None:
            start = self._contexts.bits_start
            packed = self._contexts.bits.array()[start[q] : start[q + 1]]
            found = self._bits[q] = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return found
