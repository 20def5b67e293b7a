"""Merge equivalent controls and frames, and number everything canonically.

Partition refinement over controls and symbols together (a symbol is a node whose successors are its returns). Only
nodes whose successors changed block are looked at again, and the part that wasn't looked at, or else the largest, keeps
the block's number, as in Hopcroft (1971). Two frames with the same set of blocks become one; frames that only overlap
stay apart, because a frame's controls are contiguous in the tables.

Numbering is by breadth-first search from the start (or the entries), so that it depends on the language and its frames
only, not on the order of exploration. What the search doesn't reach is dropped. Controls of a frame are contiguous,
symbols that a frame pushes are contiguous.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable
from typing import TypeVar

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol
from maskwright.compiler.diagnostics import out_of_time
from maskwright.compiler.options import Limits


def minimise(a: ByteAutomaton, limits: Limits | None = None, deadline: float | None = None) -> ByteAutomaton:
    """An equivalent automaton with merged controls, symbols and frames, in canonical numbering.

    Raises LimitExceeded for `compile_seconds` when `deadline`, a `time.monotonic` value, passes.
    """
    return _renumber(a, _Refinement(a, limits or Limits(), deadline).run())


Shape = tuple[tuple[int, int, int], ...]
"""(low, high, n) for each range of bytes, ascending, n numbering the distinct moves by first appearance; of a symbol
(verdict, -1, n) for each return. Neighbours with one move are one range.
"""


class _Refinement:
    """Nodes 0..n-1 are the own controls, n.. the own symbols. Base controls and symbols are constants of their own.

    What a node looks like is its shape and, for each of its distinct moves, the block of the target (and of pushed
    symbols). Only where two moves have come to look alike is the shape made anew.
    """

    def __init__(self, a: ByteAutomaton, limits: Limits, deadline: float | None) -> None:
        self.a, self.n, self.limits, self.deadline = a, len(a.edges), limits, deadline
        self.size = self.n + len(a.symbols)
        self.block = [0] * self.size
        self.sizes = [self.size]
        self.looks: list[Hashable] = [None]
        """Of each block: the number of members, and the signature that those not looked at again have in common."""
        self.numbers: dict[Move, int] = {}
        self.nodes: list[tuple[int, ...]] = []
        """Of each distinct move its target and symbols as nodes; the base's are negative constants."""
        self.blocks: dict[int, Hashable] = {}
        """Of each move what it looks like, in this round."""
        self.shapes: dict[Shape, int] = {}
        self.kind: list[int] = [
            *a.verdict, *(s.callee if s.callee < a.first_frame else -1 for s in a.symbols)
        ]  # fmt: skip
        self.rows = [self.row(node) for node in range(self.size)]
        self.preds: list[list[int]] = [[] for _ in range(self.size)]
        for node, (_, _, moves) in enumerate(self.rows):
            for succ in {s for m in moves for s in self.nodes[m]}:
                if succ >= 0:
                    self.preds[succ].append(node)

    def row(self, node: int) -> tuple[Shape, int, list[int]]:
        """A node's shape, the shape's number, its distinct moves."""
        if node < self.n:
            parts = [(e.low, e.high, self.number(e.move)) for e in self.a.edges[node]]
        else:
            returns = self.a.symbols[node - self.n].returns
            parts = [(v, -1, self.number(m)) for v, m in enumerate(returns) if m is not None]
        shape, moves = _canonical(parts)
        return shape, self.shapes.setdefault(shape, len(self.shapes)), moves

    def number(self, move: Move) -> int:
        found = self.numbers.get(move)
        if found is None:
            a = self.a
            found = self.numbers[move] = len(self.nodes)
            target = move.target - a.first_control if move.target >= a.first_control else -2 - 2 * move.target
            self.nodes.append(
                (target, *(self.n + s - a.first_symbol if s >= a.first_symbol else -3 - 2 * s for s in move.pushes))
            )
        return found

    def look_of(self, move: int) -> Hashable:
        """Where a move leads, in this round."""
        found = self.blocks.get(move)
        if found is None:
            block, nodes = self.block, self.nodes[move]
            if len(nodes) == 1:
                found = block[nodes[0]] if nodes[0] >= 0 else nodes[0]
            else:
                found = tuple([block[x] if x >= 0 else x for x in nodes])
            self.blocks[move] = found
        return found

    def sign(self, node: int) -> Hashable:
        shape, number, moves = self.rows[node]
        looks = [self.look_of(m) for m in moves]
        if len(looks) > 1 and len(set(looks)) < len(looks):
            shape, looks = _canonical([(low, high, looks[i]) for low, high, i in shape])
            number = self.shapes.setdefault(shape, len(self.shapes))
        return (self.kind[node], node < self.n, number, *looks)

    def run(self) -> list[int]:
        dirty = list(range(self.size))
        rounds = 0
        while dirty:
            rounds += 1
            self.check(rounds)
            self.blocks.clear()
            touched: dict[int, dict[Hashable, list[int]]] = {}
            for node in dirty:
                touched.setdefault(self.block[node], {}).setdefault(self.sign(node), []).append(node)
            moved: dict[int, None] = {}
            for b in sorted(touched):
                self.split(b, touched[b], moved)
            dirty = sorted(moved)
        return self.block

    def check(self, rounds: int) -> None:
        if self.deadline is not None and rounds % 16 == 0 and time.monotonic() > self.deadline:
            raise out_of_time(self.limits.compile_seconds, self.deadline, "minimise")

    def split(self, b: int, groups: dict[Hashable, list[int]], dirty: dict[int, None]) -> None:
        """`groups`: members of block b that were looked at, by what they look like now. The others look as before."""
        if sum(map(len, groups.values())) < self.sizes[b]:
            groups.pop(self.looks[b], None)
        else:
            self.looks[b] = max(groups, key=lambda look: len(groups[look]))
            del groups[self.looks[b]]
        for look, part in groups.items():
            new = len(self.sizes)
            self.sizes[b] -= len(part)
            self.sizes.append(len(part))
            self.looks.append(look)
            for node in part:
                self.block[node] = new
                dirty.update(dict.fromkeys(self.preds[node]))


