"""Warnings about what commonly goes wrong in schemas: each with its place and the next step.

Looked for in what the root reaches and may have to hold. Findings of one kind that stand in many places are one
diagnostic, at the first of them, with all in its detail (`pointers`; `count` when there are more than `MAX_PLACES`).

Properties that can never be written aren't seen in the text but in the automaton: `unreachable` looks which keys of
which object frames are left once everything that can't finish was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from maskwright.compiler.automaton.explore import Frame, State
from maskwright.compiler.diagnostics import Code, Diagnostic
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.regular import Dfa
from maskwright.compiler.schema.document import Document, Schema
from maskwright.compiler.schema.formats import FORMATS
from maskwright.compiler.schema.keywords import is_integer, is_number
from maskwright.compiler.schema.languages import Languages, longest
from maskwright.compiler.schema.layout import Gap
from maskwright.compiler.schema.objects import ObjectFrame
from maskwright.compiler.schema.values import Values

MAX_PLACES = 50
SCHEMAS_READ = 5_000
"""Of larger schemas the rest isn't looked at: warnings would be too many to read anyhow."""

CONCERNS = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
        "unevaluatedItems",
    ),
    "object": (
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    ),
}
"""The type that a keyword is about."""
NEEDS = {
    "then": "if",
    "else": "if",
    "minContains": "contains",
    "maxContains": "contains",
    "if": "then",
}
"""Keywords without effect unless another stands beside them (`if`: `then` or `else`)."""


def advise(
    document: Document, schemas: Iterable[Schema], languages: Languages, options: CompileOptions
) -> list[Diagnostic]:
    """Everything that the text of the schemas tells."""
    out: list[Diagnostic] = []
    gathered: dict[str, list[str]] = {}
    known: set[str] = set()
    for schema in schemas:
        if schema.pointer in known or not isinstance(schema.value, dict):
            continue
        known.add(schema.pointer)
        if len(known) > SCHEMAS_READ:
            break
        reader = _Reader(document, schema, languages, options)
        out += reader.faults()
        for kind in reader.kinds():
            gathered.setdefault(kind, []).append(schema.pointer)
    return [*(_gathered(kind, pointers) for kind, pointers in gathered.items()), *out]


_GATHERED: dict[str, tuple[Code, str, str, str]] = {
    "string": (
        Code.UNBOUNDED,
        "warning",
        "strings without a bound on their length",
        "give maxLength, an enum, or compile with default_max_length",
    ),
    "array": (
        Code.UNBOUNDED,
        "warning",
        "arrays without a bound on their items",
        "give maxItems, or compile with default_max_items",
    ),
    "object": (
        Code.OPEN_OBJECT,
        "note",
        "objects that take any member besides those declared",
        "close them with additionalProperties: false, or unevaluatedProperties: false where parts are combined",
    ),
    "pattern": (
        Code.UNANCHORED_PATTERN,
        "warning",
        "patterns that match anywhere in the string, so anything may stand around",
        "anchor them: ^…$",
    ),
}


def _gathered(kind: str, pointers: list[str]) -> Diagnostic:
    code, severity, what, hint = _GATHERED[kind]
    detail: dict[str, Any] = {"kind": kind, "count": len(pointers), "pointers": pointers[:MAX_PLACES]}
    return Diagnostic(code, f"{what}: {len(pointers)}", severity, pointer=pointers[0], detail=detail, hint=hint)


