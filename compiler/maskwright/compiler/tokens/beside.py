"""The differential walk: a control that mostly does what another control does, walked only where they differ.

A half-written key of an open object reads either the next letter of a declared name or anything else, and anything else
calls the pack's `key` frame: nearly the whole vocabulary is legal there. Such a control q has edges that push a
symbol s and go where the pack's control p goes, on nearly all bytes. Its mask in context c is then the mask of p in
context push(c, s), but for the tokens that this module finds: both are walked side by side, and a subtree is skipped
as soon as q's run has become p's run on top of s.

Or p is a control of q's own frame, nothing is pushed, and its mask in the same context is the base. Then a subtree is
also skipped where the two runs stand in controls and stacks that are alike within its height (`likeness.py`).

`Beside.token[i]` is worth `code[i]` from q (in the codes of q's frame) where the base says `base_code[i]` from p (in
the codes of p's frame); both use kernels.FALSE and kernels.TRUE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.compiler.automaton.ir import ByteAutomaton, Move
from maskwright.compiler.jit import borrowing, inlined
from maskwright.compiler.tokens.kernels import DEAD, FALSE, LEFT, NO_ROOM, TRUE, read_byte
from maskwright.compiler.tokens.likeness import Likeness, alike_controls, alike_symbols
from maskwright.compiler.tokens.walk import ARENA, BATCH, I32, I64, Follow, Walked, Walker, arena_is_full

if TYPE_CHECKING:
    from maskwright.compiler.tokens.machine import Machine
    from maskwright.compiler.tokens.merge_rests import MergedRests
    from maskwright.compiler.tokens.trie import Trie

Array = np.ndarray[Any, Any]

LEAST_SHARED_BYTES = 64
NO_SYMBOL = -1


@dataclass(frozen=True, slots=True)
class Base:
    """The control that a control goes along with: one of the pack's and the symbol that's pushed to do so, or an own
    one of the same frame and NO_SYMBOL."""

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
        base_code = rests.apply(self.base_code) if self.base.symbol == NO_SYMBOL else self.base_code
        return replace(self, code=rests.apply(self.code), base_code=base_code)


def without_base(walked: Mapping[int, Walked | Beside], control: int) -> Walked:
    """What a whole walk of a control would have found, in another order. It mustn't stand on a pack's control."""
    w, others = walked[control], list[Beside]()
    while isinstance(w, Beside):
        assert w.base.symbol == NO_SYMBOL, "a pack's control was walked in another vocabulary of codes"
        others.append(w)
        w = walked[w.base.control]
    for beside in reversed(others):
        kept = ~np.isin(w.left_token, beside.token)
        left, added = beside.code >= 0, beside.token[beside.code == TRUE]
        w = Walked(
            np.concatenate([w.local[~np.isin(w.local, beside.token)], added]),
            np.concatenate([w.left_token[kept], beside.token[left]]),
            np.concatenate([w.left_code[kept], beside.code[left]]),
        )
    return w


class Bases:
    """Finds the base of a control among the entries of a pack's frames."""

    def __init__(self, a: ByteAutomaton) -> None:
        self.a = a
        self.entries: dict[int, list[int]] = {}
        for c in a.base.entries.values() if a.base else ():
            self.entries.setdefault(a.frame_of(c), []).append(c)
        self.moves: dict[int, list[tuple[int, Move] | None]] = {}
        """Of an entry, by byte: the end of the edge that holds it and its move."""

    def find(self, control: int) -> Base | None:
        """The base that shares most bytes, if it's worth it."""
        shared: dict[int, int] = {}
        for low, high, move in self.a.edges_of(control):
            if move.pushes:
                shared[move.pushes[0]] = shared.get(move.pushes[0], 0) + high - low + 1
        for s, count in sorted(shared.items(), key=lambda x: -x[1]):
            if count < LEAST_SHARED_BYTES:
                return None
            for p in self.entries.get(self.a.symbol(s).callee, ()):
                if self._goes_along(control, s, p):
                    return Base(p, s)
        return None

    def _goes_along(self, control: int, symbol: int, p: int) -> bool:
        theirs = self.moves.get(p)
        if theirs is None:
            theirs = self.moves[p] = [None] * 256
            for low, high, move in self.a.edges_of(p):
                theirs[low : high + 1] = [(high, move)] * (high - low + 1)
        for low, high, move in self.a.edges_of(control):
            if move.pushes[:1] == (symbol,):
                found = theirs[low]
                if found is None or found[0] < high or found[1] != (move.target, move.pushes[1:]):
                    return False
        return True


class BesideWalker:
    """Differential walks of one machine; scratch arrays are its own."""

    def __init__(self, walker: Walker, likeness: Likeness) -> None:
        self.walker, self.likeness = walker, likeness
        depth, n = walker.tokens.longest + 2, len(walker.tokens.trie.order)
        self.state = np.empty((2, 3, depth), dtype=np.int32)
        self.arena = np.empty((2, 2, ARENA), dtype=np.int32)
        self.out = np.empty((5, 2 * n), dtype=np.int32)

    def walk_all(
        self, controls: Sequence[int], bases: Sequence[Base], follow: Follow, rows: Sequence[tuple[int, int]]
    ) -> Iterator[Beside]:
        """One control beside its base after the other; as `Walker.walk_all`."""
        w = self.walker
        wanted = np.array([(c, b.control, b.symbol) for c, b in zip(controls, bases, strict=True)], dtype=np.int32)
        part, ends = np.array(rows, dtype=np.int32).reshape(-1, 2), np.zeros(BATCH + 1, dtype=np.int64)
        done = 0
        while done < len(wanted):
            batch = slice(done, done + BATCH)
            n = walk_beside_controls(
                w.machine, w.tokens.trie, w.tokens.heights.level, self.likeness, wanted[batch], follow, part[batch],
                self.state, self.arena, self.out, ends[1:],
            )  # fmt: skip
            if n < 0:
                raise arena_is_full()
            end = ends[: n + 1].tolist()
            token = self.out[0, : end[-1]].copy()
            code, base_code = self.codes(token, 1), self.codes(token, 3)
            for i in range(n):
                here = slice(end[i], end[i + 1])
                yield Beside(bases[done + i], token[here], code[here], base_code[here])
            done += n

    def codes(self, token: I32, row: int) -> I64:
        """Rows `row` and `row + 1` hold a verdict (or FALSE, TRUE) and the offset at which the token left."""
        verdict, offset = self.out[row, : len(token)], self.out[row + 1, : len(token)]
        left = verdict >= 0
        return np.where(left, self.walker.codes(token, verdict, np.where(left, offset, 0)), verdict)


