"""From frames described by code to a `ByteAutomaton`: forward exploration.

A front end describes each frame lazily: its start state, the transitions of a state, which states accept and with
which verdict, and where the frame goes on when a frame it called returns a verdict. Exploration runs a work list from
the root frame. A return state is added only when the callee is seen to return that verdict, so what's built is the
productive part: the least fixpoint of "frame F can return verdict v".

    class Frame:                        hashable: equal frames are built once
        name, pointer                   for people and diagnostics
        start() -> state                states are hashable, private to the frame
        transitions(state) -> [Stay | Call | Also]
        verdict(state) -> hashable | None          None: the frame can't end here
        resume(continuation, verdict) -> state | None    in the *caller*, None: dead

Rules: Stay ranges of one state are disjoint. A Call takes the first bytes that its callee's start state takes, less
those of the Stays (and of what an Also brings) and, with `first`, only those in it; two Calls may not share a byte. The
start state of a called frame doesn't accept (it consumes at least one byte). Breaking a rule raises ValueError: it's a
fault of the front end, not of its input.

An `External` names a frame of the base library (the vocabulary pack); its verdicts are the ints 0..n-1.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol, make_edges
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded, out_of_time
from maskwright.compiler.options import Limits

State = Hashable
Ranges = tuple[tuple[int, int], ...]


class Stay(NamedTuple):
    """Bytes low..high lead to `state` of the same frame."""

    low: int
    high: int
    state: State


class Call(NamedTuple):
    """Enter `frame`, at its start or at another of its states; when it returns a verdict, go on in
    `resume(continuation, verdict)`."""

    frame: Frame
    continuation: Hashable
    first: Ranges | None = None
    at: State | None = None


class Also(NamedTuple):
    """Every transition of another state of the frame."""

    state: State


Transition = Stay | Call | Also


class Frame(Protocol):
    """What a front end implements; see the module's text."""

    @property
    def name(self) -> str: ...
    @property
    def pointer(self) -> str: ...
    def __hash__(self) -> int: ...
    def start(self) -> State: ...
    def transitions(self, state: Any) -> Iterable[Transition]: ...
    def verdict(self, state: Any) -> Hashable | None: ...
    def resume(self, continuation: Any, verdict: Any) -> State | None: ...


class External(NamedTuple):
    """The frame that starts at `entry` of the base library."""

    entry: str
    name: str = "external"
    pointer: str = ""

    def start(self) -> State:
        raise TypeError("an external frame is explored where it was built")

    def transitions(self, state: Any) -> Iterable[Transition]:
        raise TypeError("an external frame is explored where it was built")

    def verdict(self, state: Any) -> Hashable | None:
        raise TypeError("an external frame is explored where it was built")

    def resume(self, continuation: Any, verdict: Any) -> State | None:
        raise TypeError("an external frame is explored where it was built")


def explore(
    root: Frame,
    base: ByteAutomaton | None = None,
    *,
    accepting: Iterable[Hashable] | None = None,
    limits: Limits | None = None,
    deadline: float | None = None,
    seen: dict[Frame, dict[State, int]] | None = None,
) -> ByteAutomaton:
    """The automaton of `root`. `accepting`: root verdicts that make a member (default: all of them). `seen` is filled
    with the control of every state of every frame.

    Raises LimitExceeded for `frames`, `states` and, with `deadline` (a `deadline.now` value), `compile_seconds`.
    An automaton without any member has no accepting verdict: `specialise` finds that out.
    """
    e = _Explorer(base, limits or Limits(), deadline)
    info = e.enter(root)
    e.run()
    if seen is not None:
        seen.update((frame, build.controls) for frame, build in e.builds.items())
    known = info.verdicts
    good = frozenset(known.values()) if accepting is None else frozenset(known[v] for v in accepting if v in known)
    return e.finish(start=info.controls[info.start], accepting=good)


@dataclass(frozen=True, slots=True)
class Entry:
    """A state of a frame where callers may enter it, as they do at its start."""

    frame: Frame
    state: State


def explore_library(
    roots: dict[str, Frame] | dict[str, Frame | Entry], base: ByteAutomaton | None = None
) -> ByteAutomaton:
    """A library of frames, each entry at its root's start or at the state that an `Entry` names."""
    e = _Explorer(base, Limits(), None)
    entries: dict[str, int] = {}
    for name, root in roots.items():
        frame = root.frame if isinstance(root, Entry) else root
        build = e.enter(frame)
        entries[name] = e.control(build, root.state) if isinstance(root, Entry) else build.controls[build.start]
    e.run()
    return e.finish(entries=entries)


class _FrameBuild:
    """A frame under construction: its controls by state, its verdicts by value, its callers (number of the build,
    continuation, symbol)."""

    __slots__ = ("callers", "controls", "frame", "number", "start", "verdicts")

    def __init__(self, frame: Frame, number: int) -> None:
        self.frame, self.number = frame, number
        self.start: State = frame.start()
        self.controls: dict[State, int] = {}
        self.verdicts: dict[Hashable, int] = {}
        self.callers: list[tuple[int, Hashable, int]] = []


