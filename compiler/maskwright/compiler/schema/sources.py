"""The order in which the schemas of a value speak of its members and items.

Formulas are hash-consed and their atoms numbered by creation, so they don't tell which of two schemas stands first
where a value is judged. It matters for the values inside: the keys of a member come in the order of the schemas that
judge the member, and those are brought by the schemas that judge the object. `bring` gives that order: a schema's own
keywords, then those of the schemas that it refers to, then those of its in-place sub-schemas as they are written, as
in `Lowering.order`.

A *source* is what stays of an atom through its progress: the `Members` of an object's atom, the schemas of an
array's. Where a value has one source there's nothing to order. `unevaluated*` come last. Equal schemas are one, so
what's left of an array's atom behind its `prefixItems` may be what another had from the start: from there on it stands
where the first of the two does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from maskwright.compiler.schema.assertions import BY_KEYWORD
from maskwright.compiler.schema.atoms import Broken, Contains, Items, Props
from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.formula import Formula
from maskwright.compiler.schema.lower import IN_PLACE

if TYPE_CHECKING:
    from maskwright.compiler.schema.lower import Lowering, ValueKind

_SPEAKING = {
    "object": ("properties", "patternProperties", "additionalProperties", "const", "enum"),
    "array": ("prefixItems", "items", "additionalItems", "contains", "const", "enum"),
}

Sources = tuple[Hashable, ...]


def source_of(payload: Any) -> Hashable | None:
    """An atom's source: of items their (prefix, rest), without the prefix when that has been read."""
    if isinstance(payload, Props | Broken):
        return payload.members
    if isinstance(payload, Items):
        return payload.prefix, payload.rest
    return payload.schema if isinstance(payload, Contains) else None


class Ranking:
    """Sorts atoms by their sources' places in an order."""

    def __init__(self, order: Sources) -> None:
        self._rank = {s: i for i, s in enumerate(order)}
        self._with_prefix: dict[Hashable, list[tuple[int, Hashable]]] = {}
        """Of each rest the sources that have it behind a prefix, with their places."""
        for s, i in self._rank.items():
            if isinstance(s, tuple) and s[0]:
                self._with_prefix.setdefault(((), s[1]), []).append((i, s))

    def sort(self, atoms: Iterable[Formula]) -> Iterable[Formula]:
        """Those without a source first, those whose source has no place last."""
        if not self._rank:
            return atoms
        sources = {a: source_of(a.payload) for a in atoms}
        present = set(sources.values())
        return sorted(sources, key=lambda a: self._place(sources[a], present))

    def _place(self, source: Hashable | None, present: set[Hashable | None]) -> int:
        if source is None:
            return -1
        read = [i for i, s in self._with_prefix.get(source, ()) if s not in present]
        return min([self._rank.get(source, len(self._rank)), *read])


def arrange(low: Lowering, formulas: Iterable[Formula], schemas: tuple[Schema, ...], kind: ValueKind) -> Sources:
    """The sources of the atoms of formulas about a value that `schemas` judge, in order; none where one atom has
    all."""
    found = {a: s for f in formulas for a in f.atoms if (s := source_of(a.payload)) is not None}
    if len(found) < 2:
        return ()
    brought = [s for schema in bring(low, schemas) for s in _own(low, schema, kind)]
    rank = {s: i for i, s in reversed(list(enumerate(brought)))}
    return tuple(sorted(dict.fromkeys(found.values()), key=lambda s: rank.get(s, len(brought))))


def bring(low: Lowering, schemas: Iterable[Schema]) -> Iterator[Schema]:
    """All schemas that judge the same value because of `schemas`, each once, in canonical order."""
    seen: set[str] = set()
    work = list(schemas)[::-1]
    while work:
        schema = work.pop()
        if schema.key not in seen and isinstance(schema.value, dict):
            seen.add(schema.key)
            yield schema
            inside = [child for keyword, _, child in low.document.children(schema) if keyword in IN_PLACE]
            work += [*low.targets(schema), *inside][::-1]


def _own(low: Lowering, schema: Schema, kind: ValueKind) -> Iterator[Hashable]:
    """The sources that the schema's own keywords make."""
    for keyword in _SPEAKING[kind]:
        if schema.has(keyword) and low.assumed(schema, keyword) is None:
            for atom in BY_KEYWORD[keyword](low, schema, kind).atoms:
                if (source := source_of(atom.payload)) is not None:
                    yield source