@borrowing
def walk_beside_controls(
    m: Machine,
    trie: Trie,
    level: Array,
    likeness: Likeness,
    wanted: Array,
    follow: Array,
    follow_rows: Array,
    state: Array,
    arena: Array,
    out: Array,
    ends: Array,
) -> int:
    """`walk_beside` of each (control, base, symbol), as long as there's room for every token. Returns how many were
    walked, -1 when the arena is full.
    """
    count, room = 0, out.shape[1] - len(trie.order)
    for i in range(len(wanted)):
        if count > room:
            return i
        count = walk_beside(
            m, trie, level, likeness, wanted[i, 0], wanted[i, 1], wanted[i, 2],
            follow[follow_rows[i, 0] : follow_rows[i, 1]], state, arena, out, count,
        )  # fmt: skip
        if count < 0:
            return -1
        ends[i] = count
    return len(wanted)


@inlined
def read_side(m: Machine, byte: int, d: int, state: Array, arena: Array) -> None:
    """One side's byte at depth `d`."""
    c, s, top = state[0, d - 1], state[1, d - 1], state[2, d - 1]
    if c >= 0:
        c, s, top = read_byte(m, byte, arena[0], arena[1], c, s, top)
        if c < 0:
            s = d - 1 if c != DEAD else 0
    state[0, d], state[1, d], state[2, d] = c, s, top


@inlined
def alike_stacks(likeness: Likeness, level: int, symbol: int, arena: Array, s: int, t: int) -> bool:
    """Whether side 0's stack is alike to side 1's, on top of `symbol` if that's none of NO_SYMBOL."""
    while s >= 0 and t >= 0 and alike_symbols(likeness, level, arena[0, 0, s], arena[1, 0, t]):
        s, t = arena[0, 1, s], arena[1, 1, t]
    if t < 0 and s >= 0 and symbol != NO_SYMBOL and arena[0, 0, s] == symbol:
        return bool(arena[0, 1, s] < 0)
    return bool(t < 0 and s < 0 and symbol == NO_SYMBOL)


@borrowing
def walk_beside(
    m: Machine,
    trie: Trie,
    level: Array,
    likeness: Likeness,
    control: int,
    base_control: int,
    symbol: int,
    follow: Array,
    state: Array,
    arena: Array,
    out: Array,
    count: int,
) -> int:
    """Appends to `out`, which holds `count`; returns the new count, -1 when the arena is full.

    Side 0 runs from `control`, side 1 from `base_control`. Rows of `state[side]`, by depth: the control, or how the run
    ended; its stack, or the bytes it had read when it left; top.
    """
    ours, theirs = state[0], state[1]
    ours[0, 0], ours[1, 0], ours[2, 0] = control, -1, 0
    theirs[0, 0], theirs[1, 0], theirs[2, 0] = base_control, -1, 0
    n, nodes = 1, len(trie.byte)
    while n < nodes:
        d = trie.depth[n]
        b = trie.byte[n]
        read_side(m, b, d, ours, arena[0])
        read_side(m, b, d, theirs, arena[1])
        c, p = ours[0, d], theirs[0, d]
        if c == NO_ROOM or p == NO_ROOM:
            return -1
        if c <= LEFT and ours[1, d] == d - 1 and not follow[min(LEFT - c, len(follow) - 1), b]:
            c, ours[0, d], ours[1, d] = DEAD, DEAD, 0
        if (
            p <= LEFT
            and symbol == NO_SYMBOL
            and theirs[1, d] == d - 1
            and not follow[min(LEFT - p, len(follow) - 1), b]
        ):
            p, theirs[0, d], theirs[1, d] = DEAD, DEAD, 0
        h = level[n]
        stop = n + 1
        if c < 0 and p < 0:  # the whole sub-trie is decided
            stop = trie.end[n]
            if c == p and (c == DEAD or (symbol == NO_SYMBOL and ours[1, d] == theirs[1, d])):
                n = stop
                continue
        elif c >= 0 and p >= 0:
            if h == 0:
                n += 1
            elif alike_controls(likeness, h, c, p) and alike_stacks(
                likeness, h, symbol, arena, ours[1, d], theirs[1, d]
            ):
                n = trie.end[n]
            else:
                n += 1
            continue
        for k in range(trie.token_start[n], trie.token_start[stop]):
            out[0, count] = trie.order[k]
            out[1, count], out[2, count] = TRUE if c >= 0 else FALSE if c == DEAD else LEFT - c, ours[1, d]
            out[3, count], out[4, count] = TRUE if p >= 0 else FALSE if p == DEAD else LEFT - p, theirs[1, d]
            count += 1
        n = stop
    return count
