"""What is wrong with a schema, and how each keyword is treated: everything before lowering.

Only what the root reaches is judged: unused definitions may hold anything of the right form. All independent
faults are collected. Loops of references without a member or item in between are found by depth-first search
over sub-schemas that judge the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded, unsupported_keyword
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.document import Document, Schema
from maskwright.compiler.schema.finite import unique_values
from maskwright.compiler.schema.keywords import KEYWORDS, Draft
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.lower import loop

MAX_IN_PLACE = 1000
"""Sub-schemas that judge one value, one inside the other: bounds the lowering's recursion."""

Treatment = tuple[str, str, str]
"""(pointer, keyword, "enforced" | "annotation" | "residual")"""


@dataclass
class Findings:
    """`faults` refuse the schema; `notes` don't."""

    faults: list[Diagnostic] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    treatment: list[Treatment] = field(default_factory=list)


def check(document: Document, languages: Languages, options: CompileOptions, limits: Limits) -> Findings:
    """Everything that the root reaches, in document order of discovery. Raises LimitExceeded."""
    found = Findings(faults=list(document.faults))
    reached = _reach(document, found)
    for schema, negative in reached.values():
        _check_sizes(schema, limits)
        for keyword in schema.value if isinstance(schema.value, dict) else ():
            _check_keyword(document, schema, keyword, negative, languages, options, found)
    found.faults += [f for f in document.faults if f not in found.faults]
    if not found.faults:
        found.faults += _loops(document)
    return found


def _reach(document: Document, found: Findings) -> dict[str, tuple[Schema, bool]]:
    """Every schema that the root applies, by pointer, and whether a value may have to fail it."""
    out: dict[str, tuple[Schema, bool]] = {}
    work = [(document.root, True, False)]
    seen: set[tuple[str, bool]] = set()
    while work:
        schema, positive, negative = work.pop()
        fresh = [
            (p, s) for p, s in ((True, positive), (False, negative)) if s and (schema.pointer, p) not in seen
        ]
        if not fresh:
            continue
        first = schema.pointer not in out
        seen.update((schema.pointer, p) for p, _ in fresh)
        out[schema.pointer] = (schema, negative or (not first and out[schema.pointer][1]))
        below = [
            (child, *_polarity(schema, k, positive, negative))
            for k, _, child in document.children(schema)
            if KEYWORDS[k].treatment != "annotation"
        ]
        if schema.has("$ref") and isinstance(schema.value["$ref"], str):
            target = document.resolve(schema, schema.value["$ref"])
            if isinstance(target, Schema):
                below.append((target, positive, negative))
            elif first:
                found.faults.append(target)
        work.extend(reversed(below))
    return out


def _polarity(schema: Schema, keyword: str, positive: bool, negative: bool) -> tuple[bool, bool]:
    """Whether a sub-schema may have to hold, and to fail, given that of the schema around it."""
    if keyword == "not":
        return negative, positive
    several = keyword == "oneOf" and len(schema.value[keyword]) > 1
    counted = keyword == "contains" and (schema.has("maxContains") or schema.get("minContains") == 0)
    return (True, True) if keyword == "if" or several or counted else (positive, negative)


def _check_sizes(schema: Schema, limits: Limits) -> None:
    for keyword, limit_name in (
        ("properties", "properties"),
        ("enum", "enum_values"),
        ("anyOf", "branches"),
        ("oneOf", "branches"),
        ("allOf", "branches"),
        ("maxLength", "string_bound"),
        ("minLength", "string_bound"),
        ("maxItems", "array_bound"),
        ("minItems", "array_bound"),
    ):
        value = schema.get(keyword)
        if value is None:
            continue
        size = len(value) if isinstance(value, list | dict) else value
        limit = getattr(limits, limit_name)
        if isinstance(size, int) and not isinstance(size, bool) and size > limit:
            raise LimitExceeded(limit_name, limit, size, "schema", pointer=schema.at(keyword))