T = TypeVar("T", bound=Hashable)


def _canonical(parts: list[tuple[int, int, T]]) -> tuple[Shape, list[T]]:
    """The shape of ranges, and its distinct moves in the shape's order."""
    index: dict[T, int] = {}
    out: list[tuple[int, int, int]] = []
    for low, high, move in parts:
        i = index.setdefault(move, len(index))
        if high >= 0 and out and out[-1][2] == i and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, i)
        else:
            out.append((low, high, i))
    return tuple(out), list(index)


class _Quotient:
    """The quotient under construction."""

    def __init__(self, a: ByteAutomaton, block: list[int]) -> None:
        self.a, self.block = a, block
        self.frame_of_blocks: dict[frozenset[int], int] = {}
        self.representative: dict[int, int] = {}
        by_frame: dict[int, set[int]] = defaultdict(set)
        for i, f in enumerate(a.frame):
            by_frame[f].add(block[i])
        for f in sorted(by_frame):
            self.representative[f] = self.frame_of_blocks.setdefault(frozenset(by_frame[f]), f)
        self.controls: dict[tuple[int, int], int] = {}
        self.symbols: dict[tuple[int, int, int], int] = {}
        self.order: list[int] = []
        self.symbol_order: list[int] = []

    def frame(self, f: int) -> int:
        return f if f < self.a.first_frame else self.representative[f]

    def control(self, c: int) -> int:
        """A provisional number by discovery; base controls keep theirs."""
        if c < self.a.first_control:
            return c
        i = c - self.a.first_control
        key = (self.frame(self.a.frame[i]), self.block[i])
        found = self.controls.get(key)
        if found is None:
            found = self.controls[key] = self.a.first_control + len(self.order)
            self.order.append(c)
        return found

    def symbol(self, s: int) -> int:
        if s < self.a.first_symbol:
            return s
        i = s - self.a.first_symbol
        sym = self.a.symbols[i]
        key = (self.frame(sym.caller), self.frame(sym.callee), self.block[len(self.a.edges) + i])
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = self.a.first_symbol + len(self.symbol_order)
            self.symbol_order.append(s)
        return found

    def discover(self, m: Move) -> None:
        self.control(m.target)
        for s in m.pushes:
            self.symbol(s)


