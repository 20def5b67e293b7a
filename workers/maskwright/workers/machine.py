"""The byte automaton in a form that Python steps fast: for each control a row of moves, by byte.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to, which isn't final
    DEAD (-1)       no member goes on this way
    COLD            c has no row yet: `step(c, b)` makes it and tells the move
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)
    <= FINAL        FINAL - f: go to control f, which is final

A *final* control accepts and has no edge: it returns before the next byte is seen, which `moves[c][END]` says (DEAD
for others). So a token whose moves are all >= 0 stays in its frame, and the common token takes two look-ups and a
comparison a byte.

Rows of an artifact with up to `MOST_ROWS` own controls, of a pack with up to `MOST_PACK_ROWS`, are made while it's
loaded, in one vectorised step: a kilobyte and half a microsecond each. In a larger one they would cost more than they
bring (fresh memory above all); there a row is a dictionary, which finds a missing move by searching the control's edges
(a microsecond) and keeps it. Artifacts share the rows of their pack. Threads that race to make a row, a move or an
action do the same work twice and store equal values.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from maskwright.workers.tables import I64, Automaton

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


class _ColdRow:
    """Stands for the row of a control that has none yet."""

    def __getitem__(self, byte: int, /) -> int:
        return COLD


_COLD_ROW = _ColdRow()


class _Edges:
    """The own edges of an automaton, searched. Views and bytes: single values of arrays take three times as long."""

    __slots__ = ("_final", "_first", "_high", "_low", "_move", "_start", "_verdict")

    def __init__(self, a: Automaton, final: npt.NDArray[np.bool_]) -> None:
        self._first, self._final = a.first_control, final.tobytes()
        self._start, self._move, self._verdict = a.edge_start.data, a.edge_move.data, a.verdict.data
        self._low, self._high = a.edge_low.astype(np.uint8).tobytes(), a.edge_high.astype(np.uint8).tobytes()

    def find(self, own: int, byte: int) -> int:
        """The move of an own control."""
        start, end = self._start[own], self._start[own + 1]
        edge = bisect_right(self._low, byte, start, end) - 1
        if byte == END:
            return -1 - 2 * self._verdict[own] if start == end else DEAD
        if edge < start or self._high[edge] < byte:
            return -1 - 2 * self._verdict[own]
        stored: int = self._move[edge]
        if stored & 1:
            return -1 - stored
        control = stored >> 1
        return FINAL - control if self._final[control - self._first] else control


class _FoundRow(dict[int, int]):
    """Moves of one control by byte; a missing one is searched and kept."""

    __slots__ = ("_edges", "_own")

    def __init__(self, edges: _Edges, own: int) -> None:
        self._edges, self._own = edges, own

    def __missing__(self, byte: int) -> int:
        move = self[byte] = self._edges.find(self._own, byte)
        return move


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


class _Returns(dict[int, Sequence[int]]):
    """What the symbols met so far return to; a missing one is sliced from the automaton's tables, or is the base's."""

    def __init__(self, automaton: Automaton, base: dict[int, Sequence[int]] | None) -> None:
        super().__init__()
        self._first, self._base = automaton.first_symbol, base
        self._start, self._move = automaton.return_start.data, automaton.return_move.data

    def __missing__(self, symbol: int) -> Sequence[int]:
        own = symbol - self._first
        if own < 0:
            assert self._base is not None
            found = self._base[symbol]
        else:
            found = self._move[self._start[own] : self._start[own + 1]].tolist()
        self[symbol] = found
        return found


class Machine:
    """The executable form of an automaton, on top of its base's. All ids are global.

    moves: a row for each control; of the base's those that were met. returns: for each symbol what follows for each
    verdict: a control, -1: nothing, or -2 - an action. actions: by number.
    """

    __slots__ = ("_automaton", "_base", "_edges", "_final", "_first", "actions", "moves", "returns")

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a, self._automaton, self._base, self._first = automaton, automaton, base, automaton.first_control
        self.actions: dict[int, Action] = _Actions(a, base.actions if base else None)
        self.returns: dict[int, Sequence[int]] = _Returns(a, base.returns if base else None)
        n = a.n_controls - a.first_control
        self._final = (a.edge_start[1:] == a.edge_start[:-1]) & (a.verdict > 0)
        self._edges: _Edges | None = None
        rows: list[Row] = self._make_rows() if self._is_small(n) else [_COLD_ROW] * n
        # The base's aren't copied: to touch thousands of objects costs more than most artifacts take from there.
        self.moves: list[Row] = [_COLD_ROW] * self._first
        self.moves.extend(rows)

    def _is_small(self, n: int) -> bool:
        return n <= (MOST_PACK_ROWS if self._base is None else MOST_ROWS)

    def _make_rows(self) -> list[Row]:
        """Of all own controls, as runs of equal moves: what's before an edge, the edge, and so on; what's behind the
        last; the end.
        """
        a, final = self._automaton, self._final
        n, n_edges = len(final), len(a.edge_low)
        default = -1 - 2 * a.verdict.astype(np.int32)
        counts = a.edge_start[1:] - a.edge_start[:-1]
        origin = np.arange(0, n * WIDTH, WIDTH)
        runs = 2 * counts + 2
        last = np.add.accumulate(runs) - 1  # each row's last run
        edge = np.arange(1, 2 * n_edges, 2) + np.arange(0, 2 * n, 2).repeat(counts)  # each edge's run
        base = origin.repeat(counts)
        begin = np.empty(2 * (n + n_edges) + 1, np.int64)
        begin[0] = 0
        begin[last + 1] = origin + WIDTH
        begin[edge] = base + a.edge_low
        begin[edge + 1] = base + a.edge_high + 1
        begin[last] = origin + END
        value = default.repeat(runs)
        value[edge] = self._edge_moves()
        value[last] = np.where(final, default, DEAD)
        view = value.repeat(begin[1:] - begin[:-1]).data
        return [view[at : at + WIDTH] for at in range(0, n * WIDTH, WIDTH)]

    def _edge_moves(self) -> I64:
        """What the own edges do."""
        stored = self._automaton.edge_move
        number = stored >> 1
        actions = (stored & 1).nonzero()[0]
        if self._final.any():
            ends = self._final.take(number - self._first, mode="clip").nonzero()[0]  # actions are set after it
            number[ends] = FINAL - number[ends]
        number[actions] = -1 - stored[actions]
        return number

    def step(self, control: int, byte: int) -> int:
        """The move of a control that has no row yet; makes it."""
        own = control - self._first
        if own < 0:
            assert self._base is not None
            move = self._base.moves[control][byte]
            if move == COLD:
                move = self._base.step(control, byte)
            self.moves[control] = self._base.moves[control]
            return move
        if self._edges is None:
            self._edges = _Edges(self._automaton, self._final)
        row = self.moves[control] = _FoundRow(self._edges, own)
        return row[byte]

    def is_final(self, control: int) -> bool:
        """Whether a control returns before it sees a byte."""
        move = self.moves[control][END]
        return (self.step(control, END) if move == COLD else move) != DEAD

    def memory(self) -> int:
        """Bytes of rows, actions and returns, the automaton apart. An estimate."""
        a, own = self._automaton, self.moves[self._first :]
        if self._is_small(len(own)):
            rows = (4 * WIDTH + 200) * len(own)
        else:
            rows = sum(sys.getsizeof(row) + 32 * len(row) for row in own if isinstance(row, _FoundRow))
        lists = 8 * len(self.moves) + 200 * len(self.actions) + 200 * len(self.returns)
        return rows + lists + (2 * len(a.edge_low) + len(own) if self._edges else 0)
