"""Boolean formulas over atoms, hash-consed: equal formulas of one `Space` are one object.

Everything that a schema says about one JSON value is such a formula. Reading the value rewrites it:
`Space.assign` replaces atoms by what became of them (true, false, or an atom with progress) and simplifies.
Simplification is cheap, not complete: constants, flattening, duplicates, complements, and units (in `a and (b
or not a)` the second `a` is known). Two formulas may be equivalent without being one object; that costs
states, never correctness.

`one` is "exactly one of the children holds" (`oneOf`); written out it would be quadratic. Negation is pushed
through `and` and `or` to atoms and `one` nodes.

Children are ordered by creation, so what is built from formulas doesn't depend on hashes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import IntEnum


class Kind(IntEnum):
    """`NOT` stands only before an atom or a `ONE`."""

    FALSE = 0
    TRUE = 1
    ATOM = 2
    NOT = 3
    AND = 4
    OR = 5
    ONE = 6


class Formula:
    """One node; `payload` is an atom's content."""

    __slots__ = ("_below", "args", "kind", "number", "payload")

    def __init__(
        self,
        kind: Kind,
        args: tuple[Formula, ...],
        payload: Hashable,
        below: tuple[Formula, ...],
        number: int,
    ) -> None:
        """`below`: the atoms below it."""
        self.kind, self.args, self.payload, self._below, self.number = kind, args, payload, below, number

    @property
    def atoms(self) -> tuple[Formula, ...]:
        """The atom nodes in it, by creation. An atom doesn't hold itself: reference counts free formulas."""
        return (self,) if self.kind is Kind.ATOM else self._below

    @property
    def constant(self) -> bool:
        return self.kind <= Kind.TRUE

    def __repr__(self) -> str:
        if self.constant:
            return self.kind.name.lower()
        if self.kind is Kind.ATOM:
            return str(self.payload)
        return f"{self.kind.name.lower()}({', '.join(map(repr, self.args))})"


TRUE = Formula(Kind.TRUE, (), None, (), 1)
FALSE = Formula(Kind.FALSE, (), None, (), 0)


def conjuncts(f: Formula) -> tuple[Formula, ...]:
    """What must hold, as a tuple: the parts of an `and`, nothing for true, else the formula itself."""
    if f.kind is Kind.AND:
        return f.args
    return () if f is TRUE else (f,)


def negated(f: Formula) -> set[Formula]:
    """The atoms that stand under a `not` or a `one`."""
    found: set[Formula] = set()
    parts, seen = [f], {f}
    while parts:
        part = parts.pop()
        if part.kind in (Kind.NOT, Kind.ONE):
            found.update(part.atoms)
        else:
            parts.extend(arg for arg in part.args if arg not in seen)
            seen.update(part.args)
    return found


def constant(value: bool) -> Formula:
    return TRUE if value else FALSE


def _number(f: Formula) -> int:
    return f.number