class _Explorer:
    def __init__(self, base: ByteAutomaton | None, limits: Limits, deadline: float | None) -> None:
        self.base, self.limits, self.deadline = base, limits, deadline
        self.out = ByteAutomaton(base=base)
        self.builds: dict[Frame, _FrameBuild] = {}
        self.numbered: list[_FrameBuild] = []
        """The same from `out.first_frame` on: builds call each other by number, so that none holds itself."""
        self.work: list[tuple[_FrameBuild, State, int]] = []
        self.stays: list[list[tuple[int, int, int]]] = []
        self.calls: list[list[tuple[int, Call]]] = []
        self.also: dict[int, list[int]] = {}
        self.symbols: dict[tuple[int, Hashable, Frame], int] = {}
        self.returns: list[dict[int, int]] = []
        self.symbol_frames: list[tuple[int, Frame]] = []
        self.externals: dict[External, tuple[int, int, int]] = {}
        self.moves: list[Move] = []
        """To each control, in its frame."""
        self.edges: dict[int, tuple[Edge, ...]] = {}
        self.entered: dict[tuple[int, int], tuple[Edge, ...]] = {}
        """What's been materialised: by control, and by symbol and the control that a call enters."""

    def enter(self, frame: Frame) -> _FrameBuild:
        build = self.builds.get(frame)
        if build is None:
            if len(self.builds) >= self.limits.frames:
                places = Counter(b.frame.pointer for b in self.builds.values())
                most = max(places, key=places.__getitem__)
                raise LimitExceeded("frames", self.limits.frames, len(self.builds) + 1, "explore", pointer=most)
            build = self.builds[frame] = _FrameBuild(frame, self.out.first_frame + len(self.builds))
            self.numbered.append(build)
            self.control(build, build.start)
        return build

    def control(self, build: _FrameBuild, state: State) -> int:
        found = build.controls.get(state)
        if found is None:
            n = len(self.stays)
            if n >= self.limits.states:
                raise LimitExceeded("states", self.limits.states, n + 1, "explore", pointer=self.costliest())
            found = build.controls[state] = self.out.first_control + n
            self.stays.append([])
            self.calls.append([])
            self.out.verdict.append(-1)
            self.out.frame.append(build.number)
            self.work.append((build, state, n))
        return found

    def run(self) -> None:
        ticks = 0
        while self.work:
            build, state, n = self.work.pop()
            ticks += 1
            if self.deadline is not None and ticks % 256 == 0 and now() > self.deadline:
                raise out_of_time(self.limits.compile_seconds, self.deadline, "explore", self.costliest())
            self.expand(build, state, n)

    def costliest(self) -> str:
        """The pointer under which most states were made."""
        states: Counter[str] = Counter()
        for b in self.builds.values():
            states[b.frame.pointer] += len(b.controls)
        return max(states, key=states.__getitem__)

    def expand(self, build: _FrameBuild, state: State, n: int) -> None:
        verdict = build.frame.verdict(state)
        if verdict is not None:
            self.out.verdict[n] = self.verdict_number(build, verdict)
        for t in build.frame.transitions(state):
            if isinstance(t, Stay):
                self.stays[n].append((t.low, t.high, self.control(build, t.state)))
            elif isinstance(t, Call):
                self.calls[n].append((self.symbol(build, t), t))
            else:
                self.also.setdefault(n, []).append(self.control(build, t.state))

    def verdict_number(self, build: _FrameBuild, verdict: Hashable) -> int:
        number = build.verdicts.get(verdict)
        if number is None:
            number = build.verdicts[verdict] = len(build.verdicts)
            for caller, continuation, symbol in list(build.callers):
                self.resume(self.numbered[caller], continuation, symbol, verdict, number)
        return number

    def symbol(self, build: _FrameBuild, call: Call) -> int:
        if call.at is not None:
            self.control(self.enter(call.frame), call.at)
        key = (build.number, call.continuation, call.frame)
        found = self.symbols.get(key)
        if found is not None:
            return found
        s = self.symbols[key] = len(self.returns)
        self.returns.append({})
        self.symbol_frames.append((build.number, call.frame))
        if isinstance(call.frame, External):
            for v in range(self.external(call.frame)[2]):
                self.resume(build, call.continuation, s, v, v)
        else:
            callee = self.enter(call.frame)
            callee.callers.append((build.number - self.out.first_frame, call.continuation, s))
            for verdict, number in list(callee.verdicts.items()):
                self.resume(build, call.continuation, s, verdict, number)
        return s

    def resume(self, caller: _FrameBuild, continuation: Hashable, symbol: int, verdict: Hashable, number: int) -> None:
        state = caller.frame.resume(continuation, verdict)
        if state is not None:
            self.returns[symbol][number] = self.control(caller, state)

    def external(self, frame: External) -> tuple[int, int, int]:
        """Its control, frame and number of verdicts in the base."""
        known = self.externals.get(frame)
        if known is None:
            assert self.base is not None, "an external frame needs a base"
            entry = self.base.entries.get(frame.entry)
            if entry is None:
                message = f"the vocabulary has no tokens for the bytes that {frame.entry!r} needs"
                raise CompileError(Diagnostic(Code.VOCABULARY_INCOMPLETE, message, detail={"frame": frame.entry}))
            number = self.base.frame_of(entry)
            known = self.externals[frame] = entry, number, self.base.frame_info(number).verdicts
        return known

    # -- materialising -------------------------------------------------------------------------------------------

    def finish(
        self,
        start: int | None = None,
        accepting: frozenset[int] = frozenset({0}),
        entries: dict[str, int] | None = None,
    ) -> ByteAutomaton:
        out = self.out
        out.start, out.accepting_verdicts, out.entries = start, accepting, entries or {}
        out.frames = [FrameInfo(b.frame.name, b.frame.pointer, max(1, len(b.verdicts))) for b in self.builds.values()]
        self.moves = [Move(c) for c in range(out.first_control, out.first_control + len(self.stays))]
        for (caller, callee), returns in zip(self.symbol_frames, self.returns, strict=True):
            number, verdicts = self.callee_of(callee)
            moves = tuple([self.stay(returns[v]) if v in returns else None for v in range(verdicts)])
            out.symbols.append(Symbol(caller, number, moves))
        out.edges = [self.edges_of(out.first_control + n) for n in range(len(self.stays))]
        return out

    def stay(self, control: int) -> Move:
        """One object for equal moves: later passes go by identity."""
        return self.moves[control - self.out.first_control]

    def callee_of(self, frame: Frame) -> tuple[int, int]:
        if isinstance(frame, External):
            return self.external(frame)[1:]
        build = self.builds[frame]
        if self.out.verdict[build.controls[build.start] - self.out.first_control] >= 0:
            raise ValueError(f"frame {frame.name} is called and its start state accepts")
        return build.number, max(1, len(build.verdicts))

    def edges_of(self, control: int, chain: tuple[int, ...] = ()) -> tuple[Edge, ...]:
        """The control's edges, calls resolved to their callee's state after the first byte."""
        known = self.edges.get(control)
        if known is not None:
            return known
        if control in chain:
            raise ValueError("a frame calls itself before it consumes a byte")
        n, chain = control - self.out.first_control, (*chain, control)
        found = [Edge(low, high, self.stay(target)) for low, high, target in self.stays[n]]
        for other in self.also.get(n, ()):
            found += self.edges_of(other, chain)
        found.sort(key=_first_byte)
        taken = found[:]
        for symbol, call in self.calls[n]:
            entered = self.call(symbol, call, chain)
            if taken or call.first is not None:
                free = _without(ALL_BYTES if call.first is None else call.first, taken)
                found += _within(entered, free)
            else:
                found += entered
        if self.calls[n]:
            found.sort(key=_first_byte)
        for one, two in itertools.pairwise(found):
            if two[0] <= one[1]:
                raise ValueError(f"control {control}: two transitions share byte {two.low}")
        self.edges[control] = out = tuple(found)
        return out

    def call(self, symbol: int, call: Call, chain: tuple[int, ...]) -> tuple[Edge, ...]:
        """The edges of the state that a call enters, on top of the call's symbol."""
        entry = self.entry_of(call)
        known = self.entered.get((symbol, entry))
        if known is None:
            edges = self.edges_of(entry, chain) if entry >= self.out.first_control else self.out.edges_of(entry)
            low, high, moves = zip(*edges, strict=True) if edges else ((), (), ())
            s, objects = self.out.first_symbol + symbol, {id(m): m for m in moves}
            pushed = {i: Move(m.target, (s, *m.pushes)) for i, m in objects.items()}
            known = self.entered[symbol, entry] = tuple(make_edges(low, high, [pushed[id(m)] for m in moves]))
        return known

    def entry_of(self, call: Call) -> int:
        """The control that a call enters."""
        if isinstance(call.frame, External):
            return self.external(call.frame)[0]
        build = self.builds[call.frame]
        return build.controls[build.start if call.at is None else call.at]


_first_byte = itemgetter(0)
ALL_BYTES: Ranges = ((0, 255),)


def _without(ranges: Ranges, taken: list[Edge]) -> list[tuple[int, int]]:
    """`ranges` less the taken ones, ascending; both are disjoint, `taken` ascends."""
    out = []
    for low, high in sorted(ranges):
        for a, b, _ in taken:
            if b < low or a > high:
                continue
            if a > low:
                out.append((low, a - 1))
            low = b + 1
        if low <= high:
            out.append((low, high))
    return out


def _within(edges: tuple[Edge, ...], ranges: list[tuple[int, int]]) -> list[Edge]:
    """The parts of edges that lie in the ranges; both ascend."""
    out = []
    at, n = 0, len(ranges)
    for edge in edges:
        low, high, move = edge
        while at < n and ranges[at][1] < low:
            at += 1
        k = at
        while k < n and ranges[k][0] <= high:
            a, b = ranges[k]
            out.append(edge if a <= low and high <= b else Edge(max(a, low), min(b, high), move))
            k += 1
    return out
