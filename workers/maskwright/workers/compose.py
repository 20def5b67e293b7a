"""Rows that an artifact doesn't store: a pack control's local mask with the residual tokens that a context
accepts.

The pack knows for each of its controls which tokens leave its frame, and with which residual; a context is a
vector of bits, one for each residual of its frame. So a row is one gather of bits and one OR over the tokens of
each word: some ten microseconds, once. The tokens of a control are put into words when it's met first, for all
artifacts of the pack. Compilers leave such rows out for controls that decoding seldom meets (`hot` in the pack).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.workers.errors import ArtifactError
from maskwright.workers.tables import Contexts

if TYPE_CHECKING:
    from maskwright.workers.pack import VocabularyPack

U32 = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pack control's residual tokens by the word of the bitmask they stand in.

    `word[i]` ascends without doubles; from `start[i]` on come its tokens: their bits in the word, and the places
    of their residuals.
    """

    word: Places
    start: Places
    bit: U32
    place: Places


def leaving_tokens(pack: VocabularyPack, control: int) -> Leaving:
    """Of one control, kept in the pack. Raises ArtifactError when they aren't all text."""
    found = pack.leaving.get(control)
    if found is None:
        residuals = pack.residuals
        part = slice(residuals.start[control], residuals.start[control + 1])
        token = residuals.token[part].astype(np.uint32)
        order = np.argsort(token, kind="stable")
        token = token[order]
        word, bit = token >> np.uint32(5), np.uint32(1) << (token & np.uint32(31))
        if (bit & ~pack.text_words[word]).any():
            raise ArtifactError("residual_token", None, f"control {control} has a token that isn't text")
        start = np.flatnonzero(np.diff(word.astype(np.int64), prepend=-1))
        place = residuals.place[part][order].astype(np.intp)
        found = pack.leaving[control] = Leaving(word[start].astype(np.intp), start, bit, place)
    return found


class Composer:
    """The composed rows of one artifact, numbered as `Contexts.composed_*`. `count`: their number."""

    __slots__ = ("_bits", "_contexts", "_pack", "count")

    def __init__(self, contexts: Contexts, pack: VocabularyPack) -> None:
        self._contexts, self._pack = contexts, pack
        self.count = len(contexts.composed_context)
        self._bits: dict[int, U32] = {}

    def base_index(self, number: int) -> int:
        """The index (row + 1) of the pack's row that it stands on."""
        return int(self._pack.control_row[self._contexts.composed_control[number]]) + 1

    def compose(self, number: int, base: memoryview) -> U32:
        """The row, dense, on its base. Raises ArtifactError when the pack's residual tokens aren't all text."""
        contexts = self._contexts
        tokens = leaving_tokens(self._pack, int(contexts.composed_control[number]))
        words = np.array(base)
        if len(tokens.start):
            accepted = self._accepted(int(contexts.composed_context[number]))[tokens.place]
            words[tokens.word] |= np.bitwise_or.reduceat(tokens.bit & accepted, tokens.start)
        return words

    def _accepted(self, q: int) -> U32:
        """[residuals of the context's frame, rounded up to bytes], all bits or none."""
        found = self._bits.get(q)
        if found is None:
            start = self._contexts.bits_start
            packed = self._contexts.bits[start[q] : start[q + 1]]
            found = self._bits[q] = np.negative(np.unpackbits(packed, bitorder="little").astype(np.uint32))
        return found
