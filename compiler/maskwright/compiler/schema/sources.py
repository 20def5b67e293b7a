"""The order in which the schemas of a value speak of its members and items.

Formulas are hash-consed and their atoms numbered by creation, so they don't tell which of two schemas stands first
where a value is judged. It matters for the values inside: the keys of a member come in the order of the schemas that
judge the member, and those are brought by the schemas that judge the object. `bring` gives that order: a schema's own
keywords, then those of the schemas that it refers to, then those of its in-place sub-schemas as they are written, as
in `Lowering.order`.

A *source* is what stays of an atom through its progress: the `Members` of an object's atom, the schemas of an array's.
Where a value has one source there's nothing to order. `unevaluated*` come last.
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


def sources_of(payload: Any) -> Sources:
    """The sources of an atom, now and after progress."""
    if isinstance(payload, Props | Broken):
        return (payload.members,)
    if isinstance(payload, Items):
        return tuple(s for s in (payload.prefix, payload.rest) if s)
    return (payload.schema,) if isinstance(payload, Contains) else ()


def arrange(low: Lowering, formulas: Iterable[Formula], schemas: tuple[Schema, ...], kind: ValueKind) -> Sources:
    """The sources of the atoms of formulas about a value that `schemas` judge, in order; none where one atom has
    all."""
    found = {a: s for f in formulas for a in f.atoms if (s := sources_of(a.payload))}
    if len(found) < 2:
        return ()
    brought = [s for schema in bring(low, schemas) for s in _own(low, schema, kind)]
    rank = {s: i for i, s in reversed(list(enumerate(brought)))}
    every = dict.fromkeys(s for own in found.values() for s in own)
    return tuple(sorted(every, key=lambda s: rank.get(s, len(brought))))


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
                yield from sources_of(atom.payload)
