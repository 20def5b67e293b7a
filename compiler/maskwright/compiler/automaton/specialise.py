"""Cut what can't finish: every frame is specialised to the verdicts that its caller can still use.

    reach(c)      = verdicts that the frame of c can end with, from c           (a fixpoint over calls)
    live(c, U)    = reach(c) & U is not empty                                   (U: verdicts the context can use)
    callee's U'   = { v : reach(returns[v]) & U is not empty }

The result has a control for each reachable (c, U). In ordinary schemas every verdict is always usable and everything
can finish: `is_live` sees that and nothing is copied. After
this pass every control is live in every context it's reached in, which is what a token mask needs: whatever can be
read can be completed.

Raises CompileError (UNSATISFIABLE) when the start itself isn't live.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from maskwright.compiler.automaton.graph import all_finish
from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.options import Limits

Bits = int
Key = tuple[int, Bits]


def specialise(a: ByteAutomaton, limits: Limits | None = None, kept: set[int] | None = None) -> ByteAutomaton:
    """The automaton with each control live in its context; libraries keep what their entries need, and lose dead
    entries. `kept` is filled with the controls of `a` that are live somewhere.
    """
    s = _Specialiser(a, limits or Limits())
    out = s.run()
    if kept is not None:
        kept.update(a.own_controls() if out is a else (c for c, _ in s.controls))
    return out


def reach(a: ByteAutomaton) -> list[Bits]:
    """For each own control the set of verdicts its frame can end with, as bits; Dijkstra-free least fixpoint."""
    n, first = len(a.edges), a.first_control
    symbols = _Symbols(a)
    found: list[Bits] = [0] * n
    dependents: dict[int, set[int]] = defaultdict(set)
    work = list(range(n - 1, -1, -1))
    queued = bytearray(b"\x01") * n

    finished: dict[int, Bits] = {}

    def look(c: int, asking: int) -> Bits:
        if c < first:
            bits = finished.get(c)
            if bits is None:
                bits = finished[c] = (1 << a.frame_info(a.frame_of(c)).verdicts) - 1
            return bits
        dependents[c - first].add(asking)
        return found[c - first]

    while work:
        i = work.pop()
        queued[i] = 0
        bits = 1 << a.verdict[i] if a.verdict[i] >= 0 else 0
        for move in distinct_moves(a.edges[i]):
            bits |= _reach_through(symbols, move, i, look)
        if bits != found[i]:
            found[i] = bits
            for d in dependents[i]:
                if not queued[d]:
                    queued[d] = 1
                    work.append(d)
    return found


def distinct_moves(edges: tuple[Edge, ...]) -> list[Move]:
    """The moves of some edges, each object once: edges of one call share theirs, so comparing values isn't needed."""
    return list({id(e.move): e.move for e in edges}.values())


class _Symbols:
    """Returns by symbol number, of the automaton and its base."""

    def __init__(self, a: ByteAutomaton) -> None:
        self.first, self.own, self.base = a.first_symbol, a.symbols, a.base

    def returns(self, s: int) -> tuple[Move | None, ...]:
        if s >= self.first:
            return self.own[s - self.first].returns
        assert self.base is not None
        return self.base.symbol(s).returns


def _reach_through(symbols: _Symbols, move: Move, asking: int, look) -> Bits:  # type: ignore[no-untyped-def]
    bits: Bits = look(move.target, asking)
    for s in reversed(move.pushes):
        above, bits = bits, 0
        for v, ret in enumerate(symbols.returns(s)):
            if above >> v & 1 and ret is not None:
                bits |= _reach_through(symbols, ret, asking, look)
    return bits


