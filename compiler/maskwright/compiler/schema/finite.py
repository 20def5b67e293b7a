"""Which schemas leave finitely many values: what `uniqueItems` can be enforced over.

Over a finite set of item values, "all items differ" says of each value that at most one item equals it. An
array's progress is then the set of values seen, so the set has to be small.
"""

from __future__ import annotations

import json
from typing import Any

from maskwright.compiler.schema.document import Document, Schema
from maskwright.compiler.schema.keywords import MAX_VALUES, Draft, is_number, shortest


def unique_values(document: Document, schema: Schema) -> list[Any] | None:
    """The values that items of an array may have, all of them; None when they aren't few.

    An empty list means that uniqueness needs no check: there's at most one item.
    """
    most = schema.get("maxItems")
    if most is not None and most <= 1:
        return []
    found: list[Any] = []
    for item in _items(document, schema):
        values = None if item is None else finite_values(document, item)
        if values is None:
            return None
        found += values
    found = _distinct(found)
    return found if len(found) <= MAX_VALUES else None


def _items(document: Document, schema: Schema) -> list[Schema | None]:
    """The schemas that items are under; None for items under none (or under what isn't a schema)."""

    def child(keyword: str, key: int | None = None) -> Schema | None:
        return document.schemas.get(schema.below(keyword, key)) if schema.has(keyword) else None

    items = schema.get("items")
    if schema.draft >= Draft.D2020:
        prefix = [child("prefixItems", i) for i in range(len(schema.get("prefixItems") or ()))]
        return [*prefix, child("items")]
    if isinstance(items, list):
        return [*(child("items", i) for i in range(len(items))), child("additionalItems")]
    return [child("items")]


def finite_values(
    document: Document, schema: Schema, known: dict[str, list[Any] | None] | None = None
) -> list[Any] | None:
    """A finite superset of the values for which the schema holds, None when none is plain to see."""
    known = {} if known is None else known
    if schema.key not in known:
        known[schema.key] = None  # what refers to itself isn't plain
        known[schema.key] = _finite_values(document, schema, known)
    return known[schema.key]


def _finite_values(document: Document, schema: Schema, known: dict[str, list[Any] | None]) -> list[Any] | None:
    if schema.value is False:
        return []
    if not isinstance(schema.value, dict):
        return None
    if schema.has("enum") or schema.has("const"):
        return list(schema.value["enum"]) if schema.has("enum") else [schema.value["const"]]
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and all(k in ("null", "boolean") for k in kinds):
        return [v for k in kinds for v in ([None] if k == "null" else [True, False])]
    for target in document.references(schema):
        return finite_values(document, target, known) if isinstance(target, Schema) else None
    for keyword in ("anyOf", "oneOf"):
        if schema.has(keyword):
            branches = [document.child(schema, keyword, i) for i in range(len(schema.value[keyword]))]
            found = [finite_values(document, b, known) for b in branches]
            if all(f is not None for f in found):
                return _distinct([v for f in found if f is not None for v in f])
    return None


def _distinct(values: list[Any]) -> list[Any]:
    """Without those equal to an earlier one, as JSON Schema compares: numbers by value, objects without
    order."""
    return list({json.dumps(_comparable(v), sort_keys=True): v for v in reversed(values)}.values())[::-1]


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _comparable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_comparable(v) for v in value]
    return ["number", str(shortest(value))] if is_number(value) else value