class _Reader:
    """One schema."""

    def __init__(self, document: Document, schema: Schema, languages: Languages, options: CompileOptions) -> None:
        self.document, self.schema, self.languages, self.options = document, schema, languages, options
        named = schema.get("type")
        self.types = frozenset([named] if isinstance(named, str) else named or ())

    # -- what stands in many places ----------------------------------------------------------------

    def kinds(self) -> Iterator[str]:
        schema, options = self.schema, self.options
        if "string" in self.types and options.default_max_length is None and not self._bounded_string():
            yield "string"
        if "array" in self.types and options.default_max_items is None and not self._bounded_array():
            yield "array"
        closing = ("additionalProperties", "unevaluatedProperties", "patternProperties", "maxProperties")
        if schema.get("properties") and not self._any_has(closing) and self.types <= {"object", "null"}:
            yield "object"
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
            yield "pattern"

    def _bounded_string(self) -> bool:
        if self._any_has(("maxLength", "enum", "const")):
            return True
        return any(longest(language) is not None for s in self._parts() for language in self._languages(s))

    def _languages(self, schema: Schema) -> Iterator[Dfa]:
        if schema.has("pattern"):
            found = self.languages.pattern(schema.value["pattern"], schema.at("pattern"))
            if not found.constant:
                yield self.languages.dfa(found)
        if schema.has("format"):
            found = self.languages.format(schema.value["format"], schema.dialect.asserts_formats)
            if not found.constant:
                yield self.languages.dfa(found)

    def _bounded_array(self) -> bool:
        if self._any_has(("maxItems", "enum", "const")):
            return True
        return any(s.get(k) is False for s in self._parts() for k in ("items", "additionalItems", "unevaluatedItems"))

    def _any_has(self, keywords: Iterable[str]) -> bool:
        return any(s.has(k) for s in self._parts() for k in keywords)

    def _parts(self) -> list[Schema]:
        """The schema, and what must hold with it because of references and `allOf`."""
        found: dict[str, Schema] = {}
        work = [self.schema]
        while work:
            schema = work.pop()
            if schema.key not in found:
                found[schema.key] = schema
                work += [t for t in self.document.references(schema) if isinstance(t, Schema)]
                work += [child for keyword, _, child in self.document.children(schema) if keyword == "allOf"]
        return list(found.values())

    # -- what stands in one place ------------------------------------------------------------------

    def faults(self) -> Iterator[Diagnostic]:
        for keyword in self.schema.value:
            if self.schema.has(keyword):
                yield from self._idle(keyword)
        yield from self._format()
        yield from self._values()

    def _idle(self, keyword: str) -> Iterator[Diagnostic]:
        """Keywords without effect where they stand."""
        schema = self.schema
        needed = NEEDS.get(keyword)
        if needed is not None and not schema.has(needed) and not (keyword == "if" and schema.has("else")):
            beside = "'then' or 'else'" if keyword == "if" else repr(needed)
            yield self._ignored(keyword, f"has no effect without {beside}", f"add {beside}, or remove it")
        if keyword == "additionalItems" and not isinstance(schema.get("items"), list):
            yield self._ignored(keyword, "has no effect unless 'items' is a list", "put it into 'items', or remove it")
        concerned = next((t for t, keywords in CONCERNS.items() if keyword in keywords), None)
        types = {"number" if t == "integer" else t for t in self.types}
        if concerned is not None and types and concerned not in types:
            what = f"is about {concerned}s, and the type is {', '.join(sorted(self.types))}"
            yield self._ignored(keyword, what, "correct the type, or remove it")

    def _ignored(self, keyword: str, why: str, hint: str) -> Diagnostic:
        return Diagnostic(
            Code.IGNORED_KEYWORD,
            f"{keyword!r} {why}",
            "warning",
            pointer=self.schema.at(keyword),
            detail={"keyword": keyword},
            hint=hint,
        )

    def _format(self) -> Iterator[Diagnostic]:
        name, pointer = self.schema.get("format"), self.schema.at("format")
        if not isinstance(name, str):
            return
        if name not in FORMATS:
            hint = "use a standard format, or a pattern"
            message = f"the format {name!r} isn't known, so it's an annotation"
            yield Diagnostic(
                Code.UNKNOWN_FORMAT, message, "warning", pointer=pointer, detail={"format": name}, hint=hint
            )
        elif FORMATS[name].narrower and self.languages.enforces(name, self.schema.dialect.asserts_formats):
            left_out = FORMATS[name].narrower
            message = f"the format {name!r} is taken more narrowly; left out: {left_out}"
            detail = {"format": name, "left_out": left_out}
            yield Diagnostic(Code.NARROWER_FORMAT, message, "note", pointer=pointer, detail=detail)

    def _values(self) -> Iterator[Diagnostic]:
        """Values of an enum or const that the type beside it excludes."""
        schema = self.schema
        values = schema.get("enum") if schema.has("enum") else [schema.get("const")] if schema.has("const") else []
        for i, value in enumerate(values if self.types else ()):
            if not self.types & set(types_of(value)):
                pointer = f"{schema.at('enum')}/{i}" if schema.has("enum") else schema.at("const")
                message = f"this value isn't of type {' or '.join(sorted(self.types))}, so it's never written"
                yield Diagnostic(Code.UNREACHABLE, message, "warning", pointer=pointer, hint="correct it, or the type")


def types_of(value: Any) -> tuple[str, ...]:
    """The type names of a value."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if is_number(value):
        return ("integer", "number") if is_integer(value) else ("number",)
    return ("string",) if isinstance(value, str) else ("array",) if isinstance(value, list) else ("object",)


# -- in the automaton ------------------------------------------------------------------------------


def unreachable(values: Values, frames: Mapping[Frame, Mapping[State, int]], kept: set[int]) -> Iterator[Diagnostic]:
    """Declared properties that no text has. `frames`: controls by state; `kept`: the controls that are live."""
    declared: dict[str, Diagnostic] = {}
    written: set[str] = set()
    for frame, controls in frames.items():
        if not isinstance(frame, ObjectFrame) or kept.isdisjoint(controls.values()):
            continue
        names: set[str] = set()
        for state, control in controls.items():
            inner: Any = state.target if isinstance(state, Gap) else state
            if control in kept and isinstance(inner, tuple) and inner[0] == "colon" and inner[1].name is not None:
                names.add(inner[1].name)
        for schema in _judging(values, frame):
            for name in schema.get("properties") or ():
                place = values.lowering.document.child(schema, "properties", name)
                if name in names:
                    written.add(place.pointer)
                elif place.value is not False and place.value != {"not": {}}:  # those are meant so
                    declared.setdefault(place.pointer, _never(name, place.pointer))
    return (found for pointer, found in declared.items() if pointer not in written)


def _judging(values: Values, frame: Frame) -> Iterator[Schema]:
    """The schemas that judge a frame's object, each once."""
    known: set[str] = set()
    for top in values.judged_by.get(frame, ()):
        for key, schema in values.lowering.same_value(top).items():
            if key not in known:
                known.add(key)
                yield schema


def _never(name: str, pointer: str) -> Diagnostic:
    return Diagnostic(
        Code.UNREACHABLE,
        f"the property {name!r} can never be written",
        "warning",
        pointer=pointer,
        detail={"property": name},
        hint="look for what excludes it: its own bounds, or an additionalProperties: false beside it",
    )