class Space:
    """The table of all formulas of one compilation."""

    def __init__(self) -> None:
        self._table: dict[tuple[Kind, Hashable], Formula] = {}
        self._negations: dict[Formula, Formula] = {TRUE: FALSE, FALSE: TRUE}
        self._count = 2

    def atom(self, payload: Hashable) -> Formula:
        return self._node(Kind.ATOM, (), payload)

    def negate(self, f: Formula) -> Formula:
        found = self._negations.get(f)
        if found is None:
            if f.kind is Kind.AND:
                found = self.any(self.negate(a) for a in f.args)
            elif f.kind is Kind.OR:
                found = self.all(self.negate(a) for a in f.args)
            else:
                found = self._node(Kind.NOT, (f,), None)
            self._negations[f] = found
            self._negations[found] = f
        return found

    def all(self, parts: Iterable[Formula]) -> Formula:
        return self._join(Kind.AND, parts, FALSE, TRUE)

    def any(self, parts: Iterable[Formula]) -> Formula:
        return self._join(Kind.OR, parts, TRUE, FALSE)

    def one(self, parts: Iterable[Formula]) -> Formula:
        """Exactly one of the parts (counted with repetition) holds."""
        times: dict[Formula, int] = {}
        for p in parts:
            if p is not FALSE:
                times[p] = times.get(p, 0) + 1
        known = times.pop(TRUE, 0)
        twice = [p for p, n in times.items() if n > 1]
        rest = [p for p, n in times.items() if n == 1]
        if known > 1:
            return FALSE
        if known == 1:
            return self.all(self.negate(p) for p in (*twice, *rest))
        pair = next((p for p in rest if times.get(self.negate(p)) == 1), None)
        if pair is not None:
            return self.all(self.negate(p) for p in times if p is not pair and p is not self.negate(pair))
        if not rest:
            return FALSE
        single = rest[0] if len(rest) == 1 else self._node(Kind.ONE, tuple(sorted(rest, key=_number)), None)
        return self.all([single, *(self.negate(p) for p in twice)])

    def assign(self, f: Formula, what: Mapping[Formula, Formula]) -> Formula:
        """f with atoms replaced. Cost: linear in the parts of f that hold such atoms."""
        return self._assign(f, what, {})

    # -- building ----------------------------------------------------------------------------------

    def _assign(self, f: Formula, what: Mapping[Formula, Formula], done: dict[Formula, Formula]) -> Formula:
        if f.kind is Kind.ATOM:
            return what.get(f, f)
        found = done.get(f)
        if found is not None:
            return found
        if not any(a in what for a in f.atoms):
            return f
        if f.kind is Kind.NOT:
            out = self.negate(self._assign(f.args[0], what, done))
        else:
            parts = [self._assign(a, what, done) for a in f.args]
            out = self.all(parts) if f.kind is Kind.AND else self.any(parts) if f.kind is Kind.OR else self.one(parts)
        done[f] = out
        return out

    def _join(self, kind: Kind, parts: Iterable[Formula], zero: Formula, unit: Formula) -> Formula:
        found: dict[Formula, None] = {}
        for p in parts:
            for q in p.args if p.kind is kind else (p,):
                if q is zero:
                    return zero
                if q is not unit:
                    found[q] = None
        if len(found) > 1:
            again = self._propagate(found, zero)
            if again is not None:
                return self._join(kind, again, zero, unit)
            if any(q.kind is not Kind.ATOM and self.negate(q) in found for q in found):
                return zero
        if not found:
            return unit
        if len(found) == 1:
            return next(iter(found))
        return self._node(kind, tuple(sorted(found, key=_number)), None)

    def _propagate(self, found: dict[Formula, None], zero: Formula) -> list[Formula] | None:
        """The parts with the atoms that stand alone among them replaced elsewhere; None when nothing
        changes."""
        composite = [q for q in found if q.kind > Kind.NOT or (q.kind is Kind.NOT and q.args[0].kind is Kind.ONE)]
        if not composite:
            return None
        holds, fails = (TRUE, FALSE) if zero is FALSE else (FALSE, TRUE)
        units: dict[Formula, Formula] = {}
        for q in found:
            if q.kind is Kind.ATOM:
                units[q] = holds
            elif q.kind is Kind.NOT and q.args[0].kind is Kind.ATOM:
                units[q.args[0]] = fails
        if not units:
            return None
        out = [self.assign(q, units) if q.kind > Kind.NOT or q.args else q for q in composite]
        if all(a is b for a, b in zip(out, composite, strict=True)):
            return None
        kept = set(composite)
        return [*(q for q in found if q not in kept), *out]

    def _node(self, kind: Kind, args: tuple[Formula, ...], payload: Hashable) -> Formula:
        key: tuple[Kind, Hashable] = (kind, payload if kind is Kind.ATOM else args)
        found = self._table.get(key)
        if found is None:
            if len(args) == 1:
                atoms = args[0].atoms
            else:
                atoms = tuple(sorted({a for f in args for a in f.atoms}, key=_number))
            found = self._table[key] = Formula(kind, args, payload, atoms, self._count)
            self._count += 1
        return found