def _check_keyword(
    document: Document,
    schema: Schema,
    keyword: str,
    negative: bool,
    languages: Languages,
    options: CompileOptions,
    found: Findings,
) -> None:
    pointer = schema.at(keyword)
    if not schema.has(keyword):
        found.treatment.append((pointer, keyword, "annotation"))
        found.notes.append(_ignored(schema, keyword, pointer))
        return
    treatment = _treatment(document, schema, keyword, negative, languages)
    found.treatment.append((pointer, keyword, treatment))
    if treatment == "residual" and options.residual == "refuse":
        found.faults.append(unsupported_keyword(keyword, pointer))
    elif treatment == "enforced":
        _check_patterns(schema, keyword, languages, found)


def _treatment(document: Document, schema: Schema, keyword: str, negative: bool, languages: Languages) -> str:
    value = schema.value[keyword]
    if keyword == "uniqueItems":
        return "residual" if value is True and unique_values(document, schema) is None else "enforced"
    if keyword == "format" and isinstance(value, str):
        return languages.format_treatment(value, negative)
    treatment = KEYWORDS[keyword].treatment
    return "residual" if treatment == "refused" else treatment


def _ignored(schema: Schema, keyword: str, pointer: str) -> Diagnostic:
    beside = schema.draft <= Draft.D7 and "$ref" in schema.value and keyword in KEYWORDS
    why = "is ignored beside $ref in this draft" if beside else "isn't a keyword of this draft"
    return Diagnostic(
        Code.IGNORED_KEYWORD,
        f"{keyword!r} {why}",
        severity="note",
        pointer=pointer,
        detail={"keyword": keyword, "draft": schema.draft.name},
    )


def _check_patterns(schema: Schema, keyword: str, languages: Languages, found: Findings) -> None:
    value = schema.value[keyword]
    sources: dict[str, str] = {}
    if keyword == "pattern" and isinstance(value, str):
        sources[value] = schema.at(keyword)
    elif keyword == "patternProperties" and isinstance(value, dict):
        sources = {p: f"{schema.at(keyword)}/{p.replace('~', '~0').replace('/', '~1')}" for p in value}
    for source, pointer in sources.items():
        try:
            languages.pattern(source, pointer)
        except LimitExceeded:
            raise
        except CompileError as e:
            found.faults += e.diagnostics


# -- loops -----------------------------------------------------------------------------------------


def _loops(document: Document) -> Iterator[Diagnostic]:
    """Depth-first search with the path on an explicit stack."""
    done: set[str] = set()
    for start in list(document.schemas.values()):
        path: list[tuple[Schema, Iterator[Schema]]] = []
        on_path: set[str] = set()
        _enter(document, start, path, on_path, done)
        while path:
            schema, below = path[-1]
            child = next(below, None)
            if child is None:
                path.pop()
                on_path.discard(schema.pointer)
                done.add(schema.pointer)
            elif child.pointer in on_path:
                yield loop(child)
            else:
                _enter(document, child, path, on_path, done)
                if len(path) > MAX_IN_PLACE:
                    raise LimitExceeded(
                        "ref_expansion", MAX_IN_PLACE, len(path), "schema", pointer=child.pointer
                    )


def _enter(
    document: Document,
    schema: Schema,
    path: list[tuple[Schema, Iterator[Schema]]],
    on_path: set[str],
    done: set[str],
) -> None:
    if schema.pointer not in done:
        path.append((schema, _in_place(document, schema)))
        on_path.add(schema.pointer)


def _in_place(document: Document, schema: Schema) -> Iterator[Schema]:
    if not isinstance(schema.value, dict):
        return
    if schema.has("$ref"):
        target = document.resolve(schema, schema.value["$ref"])
        if isinstance(target, Schema):
            yield target
    for keyword, _, child in document.children(schema):
        if KEYWORDS[keyword].in_place:
            yield child
