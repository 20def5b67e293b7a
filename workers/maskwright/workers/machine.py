"""The byte automaton in a form that Python steps fast: for each control a dictionary of the moves used so far.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to
    DEAD (-1)       no member goes on this way
    COLD            c has no dictionary yet: `step(c, b)` makes it and tells the move
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)

A dictionary finds a missing move by searching the control's edges. Lists of all 256 moves would be faster to index,
but cost 2 KB of fresh memory each, which most controls (those inside a literal) are never worth. `final[c]` is
verdict + 1 of a control that accepts and has no edge: it returns before the next byte is seen. `returns` holds
controls + 1, 0 for none, at `return_start[symbol] + verdict`. Artifacts share the dictionaries of their pack's
controls. Threads that race to make one do the same work twice and store equal values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from maskwright.workers.tables import Automaton

DEAD = -1
COLD = -(1 << 40) - 1

Action = tuple[tuple[int, ...], int]
"""The symbols that are pushed, the control to go to."""


class _Edges:
    """The own edges of an automaton, searched. `actions` is the machine's list; entries are made when an edge uses
    them.
    """

    __slots__ = ("_automaton", "_high", "_low", "_move", "_start", "_verdict", "actions")

    def __init__(self, automaton: Automaton, actions: list[Action | None]) -> None:
        a = self._automaton = automaton
        self.actions = actions
        self._start, self._move, self._verdict = a.edge_start.data, a.edge_move.data, a.verdict.data
        self._low, self._high = a.edge_low.astype(np.uint8).tobytes(), a.edge_high.astype(np.uint8).tobytes()

    def find(self, own: int, byte: int) -> int:
        """The move of an own control."""
        start = self._start[own]
        edge = bisect_right(self._low, byte, start, self._start[own + 1]) - 1
        if edge < start or self._high[edge] < byte:
            return -1 - 2 * self._verdict[own]
        stored: int = self._move[edge]
        if not stored & 1:
            return stored >> 1
        if self.actions[stored >> 1] is None:
            self.actions[stored >> 1] = self.make_action(stored >> 1)
        return -1 - stored

    def make_action(self, number: int) -> Action:
        """An own action from its tables."""
        a, own = self._automaton, number - self._automaton.first_action
        start, end = int(a.action_start[own]), int(a.action_start[own + 1])
        return tuple(a.action_push[start:end].tolist()), int(a.action_target[own])


class _Moves(dict[int, int]):
    """Moves of one control by byte; a missing one is searched and kept."""

    __slots__ = ("edges", "own")
    edges: _Edges
    own: int

    def __missing__(self, byte: int) -> int:
        move = self[byte] = self.edges.find(self.own, byte)
        return move


class _ColdMoves(dict[int, int]):
    """Stands for a control that has no dictionary yet."""

    __slots__ = ()

    def __missing__(self, byte: int) -> int:
        return COLD


_COLD_MOVES = _ColdMoves()


class Machine:
    """The executable form of an automaton, on top of its base's."""

    __slots__ = ("_base", "_edges", "_first_control", "actions", "final", "moves", "return_start", "returns")

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a, self._base = automaton, base
        self._first_control = a.first_control
        moves: list[dict[int, int]] = [_COLD_MOVES] * (a.n_controls - a.first_control)
        actions: list[Action | None] = [None] * (a.n_actions - a.first_action)
        final: list[int] = np.where(a.edge_start[1:] == a.edge_start[:-1], a.verdict, 0).tolist()
        start: Sequence[int] = (a.return_start[:-1] + (len(base.returns) if base else 0)).tolist()
        returns: list[int] = a.return_move.tolist()
        self.moves: list[dict[int, int]] = base.moves + moves if base else moves
        self.actions: list[Action | None] = base.actions + actions if base else actions
        self.final: list[int] = base.final + final if base else final
        self.return_start: list[int] = [*base.return_start, *start] if base else list(start)
        self.returns: list[int] = base.returns + returns if base else returns
        self._edges = _Edges(a, self.actions)
        for number in {-2 - move for move in a.return_move[a.return_move < -1].tolist()}:
            if self.actions[number] is None:
                self.actions[number] = self._edges.make_action(number)
        if base is None:
            # All of them: artifacts copy the list.
            start, push, target = a.action_start.tolist(), a.action_push.tolist(), a.action_target.tolist()
            self.actions[:] = [(tuple(push[start[i] : start[i + 1]]), target[i]) for i in range(a.n_actions)]

    def step(self, control: int, byte: int) -> int:
        """The move of a control that has no dictionary yet; makes it."""
        own = control - self._first_control
        if own >= 0:
            moves = _Moves()
            moves.edges, moves.own = self._edges, own
            move = moves[byte] = self._edges.find(own, byte)
            self.moves[control] = moves
            return move
        assert self._base is not None
        found = self._base.moves[control]
        if found is _COLD_MOVES:
            move = self._base.step(control, byte)
            found = self._base.moves[control]
        else:
            move = found[byte]
        self.moves[control] = found
        return move
