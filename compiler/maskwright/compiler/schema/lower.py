"""Schema to formula: what one schema says about values of one type.

`Lowering.formula(schema, kind)` is the conjunction of the keywords that matter to that kind of value; the
others hold whatever they say, so type atoms aren't needed. Sub-schemas of members and items stay references
(lowered when a value is judged by them), sub-schemas that judge the same value are lowered at once: recursion
through them alone is a loop without a byte in between and is refused.

`order(schema)` is the canonical property order: own `properties`, then what in-place sub-schemas bring in the
order written, then names that are only mentioned (`required` and the like).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.schema.atoms import (
    Alternatives,
    AtLeastItems,
    AtMostItems,
    Contains,
    Has,
    Holds,
    Items,
    Length,
    MemberCount,
    Members,
    Names,
    Props,
    StringSet,
)
from maskwright.compiler.schema.document import Document, Schema, escape
from maskwright.compiler.schema.finite import unique_values
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space, constant
from maskwright.compiler.schema.keywords import Draft, is_number
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.numbers import AtLeast, Integer, MoreThan, MultipleOf, NumberSet
from maskwright.compiler.schema.unevaluated import unevaluated_items, unevaluated_properties

ValueKind = Literal["null", "true", "false", "number", "string", "array", "object"]
KINDS: tuple[ValueKind, ...] = ("object", "array", "string", "number", "true", "false", "null")
_TYPE_OF = {
    "null": "null",
    "true": "boolean",
    "false": "boolean",
    "string": "string",
    "array": "array",
    "object": "object",
}


class Order:
    """`declared` names come first, then `mentioned` ones that aren't declared."""

    __slots__ = ("declared", "mentioned")

    def __init__(self, declared: Iterable[str] = (), mentioned: Iterable[str] = ()) -> None:
        self.declared, self.mentioned = dict.fromkeys(declared), dict.fromkeys(mentioned)

    def add(self, other: Order) -> None:
        self.declared.update(other.declared)
        self.mentioned.update(other.mentioned)

    def names(self) -> tuple[str, ...]:
        return tuple({**self.declared, **self.mentioned})


