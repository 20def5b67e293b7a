"""The byte automaton in the form that Python steps fastest: a list of 256 moves for each control, made on
first use.

A move is an int. For a control c and a byte b, `moves[c][b]` is

    >= 0            the control to go to
    DEAD (-1)       no member goes on this way
    COLD            c's list isn't made yet: call `expand(c)`
    -2 - 2 * a      action a: push its symbols, go to its target           (even)
    -3 - 2 * v      c can't consume b and accepts with verdict v: pop      (odd)

`final[c]` is verdict + 1 of a control that accepts and has no edge: it returns before the next byte is seen.
`returns` holds controls + 1, 0 for none, at `return_start[symbol] + verdict`. The lists are filled by whoever
comes first: threads that race do the same work twice and store equal values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.workers.tables import Automaton

DEAD = -1
COLD = -(1 << 40) - 1
_COLD_MOVES = [COLD] * 256


class Machine:
    """The executable form of an automaton, on top of its base's."""

    __slots__ = ("_automaton", "_base", "actions", "final", "moves", "return_start", "returns")

    def __init__(self, automaton: Automaton, base: Machine | None) -> None:
        a = automaton
        self._automaton, self._base = a, base
        own_final = np.where(np.diff(a.edge_start) == 0, a.verdict, 0)
        own_start: Sequence[int] = a.return_start[:-1].tolist()
        if base is None:
            self.moves: list[list[int]] = [_COLD_MOVES] * a.n_controls
            self.actions: list[tuple[tuple[int, ...], int] | None] = [None] * a.n_actions
            self.final: list[int] = own_final.tolist()
            self.return_start: list[int] = list(own_start)
            self.returns: list[int] = a.return_move.tolist()
        else:
            shift = len(base.returns)
            self.moves = [*base.moves, *([_COLD_MOVES] * (a.n_controls - a.first_control))]
            self.actions = [*base.actions, *([None] * (a.n_actions - a.first_action))]
            self.final = base.final + own_final.tolist()
            self.return_start = base.return_start + [shift + s for s in own_start]
            self.returns = base.returns + a.return_move.tolist()

    def expand(self, control: int) -> list[int]:
        """Makes a control's list of moves, and the actions it uses."""
        a = self._automaton
        own = control - a.first_control
        if own < 0:
            return self._expand_in_base(control)
        start, end = int(a.edge_start[own]), int(a.edge_start[own + 1])
        verdict = int(a.verdict[own])
        moves = [-1 - 2 * verdict if verdict else DEAD] * 256
        low, high = a.edge_low[start:end].tolist(), a.edge_high[start:end].tolist()
        for first, last, stored in zip(low, high, a.edge_move[start:end].tolist(), strict=True):
            if stored & 1:
                move = -1 - stored
                if self.actions[stored >> 1] is None:
                    self.actions[stored >> 1] = self._make_action(stored >> 1)
            else:
                move = stored >> 1
            if first == last:
                moves[first] = move
            else:
                moves[first : last + 1] = [move] * (last + 1 - first)
        self.moves[control] = moves
        return moves

    def _expand_in_base(self, control: int) -> list[int]:
        assert self._base is not None
        moves = self._base.moves[control]
        if moves is _COLD_MOVES:
            moves = self._base.expand(control)
        for move in set(moves):
            if move < DEAD and not move & 1:
                self.actions[(-2 - move) >> 1] = self._base.actions[(-2 - move) >> 1]
        self.moves[control] = moves
        return moves

    def _make_action(self, number: int) -> tuple[tuple[int, ...], int]:
        a = self._automaton
        own = number - a.first_action
        start, end = int(a.action_start[own]), int(a.action_start[own + 1])
        return tuple(a.action_push[start:end].tolist()), int(a.action_target[own])
