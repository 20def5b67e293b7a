"""Rows that an artifact doesn't store: a pack control's local mask with the residual tokens that a context
accepts.

The pack knows for each of its controls which tokens leave its frame, and with which residual; a context is a
vector of bits, one for each residual of its frame. So a row is one gather of bits, and an OR of the tokens whose bit is
set: some ten microseconds, once. What a control's tokens are in words is computed when it's met first, for all
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
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pack control's residual tokens, ascending: the word of the bitmask that each stands in, its bit there, and the
    place of its residual.
    """

    word: Places
    bit: U32
    place: Places


def leaving_tokens(pack: VocabularyPack, control: int) -> Leaving:
    """Of one control, kept in the pack. Raises ArtifactError when they aren't all text."""
    found = pack.leaving.get(control)
    if found is None:
        residuals = pack.residuals
        part = slice(residuals.start[control], residuals.start[control + 1])
        token, place = residuals.token[part].astype(np.intp), residuals.place[part].astype(np.intp)
        if len(token) > 1 and not (token[1:] > token[:-1]).all():
            order = token.argsort(kind="stable")
            token, place = token[order], place[order]
        word, bit = token >> 5, np.left_shift(np.uint32(1), (token & 31).astype(np.uint32))
        if (bit & ~pack.text_words[word]).any():
            raise ArtifactError("residual_token", None, f"control {control} has a token that isn't text")
        found = pack.leaving[control] = Leaving(word, bit, place)
    return found


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
        residual tokens aren't all text.
        """
        contexts = self._contexts
        tokens = leaving_tokens(self._pack, int(contexts.composed_control[number]))
        if not len(tokens.place):
            return base
        accepted = self._accepted(int(contexts.composed_context[number]))
        legal = accepted.take(tokens.place).nonzero()[0]
        if not len(legal):
            return base
        word, bit = tokens.word.take(legal), tokens.bit.take(legal)
        begins = np.empty(len(word), bool)
        begins[0] = True
        np.not_equal(word[1:], word[:-1], out=begins[1:])
        start = begins.nonzero()[0]
        words = np.array(base)
        words[word.take(start)] |= np.bitwise_or.reduceat(bit, start)
        return words.data

    def memory(self) -> int:
        """Bytes of what's kept to compose rows. An estimate."""
        return sum([bits.nbytes + 200 for bits in list(self._bits.values())])

    def _accepted(self, q: int) -> Bits:
        """[residuals of the context's frame, rounded up to bytes]"""
        found = self._bits.get(q)
        if found is None:
            start = self._contexts.bits_start
            packed = self._contexts.bits[start[q] : start[q + 1]]
            found = self._bits[q] = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return found
