"""What one member's value has to satisfy, and what the container learns from it.

A container's state is a tuple of formulas: the first must hold in the end, the others are watched. When a
member's value starts, atoms submit formulas about it (`Submission`). `plan` makes a goal of them:

-   `must` is an upper bound of what the container's own first formula asks of the value, by polarity: if the
    value fails
    it, no outcome can be completed. So `anyOf` over one key's enums lets only their union through.
-   submissions that `must` doesn't imply are watched: the value's frame hands back which of them held.

`Plan.outcome` then gives what each atom became.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Kind, Space, conjuncts

Formulas = tuple[Formula, ...]


class Goal(NamedTuple):
    """A value is judged by `must` and `watched`, over `Holds` atoms; `schemas` give its property order."""

    must: Formula
    watched: Formulas
    schemas: tuple[Schema, ...]


ANYTHING = Goal(TRUE, (), ())


@dataclass(frozen=True, slots=True)
class Submission:
    """`atom` becomes `held` when `asked` holds for the value, else `failed`."""

    atom: Formula
    asked: Formula
    held: Formula
    failed: Formula
    schemas: tuple[Schema, ...]


class Plan:
    """A goal and what to do with its verdict; compared by identity."""

    __slots__ = ("goal", "sources", "submissions")

    def __init__(self, goal: Goal, submissions: tuple[Submission, ...], sources: tuple[bool | int, ...]) -> None:
        self.goal, self.submissions, self.sources = goal, submissions, sources

    def outcome(self, verdict: tuple[bool, ...]) -> dict[Formula, Formula]:
        """What atoms become, for the watched formulas' values."""
        out = {}
        for s, source in zip(self.submissions, self.sources, strict=True):
            held = source if isinstance(source, bool) else verdict[source]
            out[s.atom] = s.held if held else s.failed
        return out


def plan(space: Space, must: Formula, submissions: list[Submission]) -> Plan:
    asked = {s.atom: s for s in submissions}
    bound = _upper(space, must, asked, {})
    known = set(conjuncts(bound))
    watched: dict[Formula, int] = {}
    sources: list[bool | int] = []
    for s in submissions:
        if all(c in known for c in conjuncts(s.asked)):
            sources.append(True)
        elif space.negate(s.asked) in known or s.held is s.failed:
            sources.append(False)
        else:
            sources.append(watched.setdefault(s.asked, len(watched)))
    schemas = tuple(dict.fromkeys(schema for s in submissions for schema in s.schemas))
    return Plan(Goal(bound, tuple(watched), schemas), tuple(submissions), tuple(sources))


def _upper(space: Space, f: Formula, asked: dict[Formula, Submission], done: dict[Formula, Formula]) -> Formula:
    """A formula about the value that holds whenever f isn't made false by the value's outcome."""
    if f.constant:
        return f
    found = done.get(f)
    if found is None:
        if f.kind is Kind.AND:
            found = space.all([_upper(space, a, asked, done) for a in f.args])
        elif f.kind in (Kind.OR, Kind.ONE):
            found = space.any([_upper(space, a, asked, done) for a in f.args])
        else:
            found = _upper_literal(space, f, asked)
        done[f] = found
    return found


def _upper_literal(space: Space, f: Formula, asked: dict[Formula, Submission]) -> Formula:
    atom, dead = (f, FALSE) if f.kind is Kind.ATOM else (f.args[0], TRUE)
    s = asked.get(atom)
    if s is None:
        return TRUE
    if s.held is dead:
        return FALSE if s.failed is dead else space.negate(s.asked)
    return s.asked if s.failed is dead else TRUE
