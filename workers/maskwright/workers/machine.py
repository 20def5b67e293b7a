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
I32 = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int32 | np.int64]
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


class Machine:
    """The executable form of an automaton, on top of its base's. All ids are global.

    moves: a row for each control. returns: for each symbol what follows for each verdict: a control, -1: nothing, or
    -2 - an action. actions: by number.
    """

    __slots__ = (
        "_automaton", "_base", "_final", "_first", "_run_of", "_run_start", "_run_value", "actions", "moves", "returns",
    )  # fmt: skip

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
        coded = np.where(is_action, -1 - a.edge_move, number).astype(np.int32)
        self._run_value, self._run_start, self._run_of = self._make_runs(coded)
        rows = self._make_rows() if n <= MOST_ROWS else [_COLD_ROW] * n
        self.moves: list[Sequence[int]] = base.moves + rows if base else rows

    def _make_runs(self, coded: I32) -> tuple[I32, Ids, Ids]:
        """All own rows, one after the other, as runs of equal moves: what's before an edge, the edge, and so on; what's
        behind the last; the end. Each run's value, where it begins [+ 1], and each row's first run [+ 1].
        """
        a = self._automaton
        n, n_edges = len(self._final), len(a.edge_low)
        kind = np.int32 if n * WIDTH < 1 << 31 else np.int64
        starts = a.edge_start.astype(kind)
        counts = starts[1:] - starts[:-1]
        origin = np.arange(0, n * WIDTH, WIDTH, dtype=kind)
        first = 2 * (starts + np.arange(n + 1, dtype=kind))
        edge = np.arange(1, 2 * n_edges, 2, dtype=kind) + np.arange(0, 2 * n, 2, dtype=kind).repeat(counts)
        base = origin.repeat(counts)
        begin = np.empty(2 * (n + n_edges) + 1, kind)
        begin[first[:-1]] = origin
        begin[edge] = base + a.edge_low
        begin[edge + 1] = base + a.edge_high + 1
        last = first[1:] - 1
        begin[last] = origin + END
        begin[-1] = n * WIDTH
        default = -1 - 2 * a.verdict.astype(np.int32)
        value = default.repeat(2 * counts + 2)
        value[edge] = coded
        value[last] = np.where(self._final, default, DEAD)
        return value, begin, first

    def _make_rows(self) -> list[Sequence[int]]:
        """Of all own controls."""
        view = self._run_value.repeat(self._run_start[1:] - self._run_start[:-1]).data
        return [view[at : at + WIDTH] for at in range(0, len(view), WIDTH)]

    def _make_row(self, own: int) -> Sequence[int]:
        first, end = self._run_of[own], self._run_of[own + 1]
        lengths = self._run_start[first + 1 : end + 1] - self._run_start[first:end]
        return self._run_value[first:end].repeat(lengths).data

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
        size = 4 * WIDTH + 200
        lists = 8 * (len(self.moves) + len(self.returns) + len(self._run_value)) + 200 * len(self.actions)
        return lists + size * sum(row is not _COLD_ROW for row in own)
