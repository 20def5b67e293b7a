"""Bounds on values whose schema has none: the options `default_max_length`, `default_max_items`, `default_max_digits`.

A bound is imposed where a frame is made, on what must hold for the value: texts are left out, and the verdict on every
text that's left is what it was, under `not` and `oneOf` too. It isn't imposed where what must hold bounds the value
already: a bound of its own, an enum, a pattern or format with a longest text, in every alternative. A minimum that
stands plainly lifts it, so that a bound alone makes no value impossible.

Arrays count by chunks and strings by the library's frames, so large bounds cost little; a string under a pattern costs
its states times the bound; an object costs about six states for each undeclared member that may come, so its bound is
at most `MOST_MEMBERS`; undeclared keys have at most `MOST_KEY` characters. Numbers bound each run of digits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from maskwright.compiler.options import CompileOptions
from maskwright.compiler.regular.members import longest_member
from maskwright.compiler.schema.atoms import (
    AtLeastItems,
    AtMostItems,
    Contains,
    Items,
    Key,
    Length,
    Matches,
    MemberCount,
    StringSet,
)
from maskwright.compiler.schema.formula import FALSE, Formula, Kind, Space, conjuncts
from maskwright.compiler.schema.numbers import split_digits
from maskwright.compiler.schema.tables import Table, tabulate

MOST_KEY = 64
MOST_MEMBERS = 256
_ZERO, _NINE = 0x30, 0x39


@dataclass(frozen=True, slots=True)
class AtMostOthers:
    """At most so many undeclared members."""

    count: int

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        if key.name is not None:
            return me
        return space.atom(AtMostOthers(self.count - 1)) if self.count else FALSE

    def submit(self, key: Key) -> tuple[Any, ...]:
        return ()

    def finish(self) -> bool:
        return True


class Bounds:
    """The bounds that the options impose."""

    def __init__(self, space: Space, options: CompileOptions) -> None:
        self.space, self.options = space, options
        self._bounded: dict[Formula, bool] = {}

    def impose(self, kind: str, must: Formula) -> Formula:
        """What must hold for a value of this kind, with its bound."""
        length, items = self.options.default_max_length, self.options.default_max_items
        if kind == "string" and length is not None and not self._is_bounded(must):
            return self.space.all([must, self.space.atom(Length(0, max(length, *_least(must))))])
        if kind == "array" and items is not None and not self._is_bounded(must):
            return self.space.all([must, self.space.atom(AtMostItems(max(items, *_least(must))))])
        if kind == "object" and items is not None and not self._is_bounded(must):
            count = max(min(items, MOST_MEMBERS), *_least(must))
            return self.space.all([must, self.space.atom(AtMostOthers(count))])
        return must

    @property
    def key(self) -> Formula | None:
        """What bounds an undeclared key."""
        length = self.options.default_max_length
        return None if length is None else self.space.atom(Length(0, min(length, MOST_KEY)))

    def number(self, table: Table, must: Formula, limit: int) -> Table:
        """A table of numbers with its runs of digits bounded. No bound of the schema's has more digits than it."""
        digits = self.options.default_max_digits
        if digits is None or _is_finite(table):
            return table
        return limit_digits(table, max(digits, *_digits(must)), limit)

    def _is_bounded(self, f: Formula) -> bool:
        found = self._bounded.get(f)
        if found is None:
            found = self._bounded[f] = self._judge(f)
        return found

    def _judge(self, f: Formula) -> bool:
        if f.kind is Kind.AND:
            return any(map(self._is_bounded, f.args))
        if f.kind in (Kind.OR, Kind.ONE):
            return all(map(self._is_bounded, f.args))
        if f.kind is Kind.NOT:
            return _bounds_below(f.args[0].payload)
        return f is FALSE or _bounds(f.payload)


def _bounds(atom: object) -> bool:
    """Whether a value that an atom holds for is bounded."""
    if isinstance(atom, Length):
        return atom.high is not None
    if isinstance(atom, Matches):
        return longest_member(atom.language if atom.possible is None else atom.possible) is not None
    if isinstance(atom, Items):
        return bool(atom.rest) and all(s.value is False for s in atom.rest)
    return isinstance(atom, StringSet | AtMostItems)


def _bounds_below(atom: object) -> bool:
    """Whether a value that an atom fails for is bounded."""
    if isinstance(atom, Length):
        return atom.high is None
    return isinstance(atom, AtLeastItems | MemberCount)


def _least(must: Formula) -> Iterator[int]:
    """What the value must have at least, as far as it's plain."""
    yield 0
    for c in conjuncts(must):
        if isinstance(c.payload, Length | Contains | MemberCount):
            yield c.payload.low
        elif isinstance(c.payload, AtLeastItems):
            yield c.payload.count


def _digits(must: Formula) -> Iterator[int]:
    """Digits of the schema's own numbers on either side of the point."""
    yield 0
    for atom in must.atoms:
        values: Any = getattr(atom.payload, "values", None) or [getattr(atom.payload, "bound", None)]
        for value in values:
            if isinstance(value, Decimal):
                yield from map(len, split_digits(abs(value)))


def _is_finite(table: Table) -> bool:
    """Whether the table has no cycle: by taking away states that nothing leads to (Kahn)."""
    incoming = [0] * len(table.rows)
    for row in table.rows:
        for _, _, t in row:
            incoming[t] += 1
    work = [s for s, n in enumerate(incoming) if not n]
    taken = 0
    while work:
        taken += 1
        for _, _, t in table.rows[work.pop()]:
            incoming[t] -= 1
            if not incoming[t]:
                work.append(t)
    return taken == len(table.rows)


def limit_digits(table: Table, most: int, limit: int) -> Table:
    """The table's texts without a run of more than `most` digits. Costs its states times the bound at worst."""

    def step(state: tuple[int, int]) -> Iterator[tuple[int, int, Hashable]]:
        at, run = state
        for low, high, target in table.rows[at]:
            for a, b, more in ((low, min(high, _ZERO - 1), 0), (max(low, _NINE + 1), high, 0)):
                if a <= b:
                    yield a, b, (target, more)
            a, b = max(low, _ZERO), min(high, _NINE)
            if a <= b and run < most:
                yield a, b, (target, run + 1)

    return tabulate((0, 0), step, lambda state: table.labels[state[0]], limit)
