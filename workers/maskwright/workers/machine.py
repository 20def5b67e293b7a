"""The byte automaton in the form that Python steps fastest: a list of 256 moves for each control that's used
often.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to
    DEAD (-1)       no member goes on this way
    COLD            c has no list yet: `step(c, b)` tells the move
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)

A list costs fresh memory, which most controls (those inside a literal) are never worth: `step` searches the
control's edges for its first `SEARCHES` visits and makes the list then. `final[c]` is verdict + 1 of a
control that accepts and has no edge: it returns before the next byte is seen. `returns` holds controls + 1, 0
for none, at `return_start[symbol] + verdict`. Threads that race to make a list do the same work twice and
store equal values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from maskwright.workers.tables import Automaton

DEAD = -1
COLD = -(1 << 40) - 1
SEARCHES = 3
_COLD_MOVES = [COLD] * 256

Action = tuple[tuple[int, ...], int]
"""The symbols that are pushed, the control to go to."""


class Machine:
    """The executable form of an automaton, on top of its base's."""

    __slots__ = (
        "_base", "_edge_start", "_first_action", "_first_control", "_high", "_low", "_move", "_own",
        "_verdict", "_visits", "actions", "final", "moves", "return_start", "returns",
    )  # fmt: skip

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a = self._own = automaton
        self._base = base
        self._first_control, self._first_action = a.first_control, a.first_action
        self._edge_start, self._low = a.edge_start.data, a.edge_low.astype(np.uint8).tobytes()
        self._high = a.edge_high.astype(np.uint8).tobytes()
        self._move, self._verdict = a.edge_move.data, a.verdict.data
        self._visits = bytearray(a.n_controls - a.first_control)
        moves = [_COLD_MOVES] * (a.n_controls - a.first_control)
        actions: list[Action | None] = [None] * (a.n_actions - a.first_action)
        final: list[int] = np.where(a.edge_start[1:] == a.edge_start[:-1], a.verdict, 0).tolist()
        start: Sequence[int] = (a.return_start[:-1] + (len(base.returns) if base else 0)).tolist()
        returns: list[int] = a.return_move.tolist()
        self.moves: list[list[int]] = base.moves + moves if base else moves
        self.actions: list[Action | None] = base.actions + actions if base else actions
        self.final: list[int] = base.final + final if base else final
        self.return_start: list[int] = [*base.return_start, *start] if base else list(start)
        self.returns: list[int] = base.returns + returns if base else returns

    def step(self, control: int, byte: int) -> int:
        """The move of a control that has no list yet."""
        own = control - self._first_control
        if own < 0:
            return self._step_in_base(control, byte)
        visits = self._visits[own]
        if visits >= SEARCHES:
            return self._expand(control)[byte]
        self._visits[own] = visits + 1
        start = self._edge_start[own]
        edge = bisect_right(self._low, byte, start, self._edge_start[own + 1]) - 1
        if edge >= start and self._high[edge] >= byte:
            stored = self._move[edge]
            return self._code(stored) if stored & 1 else stored >> 1
        return -1 - 2 * self._verdict[own]

    def _code(self, stored: int) -> int:
        """A move from its stored form; its action is made."""
        if not stored & 1:
            return stored >> 1
        if self.actions[stored >> 1] is None:
            self.actions[stored >> 1] = self._make_action(stored >> 1)
        return -1 - stored

    def _expand(self, control: int) -> list[int]:
        """Makes a control's list of moves, and the actions it uses."""
        own = control - self._first_control
        moves = [-1 - 2 * self._verdict[own]] * 256
        for edge in range(self._edge_start[own], self._edge_start[own + 1]):
            first, last, move = self._low[edge], self._high[edge], self._code(self._move[edge])
            if first == last:
                moves[first] = move
            else:
                moves[first : last + 1] = [move] * (last + 1 - first)
        self.moves[control] = moves
        return moves

    def _step_in_base(self, control: int, byte: int) -> int:
        base = self._base
        assert base is not None
        moves = base.moves[control]
        if moves is _COLD_MOVES:
            move = base.step(control, byte)
        else:
            for used in set(moves):
                if used < DEAD and not used & 1:
                    self.actions[(-2 - used) >> 1] = base.actions[(-2 - used) >> 1]
            self.moves[control] = moves
            move = moves[byte]
        if move < DEAD and not move & 1:
            self.actions[(-2 - move) >> 1] = base.actions[(-2 - move) >> 1]
        return move

    def _make_action(self, number: int) -> Action:
        a, own = self._own, number - self._first_action
        start, end = int(a.action_start[own]), int(a.action_start[own + 1])
        return tuple(a.action_push[start:end].tolist()), int(a.action_target[own])
