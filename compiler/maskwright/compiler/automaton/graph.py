"""An automaton as a graph of numbers: the form that kernels work on.

Controls, symbols and moves that push are nodes. A control's edges lead to what its moves lead to: a control of its own
frame, or a move that pushes; a symbol's to its returns; a move's to its target and to its symbols. The base's controls
and symbols are constants below 0.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, Move
from maskwright.compiler.jit import kernel

Array = np.ndarray[Any, Any]
I64 = npt.NDArray[np.int64]

NO_RANGE = -1
"""As `high`: the edge has a place (in `low`) instead of a range, and no neighbour."""
CONTROL, SYMBOL, MOVE = 0, 1, 2
"""What a node is: its kind modulo 3."""


class Graph(NamedTuple):
    """Node i has the edges start[i]..start[i + 1]: low..high, ascending, to `target`, a node or a constant below 0.
    `kind`: 3 * verdict + CONTROL (not accepting: verdict -1), 3 * callee + SYMBOL (-1 for an own callee), MOVE."""

    kind: I64
    start: I64
    low: I64
    high: I64
    target: I64


class Columns:
    """An automaton in columns: the edges of each control, then the returns of each symbol (its verdict as `low`).

    As nodes the own controls are 0..n-1, the own symbols n.., moves that push come after them; the base's controls and
    symbols are constants below 0.
    """

    def __init__(self, a: ByteAutomaton) -> None:
        edges = list(itertools.chain.from_iterable(a.edges))
        returns = [(v, NO_RANGE, m) for s in a.symbols for v, m in enumerate(s.returns) if m is not None]
        low, high, made = zip(*edges, *returns, strict=True) if edges or returns else ((), (), ())
        self.low, self.high = np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
        self.counts = [*map(len, a.edges), *(len(s.returns) - s.returns.count(None) for s in a.symbols)]
        self.starts = list(itertools.accumulate(self.counts, initial=0))
        numbers: dict[Move, int] = {}
        # Equal moves are mostly one object, and identity costs less than equality.
        objects = list(map(id, made))
        of_object = {i: numbers.setdefault(m, len(numbers)) for i, m in dict(zip(objects, made, strict=True)).items()}
        self.made = [of_object[i] for i in objects]
        """The move of each line, as its number."""
        self.moves = list(numbers)
        n, first, first_symbol = len(a.edges), a.first_control, len(a.edges) - a.first_symbol
        self.nodes = [
            (
                m.target - first if m.target >= first else -2 - 2 * m.target,
                *[s + first_symbol if s >= a.first_symbol else -3 - 2 * s for s in m.pushes],
            )
            for m in self.moves
        ]
        """The target and the symbols of each move, as nodes."""
        free = itertools.count(n + len(a.symbols))
        self.node = [nodes[0] if len(nodes) == 1 else next(free) for nodes in self.nodes]
        """Each move as a node."""
        self.graph = self._graph(a)

    def _graph(self, a: ByteAutomaton) -> Graph:
        pushing = [nodes for nodes in self.nodes if len(nodes) > 1]
        places = [k for nodes in pushing for k in range(len(nodes))]
        callees = [s.callee if s.callee < a.first_frame else -1 for s in a.symbols]
        kinds = [
            *(3 * v + CONTROL for v in a.verdict),
            *(3 * f + SYMBOL for f in callees),
            *([MOVE] * len(pushing)),
        ]
        return Graph(
            kind=np.array(kinds, dtype=np.int64),
            start=np.cumsum([0, *self.counts, *map(len, pushing)]),
            low=np.append(self.low, np.array(places, dtype=np.int64)),
            high=np.append(self.high, np.full(len(places), NO_RANGE)),
            target=np.array([*map(self.node.__getitem__, self.made), *itertools.chain(*pushing)], dtype=np.int64),
        )


def columns_of(a: ByteAutomaton) -> Columns:
    """Made once: `a` is finished and doesn't change any more."""
    if a.columns is None:
        a.columns = Columns(a)
    known: Columns = a.columns
    return known


@kernel
def find_sources(graph: Graph) -> tuple[Array, Array]:
    """The nodes with an edge to node i: source[source_start[i]:source_start[i + 1]]."""
    n = len(graph.kind)
    begin = np.zeros(n + 1, np.int64)
    for t in graph.target:
        if t >= 0:
            begin[t + 1] += 1
    for i in range(n):
        begin[i + 1] += begin[i]
    free = begin[:-1].copy()
    out = np.zeros(begin[n], np.int64)
    for i in range(n):
        for e in range(graph.start[i], graph.start[i + 1]):
            t = graph.target[e]
            if t >= 0:
                out[free[t]] = i
                free[t] += 1
    return begin, out


def all_finish(a: ByteAutomaton) -> bool:
    """Whether every own control can finish, seen by what suffices: it accepts, or goes on to one that finishes, by a
    call whose returns all finish. True is sure, False isn't. Cost: linear.
    """
    graph = columns_of(a).graph
    return bool(_finishing(graph, *find_sources(graph))[: len(a.edges)].all())


@kernel
def _finishing(graph: Graph, source_start: Array, source: Array) -> Array:
    """The least set of nodes with: a control that accepts or has an edge into the set, a symbol or move all
    of whose edges do. Constants are in it."""
    n = len(graph.kind)
    left = np.zeros(n, np.int64)  # edges that have yet to lead into the set
    inside = np.zeros(n, np.bool_)
    work = np.empty(n, np.int64)
    top = 0
    for i in range(n):
        edges = graph.start[i + 1] - graph.start[i]
        constants = 0
        for e in range(graph.start[i], graph.start[i + 1]):
            constants += graph.target[e] < 0
        if graph.kind[i] % 3 == CONTROL:
            left[i] = 0 if constants or graph.kind[i] >= 0 else 1
        else:
            left[i] = edges - constants
        if left[i] == 0:
            inside[i] = True
            work[top] = i
            top += 1
    while top:
        top -= 1
        x = work[top]
        for k in range(source_start[x], source_start[x + 1]):
            i = source[k]
            left[i] -= 1
            if left[i] <= 0 and not inside[i]:
                inside[i] = True
                work[top] = i
                top += 1
    return inside
