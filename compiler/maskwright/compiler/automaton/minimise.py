"""Merge equivalent controls and frames, and number everything canonically.

Which controls are equivalent is found by partition refinement (`refine.py`) over controls and symbols together: a
symbol is a node whose successors are its returns, and so is a move that pushes, with its target and its symbols. Two
frames with the same set of blocks become one; frames that only overlap stay apart, because a frame's controls are
contiguous in the tables.

Numbering is by breadth-first search from the start (or the entries), so that it depends on the language and its frames
only, not on the order of exploration. What the search doesn't reach is dropped. Controls of a frame are contiguous,
symbols that a frame pushes are contiguous.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from maskwright.compiler.automaton.graph import Columns, columns_of
from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol, make_edges
from maskwright.compiler.automaton.refine import refine
from maskwright.compiler.options import Limits


def minimise(a: ByteAutomaton, limits: Limits | None = None, deadline: float | None = None) -> ByteAutomaton:
    """An equivalent automaton with merged controls, symbols and frames, in canonical numbering.

    Raises LimitExceeded for `compile_seconds` when `deadline`, a `deadline.now` value, passes.
    """
    columns = columns_of(a)
    return _Quotient(a, columns, refine(columns.graph, limits or Limits(), deadline)).lay_out()


class _Quotient:
    """The quotient under construction: its controls are the classes of equivalent controls in each frame, its symbols
    those between two frames. Classes are numbered together, by node of the refinement."""

    def __init__(self, a: ByteAutomaton, t: Columns, block: list[int]) -> None:
        self.a, self.t, self.n = a, t, len(a.edges)
        by_frame: dict[int, set[int]] = {}
        for f, b in zip(a.frame, block, strict=False):
            by_frame.setdefault(f, set()).add(b)
        first_with: dict[frozenset[int], int] = {}
        self.merged = {f: first_with.setdefault(frozenset(by_frame[f]), f) for f in sorted(by_frame)}
        """Of each frame the first with the same blocks."""
        classes: dict[tuple[int, ...], int] = {}
        controls = zip(map(self.merged.__getitem__, a.frame), block, strict=False)
        callers = [self.merged[s.caller] for s in a.symbols]
        callees = [self.merged.get(s.callee, s.callee) for s in a.symbols]
        symbols = zip(callers, callees, block[self.n :], strict=False)
        self.class_of = [classes.setdefault(key, len(classes)) for key in itertools.chain(controls, symbols)]
        self.place = [-1] * len(classes)
        """The final number of what was found."""
        self.controls: list[int] = []
        self.symbols: list[int] = []
        """The nodes that were found, one of each class."""
        self.frames: dict[int, int] = {}

    def lay_out(self) -> ByteAutomaton:
        self.search()
        self.number()
        a = self.a
        moves = [Move(self.control(m.target), tuple([self.symbol(s) for s in m.pushes])) for m in self.t.moves]
        infos = [a.frame_info(f) for f in self.frames]
        out = ByteAutomaton(
            edges=self.edges(moves),
            verdict=[a.verdict[node] for node in self.controls],
            frame=[self.frame(a.frame[node]) for node in self.controls],
            # Merged frames may have declared other verdicts that nothing returns any more: what counts is what's left.
            frames=[FrameInfo(info.name, info.pointer) for info in infos],
            entries={name: self.control(c) for name, c in a.entries.items()},
            start=self.control(a.start) if a.start is not None else None,
            accepting_verdicts=a.accepting_verdicts,
            base=a.base,
        )
        for f, verdict in dict.fromkeys(zip(out.frame, out.verdict, strict=True)):
            info = out.frame_info(f)
            info.verdicts = max(info.verdicts, verdict + 1)
        for node in self.symbols:
            out.symbols.append(self.laid_symbol(node, moves, out))
        return out

    def edges(self, moves: list[Move]) -> list[tuple[Edge, ...]]:
        """Of the controls that were found. Neighbours with one move are one edge."""
        t, known = self.t, dict[Move, int]()
        number = np.array([known.setdefault(m, len(known)) for m in moves], dtype=np.int64)
        counts = [t.counts[node] for node in self.controls]
        found = itertools.chain.from_iterable(range(t.starts[node], t.starts[node + 1]) for node in self.controls)
        lines = np.array(list(found), dtype=np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        low, high, move = t.low[lines], t.high[lines], number[np.array(t.made, dtype=np.int64)[lines]]
        joins = (owner[1:] == owner[:-1]) & (move[1:] == move[:-1]) & (low[1:] == high[:-1] + 1)
        begins, ends = np.append(True, ~joins)[: len(lines)], np.append(~joins, True)[: len(lines)]
        distinct = list(known)
        columns = low[begins].tolist(), high[ends].tolist(), [distinct[i] for i in move[begins].tolist()]
        edges = make_edges(*columns)
        bounds = itertools.pairwise([0, *np.cumsum(np.bincount(owner[begins], minlength=len(counts))).tolist()])
        return [tuple(edges[i:j]) for i, j in bounds]

    def laid_symbol(self, node: int, moves: list[Move], out: ByteAutomaton) -> Symbol:
        symbol = self.a.symbols[node - self.n]
        callee = self.frame(symbol.callee)
        verdicts = out.frame_info(callee).verdicts
        made = iter(self.t.made[self.t.starts[node] : self.t.starts[node + 1]])
        returns = [None if m is None else moves[next(made)] for m in symbol.returns[:verdicts]]
        return Symbol(self.frame(symbol.caller), callee, (*returns, *[None] * (verdicts - len(returns))))

    def search(self) -> None:
        """Finds a node of each class that's reached, breadth first: controls before symbols."""
        a, t, known = self.a, self.t, bytearray(len(self.t.moves))
        self.find(c - a.first_control for c in [*([] if a.start is None else [a.start]), *a.entries.values()])
        controls = symbols = 0
        while controls < len(self.controls) or symbols < len(self.symbols):
            if controls < len(self.controls):
                node = self.controls[controls]
                controls += 1
            else:
                node = self.symbols[symbols]
                symbols += 1
            for m in t.made[t.starts[node] : t.starts[node + 1]]:
                if not known[m]:
                    known[m] = 1
                    self.find(t.nodes[m])

    def find(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            if node >= 0 and self.place[self.class_of[node]] < 0:
                self.place[self.class_of[node]] = 0
                (self.controls if node < self.n else self.symbols).append(node)

    def number(self) -> None:
        """Final numbers: sorted by frame, so that a frame's controls and symbols are contiguous."""
        a = self.a
        for node in self.controls:
            self.frames.setdefault(self.merged[a.frame[node]], a.first_frame + len(self.frames))
        self.controls.sort(key=lambda node: self.frame(a.frame[node]))
        self.symbols.sort(key=lambda node: self.frame(a.symbols[node - self.n].caller))
        for first, nodes in ((a.first_control, self.controls), (a.first_symbol, self.symbols)):
            for place, node in enumerate(nodes, first):
                self.place[self.class_of[node]] = place

    def frame(self, f: int) -> int:
        return f if f < self.a.first_frame else self.frames[self.merged[f]]

    def control(self, c: int) -> int:
        first = self.a.first_control
        return c if c < first else self.place[self.class_of[c - first]]

    def symbol(self, s: int) -> int:
        first = self.a.first_symbol
        return s if s < first else self.place[self.class_of[self.n + s - first]]
