"""Languages of JSON numbers: atoms, and the table that judges a text by a product of them.

A bound or a multiple can't be judged on texts with an exponent (the set isn't regular), so where any atom is
judged the texts are `-? int (. digits)?`. Atoms are exact on those: values are compared digit by digit, never
as floats. `Integer` asks for no fraction in the text; where it is judged, texts with a fraction of zeros only
(`1.0`) are left out, so that its verdict is right under negation as well.

Bounds read the digits against the bound's digits: as long as all are equal nothing is known; the first
difference decides, provided that the integer parts have the same length; else the longer is the larger in
magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.schema.formula import Formula, Space, constant
from maskwright.compiler.schema.keywords import MAX_DIVISOR, fraction_places, shortest
from maskwright.compiler.schema.tables import Table, tabulate

MAX_DIGITS = 400


@dataclass(frozen=True, slots=True)
class Integer:
    """The text has no fraction and no exponent."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    bound: Decimal


@dataclass(frozen=True, slots=True)
class MoreThan:
    bound: Decimal


@dataclass(frozen=True, slots=True)
class MultipleOf:
    divisor: Decimal


@dataclass(frozen=True, slots=True)
class NumberSet:
    values: frozenset[Decimal]


class _Scanner(Protocol):
    """Reads sign, digits and point one character at a time."""

    def start(self) -> Hashable: ...
    def step(self, state: Any, char: str) -> Any: ...
    def holds(self, state: Any) -> bool | None: ...


class _FractionScanner:
    """Whether there's a fraction: none, zeros only (no verdict: the text is left out), or another."""

    def start(self) -> Hashable:
        return "none"

    def step(self, state: str, char: str) -> Hashable:
        if state == "none":
            return "zeros" if char == "." else "none"
        return "some" if char != "0" else state

    def holds(self, state: str) -> bool | None:
        return None if state == "zeros" else state == "none"


class _CompareScanner:
    """Compares with a bound. States: ("sign",), (sign, digits read, relation so far), (sign, "f", place),
    ("is", relation)."""

    def __init__(self, bound: Decimal, strict: bool) -> None:
        self.negative = bound < 0
        self.zero = bound == 0
        self.whole, self.fraction = split_digits(bound.copy_abs())
        self.strict = strict

    def start(self) -> Hashable:
        return ("sign",)

    def step(self, state: Any, char: str) -> Any:
        if state[0] == "is":
            return state
        if state[0] == "sign":
            state = (-1 if char == "-" else 1, 0, 0)
            if state[0] > 0 and self.negative:
                return ("is", 1)
            if state[0] < 0 and not self.negative and not self.zero:
                return ("is", -1)
            if char == "-":
                return state
        sign = state[0]
        if state[1] == "f":
            return self._fraction(sign, state[2], char)
        _, read, relation = state
        if char == ".":
            magnitude = -1 if read < len(self.whole) else relation
            return ("is", sign * magnitude) if magnitude else (sign, "f", 0)
        if read == len(self.whole):
            return ("is", sign)
        if relation == 0:
            relation = (char > self.whole[read]) - (char < self.whole[read])
        return (sign, read + 1, relation)

    def _fraction(self, sign: int, place: int, char: str) -> Any:
        digit = self.fraction[place] if place < len(self.fraction) else "0"
        if char != digit:
            return ("is", sign if char > digit else -sign)
        return (sign, "f", min(place + 1, len(self.fraction)))

    def relation(self, state: Any) -> int:
        if state[0] == "is":
            return int(state[1])
        if state[0] == "sign":
            return 0
        if state[1] == "f":
            return -int(state[0]) if state[2] < len(self.fraction) else 0
        sign, read, relation = state
        magnitude = -1 if read < len(self.whole) else relation or (-1 if self.fraction else 0)
        return int(sign * magnitude)

    def holds(self, state: Any) -> bool | None:
        return self.relation(state) > 0 if self.strict else self.relation(state) >= 0


class _MultipleScanner:
    """The remainder of the digits by the divisor scaled to an integer. States: (remainder, fraction places)
    or None."""

    def __init__(self, divisor: Decimal) -> None:
        self.places, self.modulus = fraction_places(divisor), remainders(divisor)

    def start(self) -> Hashable:
        return (0, -1)

    def step(self, state: Any, char: str) -> Any:
        if state is None or char == "-":
            return state
        remainder, places = state
        if char == ".":
            return (remainder, 0)
        if places == self.places:
            return state if char == "0" else None
        return ((remainder * 10 + int(char)) % self.modulus, places + 1 if places >= 0 else -1)

    def holds(self, state: Any) -> bool | None:
        if state is None:
            return False
        remainder, places = state
        return bool(remainder * 10 ** (self.places - max(places, 0)) % self.modulus == 0)


def remainders(divisor: Decimal) -> int:
    """By how many remainders multiples of a positive number are told: the divisor scaled to an integer."""
    _, digits, exponent = shortest(divisor).as_tuple()
    assert isinstance(exponent, int)
    scale: int = 10 ** min(max(0, exponent), MAX_DIGITS)
    return int("".join(map(str, digits))) * scale