def _renumber(a: ByteAutomaton, block: list[int]) -> ByteAutomaton:
    q = _Quotient(a, block)
    if a.start is not None:
        q.control(a.start)
    for c in a.entries.values():
        q.control(c)
    controls = symbols = 0
    while controls < len(q.order) or symbols < len(q.symbol_order):
        if controls < len(q.order):
            for m in dict.fromkeys(e.move for e in a.edges_of(q.order[controls])):
                q.discover(m)
            controls += 1
        else:
            for r in a.symbol(q.symbol_order[symbols]).returns:
                if r is not None:
                    q.discover(r)
            symbols += 1
    return _lay_out(a, q)


class _Places:
    """Final numbers: sorted by frame, so that a frame's controls and symbols are contiguous."""

    def __init__(self, a: ByteAutomaton, q: _Quotient) -> None:
        self.a, self.q = a, q
        self.frames: dict[int, int] = {}
        for c in q.order:
            self.frames.setdefault(q.frame(a.frame_of(c)), a.first_frame + len(self.frames))
        self.controls = sorted(q.order, key=lambda c: self.frame(a.frame_of(c)))
        self.symbols = sorted(q.symbol_order, key=lambda s: self.frame(a.symbol(s).caller))
        self.control_place = {q.control(c): a.first_control + n for n, c in enumerate(self.controls)}
        self.symbol_place = {q.symbol(s): a.first_symbol + n for n, s in enumerate(self.symbols)}
        self.moves: dict[Move, Move] = {}

    def frame(self, f: int) -> int:
        return f if f < self.a.first_frame else self.frames[self.q.frame(f)]

    def control(self, c: int) -> int:
        return c if c < self.a.first_control else self.control_place[self.q.control(c)]

    def symbol(self, s: int) -> int:
        return s if s < self.a.first_symbol else self.symbol_place[self.q.symbol(s)]

    def move(self, m: Move) -> Move:
        found = self.moves.get(m)
        if found is None:
            found = self.moves[m] = Move(self.control(m.target), tuple([self.symbol(s) for s in m.pushes]))
        return found


def _lay_out(a: ByteAutomaton, q: _Quotient) -> ByteAutomaton:
    p = _Places(a, q)
    out = ByteAutomaton(base=a.base, accepting_verdicts=a.accepting_verdicts)
    out.frames = [FrameInfo("") for _ in p.frames]
    for old, new in p.frames.items():
        info = a.frame_info(old)
        out.frames[new - a.first_frame] = FrameInfo(info.name, info.pointer)
    for c in p.controls:
        out.edges.append(_joined(a.edges_of(c), p))
        out.verdict.append(a.verdict_of(c))
        out.frame.append(p.frame(a.frame_of(c)))
        # Merged frames may have declared other verdicts that nothing returns any more: what counts is what's left.
        info = out.frame_info(out.frame[-1])
        info.verdicts = max(info.verdicts, out.verdict[-1] + 1)
    for s in p.symbols:
        sym = a.symbol(s)
        callee = p.frame(sym.callee)
        verdicts = out.frame_info(callee).verdicts
        moves = [None if m is None else p.move(m) for m in sym.returns[:verdicts]]
        out.symbols.append(Symbol(p.frame(sym.caller), callee, (*moves, *[None] * (verdicts - len(moves)))))
    out.start = p.control(a.start) if a.start is not None else None
    out.entries = {name: p.control(c) for name, c in a.entries.items()}
    return out


def _joined(edges: tuple[Edge, ...], p: _Places) -> tuple[Edge, ...]:
    out: list[Edge] = []
    for low, high, m in edges:
        move = p.move(m)
        if out and out[-1].move == move and out[-1].high + 1 == low:
            out[-1] = Edge(out[-1].low, high, move)
        else:
            out.append(Edge(low, high, move))
    return tuple(out)
