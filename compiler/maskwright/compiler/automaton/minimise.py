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

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol
from maskwright.compiler.diagnostics import out_of_time
from maskwright.compiler.options import Limits


def minimise(a: ByteAutomaton, limits: Limits | None = None, deadline: float | None = None) -> ByteAutomaton:
    """An equivalent automaton with merged controls, symbols and frames, in canonical numbering.

    Raises LimitExceeded for `compile_seconds` when `deadline`, a `time.monotonic` value, passes.
    """
    return _renumber(a, _Refinement(a, limits or Limits(), deadline).run())


class _Refinement:
    """Nodes 0..n-1 are the own controls, n.. the own symbols. Base controls and symbols are constants of their own."""

    def __init__(self, a: ByteAutomaton, limits: Limits, deadline: float | None) -> None:
        self.a, self.n, self.limits, self.deadline = a, len(a.edges), limits, deadline
        self.size = self.n + len(a.symbols)
        self.block = [0] * self.size
        self.sizes = [self.size]
        self.looks: list[Hashable] = [None]
        """Of each block: the number of members, and the signature that those not looked at again have in common."""
        self.moves: dict[Move, tuple[int, ...]] = {}
        self.rows = [self.row(node) for node in range(self.size)]
        """For each node its (low, high or -1, successors): a control's edges, a symbol's returns by verdict."""
        self.preds: list[list[int]] = [[] for _ in range(self.size)]
        for node, row in enumerate(self.rows):
            for succ in {s for _, _, nodes in row for s in nodes}:
                if succ >= 0:
                    self.preds[succ].append(node)

    def row(self, node: int) -> list[tuple[int, int, tuple[int, ...]]]:
        if node < self.n:
            return [(e.low, e.high, self.nodes(e.move)) for e in self.a.edges[node]]
        returns = self.a.symbols[node - self.n].returns
        return [(v, -1, self.nodes(m)) for v, m in enumerate(returns) if m is not None]

    def nodes(self, move: Move) -> tuple[int, ...]:
        """Target and symbols as nodes; the base's are negative constants."""
        found = self.moves.get(move)
        if found is None:
            a = self.a
            target = move.target - a.first_control if move.target >= a.first_control else -2 - 2 * move.target
            found = self.moves[move] = (
                target,
                *(self.n + s - a.first_symbol if s >= a.first_symbol else -3 - 2 * s for s in move.pushes),
            )
        return found

    def sign(self, node: int) -> Hashable:
        block = self.block
        keys: dict[tuple[int, ...], tuple[int, ...]] = {}
        out: list[tuple[int, int, tuple[int, ...]]] = []
        for low, high, nodes in self.rows[node]:
            k = keys.get(nodes)
            if k is None:
                k = keys[nodes] = tuple(block[x] if x >= 0 else x for x in nodes)
            if high >= 0 and out and out[-1][2] == k and out[-1][1] + 1 == low:
                out[-1] = (out[-1][0], high, k)
            else:
                out.append((low, high, k))
        if node < self.n:
            return (self.a.verdict[node], tuple(out))
        sym = self.a.symbols[node - self.n]
        return (sym.callee if sym.callee < self.a.first_frame else -1, tuple(out))

    def run(self) -> list[int]:
        dirty = list(range(self.size))
        rounds = 0
        while dirty:
            rounds += 1
            self.check(rounds)
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

    def move(self, m: Move) -> Move:
        return Move(self.control(m.target), tuple(self.symbol(s) for s in m.pushes))


def _renumber(a: ByteAutomaton, block: list[int]) -> ByteAutomaton:
    q = _Quotient(a, block)
    start = q.control(a.start) if a.start is not None else None
    entries = {name: q.control(c) for name, c in a.entries.items()}
    edges: list[list[tuple[int, int, Move]]] = []
    returns: list[list[Move | None]] = []
    while len(edges) < len(q.order) or len(returns) < len(q.symbol_order):
        if len(edges) < len(q.order):
            edges.append([(e.low, e.high, q.move(e.move)) for e in a.edges_of(q.order[len(edges)])])
        else:
            old = a.symbol(q.symbol_order[len(returns)])
            returns.append([None if m is None else q.move(m) for m in old.returns])
    return _lay_out(a, q, edges, returns, start, entries)


def _lay_out(
    a: ByteAutomaton,
    q: _Quotient,
    edges: list[list[tuple[int, int, Move]]],
    returns: list[list[Move | None]],
    start: int | None,
    entries: dict[str, int],
) -> ByteAutomaton:
    """Sorts by frame, so that a frame's controls and symbols are contiguous, and writes the result."""
    frames: dict[int, int] = {}
    for c in q.order:
        frames.setdefault(q.frame(a.frame_of(c)), a.first_frame + len(frames))

    def frame(f: int) -> int:
        return f if f < a.first_frame else frames[q.frame(f)]

    by_frame = sorted(range(len(q.order)), key=lambda i: frame(a.frame_of(q.order[i])))
    place = {a.first_control + i: a.first_control + n for n, i in enumerate(by_frame)}
    by_caller = sorted(range(len(q.symbol_order)), key=lambda i: frame(a.symbol(q.symbol_order[i]).caller))
    symbol_place = {a.first_symbol + i: a.first_symbol + n for n, i in enumerate(by_caller)}

    def move(m: Move) -> Move:
        return Move(place.get(m.target, m.target), tuple(symbol_place.get(s, s) for s in m.pushes))

    out = ByteAutomaton(base=a.base, accepting_verdicts=a.accepting_verdicts)
    out.frames = [FrameInfo("") for _ in frames]
    for old, new in frames.items():
        info = a.frame_info(old)
        out.frames[new - a.first_frame] = FrameInfo(info.name, info.pointer)
    for i in by_frame:
        c = q.order[i]
        out.edges.append(_joined(edges[i], move))
        out.verdict.append(a.verdict_of(c))
        out.frame.append(frame(a.frame_of(c)))
        # Merged frames may have declared other verdicts that nothing returns any more: what counts is what's left.
        info = out.frame_info(out.frame[-1])
        info.verdicts = max(info.verdicts, out.verdict[-1] + 1)
    for i in by_caller:
        sym = a.symbol(q.symbol_order[i])
        callee = frame(sym.callee)
        moves = [None if m is None else move(m) for m in returns[i][: out.frame_info(callee).verdicts]]
        moves += [None] * (out.frame_info(callee).verdicts - len(moves))
        out.symbols.append(Symbol(frame(sym.caller), callee, tuple(moves)))
    out.start = place.get(start, start) if start is not None else None
    out.entries = {name: place.get(c, c) for name, c in entries.items()}
    return out


def _joined(edges: list[tuple[int, int, Move]], move) -> tuple[Edge, ...]:  # type: ignore[no-untyped-def]
    out: list[Edge] = []
    cache: dict[Move, Move] = {}
    for low, high, m in edges:
        new = cache.get(m)
        if new is None:
            new = cache[m] = move(m)
        if out and out[-1].move == new and out[-1].high + 1 == low:
            out[-1] = Edge(out[-1].low, high, new)
        else:
            out.append(Edge(low, high, new))
    return tuple(out)