class Lowering:
    """One document's schemas as formulas of one space."""

    def __init__(
        self,
        document: Document,
        space: Space,
        languages: Languages,
        residual: Mapping[tuple[int, str], bool] | None = None,
    ) -> None:
        """`residual`: by signature and keyword, what is assumed of keywords that aren't judged."""
        self.document, self.space, self.languages = document, space, languages
        self.residual = residual or {}
        self._formulas: dict[tuple[Schema, ValueKind], Formula | None] = {}
        self._orders: dict[Schema, Order] = {}
        self._members: dict[Any, Members] = {}
        self._constants: dict[str, Schema] = {}

    # -- schemas as atoms --------------------------------------------------------------------------

    def holds(self, schema: Schema) -> Formula:
        """The schema as a formula about a value of any type."""
        schema = self.through(schema)
        if isinstance(schema.value, bool):
            return constant(schema.value)
        return self.space.atom(Holds(self.document.representative(schema)))

    def through(self, schema: Schema) -> Schema:
        """Where a schema that is nothing but a reference leads."""
        seen: set[str] = set()
        while isinstance(schema.value, dict) and schema.has("$ref") and schema.pointer not in seen:
            seen.add(schema.pointer)
            others = (k for k in schema.value if k != "$ref" and schema.has(k))
            if any(k in _BY_KEYWORD for k in others):
                break
            schema = self.targets(schema)[0]
        if isinstance(schema.value, dict) and not any(k in _BY_KEYWORD and schema.has(k) for k in schema.value):
            return self._constant_schema(True, schema)
        return schema

    def targets(self, schema: Schema) -> list[Schema]:
        """Where references lead. Those that depend on who refers (residual) are left out."""
        out = []
        for found in self.document.references(schema):
            if isinstance(found, Diagnostic):
                raise CompileError(found)
            if found is not None:
                out.append(found)
        return out

    def expand(self, f: Formula, kind: ValueKind) -> Formula:
        """A formula over schemas as one over the atoms of a kind."""
        return self.space.assign(f, {a: self.formula(a.payload.schema, kind) for a in f.atoms})  # type: ignore[attr-defined]

    def formula(self, schema: Schema, kind: ValueKind) -> Formula:
        if isinstance(schema.value, bool):
            return constant(schema.value)
        schema = self.document.representative(schema)
        key = (schema, kind)
        if key in self._formulas:
            found = self._formulas[key]
            if found is None:
                raise CompileError(loop(schema))
            return found
        self._formulas[key] = None
        parts = []
        for keyword in schema.value:
            lower = _BY_KEYWORD.get(keyword)
            if lower is not None and schema.has(keyword):
                assumed = self.assumed(schema, keyword)
                parts.append(lower(self, schema, kind) if assumed is None else constant(assumed))
                if parts[-1] is FALSE:
                    break
        found = self._formulas[key] = self.space.all(parts)
        return found

    def assumed(self, schema: Schema, keyword: str) -> bool | None:
        """What a residual keyword is taken for, None for a keyword that is judged."""
        return self.residual.get((self.document.signature(schema), keyword)) if self.residual else None

    def in_place(self, schema: Schema, keyword: str, key: str | int | None, kind: ValueKind) -> Formula:
        return self.formula(self.document.child(schema, keyword, key), kind)

    # -- property order ----------------------------------------------------------------------------

    def order(self, schema: Schema) -> Order:
        found = self._orders.get(schema)
        if found is None:
            found = self._orders[schema] = Order()
            if isinstance(schema.value, dict):
                self._order_of(schema, found)
        return found

    def _order_of(self, schema: Schema, out: Order) -> None:
        properties, required = schema.get("properties"), schema.get("required")
        out.add(Order(properties or (), required or ()))
        for target in self.targets(schema):
            out.add(self.order(target))
        for keyword, value in schema.value.items():
            if not schema.has(keyword):
                continue
            if keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
                # What a name depends on comes before it: then it's known whether the name may come.
                for name, needs in value.items():
                    out.add(Order((), [*(needs if isinstance(needs, list) else ()), name]))
            elif keyword in ("const", "enum"):
                for v in [value] if keyword == "const" else value:
                    out.add(Order(v if isinstance(v, dict) else ()))
        for keyword, _, child in self.document.children(schema):
            if keyword in _IN_PLACE:
                out.add(self.order(child))

    # -- constants ---------------------------------------------------------------------------------

    def constant(self, value: Any, kind: ValueKind, schema: Schema) -> Formula:
        """The formula "equals this value", for values of a kind that `value` has (see `values_of`)."""
        space = self.space
        if kind == "array":
            prefix = tuple((self.equal_to(v, schema),) for v in value)
            size = [
                space.atom(AtMostItems(len(value))),
                *([space.atom(AtLeastItems(len(value)))] if value else []),
            ]
            return space.all([*([space.atom(Items(prefix, ()))] if value else []), *size])
        closed = self._constant_schema(False, schema)
        members = self.members({k: self.equal_to(v, schema) for k, v in value.items()}, (), closed)
        return space.all([members, *(space.atom(Has(k)) for k in value)])

    def equal_to(self, value: Any, schema: Schema) -> Schema:
        return self._constant_schema({"const": value}, schema)

    def _constant_schema(self, value: Any, near: Schema) -> Schema:
        text = repr(value)
        found = self._constants.get(text)
        if found is None:
            pointer = f"{near.pointer}#{len(self._constants)}"
            found = self._constants[text] = Schema(value, pointer, near.base, Draft.D2020, near.resource)
        return found

    def members(
        self,
        properties: dict[str, Schema],
        patterns: tuple[tuple[Formula, Schema], ...],
        additional: Schema | None,
    ) -> Formula:
        """The atom of a properties/patternProperties/additionalProperties group; true when it asks
        nothing."""
        if additional is not None and self.through(additional).value is True:
            additional = None
        quiet = additional is None and not patterns
        if quiet and all(self.through(s).value is True for s in properties.values()):
            return TRUE
        rep = self.document.representative
        properties = {k: rep(self.through(s)) for k, s in properties.items()}
        patterns = tuple((f, rep(self.through(s))) for f, s in patterns)
        additional = None if additional is None else rep(self.through(additional))
        key = (tuple(properties.items()), patterns, additional)
        found = self._members.get(key)
        if found is None:
            found = self._members[key] = Members(properties, patterns, additional)
        return self.space.atom(Props(found))

    def pattern_languages(self, schema: Schema) -> list[Formula]:
        """The key languages of the schema's `patternProperties`, in order."""
        where = schema.at("patternProperties")
        return [self.languages.pattern(p, f"{where}/{escape(p)}") for p in schema.get("patternProperties") or {}]

    def item_schemas(self, schema: Schema) -> tuple[tuple[Schema, ...], Schema | None]:
        """The schemas of the first items and of the others, in the draft's form; without a schema: None."""
        child, items = self.document.child, schema.get("items")
        if schema.draft >= Draft.D2020:
            prefix = tuple(child(schema, "prefixItems", i) for i in range(len(schema.get("prefixItems") or ())))
            return prefix, child(schema, "items") if schema.has("items") else None
        if isinstance(items, list):
            rest = child(schema, "additionalItems") if schema.has("additionalItems") else None
            return tuple(child(schema, "items", i) for i in range(len(items))), rest
        return (), child(schema, "items") if schema.has("items") else None

    def items(self, prefix: tuple[Alternatives, ...], rest: Alternatives) -> Formula:
        """The atom of items under schemas; true when they ask nothing."""
        prefix, rest = tuple(self._alternatives(p) for p in prefix), self._alternatives(rest)
        while prefix and not rest and not prefix[-1]:
            prefix = prefix[:-1]
        return self.space.atom(Items(prefix, rest)) if prefix or rest else TRUE

    def _alternatives(self, schemas: Alternatives) -> Alternatives:
        found = tuple(self.document.representative(self.through(s)) for s in schemas)
        return () if any(s.value is True for s in found) else found


def loop(schema: Schema) -> Diagnostic:
    return Diagnostic(
        Code.INVALID_SOURCE,
        "the schema refers to itself without a member or item in between",
        pointer=schema.pointer,
        hint="such a schema says nothing: break the loop",
    )


# -- keywords --------------------------------------------------------------------------------------

_Lower = Callable[[Lowering, Schema, ValueKind], Formula]


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
    then, other = (low.in_place(schema, k, None, kind) if schema.has(k) else TRUE for k in ("then", "else"))
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
    return low.space.atom(MultipleOf(Decimal(schema.value["multipleOf"]).normalize()))


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
    return low.languages.format(schema.value["format"])


def _properties(low: Lowering, schema: Schema, kind: ValueKind) -> Formula:
    """Lowers the whole group at the first of its keywords; the others lower to the same atom."""
    if kind != "object":
        return TRUE
    child = low.document.child
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


_BY_KEYWORD: dict[str, _Lower] = {
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
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))