class _Specialiser:
    def __init__(self, a: ByteAutomaton, limits: Limits) -> None:
        self.a, self.limits = a, limits
        self.found: list[Bits] = []
        self.first, self.first_frame, self.first_symbol = a.first_control, a.first_frame, a.first_symbol
        self.returns = _Symbols(a).returns
        self.base_reach: dict[int, Bits] = {}
        self.usable_bits: dict[Key, Bits] = {}
        self.out = ByteAutomaton(base=a.base)
        self.controls: dict[Key, int] = {}
        self.symbols: dict[Key, int] = {}
        self.frames: dict[Key, int] = {}
        self.work: list[Key] = []

    def is_live(self) -> bool:
        """Whether the automaton is its own result: every control can finish, and each call and the start can use all
        verdicts. Then U holds all verdicts wherever it's asked. (A library's entries are decided one by one.)
        """
        a = self.a
        if a.start is None:
            return False
        verdicts = {v for f, v in zip(a.frame, a.verdict, strict=True) if v >= 0 and f == a.frame_of(a.start)}
        if not verdicts <= a.accepting_verdicts:
            return False
        return all(None not in s.returns for s in a.symbols) and all_finish(a)

    def run(self) -> ByteAutomaton:
        a, out = self.a, self.out
        if self.is_live():
            return a
        self.found = reach(a)
        if a.start is not None:
            use = sum(1 << v for v in a.accepting_verdicts)
            if not self.live(a.start, use):
                raise CompileError(Diagnostic(Code.UNSATISFIABLE, "no text is in the language", pointer=""))
            out.start = self.control(a.start, use)
            out.accepting_verdicts = a.accepting_verdicts
        for name, c in a.entries.items():
            use = (1 << a.frame_info(a.frame_of(c)).verdicts) - 1
            if self.live(c, use):
                out.entries[name] = self.control(c, use)
        while self.work:
            c, use = self.work.pop()
            i = self.controls[c, use] - self.first
            verdict = a.verdict[c - self.first]
            out.verdict[i] = verdict if verdict >= 0 and use >> verdict & 1 else -1
            old = a.edges[c - self.first]
            moves = {id(m): self.move(m, use) for m in distinct_moves(old)}
            edges = []
            for e in old:
                move = moves[id(e.move)]
                if move is not None:
                    edges.append(Edge(e.low, e.high, move))
            out.edges[i] = tuple(edges)
        return out

    def reach_of(self, c: int) -> Bits:
        if c >= self.first:
            return self.found[c - self.first]
        found = self.base_reach.get(c)
        if found is None:
            found = self.base_reach[c] = (1 << self.a.frame_info(self.a.frame_of(c)).verdicts) - 1
        return found

    def live(self, c: int, use: Bits) -> bool:
        return self.reach_of(c) & use != 0

    def usable(self, s: int, use: Bits) -> Bits:
        """Verdicts of symbol s's callee after which its caller can still end with one of `use`."""
        found = self.usable_bits.get((s, use))
        if found is None:
            found = 0
            for v, m in enumerate(self.returns(s)):
                if m is not None and self.usable_move(m, use):
                    found |= 1 << v
            self.usable_bits[s, use] = found
        return found

    def usable_move(self, m: Move, use: Bits) -> bool:
        for s in m.pushes:
            use = self.usable(s, use)
        return self.live(m.target, use)

    def move(self, m: Move, use: Bits) -> Move | None:
        if not self.usable_move(m, use):
            return None
        pushes = []
        for s in m.pushes:
            pushes.append(self.symbol(s, use))
            use = self.usable(s, use)
            self.check_external(s, use)
        return Move(self.control(m.target, use), tuple(pushes))

    def check_external(self, s: int, use: Bits) -> None:
        if s < self.first_symbol:
            return
        callee = self.a.symbols[s - self.first_symbol].callee
        if callee < self.first_frame and use != (1 << self.a.frame_info(callee).verdicts) - 1:
            raise ValueError(f"symbol {s} calls a finished frame but can't use all of its verdicts")

    def control(self, c: int, use: Bits) -> int:
        if c < self.first:
            return c
        found = self.controls.get((c, use))
        if found is None:
            if len(self.controls) >= self.limits.states:
                places = Counter(self.out.frame_info(f).pointer for f in self.out.frame)
                pointer = max(places, key=places.__getitem__)
                raise LimitExceeded("states", self.limits.states, len(self.controls) + 1, "specialise", pointer=pointer)
            found = self.controls[c, use] = self.first + len(self.out.edges)
            self.out.edges.append(())
            self.out.verdict.append(-1)
            self.out.frame.append(self.frame(self.a.frame[c - self.first], use))
            self.work.append((c, use))
        return found

    def frame(self, f: int, use: Bits) -> int:
        if f < self.first_frame:
            return f
        found = self.frames.get((f, use))
        if found is None:
            info = self.a.frame_info(f)
            found = self.frames[f, use] = self.out.first_frame + len(self.out.frames)
            self.out.frames.append(FrameInfo(info.name, info.pointer, info.verdicts))
        return found

    def symbol(self, s: int, use: Bits) -> int:
        if s < self.first_symbol:
            return s
        found = self.symbols.get((s, use))
        if found is None:
            found = self.symbols[s, use] = self.first_symbol + len(self.out.symbols)
            old = self.a.symbols[s - self.first_symbol]
            callee_use = self.usable(s, use)
            new = Symbol(self.frame(old.caller, use), self.frame(old.callee, callee_use), ())
            self.out.symbols.append(new)
            returns = tuple(self.move(m, use) if m is not None else None for m in old.returns)
            self.out.symbols[found - self.first_symbol] = Symbol(new.caller, new.callee, returns)
        return found
