"""One control's walk over the vocabulary: its local mask and its residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.tokens import kernels
from maskwright.compiler.tokens.machine import Machine
from maskwright.compiler.tokens.trie import RestTries, TokenTrie

if TYPE_CHECKING:
    from maskwright.compiler.tokens.merge_rests import MergedRests

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

Follow = npt.NDArray[np.bool_]
"""[verdicts, 256]: bytes that some caller can go on with after a return; the last row holds for further verdicts."""
ANY_BYTE: Follow = np.ones((1, 256), dtype=np.bool_)
NO_TOKENS: I32 = np.zeros(0, dtype=np.int32)
BATCH = 256
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
        self.local = np.empty(2 * n, dtype=np.int32)
        self.left = tuple(np.empty(2 * n, dtype=np.int32) for _ in range(3))

    def walk(self, control: int, follow: Follow = ANY_BYTE) -> Walked:
        """Rests whose first byte isn't in `follow` are dropped at once.

        About a millisecond for a control that takes most of 128k tokens, microseconds for a narrow one.
        """
        (found,) = self.walk_all([control], follow, [(0, len(follow))])
        return found

    def walk_all(self, controls: Sequence[int], follow: Follow, rows: Sequence[tuple[int, int]]) -> Iterator[Walked]:
        """One control after the other, a batch in one call; `rows[i]` are the first and last + 1 row of `follow` for
        control i. The caller may stop between batches.
        """
        wanted, part = np.array(controls, dtype=np.int32), np.array(rows, dtype=np.int32).reshape(-1, 2)
        ends = np.zeros((2, BATCH + 1), dtype=np.int64)
        done = 0
        while done < len(wanted):
            batch = slice(done, done + BATCH)
            n = kernels.walk_controls(
                self.machine, self.tokens.trie, wanted[batch], follow, part[batch],
                self.states[0], self.states[1], self.states[2], self.arena[0], self.arena[1],
                self.local, self.left[0], self.left[1], self.left[2], ends[0, 1:], ends[1, 1:],
            )  # fmt: skip
            if n < 0:
                raise arena_is_full()
            local, left = ends[0, : n + 1].tolist(), ends[1, : n + 1].tolist()
            tokens, gone = self.local[: local[-1]].copy(), self.left[0][: left[-1]].copy()
            codes = self.codes(gone, self.left[2][: left[-1]], self.left[1][: left[-1]])
            for i in range(n):
                here = slice(left[i], left[i + 1])
                yield Walked(tokens[local[i] : local[i + 1]], gone[here], codes[here])
            done += n

    def codes(self, token: I32, verdict: I32, offset: I32) -> I64:
        """Codes of what's left of tokens from an offset on."""
        t = self.tokens
        out: I64 = verdict.astype(np.int64) * t.n_suffixes + t.suffix_of[t.text_start[token] + offset]
        return out

    def returns(self, symbol: int) -> I32:
        """[verdicts] moves after a return to this symbol."""
        m = self.machine
        return m.return_move[m.return_start[symbol] : m.return_start[symbol + 1]]

    def worth(self, returns: I32, codes: I64, rests: RestTries | None = None) -> I64:
        """Per code kernels.FALSE, kernels.TRUE or the code left to the caller's caller; see `kernels.run_suffix`.
        `rests`: the same codes in tries.
        """
        t, out = self.tokens, np.full(len(codes), kernels.FALSE, dtype=np.int64)
        if rests is not None:
            done = kernels.run_rests(
                self.machine, returns, rests, t.n_suffixes, t.suffix_of,
                self.states[0], self.states[1], self.states[2], self.arena[0], self.arena[1], out,
            )  # fmt: skip
            out[rests.empty] = self.worth(returns, codes[rests.empty])
        else:
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
