"""The byte automaton in a form that Python steps fast: for each control a row of moves, by byte.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to, which isn't final
    DEAD (-1)       no member goes on this way
    COLD            c has no row: `step(c, b)` tells the move
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)
    <= FINAL        FINAL - f: go to control f, which is final

A *final* control accepts and has no edge: it returns before the next byte is seen, which `moves[c][END]` says (DEAD
for others). So a token whose moves are all >= 0 stays in its frame, and the common token takes two look-ups and a
comparison a byte.

Rows of an artifact with up to `MOST_ROWS` own controls, of a pack with up to `MOST_PACK_ROWS`, are made while it's
loaded, in one vectorised step: a kilobyte and half a microsecond each. In a larger one they would cost more than they
bring (fresh memory above all); there a move is searched among the control's edges, half a microsecond, and what tokens
do is remembered anyway (ways.py). Likewise actions: made at once, or one by one. Artifacts share the rows of their
pack. Threads that race to make an action do the same work twice and store equal values.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from maskwright.workers.tables import Automaton

DEAD = -1
COLD = -(1 << 29) - 1
FINAL = -(1 << 30)
MOST_ROWS, MOST_PACK_ROWS = 1024, 1 << 14
END = 256
"""Stands for the end of a text in a row."""
WIDTH = END + 1

Action = tuple[tuple[int, ...], int]
"""The symbols that are pushed, the control to go to."""


class Row(Protocol):
    """Moves of one control by byte."""

    def __getitem__(self, byte: int, /) -> int: ...


_COLD_ROW: Row = (COLD,) * WIDTH
"""Stands for the row of a control that has none."""


class _Edges:
    """The own edges of an automaton as moves: what each edge is, what a control without one for a byte does, what it
    does at the end.
    """

    __slots__ = ("_automaton", "_default", "_end", "_find", "_move")

    def __init__(self, a: Automaton) -> None:
        self._automaton = a
        final = (a.edge_start[1:] == a.edge_start[:-1]) & (a.verdict > 0)
        move, actions = a.edge_move >> 1, (a.edge_move & 1).nonzero()[0]
        if final.any():
            ends = final.take(move - a.first_control, mode="clip").nonzero()[0]
            move[ends] = FINAL - move[ends]
        move[actions] = -1 - a.edge_move[actions]  # also where the action's number is that of a final control
        self._move = move
        self._default = -1 - 2 * a.verdict.astype(np.int32)
        self._end = np.where(final, self._default, DEAD)
        self._find: tuple[bytes, bytes, memoryview, memoryview, memoryview] | None = None

    def find(self, control: int, byte: int) -> int:
        """The move of an own control."""
        own = control - self._automaton.first_control
        if byte == END:
            return int(self._end[own])
        low, high, start, move, default = self._find or self._make_views()
        begin = start[own]
        edge = bisect_right(low, byte, begin, start[own + 1]) - 1
        return move[edge] if edge >= begin and byte <= high[edge] else default[own]

    def _make_views(self) -> tuple[bytes, bytes, memoryview, memoryview, memoryview]:
        """Views and bytes: single values of arrays take three times as long."""
        a = self._automaton
        low, high = (bound.astype(np.uint8).tobytes() for bound in (a.edge_low, a.edge_high))
        self._find = (low, high, a.edge_start.data, self._move.data, self._default.data)
        return self._find

    def rows(self) -> list[Row]:
        """Of all own controls, as runs of equal moves: what's before an edge, the edge, and so on; what's behind the
        last; the end.
        """
        a, default = self._automaton, self._default
        n, n_edges = len(default), len(a.edge_low)
        counts = a.edge_start[1:] - a.edge_start[:-1]
        origin = np.arange(0, n * WIDTH, WIDTH)
        first = 2 * (a.edge_start + np.arange(n + 1))  # each row's first run [+ 1]
        edge = np.arange(1, 2 * n_edges, 2) + np.arange(0, 2 * n, 2).repeat(counts)  # each edge's run
        base = origin.repeat(counts)
        begin = np.empty(2 * (n + n_edges) + 1, np.int64)
        begin[first[:-1]] = origin
        begin[edge] = base + a.edge_low
        begin[edge + 1] = base + a.edge_high + 1
        last = first[1:] - 1
        begin[last] = origin + END
        begin[-1] = n * WIDTH
        value = default.repeat(2 * counts + 2)
        value[edge] = self._move
        value[last] = self._end
        view = value.repeat(begin[1:] - begin[:-1]).data
        return [view[at : at + WIDTH] for at in range(0, n * WIDTH, WIDTH)]


class _Actions(dict[int, Action]):
    """The actions used so far; a missing one is made of the automaton's tables, or is the base's."""

    def __init__(self, automaton: Automaton, base: _Actions | None) -> None:
        super().__init__()
        a, self._first, self._base = automaton, automaton.first_action, base
        # Views: single values of arrays take three times as long.
        self._tables = (a.action_start.data, a.action_push.data, a.action_target.data)

    def __missing__(self, number: int) -> Action:
        own = number - self._first
        if own < 0:
            assert self._base is not None
            action = self._base[number]
        else:
            start, push, target = self._tables
            action = (tuple(push[start[own] : start[own + 1]]), target[own])
        self[number] = action
        return action


class _Returns(dict[int, Sequence[int]]):
    """What the symbols met so far return to; a missing one is sliced from the automaton's tables, or is the base's."""

    def __init__(self, automaton: Automaton, base: _Returns | None) -> None:
        super().__init__()
        self._first, self._base = automaton.first_symbol, base
        self._tables = (automaton.return_start.data, automaton.return_move.data)

    def __missing__(self, symbol: int) -> Sequence[int]:
        own = symbol - self._first
        if own < 0:
            assert self._base is not None
            found = self._base[symbol]
        else:
            start, move = self._tables
            found = move[start[own] : start[own + 1]].tolist()
        self[symbol] = found
        return found


class Machine:
    """The executable form of an automaton, on top of its base's. All ids are global.

    moves: a row for each control; the base's where they were met. returns: for each symbol what follows for each
    verdict: a control, -1: nothing, or -2 - an action. actions: by number.
    """

    __slots__ = ("_automaton", "_base", "_edges", "_first", "actions", "moves", "returns")

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a, self._automaton, self._base, self._first = automaton, automaton, base, automaton.first_control
        self.actions = self._make_actions()
        self.returns: _Returns = _Returns(a, base.returns if base else None)
        self._edges = edges = _Edges(a)
        n = a.n_controls - a.first_control
        rows: list[Row] = edges.rows() if self._is_small(n) else [_COLD_ROW] * n
        # The base's come frame by frame, or as they're met: thousands of objects would take longer than the rest.
        self.moves: list[Row] = [_COLD_ROW] * self._first
        self.moves.extend(rows)

    def _is_small(self, n: int) -> bool:
        return n <= (MOST_PACK_ROWS if self._base is None else MOST_ROWS)

    def _make_actions(self) -> _Actions:
        """Those of a small automaton at once, a microsecond each otherwise; the base's as they're met."""
        a = self._automaton
        actions = _Actions(a, self._base.actions if self._base else None)
        if self._is_small(len(a.action_target)):
            target, push = a.action_target.tolist(), a.action_push.tolist()
            if len(push) == len(target):
                pushed: Iterable[tuple[int, ...]] = zip(push, strict=True)
            else:
                pushed = [tuple(push[i:j]) for i, j in itertools.pairwise(a.action_start.tolist())]
            actions.update(zip(range(a.first_action, a.n_actions), zip(pushed, target, strict=True), strict=True))
        return actions

    def share(self, first: int, end: int) -> None:
        """Takes over the base's rows of these controls, which are about to be met. Cost: some 30 ns each."""
        assert self._base is not None
        self.moves[first:end] = self._base.moves[first:end]

    def step(self, control: int, byte: int) -> int:
        """The move of a control that has no row, or whose row the base has. Cost: half a microsecond."""
        if control >= self._first:
            return self._edges.find(control, byte)
        assert self._base is not None
        row = self.moves[control] = self._base.moves[control]
        move = row[byte]
        return self._base.step(control, byte) if move == COLD else move

    def is_final(self, control: int) -> bool:
        """Whether a control returns before it sees a byte."""
        move = self.moves[control][END]
        return (self.step(control, END) if move == COLD else move) != DEAD

    def memory(self) -> int:
        """Bytes of rows, actions and returns, the automaton apart. An estimate."""
        a, own = self._automaton, len(self.moves) - self._first
        rows = (4 * WIDTH + 200) * own if self._is_small(own) else 0
        lists = 8 * len(self.moves) + 200 * (len(self.actions) + len(self.returns))
        return rows + lists + 10 * len(a.edge_low) + 12 * own
