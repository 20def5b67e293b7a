"""Where many tokens lead from one place, and what the bounds of costs.py are there.

Tokens are run byte by byte together: an array holds for each the number of the place it's in, and a table of 256
columns per place gives the next. Places are numbered as they're met, so the work is one gather a byte for all
tokens (tens of nanoseconds a token) and some microseconds of Python a place; there are few places, since most
tokens end in the same.

A place is a control over a stack; stacks are numbered too: 0 is the stack that was there, -k what's left of it
after k pops, and positive numbers stand for one symbol pushed on another number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from maskwright.workers.costs import NEVER, Costs
from maskwright.workers.state import MAX_RETURN_PUSHES, Stack

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Down = Callable[[Stack], tuple[int, ...]]
"""For an actual stack and each verdict of the frame on top: the bound once that frame has returned."""

DEAD, START = 0, 1
MAX_CHAIN = 10_000
"""Places that a place may return to, one after the other."""


class Places:
    """The places that tokens lead to from a control over an actual stack. `depth`: how many symbols were popped
    from it.
    """

    __slots__ = (
        "_below", "_costs", "_graph", "_moves", "_numbers", "_parent", "_pending", "_places", "_ready", "_stacks",
        "_symbol",
    )  # fmt: skip

    def __init__(self, costs: Costs, control: int, stack: Stack) -> None:
        self._costs, self._graph = costs, costs.graph
        self._below: list[Stack] = [stack]  # [k]: after k pops
        self._symbol: list[int] = [-1]
        self._parent: list[int] = [0]
        self._stacks: dict[tuple[int, int], int] = {}
        self._places: list[tuple[int, int]] = [(-1, 0), (control, 0)]
        self._numbers = {(control, 0): START}
        self._moves = np.zeros((16, 256), np.int32)
        self._ready = [True, False]
        self._pending = 1  # places that aren't ready

    @property
    def depth(self) -> int:
        return len(self._below) - 1

    # -- stacks ------------------------------------------------------------------------------------------------

    def _push(self, symbol: int, stack: int) -> int:
        if stack < 0:
            below = self._below[-stack - 1]
            if below is not None and below[0] == symbol:
                return stack + 1
        number = self._stacks.get((symbol, stack))
        if number is None:
            number = self._stacks[symbol, stack] = len(self._symbol)
            self._symbol.append(symbol)
            self._parent.append(stack)
        return number

    def _pop(self, stack: int) -> tuple[int, int] | None:
        """The symbol on top and what's below it; None when it's empty."""
        if stack > 0:
            return self._symbol[stack], self._parent[stack]
        top = self._below[-stack]
        if top is None:
            return None
        if len(self._below) == -stack + 1:
            self._below.append(top[2])
        return top[0], stack - 1

    # -- moves -------------------------------------------------------------------------------------------------

    def _enter(self, node: int, stack: int) -> int:
        """The place that a node begins in, settled."""
        g, pushes = self._graph, 0
        while True:
            while node < 0:
                node, symbol = g.composites[-1 - node]
                stack = self._push(symbol, stack)
                pushes += 1
            if pushes > MAX_RETURN_PUSHES:
                return DEAD
            popped = self._pop(stack) if g.final[node] else None
            if popped is None:
                break
            then = g.returns[popped[0]][g.verdict[node]]
            if then is None:
                return DEAD
            node, stack = then, popped[1]
        place = (node, stack)
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self._places)
            self._places.append(place)
            self._ready.append(False)
            self._pending += 1
            if number == len(self._moves):
                self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)])
        return number

    def _prepare(self, number: int) -> None:
        """Fills the moves of a place, and first those of what it returns to."""
        g, chain, seen, symbols = self._graph, [number], {number}, len(self._symbol)
        while True:
            control, stack = self._places[chain[-1]]
            popped = self._pop(stack) if g.verdict[control] >= 0 else None
            then = g.returns[popped[0]][g.verdict[control]] if popped else None
            under = DEAD if popped is None or then is None else self._enter(then, popped[1])
            if self._ready[under] or under in seen or len(chain) > MAX_CHAIN:
                break
            if len(self._symbol) - symbols > MAX_RETURN_PUSHES:
                under = DEAD
                break
            chain.append(under)
            seen.add(under)
        for here in reversed(chain):
            control, stack = self._places[here]
            targets = [(low, high, self._enter(node, stack)) for low, high, node in g.edges[control]]
            row = self._moves[here]
            row[:] = self._moves[under]
            for low, high, target in targets:
                row[low : high + 1] = target
            self._pending -= not self._ready[here]
            self._ready[here] = True
            under = here

    def run(self, tokens: I64) -> I32:
        """The numbers of the places that tokens, longest first, lead to."""
        spelled = self._costs.spelling
        lengths, begin = spelled.lengths[tokens], spelled.offsets[tokens]
        at, alive = np.full(len(tokens), START, np.int32), len(tokens)
        for position in range(int(lengths.max(initial=0))):
            alive = int(np.searchsorted(-lengths[:alive], -position, "left"))
            at[:alive] = self._step(at[:alive], spelled.blob[begin[:alive] + position])
        return at

    def run_all(self) -> tuple[I64, I32]:
        """(tokens, numbers of places) of all tokens but those that are made of bytes which stay in the first place.
        Faster than `run` where most of the vocabulary is legal.
        """
        self._prepare(START)
        columns = self._costs.spelling.columns((self._moves[START] == START).astype(np.uint8).tobytes())
        at = np.full(len(columns.ids), START, np.int32)
        for column in columns.columns:
            n = len(column)
            at[:n] = self._step(at[:n], column)
        return columns.ids, at

    def _step(self, here: I32, byte: npt.NDArray[np.uint8]) -> I32:
        if self._pending:
            for number in np.flatnonzero(np.bincount(here)).tolist():
                if not self._ready[number]:
                    self._prepare(number)
        after: I32 = self._moves.ravel().take((here << 8) + byte)
        return after

    # -- bounds ------------------------------------------------------------------------------------------------

    def bounds(self, numbers: I32, down: Down) -> I64:
        """The bounds of places, by number; NEVER for DEAD."""
        value = np.full(len(self._places), NEVER, np.int64)
        below: dict[int, tuple[int, ...]] = {}
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            if number != DEAD:
                control, stack = self._places[number]
                if stack not in below:
                    below[stack] = self._down(stack, down)
                rest = below[stack]
                value[number] = min([t + rest[v] for v, t in self._costs.vector(control)] + [NEVER])
        return value[numbers]

    def _down(self, stack: int, down: Down) -> tuple[int, ...]:
        pushed = []
        while stack > 0:
            pushed.append(self._symbol[stack])
            stack = self._parent[stack]
        rest = down(self._below[-stack])
        for symbol in reversed(pushed):
            rest = self._costs.after(symbol, rest)
        return rest
