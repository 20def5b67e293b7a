"""Every (frame, stack class) that decoding can be in, and the controls it can be in there.

A context is a frame and a vector of bits over R(frame) (see `residuals.py`). Breadth-first from the start: the start's
context knows only that the text may end with an accepting verdict; pushing symbol s in context q leads to the context
(callee of s, q's vector gathered by s). Equal vectors are one context, so call sites that can't be told apart by any
token share their masks.

`reached` over-approximates in one way: after a call every return address is taken to be possible. So what an entry of a
frame reaches there doesn't depend on the context: of the pack's frames it's kept for all compilations (`Regions`).

Raises LimitExceeded for `stack_classes` and `compile_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded, out_of_time
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.residuals import Residuals, places
from maskwright.compiler.tokens.tables import AutomatonTables

Vector = npt.NDArray[np.uint8]
Call = tuple[tuple[int, ...], int]
"""Symbols that are pushed, the first one by the frame itself, and the control that's entered."""


class Layout:
    """Where the controls and symbols of each frame stand, the pack's and the own ones."""

    def __init__(self, pack: AutomatonTables, own: AutomatonTables) -> None:
        self.first_control = int(pack.frame_controls[-1])
        self.controls = [*pack.frame_controls.tolist(), *own.frame_controls[1:].tolist()]
        self.symbols = [*pack.frame_symbols.tolist(), *own.frame_symbols[1:].tolist()]

    def controls_of(self, frame: int) -> range:
        return range(self.controls[frame], self.controls[frame + 1])

    def symbols_of(self, frame: int) -> range:
        return range(self.symbols[frame], self.symbols[frame + 1])


@dataclass(slots=True)
class Context:
    """`vector` [len(R(frame)) + 2] ends with false, true. `reached`: of each control of the frame whether decoding can
    be there; `pushes`: symbol -> context number.
    """

    frame: int
    vector: Vector
    reached: bytearray
    pushes: dict[int, int] = field(default_factory=dict)


Region = tuple[npt.NDArray[np.intp], list[Call]]
"""What an entry of a frame reaches there: controls, counted from the frame's first, and the calls that they make."""


class Regions:
    """The regions of a library's controls, made when they're asked for."""

    def __init__(self, library: ByteAutomaton) -> None:
        self.a = library
        self.known: dict[tuple[int, bool], Region] = {}

    def region(self, control: int, first: int, *, finals: bool) -> Region:
        """`first`: the frame's first control. `finals`: final controls are stayed in."""
        found = self.known.get((control, finals))
        if found is None:
            reached, calls, work = {control: None}, dict[Call, None](), [control]
            while work:
                for pushes, target in moves_within(self.a, work.pop()):
                    if pushes:
                        calls[pushes, target] = None
                    elif target not in reached:
                        reached[target] = None
                        work.append(target)
            kept = [c - first for c in sorted(reached) if finals or not self.a.is_final(c)]
            found = self.known[control, finals] = (np.array(kept, dtype=np.intp), list(calls))
        return found


def moves_within(a: ByteAutomaton, control: int) -> Iterator[Call]:
    """Where a control goes, without pushes what stays in the frame: its edges and the returns of its calls."""
    todo = list(dict.fromkeys(e.move for e in a.edges_of(control)))
    seen: set[int] = set()
    while todo:
        m = todo.pop()
        yield m.pushes, m.target
        if m.pushes and m.pushes[0] not in seen:
            seen.add(m.pushes[0])
            todo.extend(r for r in a.symbol(m.pushes[0]).returns if r is not None)


def find_contexts(
    a: ByteAutomaton,
    residuals: Residuals,
    n_suffixes: int,
    layout: Layout,
    regions: Regions,
    limits: Limits,
    deadline: float | None = None,
) -> list[Context]:
    """All contexts; number 0 is the start's."""
    assert a.start is not None
    s = _Search(a, residuals, layout, regions, limits, deadline)
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


class _Search:
    def __init__(
        self,
        a: ByteAutomaton,
        residuals: Residuals,
        layout: Layout,
        regions: Regions,
        limits: Limits,
        deadline: float | None,
    ) -> None:
        self.a, self.residuals, self.layout, self.regions = a, residuals, layout, regions
        self.limits, self.deadline = limits, deadline
        assert a.start is not None
        self.root = a.frame_of(a.start)
        self.contexts: list[Context] = []
        self.numbers: dict[tuple[int, bytes], int] = {}
        self.work: list[tuple[int, list[Call]]] = []
        self.called: list[tuple[int, int]] = []
        self.successors: dict[int, list[Call]] = {}

    def context(self, frame: int, vector: Vector) -> int:
        key = (frame, vector.tobytes())
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.contexts)
            self.contexts.append(Context(frame, vector, bytearray(len(self.layout.controls_of(frame)))))
            if found >= self.limits.stack_classes:
                pointer = self.a.frame_info(frame).pointer
                raise LimitExceeded("stack_classes", self.limits.stack_classes, found + 1, "contexts", pointer=pointer)
        return found

    def enter(self, q: int, control: int) -> None:
        """A final control is only stayed in at the bottom of the stack, in the start's frame."""
        context = self.contexts[q]
        first = self.layout.controls[context.frame]
        if context.reached[control - first]:
            return
        in_root = context.frame == self.root
        if control < self.layout.first_control:
            controls, calls = self.regions.region(control, first, finals=in_root)
            np.frombuffer(context.reached, dtype=np.uint8)[controls] = 1
            self.work.append((q, calls))
        elif in_root or not self.a.is_final(control):
            context.reached[control - first] = 1
            self.work.append((q, self.successors_of(control)))

    def run(self) -> None:
        ticks = 0
        while self.work or self.called:
            if self.called:
                self.come_back(*self.called.pop())
                continue
            q, moves = self.work.pop()
            ticks += 1
            if self.deadline is not None and ticks % 4096 == 0 and now() > self.deadline:
                raise out_of_time(self.limits.compile_seconds, self.deadline, "contexts")
            for pushes, target in moves:
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

    def successors_of(self, control: int) -> list[Call]:
        found = self.successors.get(control)
        if found is None:
            moves = dict.fromkeys(e.move for e in self.a.edges_of(control))
            found = self.successors[control] = [(m.pushes, m.target) for m in moves]
        return found
