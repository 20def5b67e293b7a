"""Each keyword as a formula about values of one type. `BY_KEYWORD` is what the lowering goes by.

A keyword that doesn't concern the type is true. Keywords that work together (`properties` with `additionalProperties`,
`items` with `prefixItems`) are lowered as a group by each of them, to the same atom.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maskwright.compiler.schema.atoms import (
    AtLeastItems,
    AtMostItems,
    Contains,
    Has,
    Length,
    MemberCount,
    Names,
    StringSet,
)
from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.finite import unique_values
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, constant
from maskwright.compiler.schema.keywords import Draft, is_number, shortest
from maskwright.compiler.schema.numbers import AtLeast, Integer, MoreThan, MultipleOf, NumberSet
from maskwright.compiler.schema.unevaluated import unevaluated_items, unevaluated_properties

if TYPE_CHECKING:
    from maskwright.compiler.schema.lower import Lowering, ValueKind

_TYPE_OF = {
    "null": "null",
    "true": "boolean",
    "false": "boolean",
    "string": "string",
    "array": "array",
    "object": "object",
}

_Lower = Callable[["Lowering", Schema, "ValueKind"], Formula]


def _type(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    value = schema.value["type"]
    names = value if isinstance(value, list) else [value]
    if kind != "number":
        return constant(_TYPE_OF[kind] in names)
    if "number" in names:
        return TRUE
    return low.space.atom(Integer()) if "integer" in names else FALSE


def _equals_any(low: Lowering, values: list[Any], schema: Schema, kind: ValueKind) -> Formula:
    if kind in ("null", "true", "false"):
        return constant(any(v is _LITERALS[kind] for v in values))
    if kind == "number":
        numbers = frozenset(Decimal(v) for v in values if is_number(v))
        return low.space.atom(NumberSet(numbers)) if numbers else FALSE
    if kind == "string":
        strings = frozenset(v for v in values if isinstance(v, str))
        return low.space.atom(StringSet(strings)) if strings else FALSE
    wanted = list if kind == "array" else dict
    return low.space.any(low.constant(v, kind, schema) for v in values if isinstance(v, wanted))


_LITERALS: dict[str, Any] = {"null": None, "true": True, "false": False}


def _enum(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return _equals_any(low, schema.value["enum"], schema, kind)


def _const(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return _equals_any(low, [schema.value["const"]], schema, kind)


def _ref(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    """All references of the schema; `$dynamicRef` and `$recursiveRef` where they lead to one place."""
    return low.space.all(low.formula(target, kind) for target in low.targets(schema))


def _all_of(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.all(_branches(low, schema, "allOf", kind))


def _any_of(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.any(_branches(low, schema, "anyOf", kind))


def _one_of(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.one(_branches(low, schema, "oneOf", kind))


def _branches(low: Lowering, schema: Schema, keyword: str, kind: ValueKind) -> list[Formula]:
    return [low.in_place(schema, keyword, i, kind) for i in range(len(schema.value[keyword]))]


def _not(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.negate(low.in_place(schema, "not", None, kind))


def _if(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    space = low.space
    test = low.in_place(schema, "if", None, kind)
    judged = (k for k in ("then", "else") if schema.has(k) and low.assumed(schema, k) is None)
    branches = {k: low.in_place(schema, k, None, kind) for k in judged}
    then, other = branches.get("then", TRUE), branches.get("else", TRUE)
    return space.all([space.any([space.negate(test), then]), space.any([test, other])])


def _numbers(make: Callable[[Lowering, Schema], Formula]) -> _Lower:
    return lambda low, schema, kind: make(low, schema) if kind == "number" else TRUE


def _minimum(low: Lowering, schema: Schema) -> Formula:
    bound = Decimal(schema.value["minimum"])
    strict = schema.draft is Draft.D4 and schema.get("exclusiveMinimum") is True
    return low.space.atom(MoreThan(bound) if strict else AtLeast(bound))


def _maximum(low: Lowering, schema: Schema) -> Formula:
    bound = Decimal(schema.value["maximum"])
    strict = schema.draft is Draft.D4 and schema.get("exclusiveMaximum") is True
    return low.space.negate(low.space.atom(AtLeast(bound) if strict else MoreThan(bound)))


def _exclusive_minimum(low: Lowering, schema: Schema) -> Formula:
    if schema.draft is Draft.D4:
        return TRUE
    return low.space.atom(MoreThan(Decimal(schema.value["exclusiveMinimum"])))


def _exclusive_maximum(low: Lowering, schema: Schema) -> Formula:
    if schema.draft is Draft.D4:
        return TRUE
    return low.space.negate(low.space.atom(AtLeast(Decimal(schema.value["exclusiveMaximum"]))))


def _multiple_of(low: Lowering, schema: Schema) -> Formula:
    return low.space.atom(MultipleOf(shortest(schema.value["multipleOf"])))


def _min_length(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    count = int(schema.value["minLength"])
    return low.space.atom(Length(count, None)) if kind == "string" and count else TRUE


def _max_length(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.atom(Length(0, int(schema.value["maxLength"]))) if kind == "string" else TRUE


def _pattern(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    if kind != "string":
        return TRUE
    return low.languages.pattern(schema.value["pattern"], schema.at("pattern"))


def _format(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    if kind != "string":
        return TRUE
    return low.languages.format(schema.value["format"], schema.dialect.asserts_formats)


def _properties(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    """Lowers the whole group at the first of its keywords; the others lower to the same atom."""
    if kind != "object":
        return TRUE
    child = low.judged_child
    properties = {k: child(schema, "properties", k) for k in schema.get("properties") or {}}
    subs = (child(schema, "patternProperties", p) for p in schema.get("patternProperties") or {})
    patterns = tuple(zip(low.pattern_languages(schema), subs, strict=True))
    additional = child(schema, "additionalProperties") if schema.has("additionalProperties") else None
    return low.members(properties, patterns, additional)


def _property_names(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    if kind != "object":
        return TRUE
    language = low.in_place(schema, "propertyNames", None, "string")
    if language is TRUE:
        return TRUE
    return _at_most(low, 0) if language is FALSE else low.space.atom(Names(language))


def _required(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    if kind != "object":
        return TRUE
    return low.space.all(low.space.atom(Has(name)) for name in schema.value["required"])


def _min_properties(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    count = int(schema.value["minProperties"])
    return low.space.atom(MemberCount(count, count)) if kind == "object" and count else TRUE


def _max_properties(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return _at_most(low, int(schema.value["maxProperties"])) if kind == "object" else TRUE


def _at_most(low: Lowering, count: int) -> Formula:
    return low.space.negate(low.space.atom(MemberCount(count + 1, count + 1)))


def _dependents(low: Lowering, schema: Schema, kind: ValueKind, keyword: str) -> Formula:
    if kind != "object":
        return TRUE
    space, parts = low.space, []
    for name, value in schema.value[keyword].items():
        if isinstance(value, list):
            then = space.all(space.atom(Has(n)) for n in value)
        else:
            then = low.in_place(schema, keyword, name, kind)
        parts.append(space.any([space.negate(space.atom(Has(name))), then]))
    return space.all(parts)


def _dependent(keyword: str) -> _Lower:
    return lambda low, schema, kind: _dependents(low, schema, kind, keyword)


def _items(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    """`prefixItems`, `items` and `additionalItems` together."""
    if kind != "array":
        return TRUE
    prefix, rest = low.item_schemas(schema)
    return low.items(tuple((s,) for s in prefix), () if rest is None else (rest,))


def _unevaluated_items(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return unevaluated_items(low, schema) if kind == "array" else TRUE


def _unevaluated_properties(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return unevaluated_properties(low, schema) if kind == "object" else TRUE


def _min_items(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    count = int(schema.value["minItems"])
    return low.space.atom(AtLeastItems(count)) if kind == "array" and count else TRUE


def _max_items(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    return low.space.atom(AtMostItems(int(schema.value["maxItems"]))) if kind == "array" else TRUE


def _contains(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    if kind != "array":
        return TRUE
    wanted = low.document.representative(low.through(low.document.child(schema, "contains")))
    at_least, at_most = schema.get("minContains"), schema.get("maxContains")
    least = 1 if at_least is None else int(at_least)
    most = None if at_most is None else int(at_most)
    if most is not None and most < least:
        return FALSE
    if least == 0 and most is None:
        return TRUE
    return low.space.atom(Contains(wanted, least, most))


def _unique(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    """Of each of finitely many values there's at most one item. What isn't finite was reported before."""
    if kind != "array" or schema.value["uniqueItems"] is False:
        return TRUE
    values = unique_values(low.document, schema) or ()
    return low.space.all(low.space.atom(Contains(low.equal_to(v, schema), 0, 1)) for v in values)


BY_KEYWORD: dict[str, _Lower] = {
    "$ref": _ref,
    "$dynamicRef": _ref,
    "$recursiveRef": _ref,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "minimum": _numbers(_minimum),
    "maximum": _numbers(_maximum),
    "exclusiveMinimum": _numbers(_exclusive_minimum),
    "exclusiveMaximum": _numbers(_exclusive_maximum),
    "multipleOf": _numbers(_multiple_of),
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "properties": _properties,
    "patternProperties": _properties,
    "additionalProperties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "dependentRequired": _dependent("dependentRequired"),
    "dependentSchemas": _dependent("dependentSchemas"),
    "dependencies": _dependent("dependencies"),
    "prefixItems": _items,
    "items": _items,
    "additionalItems": _items,
    "minItems": _min_items,
    "maxItems": _max_items,
    "contains": _contains,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique,
}
