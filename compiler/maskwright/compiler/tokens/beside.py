"""The differential walk: a control that mostly does what a pack's control does, walked only where they differ.

A half-written key of an open object reads either the next letter of a declared name or anything else, and anything else
calls the pack's `key` frame: nearly the whole vocabulary is legal there. Such a control q has edges that push a
symbol s and go where the pack's control p goes, on nearly all bytes. Its mask in context c is then the mask of p in
context push(c, s), but for the tokens that this module finds: both are walked side by side, and a subtree is skipped
as soon as q's run has become p's run on top of s.

`Beside.token[i]` is worth `code[i]` from q (in the codes of q's frame) where the base says `base_code[i]` from p (in
the codes of p's frame); both use kernels.FALSE and kernels.TRUE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba import njit

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.kernels import FALSE, TRUE, find_move, push_all
from maskwright.compiler.tokens.walk import ARENA, I32, I64, Follow, Walker, arena_is_full

if TYPE_CHECKING:
    from maskwright.compiler.tokens.machine import Machine
    from maskwright.compiler.tokens.merge_rests import MergedRests
    from maskwright.compiler.tokens.trie import Trie

Array = np.ndarray[Any, Any]

LEAST_SHARED_BYTES = 64
DEAD, ALIVE, LEFT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Base:
    """The pack's control that a control goes along with, and the symbol it pushes to do so."""

    control: int
    symbol: int


@dataclass(frozen=True, slots=True)
class Beside:
    """How a control differs from its base; arrays of one length, see the module's text."""

    base: Base
    token: I32
    code: I64
    base_code: I64

    @property
    def residual_codes(self) -> I64:
        return self.code[self.code >= 0]

    def with_rests(self, rests: MergedRests) -> Beside:
        """The same with merged rests in the control's own codes."""
        return replace(self, code=rests.apply(self.code))


def find_base(a: ByteAutomaton, control: int, entries: dict[int, list[int]]) -> Base | None:
    """The base that shares most bytes, if it's worth it. `entries`: by pack frame, the controls to try."""
    shared: dict[int, int] = {}
    for e in a.edges_of(control):
        if e.move.pushes and a.symbol(e.move.pushes[0]).callee in entries:
            s = e.move.pushes[0]
            shared[s] = shared.get(s, 0) + e.high - e.low + 1
    for s, count in sorted(shared.items(), key=lambda x: -x[1]):
        if count < LEAST_SHARED_BYTES:
            return None
        for p in entries[a.symbol(s).callee]:
            if _goes_along(a, control, s, p):
                return Base(p, s)
    return None


def _goes_along(a: ByteAutomaton, control: int, symbol: int, p: int) -> bool:
    for e in a.edges_of(control):
        if e.move.pushes[:1] == (symbol,):
            theirs = a.find_edge(p, e.low)
            if theirs is None or theirs.high < e.high:
                return False
            if (theirs.move.target, theirs.move.pushes) != (e.move.target, e.move.pushes[1:]):
                return False
    return True


class BesideWalker:
    """Differential walks of one machine; scratch arrays are its own."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        depth, n = walker.tokens.longest + 2, len(walker.tokens.trie.order)
        self.state = np.empty((2, 4, depth), dtype=np.int32)
        self.left_verdict = np.empty((2, depth), dtype=np.int32)
        self.arena = np.empty((2, 2, ARENA), dtype=np.int32)
        self.out = np.empty((5, n), dtype=np.int32)

    def walk(self, control: int, base: Base, follow: Follow) -> Beside:
        w = self.walker
        n = walk_beside(
            w.machine, w.tokens.trie, control, base.control, base.symbol, follow,
            self.state, self.left_verdict, self.arena, self.out,
        )  # fmt: skip
        if n < 0:
            raise arena_is_full()
        token = self.out[0, :n].copy()
        return Beside(base, token, self.codes(token, 1, n), self.codes(token, 3, n))

    def codes(self, token: I32, row: int, n: int) -> I64:
        """Rows `row` and `row + 1` hold a verdict (or FALSE, TRUE) and the offset at which the token left."""
        t = self.walker.tokens
        verdict, offset = self.out[row, :n].astype(np.int64), self.out[row + 1, :n]
        at = np.where(verdict >= 0, t.text_start[token] + offset, 0)
        suffix: npt.NDArray[np.int64] = t.suffix_of[at].astype(np.int64)
        return np.where(verdict >= 0, verdict * t.n_suffixes + suffix, verdict)


@njit(cache=True)
def walk_beside(
    m: Machine,
    trie: Trie,
    control: int,
    base_control: int,
    symbol: int,
    follow: Array,
    state: Array,
    left_verdict: Array,
    arena: Array,
    out: Array,
) -> int:
    """Side 0 runs from `control`, side 1 from `base_control`. Rows of `state[side]`: kind, control (or offset),
    stack, top.
    """
    for side in range(2):
        state[side, 0, 0] = ALIVE
        state[side, 2, 0] = -1
        state[side, 3, 0] = 0
    state[0, 1, 0] = control
    state[1, 1, 0] = base_control
    n, count, nodes = 1, 0, len(trie.byte)
    while n < nodes:
        d = trie.depth[n]
        b = trie.byte[n]
        for side in range(2):
            kind = state[side, 0, d - 1]
            c, s, top = state[side, 1, d - 1], state[side, 2, d - 1], state[side, 3, d - 1]
            if kind == ALIVE:
                move = find_move(m, c, b)
                while move == -1:
                    v = m.verdict[c]
                    if v < 0:
                        kind = DEAD
                        break
                    if s < 0:
                        kind = LEFT if side == 1 or follow[min(v, len(follow) - 1), b] else DEAD
                        c = d - 1
                        left_verdict[side, d] = v
                        break
                    c = m.return_move[m.return_start[arena[side, 0, s]] + v]
                    s = arena[side, 1, s]
                    if c == -1:
                        kind = DEAD
                        break
                    if c < -1:
                        a = -2 - c
                        s, top = push_all(m, a, arena[side, 0], arena[side, 1], s, top)
                        if top < 0:
                            return -1
                        c = m.action_target[a]
                    move = find_move(m, c, b)
                if kind == ALIVE:
                    if move >= 0:
                        c = move
                    else:
                        a = -2 - move
                        s, top = push_all(m, a, arena[side, 0], arena[side, 1], s, top)
                        if top < 0:
                            return -1
                        c = m.action_target[a]
            elif kind == LEFT:
                left_verdict[side, d] = left_verdict[side, d - 1]
            state[side, 0, d], state[side, 1, d], state[side, 2, d], state[side, 3, d] = kind, c, s, top
        kind, other = state[0, 0, d], state[1, 0, d]
        if kind == DEAD and other == DEAD:
            n = trie.end[n]
            continue
        if kind == ALIVE and other == ALIVE and state[0, 1, d] == state[1, 1, d] and state[1, 2, d] < 0:
            s = state[0, 2, d]
            if s >= 0 and arena[0, 0, s] == symbol and arena[0, 1, s] < 0:
                n = trie.end[n]
                continue
        if kind != ALIVE or other != ALIVE:
            for k in range(trie.token_start[n], trie.token_start[n + 1]):
                out[0, count] = trie.order[k]
                for side in range(2):
                    kind = state[side, 0, d]
                    out[1 + 2 * side, count] = (
                        FALSE if kind == DEAD else TRUE if kind == ALIVE else left_verdict[side, d]
                    )
                    out[2 + 2 * side, count] = state[side, 1, d] if kind == LEFT else 0
                count += 1
        n += 1
    return count
