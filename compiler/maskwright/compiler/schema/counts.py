"""Strings by their number of characters, without a state per character of a large bound.

Counts are digits on the stack. A *chunk* reads exactly 64 (or 4,096) characters and returns `FULL` at once,
or ends with the string's quote and returns `CLOSED`; what is left below 64 is read by `AtMostFrame`. So a
bound n costs about n/4,096 + 128 states of its own at worst, and the chunks are the library's. Characters of
several bytes are called (`char`), so a count costs one state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.automaton.explore import Call, External, Frame, Stay
from maskwright.compiler.automaton.ir import ByteAutomaton, step
from maskwright.compiler.schema.atoms import Length
from maskwright.compiler.schema.formula import TRUE, Formula, Space, constant
from maskwright.compiler.schema.strings import PLAIN, QUOTE, free_body
from maskwright.compiler.schema.tables import Table

CHUNK = 64
BIG = CHUNK * CHUNK
FULL, CLOSED = "full", "closed"


@dataclass(frozen=True, slots=True)
class Region:
    """So many lengths in a row (None: all that follow) with one verdict; None: the string can't have such a
    length."""

    size: int | None
    verdict: tuple[bool, ...] | None


def regions(space: Space, must: Formula, watched: tuple[Formula, ...]) -> list[Region] | None:
    """Verdicts by length when the formulas are about nothing else, else None. Ends where `must` stays
    false."""
    atoms = {a for f in (must, *watched) for a in f.atoms}
    if not all(isinstance(a.payload, Length) for a in atoms):
        return None
    cuts = {0}
    for a in atoms:
        cuts.add(a.payload.low)  # type: ignore[attr-defined]
        if a.payload.high is not None:  # type: ignore[attr-defined]
            cuts.add(a.payload.high + 1)  # type: ignore[attr-defined]
    starts = sorted(cuts)
    out: list[Region] = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        known = {a: constant(a.payload.contains(start)) for a in atoms}  # type: ignore[attr-defined]
        held = space.assign(must, known) is TRUE
        verdict = tuple(space.assign(w, known) is TRUE for w in watched) if held else None
        size = None if end is None else end - start
        if out and out[-1].verdict == verdict:
            before = out.pop().size
            size = None if size is None or before is None else before + size
        out.append(Region(size, verdict))
    if out[-1].verdict is None:
        out.pop()
    return out


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
    """At most so many characters and the quote. States: ("quote", n), n, "end"; both kinds of n are
    entries."""

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


class CharChunkFrame(_CharFrame):
    """Exactly `CHUNK` characters; with `closable` the string may also end before the last. States: n, FULL,
    CLOSED."""

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
        return None if isinstance(state, int) else state


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
        return None if isinstance(state, int) else state

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
    """A string judged by its length, as a program of steps. States: "quote", step number, ("end", verdict).

    Each step stands before some character and knows the verdict of ending there. The last region's steps end
    with a loop (no bound) or with `inside_at_most`.
    """

    def __init__(
        self,
        lengths: list[Region],
        shared: Callable[[str], Frame],
        closed: Callable[[Frame], Hashable],
        pointer: str,
    ) -> None:
        """`lengths` isn't empty. `shared` gives library frames by name, `closed` a chunk's verdict for an
        end."""
        self.name, self.pointer = "counted string", pointer
        self.wide = shared("char")
        self.steps: list[tuple[str, Frame | None, tuple[bool, ...] | None]] = []
        self.ends: dict[Frame, Hashable] = {}
        for i, region in enumerate(lengths):
            if region.size is None:
                self.steps.append(("loop", None, region.verdict))
                continue
            last = i == len(lengths) - 1
            self._add(region.size - last, region.verdict, shared, closed, last)

    def _add(
        self,
        size: int,
        verdict: tuple[bool, ...] | None,
        shared: Callable[[str], Frame],
        closed: Callable[[Frame], Hashable],
        last: bool,
    ) -> None:
        kind = "exact" if verdict is None else "chunk"
        for count, times in ((BIG, size // BIG), (CHUNK, size % BIG // CHUNK)):
            for _ in range(times):
                frame = shared(f"{kind}:{count}")
                self.steps.append((kind, frame, verdict))
                if verdict is not None:
                    self.ends.setdefault(frame, closed(frame))
        rest = size % CHUNK
        if last:
            self.steps.append(("tail", shared(f"inside_at_most:{rest}"), verdict))
        else:
            self.steps += [("char", None, verdict)] * rest

    def start(self) -> Hashable:
        return "quote"

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        if state == "quote":
            yield Stay(QUOTE, QUOTE, 0)
        elif isinstance(state, int):
            kind, frame, verdict = self.steps[state]
            if frame is not None:
                yield Call(frame, ("step", state))
                return
            if verdict is not None:
                yield Stay(QUOTE, QUOTE, ("end", verdict))
            yield from _one_char(self.wide, state if kind == "loop" else state + 1)

    def verdict(self, state: Any) -> Hashable | None:
        return state[1] if isinstance(state, tuple) and state[0] == "end" else None

    def resume(self, continuation: Any, verdict: Any) -> Hashable:
        if not isinstance(continuation, tuple):
            state: Hashable = continuation
            return state
        at: int = continuation[1]
        kind, frame, end = self.steps[at]
        if kind == "tail" or (kind == "chunk" and frame is not None and self.ends[frame] == verdict):
            return ("end", end)
        return at + 1
