"""Schema to formula: what one schema says about values of one type.

`Lowering.formula(schema, kind)` is the conjunction of the keywords that matter to that kind of value; the
others hold whatever they say, so type atoms aren't needed. Sub-schemas of members and items stay references
(lowered when a value is judged by them), sub-schemas that judge the same value are lowered at once: recursion
through them alone is a loop without a byte in between and is refused.

`order(schema)` is the canonical property order: own `properties`, then what in-place sub-schemas bring in the
order written, then names that are only mentioned (`required` and the like). Which of several schemas stands first for a
member or item: sources.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.schema.assertions import BY_KEYWORD
from maskwright.compiler.schema.atoms import (
    Alternatives,
    AtLeastItems,
    AtMostItems,
    Has,
    Holds,
    Items,
    Members,
    Props,
)
from maskwright.compiler.schema.dialects import PLAIN
from maskwright.compiler.schema.document import Document, Schema, escape
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space, constant
from maskwright.compiler.schema.keywords import Draft
from maskwright.compiler.schema.languages import Languages

ValueKind = Literal["null", "true", "false", "number", "string", "array", "object"]
KINDS: tuple[ValueKind, ...] = ("object", "array", "string", "number", "true", "false", "null")
IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))


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
        self.prefix = ""
        """The pointer of the document, where it's part of another."""
        self._formulas: dict[tuple[Schema, ValueKind], Formula | None] = {}
        self._orders: dict[Schema, Order] = {}
        self._members: dict[Any, Members] = {}
        self._constants: dict[str, Schema] = {}
        self._origins: dict[Formula, Schema] = {}
        self._same_value: dict[Schema, dict[str, Schema]] = {}

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
        while isinstance(schema.value, dict) and schema.has("$ref") and schema.key not in seen:
            seen.add(schema.key)
            others = (k for k in schema.value if k != "$ref" and schema.has(k))
            targets = self.targets(schema)
            if any(k in BY_KEYWORD for k in others) or not targets:
                break
            schema = targets[0]
        if isinstance(schema.value, dict) and not any(k in BY_KEYWORD and schema.has(k) for k in schema.value):
            return self._constant_schema(True, schema)
        return schema

    def targets(self, schema: Schema) -> list[Schema]:
        """Where references lead. Those to resources that nobody supplied (residual) are left out."""
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
            lower = BY_KEYWORD.get(keyword)
            if lower is not None and schema.has(keyword):
                assumed = self.assumed(schema, keyword)
                parts.append(lower(self, schema, kind) if assumed is None else constant(assumed))
                if parts[-1] is FALSE:
                    break
        for part in parts:
            for atom in part.atoms:
                self._origins.setdefault(atom, schema)
        found = self._formulas[key] = self.space.all(parts)
        return found

    def assumed(self, schema: Schema, keyword: str) -> bool | None:
        """What a residual keyword is taken for, None for a keyword that is judged."""
        return self.residual.get((self.document.signature(schema), keyword)) if self.residual else None

    def judged_child(self, schema: Schema, keyword: str, key: str | int | None = None) -> Schema:
        """A sub-schema of a keyword that's lowered together with others; true where the keyword isn't judged."""
        if self.assumed(schema, keyword) is not None:
            return self._constant_schema(True, schema)
        return self.document.child(schema, keyword, key)

    def in_place(self, schema: Schema, keyword: str, key: str | int | None, kind: ValueKind) -> Formula:
        return self.formula(self.document.child(schema, keyword, key), kind)

    # -- places ------------------------------------------------------------------------------------

    def place(self, formulas: Iterable[Formula], schemas: tuple[Schema, ...]) -> str:
        """Where formulas about a value that `schemas` judge come from, for people: the one sub-schema that all
        their atoms first stood in, if it judges the same value, else the first of `schemas`."""
        if not schemas:
            return self.prefix
        origins = {self._origins.get(a) for f in formulas for a in f.atoms}
        origin = origins.pop() if len(origins) == 1 else None
        known = origin is not None and any(origin.key in self.same_value(s) for s in schemas)
        return self.prefix + (origin.pointer if origin is not None and known else schemas[0].pointer)

    def same_value(self, schema: Schema) -> dict[str, Schema]:
        """The schema and all that judge the same value because of it, by key."""
        found = self._same_value.get(schema)
        if found is None:
            found = self._same_value[schema] = {}
            work = [schema]
            while work:
                s = work.pop()
                if s.key not in found:
                    found[s.key] = s
                    if isinstance(s.value, dict):
                        work += self.targets(s)
                        work += [child for k, _, child in self.document.children(s) if k in IN_PLACE]
        return found

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
            if keyword in IN_PLACE:
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
            key, dialect = f"{near.key}#{len(self._constants)}", PLAIN[Draft.D2020]
            found = Schema(value, key, near.base, dialect, near.resource, near.pointer, near.context)
            self._constants[text] = found
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
        child, items = self.judged_child, schema.get("items")
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