class _SetScanner:
    """Membership by value. States: the text so far while it begins a member's text, ("pad", value) past it,
    or None."""

    def __init__(self, values: frozenset[Decimal]) -> None:
        self.values = values
        texts = {plain_text(v) for v in values} | ({"-0"} if Decimal(0) in values else set())
        self.prefixes = {t[:i] for t in texts for i in range(len(t) + 1)}

    def start(self) -> Hashable:
        return ""

    def step(self, state: Any, char: str) -> Any:
        if state is None:
            return None
        if isinstance(state, tuple):
            return state if char == "0" else None
        text = state + char
        if text in self.prefixes:
            return text
        if char == "." and state and Decimal(state) in self.values:
            return ("pad", state)
        if char == "0" and "." in state and Decimal(state) in self.values:
            return ("pad", state)
        return None

    def holds(self, state: Any) -> bool | None:
        if state is None:
            return False
        text = state[1] if isinstance(state, tuple) else state
        return text not in ("", "-") and Decimal(text) in self.values


def split_digits(value: Decimal) -> tuple[str, str]:
    """Digits of the integer part and of the fraction without trailing zeros; value >= 0."""
    whole, _, fraction = plain_text(value).partition(".")
    return whole, fraction


def plain_text(value: Decimal) -> str:
    """The shortest spelling without exponent. Raises LimitExceeded for more than MAX_DIGITS digits."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    size = len(digits) + abs(exponent)
    if value and size > MAX_DIGITS:
        raise LimitExceeded("number_digits", MAX_DIGITS, size, "numbers")
    text = format(value, "f") if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scanner(payload: Hashable) -> _Scanner:
    """What reads an atom. Raises LimitExceeded for a divisor with more than MAX_DIVISOR remainders."""
    if isinstance(payload, Integer):
        return _FractionScanner()
    if isinstance(payload, AtLeast | MoreThan):
        return _CompareScanner(payload.bound, isinstance(payload, MoreThan))
    if isinstance(payload, NumberSet):
        return _SetScanner(payload.values)
    assert isinstance(payload, MultipleOf)
    out = _MultipleScanner(payload.divisor)
    if out.modulus > MAX_DIVISOR:
        raise LimitExceeded("multiple_of", MAX_DIVISOR, out.modulus, "numbers")
    return out


# Grammar without exponent: "" start, "-" sign, "0" a leading zero, "1" integer digits, "." the point, "f"
# fraction.
_GRAMMAR: dict[str, Callable[[str], str | None]] = {
    "": lambda c: {"-": "-", "0": "0"}.get(c, None if c == "." else "1"),
    "-": lambda c: {"0": "0"}.get(c, None if c in "-." else "1"),
    "0": lambda c: "." if c == "." else None,
    "1": lambda c: "." if c == "." else None if c == "-" else "1",
    ".": lambda c: None if c in "-." else "f",
    "f": lambda c: None if c in "-." else "f",
}
_ENDS = frozenset("01f")


def judge_numbers(
    space: Space, must: Formula, watched: tuple[Formula, ...], pointer: str = "", limit: int = 200_000
) -> Table:
    """The table of number texts for which `must` holds; labels are tuples of the watched formulas' values."""
    atoms = sorted({a for f in (must, *watched) for a in f.atoms}, key=lambda a: a.number)
    scanners = [scanner(a.payload) for a in atoms]

    def step(state: tuple[str, tuple[Hashable, ...]]) -> Iterator[tuple[int, int, Hashable]]:
        grammar, parts = state
        for char in "-.0123456789":
            target = _GRAMMAR[grammar](char)
            if target is not None:
                moved = tuple(s.step(p, char) for s, p in zip(scanners, parts, strict=True))
                yield ord(char), ord(char), (target, moved)

    def label(state: tuple[str, tuple[Hashable, ...]]) -> Hashable | None:
        if state[0] not in _ENDS:
            return None
        found = [s.holds(p) for s, p in zip(scanners, state[1], strict=True)]
        if None in found:
            return None
        return evaluate(space, must, watched, {a: constant(bool(h)) for a, h in zip(atoms, found, strict=True)})

    return tabulate(("", tuple(s.start() for s in scanners)), step, label, limit, pointer)


def evaluate(
    space: Space, must: Formula, watched: tuple[Formula, ...], known: dict[Formula, Formula]
) -> tuple[bool, ...] | None:
    """The watched formulas' values once every atom is known; None when `must` doesn't hold."""
    if not space.assign(must, known).kind:
        return None
    return tuple(bool(space.assign(w, known).kind) for w in watched)


NUMBER_TEXT = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"


def free_number() -> Table:
    """JSON's whole number grammar."""
    digits, nonzero = (0x30, 0x39), (0x31, 0x39)
    end = ()
    rows: list[list[tuple[int, int, int]]] = [
        [(0x2D, 0x2D, 1), (0x30, 0x30, 2), (*nonzero, 3)],
        [(0x30, 0x30, 2), (*nonzero, 3)],
        [(0x2E, 0x2E, 4), (0x45, 0x45, 6), (0x65, 0x65, 6)],
        [(0x2E, 0x2E, 4), (*digits, 3), (0x45, 0x45, 6), (0x65, 0x65, 6)],
        [(*digits, 5)],
        [(*digits, 5), (0x45, 0x45, 6), (0x65, 0x65, 6)],
        [(0x2B, 0x2B, 7), (0x2D, 0x2D, 7), (*digits, 8)],
        [(*digits, 8)],
        [(*digits, 8)],
    ]
    return Table(tuple(map(tuple, rows)), (None, None, end, end, None, end, None, None, end))
