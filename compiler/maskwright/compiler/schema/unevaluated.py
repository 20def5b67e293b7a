"""`unevaluatedProperties` and `unevaluatedItems` as formulas.

What a schema evaluates depends on which of its sub-schemas hold (JSON Schema core, section 11). An
`Evaluator` is a group of keywords that evaluates some members, with the condition under which it counts: a
formula about the same value, so nothing new has to be tracked. A member that the evaluators E reach must
satisfy the unevaluated schema unless one of E's conditions holds. Members reached by the same E are one
clause:

    (every member that exactly E reaches satisfies the schema) or (some condition of E holds)

`contains` evaluates the items that satisfy it (2020-12). Where its condition is certain, such items satisfy
the clause; where it isn't, the clause chooses a set of conditions that hold and lets the items of their
`contains` through.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.schema.atoms import Alternatives, Has, Key, Members, Props
from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula
from maskwright.compiler.schema.keywords import Draft

if TYPE_CHECKING:
    from maskwright.compiler.schema.lower import Lowering, ValueKind

MAX_CHOICES = 8
"""Key patterns, or `contains` in branches, of one unevaluated keyword: there are two to that power of
clauses."""


def unevaluated_properties(low: Lowering, schema: Schema) -> Formula:
    """The formula of the keyword in `schema` about objects. Raises LimitExceeded."""
    rest = low.document.child(schema, "unevaluatedProperties")
    groups = _groups(low, schema, TRUE, "object", set())
    evaluators = [e for s, c in groups for e in _members(low, s, c, schema)]
    patterns = list(dict.fromkeys(p for e in evaluators for p in e.patterns))
    _limit(len(patterns), schema, "unevaluatedProperties")
    reached: dict[frozenset[int], None] = {}
    for name in dict.fromkeys(n for e in evaluators for n in e.names):
        held = frozenset(p for p in patterns if p is TRUE or low.languages.member(p, name))
        reached[_reaching(evaluators, Key(name, held))] = None
    for size in range(len(patterns) + 1):
        for some in itertools.combinations(patterns, size):
            reached[_reaching(evaluators, Key(None, frozenset(some)))] = None
    clauses = []
    for which in reached:
        conditions = [evaluators[i].condition for i in sorted(which)]
        if TRUE not in conditions:
            group = UnevaluatedMembers(evaluators, which, low.document.representative(low.through(rest)))
            clauses.append(low.space.any([low.space.atom(Props(group)), *conditions]))
    return low.space.all(clauses)


def unevaluated_items(low: Lowering, schema: Schema) -> Formula:
    """The formula of the keyword in `schema` about arrays. Raises LimitExceeded."""
    rest = low.document.representative(low.through(low.document.child(schema, "unevaluatedItems")))
    groups = _groups(low, schema, TRUE, "array", set())
    found = [e for s, c in groups for e in _item_groups(low, s, c, schema)]
    places = max((e.prefix for e in found), default=0)
    reached = [frozenset(i for i, e in enumerate(found) if e.every or n < e.prefix) for n in range(places + 1)]
    certain = [e.contains for e in found if e.contains is not None and e.condition is TRUE]
    choices = [(e.condition, e.contains) for e in found if e.contains is not None and e.condition is not TRUE]
    _limit(len(choices), schema, "unevaluatedItems")
    clauses = []
    for which in dict.fromkeys(reached):
        conditions = [found[i].condition for i in sorted(which)]
        if TRUE in conditions:
            continue
        ways = list(conditions)
        for some in _subsets(choices):
            allowed: Alternatives = (rest, *certain, *(contains for _, contains in some))
            mine = tuple(allowed if r == which else () for r in reached)
            atom = low.items(mine[:-1], mine[-1])
            ways.append(low.space.all([atom, *(condition for condition, _ in some)]))
        clauses.append(low.space.any(ways))
    return low.space.all(clauses)


def _subsets(
    choices: list[tuple[Formula, Schema]],
) -> Iterator[tuple[tuple[Formula, Schema], ...]]:
    return itertools.chain.from_iterable(itertools.combinations(choices, n) for n in range(len(choices) + 1))


def _limit(observed: int, schema: Schema, keyword: str) -> None:
    if observed > MAX_CHOICES:
        raise LimitExceeded("branches", MAX_CHOICES, observed, "unevaluated", pointer=schema.at(keyword))


# -- evaluators ------------------------------------------------------------------------------------


def _groups(
    low: Lowering, schema: Schema, condition: Formula, kind: ValueKind, seen: set[tuple[str, Formula]]
) -> Iterator[tuple[Schema, Formula]]:
    """Every schema that judges the same value as `schema`, with when its annotations count; each pair
    once."""
    if condition is FALSE or not isinstance(schema.value, dict) or (schema.key, condition) in seen:
        return
    seen.add((schema.key, condition))
    yield schema, condition
    for target in low.targets(schema):
        yield from _groups(low, target, condition, kind, seen)
    for keyword, key, child in low.document.children(schema):
        when = _condition(low, schema, keyword, key, child, kind)
        if when is not None:
            yield from _groups(low, child, low.space.all([condition, when]), kind, seen)


def _condition(
    low: Lowering, schema: Schema, keyword: str, key: str | int, child: Schema, kind: ValueKind
) -> Formula | None:
    """When the annotations of a sub-schema count, given that those around it do; None: never."""
    if keyword == "allOf":
        return TRUE
    if keyword in ("anyOf", "oneOf", "if"):
        return low.formula(child, kind)
    if keyword in ("then", "else") and schema.has("if"):
        test = low.in_place(schema, "if", None, kind)
        return test if keyword == "then" else low.space.negate(test)
    if keyword in ("dependentSchemas", "dependencies"):
        return low.space.atom(Has(str(key))) if kind == "object" else FALSE
    return None


@dataclass(frozen=True)
class Evaluator:
    """Evaluates the members whose key is in `names` or in a language of `patterns`, or every member."""

    condition: Formula
    names: frozenset[str]
    patterns: tuple[Formula, ...]
    every: bool

    def reaches(self, key: Key) -> bool:
        return self.every or key.name in self.names or any(p is TRUE or p in key.languages for p in self.patterns)


def _members(low: Lowering, schema: Schema, condition: Formula, top: Schema) -> Iterator[Evaluator]:
    every = schema.has("additionalProperties") or (schema is not top and schema.has("unevaluatedProperties"))
    patterns = tuple(low.pattern_languages(schema))
    names = frozenset(schema.get("properties") or ())
    if every or patterns or names:
        yield Evaluator(condition, names, patterns, every)


def _reaching(evaluators: list[Evaluator], key: Key) -> frozenset[int]:
    return frozenset(i for i, e in enumerate(evaluators) if e.reaches(key))


class UnevaluatedMembers(Members):
    """Asks the unevaluated schema of the members that exactly the evaluators `which` reach."""

    def __init__(self, evaluators: list[Evaluator], which: frozenset[int], rest: Schema) -> None:
        patterns = tuple((p, rest) for e in evaluators for p in e.patterns)
        super().__init__({}, patterns, rest)
        self.evaluators, self.which = evaluators, which

    def schemas(self, key: Key) -> tuple[Schema, ...]:
        assert self.additional is not None
        return (self.additional,) if _reaching(self.evaluators, key) == self.which else ()


@dataclass(frozen=True)
class ItemEvaluator:
    """Evaluates the first `prefix` items, or every item, or those that satisfy `contains`."""

    condition: Formula
    prefix: int = 0
    every: bool = False
    contains: Schema | None = None


def _item_groups(low: Lowering, schema: Schema, condition: Formula, top: Schema) -> Iterable[ItemEvaluator]:
    prefix, rest = low.item_schemas(schema)
    every = rest is not None or (schema is not top and schema.has("unevaluatedItems"))
    if prefix or every:
        yield ItemEvaluator(condition, len(prefix), every)
    if schema.draft >= Draft.D2020 and schema.has("contains"):
        wanted = low.document.representative(low.through(low.document.child(schema, "contains")))
        yield ItemEvaluator(condition, contains=wanted)
