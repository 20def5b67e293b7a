"""Every (frame, stack class) that decoding can be in, and the controls it can be in there.

A context is a frame and a vector of bits over R(frame) (see `residuals.py`). Breadth-first from the start: the start's
context knows only that the text may end with an accepting verdict; pushing symbol s in context q leads to the context
(callee of s, q's vector gathered by s). Equal vectors are one context, so call sites that can't be told apart by any
token share their masks.

`reached` over-approximates in one way: after a call every return address is taken to be possible.

Raises LimitExceeded for `stack_classes` and `compile_seconds`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.diagnostics import LimitExceeded, out_of_time
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.residuals import Residuals, places

Vector = npt.NDArray[np.uint8]


@dataclass(slots=True)
class Context:
    """`vector` [len(R(frame)) + 2] ends with false, true. `reached`: controls; `pushes`: symbol -> context number."""

    frame: int
    vector: Vector
    reached: dict[int, None] = field(default_factory=dict)
    pushes: dict[int, int] = field(default_factory=dict)


def find_contexts(
    a: ByteAutomaton, residuals: Residuals, n_suffixes: int, limits: Limits, deadline: float | None = None
) -> list[Context]:
    """All contexts; number 0 is the start's."""
    assert a.start is not None
    s = _Search(a, residuals, limits, deadline)
    codes = residuals.codes[a.frame_of(a.start)]
    vector = np.zeros(len(codes) + 2, dtype=np.uint8)
    vector[-1] = 1
    for v in a.accepting_verdicts:
        at = int(places(codes, np.array([v * n_suffixes], dtype=np.int64))[0])
        if at < len(codes):  # no control of the frame has the verdict otherwise
            vector[at] = 1
    s.enter(s.context(a.frame_of(a.start), vector), a.start)
    s.run()
    return s.contexts


Call = tuple[tuple[int, ...], int]


class _Search:
    def __init__(self, a: ByteAutomaton, residuals: Residuals, limits: Limits, deadline: float | None) -> None:
        self.a, self.residuals, self.limits, self.deadline = a, residuals, limits, deadline
        assert a.start is not None
        self.root = a.frame_of(a.start)
        self.contexts: list[Context] = []
        self.numbers: dict[tuple[int, bytes], int] = {}
        self.work: list[tuple[int, int]] = []
        self.called: list[tuple[int, int]] = []
        self.successors: dict[int, tuple[list[int], list[Call]]] = {}

    def context(self, frame: int, vector: Vector) -> int:
        key = (frame, vector.tobytes())
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.contexts)
            self.contexts.append(Context(frame, vector))
            if found >= self.limits.stack_classes:
                pointer = self.a.frame_info(frame).pointer
                raise LimitExceeded("stack_classes", self.limits.stack_classes, found + 1, "contexts", pointer=pointer)
        return found

    def enter(self, q: int, control: int) -> None:
        """A final control is only stayed in at the bottom of the stack, in the start's frame."""
        context = self.contexts[q]
        reached = context.reached
        if control not in reached and (context.frame == self.root or not self.a.is_final(control)):
            reached[control] = None
            self.work.append((q, control))

    def run(self) -> None:
        ticks = 0
        while self.work or self.called:
            if self.called:
                self.come_back(*self.called.pop())
                continue
            q, control = self.work.pop()
            ticks += 1
            if self.deadline is not None and ticks % 4096 == 0 and time.monotonic() > self.deadline:
                raise out_of_time(self.limits.compile_seconds, self.deadline, "contexts")
            stays, calls = self.successors_of(control)
            for target in stays:
                self.enter(q, target)
            for pushes, target in calls:
                inner = q
                for s in pushes:
                    inner = self.push(inner, s)
                self.enter(inner, target)

    def push(self, q: int, s: int) -> int:
        context = self.contexts[q]
        found = context.pushes.get(s)
        if found is None:
            sym = self.a.symbol(s)
            gathered = context.vector[self.residuals.gather_of(s)]
            vector = np.concatenate([gathered, np.array([0, 1], dtype=np.uint8)])
            found = context.pushes[s] = self.context(sym.callee, vector)
            self.called.append((q, s))
        return found

    def come_back(self, q: int, s: int) -> None:
        """Every return address of symbol s, pushed in context q."""
        for move in self.a.symbol(s).returns:
            if move is not None:
                inner = q
                for t in move.pushes:
                    inner = self.push(inner, t)
                self.enter(inner, move.target)

    def successors_of(self, control: int) -> tuple[list[int], list[Call]]:
        found = self.successors.get(control)
        if found is None:
            moves = dict.fromkeys(e.move for e in self.a.edges_of(control))
            stays = [m.target for m in moves if not m.pushes]
            found = self.successors[control] = (stays, [(m.pushes, m.target) for m in moves if m.pushes])
        return found
