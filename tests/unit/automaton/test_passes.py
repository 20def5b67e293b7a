"""Exploration, specialising, minimising and cutting, on frames small enough to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from maskwright.compiler.automaton.explore import Call, External, Stay, explore, explore_library
from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, Move, Symbol, accepts, show, verify
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.automaton.spell import ALL, cut_unspellable
from maskwright.compiler.diagnostics import Code, CompileError, LimitExceeded
from maskwright.compiler.options import Limits

OPEN, CLOSE, A, COMMA = b"[]a,"


@dataclass(frozen=True)
class Brackets:
    """`[x,x]` where x is `a` or brackets; `turn` makes copies of the frame that mean the same."""

    turn: int = 0
    name: str = "brackets"
    pointer: str = "/b"

    def start(self) -> str:
        return "start"

    def transitions(self, state: str) -> Iterable[Stay | Call]:
        if state == "start":
            yield Stay(OPEN, OPEN, "first")
        if state == "first":
            yield Stay(CLOSE, CLOSE, "end")
        if state in ("first", "next"):
            yield Stay(A, A, "after")
            yield Call(Brackets((self.turn + 1) % 3), "item")
        if state == "after":
            yield Stay(COMMA, COMMA, "next")
            yield Stay(CLOSE, CLOSE, "end")

    def verdict(self, state: str) -> bool | None:
        return True if state == "end" else None

    def resume(self, continuation: str, verdict: bool) -> str:
        return "after"


@dataclass(frozen=True)
class Judged:
    """Calls a frame that ends with verdict "x" or "y" and can go on only after "x"."""

    name: str = "judged"
    pointer: str = ""
    inner: bool = False

    def start(self) -> str:
        return "start"

    def transitions(self, state: str) -> Iterable[Stay | Call]:
        if self.inner:
            if state == "start":
                yield Stay(A, A, "a")
            if state == "a":
                yield Stay(ord("x"), ord("x"), "x")
                yield Stay(ord("y"), ord("y"), "y")
        elif state == "start":
            yield Call(Judged(inner=True), "back")

    def verdict(self, state: str) -> str | None:
        if self.inner:
            return state if state in ("x", "y") else None
        return "held" if state == "done" else None

    def resume(self, continuation: str, verdict: str) -> str | None:
        return "done" if verdict == "x" else None


TEXTS = ["[]", "[a]", "[[a,a],a]", "[[]", "a", "[a,]", "[[],[[]]]", "", "[]]"]


def test_recursive_frames_keep_their_language_through_every_pass() -> None:
    raw = explore(Brackets())
    special = specialise(raw)
    small = minimise(special)
    for a in (raw, special, small):
        assert verify(a) == []
        assert [t for t in TEXTS if accepts(a, t.encode())] == ["[]", "[a]", "[[a,a],a]", "[[],[[]]]"]
    assert len(raw.frames) == 3
    assert len(small.frames) == 1, "the three copies are one frame"


def test_minimise_numbers_by_language_not_by_exploration() -> None:
    assert show(minimise(specialise(explore(Brackets(1))))) == show(minimise(specialise(explore(Brackets(2)))))


def test_a_called_frame_keeps_only_the_verdicts_its_caller_can_use() -> None:
    a = minimise(specialise(explore(Judged())))
    assert accepts(a, b"ax")
    assert not accepts(a, b"ay")
    assert not any(e.low == ord("y") for es in a.edges for e in es), "y leads nowhere, so it isn't offered"


@dataclass(frozen=True)
class Shapes:
    """Calls, by first byte, two frames that end alike but declare different verdicts, one of which is cut."""

    kind: str = "root"
    name: str = "shapes"
    pointer: str = ""

    def start(self) -> str:
        return "start"

    def transitions(self, state: str) -> Iterable[Stay | Call]:
        if self.kind == "root":
            if state == "start":
                yield Stay(OPEN, OPEN, "one")
                yield Stay(COMMA, COMMA, "two")
            if state in ("one", "two"):
                yield Call(Shapes(state), state)
        elif state == "start":
            if self.kind == "two":
                yield Stay(CLOSE, CLOSE, "y")
            yield Stay(A, A, "x")

    def verdict(self, state: str) -> str | None:
        if self.kind == "root":
            return "held" if state == "done" else None
        return state if state in ("x", "y") else None

    def resume(self, continuation: str, verdict: str) -> str | None:
        return "done" if verdict == "x" else None


def test_merged_frames_have_one_number_of_verdicts() -> None:
    raw = explore(Shapes())
    assert sorted(f.verdicts for f in raw.frames) == [1, 1, 2]
    a = minimise(specialise(raw))
    assert verify(a) == []
    assert len(a.frames) == 2
    assert accepts(a, b"[a") and accepts(a, b",a") and not accepts(a, b",]")


def test_an_empty_language_is_refused() -> None:
    with pytest.raises(CompileError) as refused:
        specialise(explore(Judged(), accepting=["never"]))
    assert refused.value.diagnostics[0].code is Code.UNSATISFIABLE


def test_limits_name_the_place() -> None:
    with pytest.raises(LimitExceeded) as refused:
        explore(Brackets(), limits=Limits(states=3))
    assert (refused.value.limit_name, refused.value.limit, refused.value.observed) == ("states", 3, 4)
    assert refused.value.diagnostics[0].pointer == "/b"
    with pytest.raises(LimitExceeded, match="frames"):
        explore(Brackets(), limits=Limits(frames=1))


def test_library_frames_are_called_not_copied() -> None:
    @dataclass(frozen=True)
    class Caller:
        name: str = "caller"
        pointer: str = ""

        def start(self) -> int:
            return 0

        def transitions(self, state: int) -> Iterable[Stay | Call]:
            if state == 0:
                yield Stay(A, A, 1)
            if state == 1:
                yield Call(External("brackets"), "back")

        def verdict(self, state: int) -> bool | None:
            return True if state == 2 else None

        def resume(self, continuation: str, verdict: int) -> int:
            return 2

    library = minimise(specialise(explore_library({"brackets": Brackets()})))
    a = minimise(specialise(explore(Caller(), library)))
    assert verify(a) == []
    assert len(a.edges) == 3
    assert accepts(a, b"a[a,[]]")
    assert not accepts(a, b"a")
    with pytest.raises(CompileError) as refused:
        explore(Caller(), minimise(specialise(explore_library({}))))
    assert refused.value.diagnostics[0].code is Code.VOCABULARY_INCOMPLETE


def test_bytes_without_a_token_are_cut() -> None:
    a = specialise(explore(Brackets()))
    same, notes = cut_unspellable(a, ALL)
    assert same is a
    assert notes == ()
    narrowed, notes = cut_unspellable(a, ALL & ~(1 << COMMA))
    assert [d.detail["bytes"] for d in notes] == [[COMMA]]
    assert accepts(narrowed, b"[[a]]")
    assert not accepts(narrowed, b"[a,a]")
    with pytest.raises(CompileError) as refused:
        cut_unspellable(a, ALL & ~(1 << CLOSE))
    assert refused.value.diagnostics[0].code is Code.VOCABULARY_INCOMPLETE
    assert refused.value.diagnostics[0].detail["bytes"] == [CLOSE]


def test_front_end_faults_are_named() -> None:
    @dataclass(frozen=True)
    class Loop(Brackets):
        def transitions(self, state: str) -> Iterable[Stay | Call]:
            yield Call(self, "again")

    with pytest.raises(ValueError, match="calls itself before it consumes a byte"):
        explore(Loop())

    @dataclass(frozen=True)
    class Twice(Brackets):
        def transitions(self, state: str) -> Iterable[Stay | Call]:
            yield Stay(OPEN, A, "end")
            yield Stay(A, A, "first")

    with pytest.raises(ValueError, match="share byte 97"):
        explore(Twice())


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda a: a.edges.__setitem__(0, (Edge(5, 4, Move(1)),)), "out of order"),
        (lambda a: a.edges.__setitem__(0, (Edge(0, 1, Move(99)),)), "no control 99"),
        (lambda a: a.edges.__setitem__(0, (Edge(0, 1, Move(1, (7,))),)), "no symbol 7"),
        (lambda a: a.frame.__setitem__(1, 44), "in no frame"),
        (lambda a: a.verdict.__setitem__(1, 9), "verdict its frame doesn't know"),
        (lambda a: a.symbols.__setitem__(0, Symbol(0, 1, ())), "has 0 returns"),
        (lambda a: a.symbols.__setitem__(0, Symbol(0, 77, ())), "names no frame"),
        (lambda a: setattr(a, "start", 1000), "start is no control"),
    ],
)
def test_the_verifier_finds_each_kind_of_fault(damage, fault: str) -> None:
    a: ByteAutomaton = explore(Brackets())
    damage(a)
    assert any(fault in found for found in verify(a)), verify(a)
