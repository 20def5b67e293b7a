"""Write a live machine as a `ByteAutomaton`, with the automata of embedded values beside it.

The grammar is one frame, numbered after the base's. Verdicts with the same returns everywhere become one. An
embedded value's automaton keeps its frames; where the machine begins it, the edge takes its start's edges,
with the return address pushed below.
"""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol
from maskwright.compiler.grammar.embed import EmbeddedFrame
from maskwright.compiler.grammar.liveness import Live
from maskwright.compiler.grammar.machine import Machine


def emit(live: Live, machine: Machine, embedded: dict[str, EmbeddedFrame], base: ByteAutomaton | None) -> ByteAutomaton:
    """The automaton over `base`, which is also the base of the embedded ones."""
    return _Emitter(live, machine, embedded, base).run()


class _Emitter:
    def __init__(
        self, live: Live, machine: Machine, embedded: dict[str, EmbeddedFrame], base: ByteAutomaton | None
    ) -> None:
        self.live, self.machine = live, machine
        used = {machine.calls[s] for s in live.symbols if s in machine.calls}
        self.parts = {t: embedded[t].automaton for t in sorted(used)}
        self.out = ByteAutomaton(base=base, accepting_verdicts=frozenset({0}))
        self.offsets: dict[str, tuple[int, int, int]] = {}
        """What's added to the numbers of a part's controls, symbols and frames."""
        self.first_control, self.first_symbol = self.out.first_control, self.out.first_symbol

    def run(self) -> ByteAutomaton:
        out, live = self.out, self.live
        numbers, n = self.verdicts()
        self.place()
        out.start = self.first_control
        out.frames = [FrameInfo("grammar", "", n)]
        out.frame = [out.first_frame] * len(live.edges)
        out.verdict = [numbers[v] if v >= 0 else -1 for v in live.verdict]
        out.edges = [tuple(self.edges(es)) for es in live.edges]
        for old, row in zip(live.symbols, live.returns, strict=True):
            out.symbols.append(self.symbol(old, row, numbers, n))
        for terminal, part in self.parts.items():
            self.append(part, self.offsets[terminal])
        return out

    def verdicts(self) -> tuple[dict[int, int], int]:
        """New numbers of verdicts, and how many there are; 0 is acceptance."""
        accept = self.machine.verdict[self.machine.accept]
        columns: dict[int, list[tuple[int, Move]]] = {v: [] for v in self.live.verdict if v >= 0 and v != accept}
        for i, row in enumerate(self.live.returns):
            for v, move in row.items():
                if v in columns and self.live.symbols[i] not in self.machine.calls:
                    columns[v].append((i, move))
        known: dict[tuple[tuple[int, Move], ...], int] = {}
        new = {accept: 0}
        for v in sorted(columns):
            new[v] = known.setdefault(tuple(columns[v]), len(known) + 1)
        return new, len(known) + 1

    def place(self) -> None:
        controls, symbols, frames = len(self.live.edges), len(self.live.symbols), 1
        for terminal, part in self.parts.items():
            self.offsets[terminal] = (controls, symbols, frames)
            controls += len(part.edges)
            symbols += len(part.symbols)
            frames += len(part.frames)

    def move(self, m: Move) -> Move:
        return Move(m.target + self.first_control, tuple(s + self.first_symbol for s in m.pushes))

    def edges(self, edges: tuple[Edge, ...]) -> Iterator[Edge]:
        for e in edges:
            terminal = self.machine.embedded.get(self.live.controls[e.move.target])
            if terminal is None:
                yield Edge(e.low, e.high, self.move(e.move))
                continue
            part, below = self.parts[terminal], self.move(e.move).pushes
            assert part.start is not None
            for inner in part.edges_of(part.start):
                low, high = max(e.low, inner.low), min(e.high, inner.high)
                if low <= high:
                    into = self.shift(inner.move, part, self.offsets[terminal])
                    yield Edge(low, high, Move(into.target, below + into.pushes))

    def symbol(self, old: int, row: dict[int, Move], numbers: dict[int, int], n: int) -> Symbol:
        terminal = self.machine.calls.get(old)
        frame = self.out.first_frame
        if terminal is None:
            moves: list[Move | None] = [None] * n
            for v, move in row.items():
                if v in numbers:
                    moves[numbers[v]] = self.move(move)
            return Symbol(frame, frame, tuple(moves))
        part = self.parts[terminal]
        assert part.start is not None
        root = part.frame_of(part.start)
        (after,) = row.values()
        known = range(part.frame_info(root).verdicts)
        returns = tuple(self.move(after) if v in part.accepting_verdicts else None for v in known)
        return Symbol(frame, root + self.offsets[terminal][2], returns)

    def shift(self, m: Move, part: ByteAutomaton, by: tuple[int, int, int]) -> Move:
        control = m.target + by[0] if m.target >= part.first_control else m.target
        return Move(control, tuple(s + by[1] if s >= part.first_symbol else s for s in m.pushes))

    def append(self, part: ByteAutomaton, by: tuple[int, int, int]) -> None:
        out = self.out
        out.frames += part.frames
        out.frame += [f + by[2] for f in part.frame]
        out.verdict += part.verdict
        out.edges += [tuple(Edge(e.low, e.high, self.shift(e.move, part, by)) for e in es) for es in part.edges]
        for s in part.symbols:
            callee = s.callee + by[2] if s.callee >= part.first_frame else s.callee
            moves = tuple(None if m is None else self.shift(m, part, by) for m in s.returns)
            out.symbols.append(Symbol(s.caller + by[2], callee, moves))
