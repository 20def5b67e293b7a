"""Write a live machine as a `ByteAutomaton`, with the automata of embedded values beside it.

There's a frame per LR state on top of the stack: it holds the lexemes read there, and the reductions that
begin there. A symbol is an LR state with the frame above it, so that a frame's verdicts are asked of the
symbols that it really lies on, and of no others. Characters of several bytes and embedded values are frames
of their own. Building is forward: a frame's verdict is put to each symbol below the frame, whichever of the
two is found last.

Verdicts of a frame with the same returns from every symbol become one. Where the machine begins an embedded
value, the edge takes the edges of that automaton's start, with the return address pushed below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol
from maskwright.compiler.grammar.embed import EmbeddedFrame
from maskwright.compiler.grammar.liveness import Live
from maskwright.compiler.grammar.machine import Machine

Key = tuple[str, object]
"""A frame: ("state", LR state), ("characters", sets) or ("embedded", terminal)."""


def emit(live: Live, machine: Machine, embedded: dict[str, EmbeddedFrame], base: ByteAutomaton | None) -> ByteAutomaton:
    """The automaton over `base`, which is also the base of the embedded ones."""
    return _Emitter(live, machine, embedded, base).run()


@dataclass(slots=True)
class _Frame:
    """`verdicts`: the machine's numbers to the frame's; `below`: symbols that lie under it."""

    number: int
    name: str
    verdicts: dict[int, int] = field(default_factory=dict)
    below: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Symbol:
    """`live`: its number in the live machine. `returns` by the machine's verdicts."""

    live: int
    caller: Key
    callee: Key
    returns: dict[int, Move] = field(default_factory=dict)


