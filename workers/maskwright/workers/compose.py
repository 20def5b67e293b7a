"""Rows that an artifact doesn't store: a pack control's local mask with the residual tokens that a context
accepts.

The pack knows for each of its controls which tokens leave its frame, and with which residual; a context is a
vector of bits, one for each residual of its frame. So a row is one gather of bits and one scatter of tokens:
tens of microseconds, once. Compilers leave such rows out for controls that decoding seldom meets (`hot` in
the pack).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.workers.errors import ArtifactError
from maskwright.workers.tables import Contexts

if TYPE_CHECKING:
    from maskwright.workers.pack import VocabularyPack


class Composer:
    """The composed rows of one artifact, numbered as `Contexts.composed_*`. `count`: their number."""

    __slots__ = ("_bits", "_contexts", "_pack", "count")

    def __init__(self, contexts: Contexts, pack: VocabularyPack) -> None:
        self._contexts, self._pack = contexts, pack
        self.count = len(contexts.composed_context)
        self._bits: dict[int, npt.NDArray[np.bool_]] = {}

    def base_index(self, number: int) -> int:
        """The index (row + 1) of the pack's row that it stands on."""
        return int(self._pack.control_row[self._contexts.composed_control[number]]) + 1

    def compose(self, number: int, base: memoryview) -> npt.NDArray[np.uint32]:
        """The row, dense, on its base. Raises ArtifactError when the pack's residual tokens aren't all text."""
        contexts, residuals = self._contexts, self._pack.residuals
        control, q = int(contexts.composed_control[number]), int(contexts.composed_context[number])
        part = slice(residuals.start[control], residuals.start[control + 1])
        tokens = residuals.token[part][self._accepted(q)[residuals.place[part]]].astype(np.uint32)
        words = np.array(base)
        np.bitwise_or.at(words, tokens >> np.uint32(5), np.uint32(1) << (tokens & np.uint32(31)))
        if (words & ~self._pack.text_words).any():
            raise ArtifactError("residual_token", None, f"control {control} has a token that isn't text")
        return words

    def _accepted(self, q: int) -> npt.NDArray[np.bool_]:
        """[residuals of the context's frame, rounded up to bytes]"""
        found = self._bits.get(q)
        if found is None:
            start = self._contexts.bits_start
            packed = self._contexts.bits[start[q] : start[q + 1]]
            found = self._bits[q] = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return found
