"""One control's walk over the vocabulary: its local mask and its residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.tokens import kernels
from maskwright.compiler.tokens.machine import Machine
from maskwright.compiler.tokens.trie import TokenTrie

if TYPE_CHECKING:
    from maskwright.compiler.tokens.merge_rests import MergedRests

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

Follow = npt.NDArray[np.bool_]
"""[verdicts, 256]: bytes that some caller can go on with after a return; the last row holds for further verdicts."""
ANY_BYTE: Follow = np.ones((1, 256), dtype=np.bool_)
NO_TOKENS: I32 = np.zeros(0, dtype=np.int32)
ARENA = 1 << 14
"""Symbols that one token's run may hold on its own stack and on those it backtracks to."""


@dataclass(frozen=True, slots=True)
class Walked:
    """`local`: tokens decided legal. `left_token[i]` leaves the frame and is legal if the stack takes `left_code[i]`.

    A code is verdict * n_suffixes + suffix number.
    """

    local: I32
    left_token: I32
    left_code: I64

    @property
    def residual_codes(self) -> I64:
        return self.left_code

    def with_rests(self, rests: MergedRests) -> Walked:
        """The same with merged rests; tokens whose rest is dropped aren't legal."""
        code = rests.apply(self.left_code)
        kept = code >= 0
        return Walked(self.local, self.left_token[kept], code[kept])


FINAL = Walked(NO_TOKENS, NO_TOKENS, np.zeros(0, dtype=np.int64))
"""A final control has returned before a token begins (at the bottom of the stack nothing follows it)."""


class Walker:
    """Walks controls of one machine. Holds the kernels' scratch arrays, so it belongs to one thread."""

    def __init__(self, machine: Machine, tokens: TokenTrie) -> None:
        self.machine, self.tokens = machine, tokens
        depth, n = tokens.longest + 2, len(tokens.trie.order)
        self.states = tuple(np.empty(depth, dtype=np.int32) for _ in range(3))
        self.arena = (np.empty(ARENA, dtype=np.int32), np.empty(ARENA, dtype=np.int32))
        self.local = np.empty(n, dtype=np.int32)
        self.left = tuple(np.empty(n, dtype=np.int32) for _ in range(3))

    def walk(self, control: int, follow: Follow = ANY_BYTE) -> Walked:
        """Rests whose first byte isn't in `follow` are dropped at once.

        About a millisecond for a control that takes most of 128k tokens, microseconds for a narrow one.
        """
        t = self.tokens
        n_local, n_left = kernels.walk(
            self.machine, t.trie, control, follow,
            self.states[0], self.states[1], self.states[2], self.arena[0], self.arena[1],
            self.local, self.left[0], self.left[1], self.left[2],
        )  # fmt: skip
        if n_local < 0:
            raise arena_is_full()
        token, offset, verdict = (x[:n_left] for x in self.left)
        suffix = t.suffix_of[t.text_start[token] + offset].astype(np.int64)
        return Walked(self.local[:n_local].copy(), token.copy(), verdict.astype(np.int64) * t.n_suffixes + suffix)

    def returns(self, symbol: int) -> I32:
        """[verdicts] moves after a return to this symbol."""
        m = self.machine
        return m.return_move[m.return_start[symbol] : m.return_start[symbol + 1]]

    def worth(self, returns: I32, codes: I64) -> I64:
        """Per code kernels.FALSE, kernels.TRUE or the code left to the caller's caller; see `run_suffixes`."""
        t = self.tokens
        out = np.zeros(len(codes), dtype=np.int64)
        done = kernels.run_suffixes(
            self.machine, returns, codes, t.n_suffixes, t.text, t.suffix_of, t.suffix_place, t.suffix_end,
            self.arena[0], self.arena[1], out,
        )  # fmt: skip
        if not done:
            raise arena_is_full()
        return out


def arena_is_full() -> LimitExceeded:
    """A token's bytes make the automaton push without end in sight."""
    return LimitExceeded("pushes", ARENA, ARENA + 1, "walk", hint="shorten the rules that are entered without reading")