class _Emitter:
    def __init__(
        self, live: Live, machine: Machine, embedded: dict[str, EmbeddedFrame], base: ByteAutomaton | None
    ) -> None:
        self.live, self.machine, self.embedded = live, machine, embedded
        self.out = ByteAutomaton(base=base, accepting_verdicts=frozenset({0}))
        self.frames: dict[Key, _Frame] = {}
        self.controls: dict[tuple[int, Key], int] = {}
        self.order: list[tuple[int, Key]] = []
        self.symbols: dict[tuple[int, Key, Key], int] = {}
        self.symbol_list: list[_Symbol] = []
        self.edges: list[list[tuple[int, int, Move]]] = []
        self.exits: dict[str, int] = {}
        """The verdict with which the machine's stand-in for an embedded value returns."""

    def run(self) -> ByteAutomaton:
        root: Key = ("state", self.machine.tops[self.live.controls[0]])
        self.frame(root).verdicts[self.machine.verdict[self.machine.accept]] = 0
        self.control(0, root)
        done = 0
        while done < len(self.order):
            self.expand(*self.order[done])
            done += 1
        return self.write()

    # -- what's reached --------------------------------------------------------------------------------------

    def frame(self, key: Key) -> _Frame:
        found = self.frames.get(key)
        if found is None:
            name = {"state": "grammar", "characters": "characters"}.get(key[0], "embedded value")
            found = self.frames[key] = _Frame(len(self.frames), name)
        return found

    def own_frame(self, control: int, context: Key) -> Key:
        """The frame of a live control that's reached inside frame `context`."""
        old = self.live.controls[control]
        if old in self.machine.embedded:
            return ("embedded", self.machine.embedded[old])
        if old in self.machine.characters:
            return ("characters", self.machine.characters[old])
        top = self.machine.tops.get(old)
        return context if top is None else ("state", top)

    def control(self, control: int, context: Key) -> int:
        key = (control, self.own_frame(control, context))
        found = self.controls.get(key)
        if found is None:
            found = self.controls[key] = len(self.order)
            self.order.append(key)
            self.frame(key[1])
        return found

    def move(self, m: Move, context: Key) -> Move:
        """A move of the live machine, made in a frame."""
        if not m.pushes:
            return Move(self.control(m.target, context))
        pushes = []
        caller = context
        above = [self.caller(n, context) for n in m.pushes[1:]]
        target = self.control(m.target, above[-1] if above else context)
        for n, callee in zip(m.pushes, [*above, self.order[target][1]], strict=True):
            pushes.append(self.symbol(n, caller, callee))
            caller = callee
        return Move(target, tuple(pushes))

    def caller(self, n: int, context: Key) -> Key:
        """The frame in which a symbol is pushed: its LR state's."""
        old = self.live.symbols[n]
        return ("state", old) if old < self.machine.n_states else context

    def symbol(self, n: int, caller: Key, callee: Key) -> int:
        key = (n, caller, callee)
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = len(self.symbol_list)
            self.symbol_list.append(_Symbol(n, caller, callee))
            frame = self.frame(callee)
            frame.below.append(found)
            for v in list(frame.verdicts):
                self.put(v, found)
        return found

    def put(self, verdict: int, symbol: int) -> None:
        """A verdict to a symbol under its frame."""
        s = self.symbol_list[symbol]
        move = self.live.returns[s.live].get(verdict)
        if move is not None:
            s.returns[verdict] = self.move(move, s.caller)

    def expand(self, control: int, key: Key) -> None:
        made: dict[Move, Move] = {}
        row: list[tuple[int, int, Move]] = []
        for e in self.live.edges[control]:
            if e.move not in made:
                made[e.move] = self.move(e.move, key)
            row.append((e.low, e.high, made[e.move]))
        self.edges.append(row)
        v = self.live.verdict[control]
        frame = self.frame(key)
        if v >= 0 and v not in frame.verdicts:
            frame.verdicts[v] = len(frame.verdicts)
            for symbol in list(frame.below):
                self.put(v, symbol)

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self) -> ByteAutomaton:
        out = self.out
        plain = [key for key in self.frames if key[0] != "embedded"]
        frames = {key: out.first_frame + i for i, key in enumerate(plain)}
        kept = [i for i, (_, key) in enumerate(self.order) if key[0] != "embedded"]
        self.place = {old: out.first_control + new for new, old in enumerate(kept)}
        self.parts = {str(key[1]): self.embedded[str(key[1])].automaton for key in self.frames if key[0] == "embedded"}
        self.offsets = self.find_offsets(len(kept), len(self.symbol_list), len(plain))
        out.start = self.place[0]
        numbers = {key: self.merge_verdicts(self.frames[key]) for key in plain}
        out.frames = [FrameInfo(self.frames[key].name, "", max(numbers[key].values(), default=0) + 1) for key in plain]
        for i in kept:
            control, key = self.order[i]
            v = self.live.verdict[control]
            out.frame.append(frames[key])
            out.verdict.append(numbers[key][v] if v >= 0 else -1)
            out.edges.append(tuple(self.final_edges(self.edges[i])))
        for s in self.symbol_list:
            out.symbols.append(self.final_symbol(s, frames, numbers))
        for terminal, part in self.parts.items():
            self.append(part, self.offsets[terminal])
        return out

    def find_offsets(self, controls: int, symbols: int, frames: int) -> dict[str, tuple[int, int, int]]:
        """What's added to the numbers of each part's controls, symbols and frames."""
        out = {}
        for terminal, part in self.parts.items():
            out[terminal] = (controls, symbols, frames)
            controls += len(part.edges)
            symbols += len(part.symbols)
            frames += len(part.frames)
        return out

    def merge_verdicts(self, frame: _Frame) -> dict[int, int]:
        """New numbers; the accepting verdict of the root, its first, stays 0 and alone."""
        accept = self.machine.verdict[self.machine.accept]
        columns: dict[int, list[tuple[int, Move]]] = {v: [] for v in frame.verdicts}
        for s in frame.below:
            for v, m in self.symbol_list[s].returns.items():
                if v in columns:
                    columns[v].append((s, m))
        known: dict[object, int] = {}
        out: dict[int, int] = {}
        for v, column in columns.items():
            out[v] = known.setdefault("accept" if v == accept else tuple(column), len(known))
        return out

    def final_move(self, m: Move) -> Move:
        return Move(self.place[m.target], tuple(s + self.out.first_symbol for s in m.pushes))

    def final_edges(self, row: list[tuple[int, int, Move]]) -> Iterator[Edge]:
        for low, high, m in row:
            kind, name = self.order[m.target][1]
            if kind != "embedded":
                yield Edge(low, high, self.final_move(m))
                continue
            part, below = self.parts[str(name)], tuple(s + self.out.first_symbol for s in m.pushes)
            assert part.start is not None
            for inner in part.edges_of(part.start):
                a, b = max(low, inner.low), min(high, inner.high)
                if a <= b:
                    into = self.shift(inner.move, part, self.offsets[str(name)])
                    yield Edge(a, b, Move(into.target, below + into.pushes))

    def final_symbol(self, s: _Symbol, frames: dict[Key, int], numbers: dict[Key, dict[int, int]]) -> Symbol:
        if s.callee[0] == "embedded":
            part, by = self.parts[str(s.callee[1])], self.offsets[str(s.callee[1])]
            assert part.start is not None
            root = part.frame_of(part.start)
            (after,) = s.returns.values()
            known = range(part.frame_info(root).verdicts)
            returns = tuple(self.final_move(after) if v in part.accepting_verdicts else None for v in known)
            return Symbol(frames[s.caller], root + by[2], returns)
        moves: list[Move | None] = [None] * (max(numbers[s.callee].values(), default=0) + 1)
        for v, m in s.returns.items():
            moves[numbers[s.callee][v]] = self.final_move(m)
        return Symbol(frames[s.caller], frames[s.callee], tuple(moves))

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
