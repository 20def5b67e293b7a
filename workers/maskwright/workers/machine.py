"""The byte automaton in a form that Python steps fast: for each control a row of moves, by byte.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to, which isn't final
    DEAD (-1)       no member goes on this way
    COLD            c has no row yet: `step(c, b)` makes it and tells the move
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)
    <= FINAL        FINAL - f: go to control f, which is final

A *final* control accepts and has no edge: it returns before the next byte is seen, which `moves[c][END]` says (DEAD for
others). So a token whose moves are all >= 0 stays in its frame, and the common token takes two look-ups and a comparison
a byte.

Rows of an artifact with up to `MOST_ROWS` own controls are made while it's loaded, in one vectorised step (a row takes a
kilobyte and some tenths of a microsecond); those of larger ones when a control is met first (microseconds). Artifacts
share the rows of their pack. Threads that race to make a row or an action do the same work twice and store equal values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskwright.workers.tables import Automaton

DEAD = -1
COLD = -(1 << 29) - 1
FINAL = -(1 << 30)
MOST_ROWS = 1 << 12
END = 256
"""Stands for the end of a text in a row."""
WIDTH = END + 1

Action = tuple[tuple[int, ...], int]
"""The symbols that are pushed, the control to go to."""


class _ColdRow(Sequence[int]):
    """Stands for the row of a control that has none yet."""

    def __len__(self) -> int:
        return WIDTH

    def __getitem__(self, byte: int) -> int:  # type: ignore[override]
        return COLD


_COLD_ROW = _ColdRow()


class _Actions(dict[int, Action]):
    """The actions used so far; a missing one is made of the automaton's tables, or is the base's."""

    def __init__(self, automaton: Automaton, base: dict[int, Action] | None) -> None:
        super().__init__()
        self._automaton, self._base = automaton, base

    def __missing__(self, number: int) -> Action:
        a, own = self._automaton, number - self._automaton.first_action
        if own < 0:
            assert self._base is not None
            action = self._base[number]
        else:
            start, end = int(a.action_start[own]), int(a.action_start[own + 1])
            action = (tuple(a.action_push[start:end].tolist()), int(a.action_target[own]))
        self[number] = action
        return action


class Machine:
    """The executable form of an automaton, on top of its base's. All ids are global.

    moves: a row for each control. returns: for each symbol what follows for each verdict: a control, -1: nothing, or
    -2 - an action. actions: by number.
    """

    __slots__ = ("_automaton", "_base", "_coded", "_final", "_first", "_views", "actions", "moves", "returns")

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a, self._automaton, self._base, self._first = automaton, automaton, base, automaton.first_control
        self.actions: dict[int, Action] = _Actions(a, base.actions if base else None)
        start, returns = a.return_start.tolist(), a.return_move.tolist()
        own: list[Sequence[int]] = [returns[i:j] for i, j in itertools.pairwise(start)]
        self.returns: list[Sequence[int]] = base.returns + own if base else own
        n = a.n_controls - a.first_control
        self._final = (a.edge_start[1:] == a.edge_start[:-1]) & (a.verdict > 0)
        number, is_action = a.edge_move >> 1, (a.edge_move & 1).astype(bool)
        if n:
            number = np.where(self._final[np.where(is_action, 0, number - self._first)], FINAL - number, number)
        self._coded = np.where(is_action, -1 - a.edge_move, number).astype(np.int32)
        self._views = (a.edge_low.data, a.edge_high.data, self._coded.data)
        rows = self._make_rows() if n <= MOST_ROWS else [_COLD_ROW] * n
        self.moves: list[Sequence[int]] = base.moves + rows if base else rows

    def _make_rows(self) -> list[Sequence[int]]:
        """Of all own controls, as runs of equal moves: what's before an edge, the edge, and so on; what's behind the
        last; the end.
        """
        a = self._automaton
        n, n_edges = len(self._final), len(a.edge_low)
        counts = a.edge_start[1:] - a.edge_start[:-1]
        origin = np.arange(0, n * WIDTH, WIDTH)  # of each control in the table
        gap = 2 * (a.edge_start[:-1] + np.arange(n))  # its first run
        edge = np.arange(1, 2 * n_edges, 2) + np.arange(0, 2 * n, 2).repeat(counts)  # each edge's run
        base = origin.repeat(counts)
        start = np.empty(2 * (n + n_edges) + 1, np.int64)
        start[gap] = origin
        start[edge] = base + a.edge_low
        start[edge + 1] = base + a.edge_high + 1
        last = gap + 2 * counts + 1
        start[last] = origin + END
        start[-1] = n * WIDTH
        default = -1 - 2 * a.verdict.astype(np.int32)
        value = default.repeat(2 * counts + 2)
        value[edge] = self._coded
        value[last] = np.where(self._final, default, DEAD)
        view = value.repeat(start[1:] - start[:-1]).data
        return [view[at : at + WIDTH] for at in range(0, n * WIDTH, WIDTH)]

    def _make_row(self, own: int) -> list[int]:
        """Of one own control. Reads views: single values of arrays take three times as long."""
        low, high, coded = self._views
        default = -1 - 2 * int(self._automaton.verdict[own])
        row = [default] * WIDTH
        if not self._final[own]:
            row[END] = DEAD
        for edge in range(*self._automaton.edge_start[own : own + 2].tolist()):
            first, end = low[edge], high[edge] + 1
            if end - first == 1:
                row[first] = coded[edge]
            else:
                row[first:end] = [coded[edge]] * (end - first)
        return row

    def step(self, control: int, byte: int) -> int:
        """The move of a control that has no row yet; makes it."""
        own = control - self._first
        if own < 0:
            assert self._base is not None
            if self._base.moves[control] is _COLD_ROW:
                self._base.step(control, byte)
            self.moves[control] = self._base.moves[control]
        else:
            self.moves[control] = self._make_row(own)
        return self.moves[control][byte]

    def is_final(self, control: int) -> bool:
        """Whether a control returns before it sees a byte."""
        move = self.moves[control][END]
        return (self.step(control, END) if move == COLD else move) != DEAD

    def memory(self) -> int:
        """Bytes of the own tables. An estimate."""
        own = self.moves[self._first :]
        size = 4 * WIDTH + 200 if len(own) <= MOST_ROWS else 8 * WIDTH
        lists = 8 * (len(self.moves) + len(self.returns)) + 200 * len(self.actions)
        return lists + size * sum(row is not _COLD_ROW for row in own)
