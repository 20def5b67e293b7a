"""A vocabulary made ready for compilation: its trie, the pack's frames as automaton, machine, walks and residuals.

Everything here is read from a vocabulary pack's tables, or shared with its building, so that what artifacts are
compiled against is exactly what workers load. Immutable after construction but for caches of dense rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.contexts import Regions
from maskwright.compiler.tokens.machine import Machine, build_machine, dense_moves
from maskwright.compiler.tokens.residuals import Residuals, make_gather
from maskwright.compiler.tokens.tables import NO_BASE, AutomatonTables, PackTables
from maskwright.compiler.tokens.trie import TokenTrie, build_rest_tries
from maskwright.compiler.tokens.walk import Walker

Words = npt.NDArray[np.uint32]


@dataclass
class PreparedVocabulary:
    """`library` is the automaton of the pack's frames, `tables` the same as arrays."""

    vocab_size: int
    tokens: TokenTrie
    library: ByteAutomaton
    tables: PackTables
    digest: str
    _rows: dict[int, Words] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    @cached_property
    def spellable(self) -> int:
        """Bit b: some text token is exactly byte b."""
        return spellable_bytes(self.tokens)

    @cached_property
    def base_moves(self) -> npt.NDArray[np.int32]:
        return dense_moves(self.tables.automaton)

    def machine(self, own: AutomatonTables) -> Machine:
        """The pack's machine with an artifact's on top."""
        return build_machine(own, self.tables.automaton, self.base_moves)

    @cached_property
    def residuals(self) -> Residuals:
        """R of the pack's frames; the gathers of its symbols are made on demand."""
        t, n = self.tables, self.tokens.n_suffixes
        code = t.code_verdict.astype(np.int64) * n + t.code_suffix
        bounds = t.code_start.tolist()
        codes = {f: code[i:j] for f, (i, j) in enumerate(itertools.pairwise(bounds))}
        walker = Walker(build_machine(t.automaton, None, None), self.tokens)
        verdicts = t.automaton.frame_verdicts.tolist()
        tries = {f: build_rest_tries(c, verdicts[f], self.tokens) for f, c in codes.items()}
        return Residuals(codes, tries, make=lambda s: make_gather(self.library, s, codes, walker))

    @cached_property
    def regions(self) -> Regions:
        """What the entries of the pack's frames reach."""
        return Regions(self.library)

    def row_size(self, number: int) -> int:
        """The number of tokens in a pack row."""
        found = self._sizes.get(number)
        if found is None:
            found = self._sizes[number] = int(np.bitwise_count(self.row(number)).sum())
        return found

    def residual_tokens(self, control: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """A pack control's residual tokens, ascending, and the place of each one's residual in its frame's vector."""
        t = self.tables
        part = slice(int(t.residual_start[control]), int(t.residual_start[control + 1]))
        return t.residual_token[part].astype(np.int32), t.residual_place[part].astype(np.int32)

    def row(self, number: int) -> Words:
        """A pack row, dense."""
        found = self._rows.get(number)
        if found is None:
            rows, chain = self.tables.rows, []
            n = number
            while n != NO_BASE and n not in self._rows:
                chain.append(n)
                n = int(rows.row_base[n])
            words = self._rows[n] if n != NO_BASE else np.zeros((self.vocab_size + 31) // 32, dtype=np.uint32)
            for n in reversed(chain):
                part = slice(int(rows.patch_start[n]), int(rows.patch_start[n + 1]))
                words = words.copy()
                words[rows.patch_word[part]] ^= rows.patch_xor[part]
                self._rows[n] = words
            found = self._rows[number]
        return found


def spellable_bytes(tokens: TokenTrie) -> int:
    """Bit b: some text token is exactly byte b."""
    t = tokens.trie
    has = (t.depth == 1) & (t.token_start[1:] > t.token_start[:-1])
    return sum(1 << int(b) for b in t.byte[has])
