"""Strings by their number of characters, without a state per character of a large bound.

Counts are digits on the stack. A *chunk* reads exactly 256 (or 65,536) characters and returns `FULL` at once, or ends with
the string's quote and returns `CLOSED`; what is left below 256 is read by `AtMostFrame`. So a bound n costs about
n/65,536 + 256 states of its own at worst, and the chunks are the library's. Characters of several bytes are called
(`char`), so a count costs one state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from maskwright.compiler.automaton.explore import Call, External, Frame, Stay
from maskwright.compiler.automaton.ir import ByteAutomaton, step
from maskwright.compiler.schema.atoms import Length
from maskwright.compiler.schema.formula import Formula, Kind, conjuncts
from maskwright.compiler.schema.strings import QUOTE, free_body
from maskwright.compiler.schema.tables import Table

PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
"""Characters that stand for themselves in one byte."""
CHUNK = 256
BIG = CHUNK * CHUNK
FULL, CLOSED = "full", "closed"


def lengths(must: Formula) -> tuple[int, int | None] | None:
    """The range of lengths when `must` is a conjunction of lengths alone (a lower bound may be a negated upper one)."""
    low, high = 0, None
    for c in conjuncts(must):
        payload = c.args[0].payload if c.kind is Kind.NOT else c.payload
        if not isinstance(payload, Length):
            return None
        bounds = _negated(payload) if c.kind is Kind.NOT else (payload.low, payload.high)
        if bounds is None:
            return None
        low = max(low, bounds[0])
        high = bounds[1] if high is None else high if bounds[1] is None else min(high, bounds[1])
    return low, high


def _negated(length: Length) -> tuple[int, int | None] | None:
    if length.high is None:
        return (0, length.low - 1) if length.low else None
    return None if length.low else (length.high + 1, None)


def wide_char() -> Table:
    """One character that takes more than one byte: an escape, or a UTF-8 sequence of two to four bytes."""
    body = free_body(False)
    start = [(a, b, t) for a, b, t in body.transitions[0] if (a, b) not in PLAIN]
    back = body.n_states
    inner = [tuple((a, b, t or back) for a, b, t in row) for row in body.transitions[1:]]
    return Table((tuple(start), *inner, ()), (*([None] * back), ()))


def _one_char(wide: Frame, after: Hashable) -> Iterable[Stay | Call]:
    for low, high in PLAIN:
        yield Stay(low, high, after)
    yield Call(wide, after)


class _CharFrame:
    """Frames over counts: a continuation is the state to go on in."""

    name, pointer = "string", ""

    def resume(self, continuation: Any, verdict: Any) -> Hashable:
        state: Hashable = continuation
        return state


class AtMostFrame(_CharFrame):
    """At most so many characters and the quote. States: ("quote", n), n, "end"; both kinds of n are entries."""

    def __init__(self, most: int, wide: Frame) -> None:
        self.name, self.most, self.wide = f"at most {most}", most, wide

    def start(self) -> Hashable:
        return ("quote", self.most)

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        if isinstance(state, tuple):
            yield Stay(QUOTE, QUOTE, state[1])
        elif state != "end":
            yield Stay(QUOTE, QUOTE, "end")
            if state:
                yield from _one_char(self.wide, state - 1)

    def verdict(self, state: Any) -> Hashable | None:
        return () if state == "end" else None


class InsideAtMostFrame(AtMostFrame):
    """As `AtMostFrame`, entered after the quote."""

    def start(self) -> Hashable:
        return self.most


class ChunkFrame(_CharFrame):
    """Exactly `CHUNK` characters; with `closable` the string may also end before the last. States: n, FULL, CLOSED."""

    def __init__(self, closable: bool, wide: Frame) -> None:
        self.name, self.closable, self.wide = "chunk" if closable else "exact chunk", closable, wide

    def start(self) -> Hashable:
        return 0

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        if isinstance(state, int):
            yield from _one_char(self.wide, state + 1 if state + 1 < CHUNK else FULL)
            if self.closable:
                yield Stay(QUOTE, QUOTE, CLOSED)

    def verdict(self, state: Any) -> Hashable | None:
        return None if isinstance(state, int) else state  # type: ignore[no-any-return]


class BigChunkFrame(_CharFrame):
    """`CHUNK` chunks, with the same verdicts. States: n, FULL, CLOSED."""

    def __init__(self, chunk: Frame, closed: Hashable) -> None:
        """`closed` is the chunk's verdict for an end of the string."""
        self.name, self.chunk, self.closed = f"big {chunk.name}", chunk, closed

    def start(self) -> Hashable:
        return 0

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        return [Call(self.chunk, state)] if isinstance(state, int) else []

    def verdict(self, state: Any) -> Hashable | None:
        return None if isinstance(state, int) else state  # type: ignore[no-any-return]

    def resume(self, continuation: int, verdict: Any) -> Hashable:
        if verdict == self.closed:
            return CLOSED
        return continuation + 1 if continuation + 1 < CHUNK else FULL


def closed_verdict(frame: Frame, library: ByteAutomaton | None) -> Hashable:
    """A chunk's verdict for an end of the string: a library's frame numbers its verdicts, so it's asked."""
    if not isinstance(frame, External):
        return CLOSED
    assert library is not None
    config = step(library, (library.entries[frame.entry], ()), QUOTE)
    return library.verdict_of(config[0]) if config is not None else CLOSED


class CountedFrame(_CharFrame):
    """From `low` to `high` characters (None: no bound), as a program of steps. States: "quote", step number, "end"."""

    def __init__(
        self,
        low: int,
        high: int | None,
        shared: Callable[[str], Frame],
        closed: Callable[[Frame], Hashable],
        pointer: str,
    ) -> None:
        """`shared` gives library frames by name, `closed` a chunk's verdict for the string's end."""
        self.name, self.pointer = f"string {low}..{'' if high is None else high}", pointer
        self.wide = shared("char")
        exact = [(f"exact:{BIG}", low // BIG), (f"exact:{CHUNK}", low % BIG // CHUNK)]
        self.steps: list[Frame | None] = [shared(name) for name, times in exact for _ in range(times)]
        self.steps += [None] * (low % CHUNK)
        self.free = len(self.steps) if high is None else -1
        self.ends: dict[Frame, Hashable] = {}
        if high is not None:
            left = high - low
            chunks = [(f"chunk:{BIG}", left // BIG), (f"chunk:{CHUNK}", left % BIG // CHUNK)]
            found = [shared(name) for name, times in chunks for _ in range(times)]
            self.ends = {frame: closed(frame) for frame in found}
            self.steps += found
            self.steps.append(shared(f"inside_at_most:{left % CHUNK}"))

    def start(self) -> Hashable:
        return "quote"

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        if state == "quote":
            yield Stay(QUOTE, QUOTE, 0)
        elif state == self.free:
            yield Stay(QUOTE, QUOTE, "end")
            yield from _one_char(self.wide, state)
        elif isinstance(state, int):
            frame = self.steps[state]
            if frame is None:
                yield from _one_char(self.wide, state + 1)
            else:
                yield Call(frame, ("step", state))

    def verdict(self, state: Any) -> Hashable | None:
        return () if state == "end" else None

    def resume(self, continuation: Any, verdict: Any) -> Hashable:
        if not isinstance(continuation, tuple):
            state: Hashable = continuation
            return state
        at: int = continuation[1]
        if self.free < 0 and at == len(self.steps) - 1:
            return "end"
        frame = self.steps[at]
        return "end" if frame in self.ends and self.ends[frame] == verdict else at + 1
