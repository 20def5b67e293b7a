"""What is wrong with a schema, and how each keyword is treated: everything before lowering.

Only what the root reaches is judged: unused definitions may hold anything of the right form. All independent
faults are collected. Loops of references without a member or item in between are found by depth-first search
over sub-schemas that judge the same value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded, unsupported_keyword
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.document import REFERENCES, Document, Schema
from maskwright.compiler.schema.finite import unique_values
from maskwright.compiler.schema.keywords import KEYWORDS, MAX_DIVISOR, RESIDUAL, Draft, is_number
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.lower import loop
from maskwright.compiler.schema.numbers import remainders

MAX_IN_PLACE = 1000
"""Sub-schemas that judge one value, one inside the other: bounds the lowering's recursion."""

Treatment = tuple[str, str, str]
"""(pointer, keyword, "enforced" | "annotation" | "residual")"""


Residual = dict[tuple[int, str], bool]
"""By signature and keyword: true where the keyword may have to hold, false where it can only have to fail, so
that a
text that might be valid isn't blocked."""


@dataclass
class Findings:
    """`faults` and `limits` passed refuse the schema; `notes` don't. `residual` holds (signature, keyword) of what
    isn't judged."""

    faults: list[Diagnostic] = field(default_factory=list)
    limits: list[LimitExceeded] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    stands: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Signatures by (place of a keyword, keyword): of several where contexts differ."""
    treated: dict[tuple[str, str], str] = field(default_factory=dict)
    residual: Residual = field(default_factory=dict)
    polarity: dict[int, tuple[bool, bool]] = field(default_factory=dict)
    """By signature: whether such a schema may have to hold, and may have to fail."""
    reached: list[Schema] = field(default_factory=list)
    """Every schema that may have to hold, in document order of discovery."""

    @property
    def treatment(self) -> list[Treatment]:
        """What became of each keyword, in document order of discovery; residual goes before the rest."""
        out: list[Treatment] = []
        for (pointer, keyword), how in self.treated.items():
            left = any((s, keyword) in self.residual for s in self.stands.get((pointer, keyword), ()))
            out.append((pointer, keyword, "residual" if left else how))
        return out


def check(document: Document, languages: Languages, options: CompileOptions, limits: Limits) -> Findings:
    """Everything that the root reaches, in document order of discovery. Raises LimitExceeded."""
    found = Findings(faults=list(document.faults), notes=list(document.notes))
    reached = _reach(document, found)
    found.reached = [schema for schema, positive, _ in reached.values() if positive]
    for schema, positive, negative in reached.values():
        before = found.polarity.get(document.signature(schema), (False, False))
        found.polarity[document.signature(schema)] = (before[0] or positive, before[1] or negative)
    # Equal schemas are lowered as one: what may have to fail in one place is treated so in all.
    holding = {signature for signature, (positive, _) in found.polarity.items() if positive}
    checker = _Checker(document, languages, options, holding, found)
    for schema, _, _ in reached.values():
        found.limits += _oversized(schema, limits)
        for keyword in schema.value if isinstance(schema.value, dict) else ():
            checker.check(schema, keyword)
    spread(document, reached, holding, found)
    found.faults += [f for f in document.faults if f not in found.faults]
    if not found.faults and not found.limits:
        found.faults += _loops(document, min(limits.ref_expansion, MAX_IN_PLACE))
    return found


def _reach(document: Document, found: Findings) -> dict[str, tuple[Schema, bool, bool]]:
    """Every schema that the root applies, by pointer: may a value have to satisfy it, may it have to fail
    it."""
    out: dict[str, tuple[Schema, bool, bool]] = {}
    work = [(document.root, True, False)]
    while work:
        schema, positive, negative = work.pop()
        before = out.get(schema.key, (schema, False, False))
        now = (schema, positive or before[1], negative or before[2])
        if now == before:
            continue
        out[schema.key] = now
        below = [
            (child, *_polarity(schema, k, positive, negative))
            for k, _, child in document.children(schema)
            if KEYWORDS[k].treatment != "annotation"
        ]
        for target in document.references(schema):
            if isinstance(target, Schema):
                below.append((target, positive, negative))
            elif isinstance(target, Diagnostic) and target not in found.faults:
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


_SIZES = (
    ("properties", "properties"),
    ("enum", "enum_values"),
    ("anyOf", "branches"),
    ("oneOf", "branches"),
    ("allOf", "branches"),
    ("maxLength", "string_bound"),
    ("minLength", "string_bound"),
    ("maxItems", "array_bound"),
    ("minItems", "array_bound"),
    ("maxContains", "array_bound"),
    ("minContains", "array_bound"),
    ("maxProperties", "array_bound"),
    ("minProperties", "array_bound"),
)
"""Keywords with a size, and the limit on it."""


def _oversized(schema: Schema, limits: Limits) -> Iterator[LimitExceeded]:
    for keyword, limit_name in _SIZES:
        value = schema.get(keyword)
        if value is None:
            continue
        size = len(value) if isinstance(value, list | dict) else value
        limit = getattr(limits, limit_name)
        if is_number(size) and size > limit:
            observed = int(size) if size < 1 << 62 else math.inf
            yield LimitExceeded(limit_name, limit, observed, "schema", pointer=schema.at(keyword))
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "enum"):
        if not schema.has(keyword):
            continue
        value = schema.value[keyword]
        digits = max(map(_digits, value if isinstance(value, list) else [value]), default=0)
        if digits > MAX_DIGITS:
            yield LimitExceeded("number_digits", MAX_DIGITS, digits, "schema", pointer=schema.at(keyword))


MAX_DIGITS = 1000
"""Decimal places on either side of the point that a number of a schema may need when it's written out."""


def _digits(value: Any) -> int:
    """The places that a number needs without an exponent; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return 0
    if isinstance(value, int):
        return int(value.bit_length() * 0.30103) + 1
    exponent = value.as_tuple().exponent
    return max(abs(value.adjusted()), abs(exponent) if isinstance(exponent, int) else 0) + 1


class _Checker:
    """Judges one keyword at a time."""

    def __init__(
        self,
        document: Document,
        languages: Languages,
        options: CompileOptions,
        holding: set[int],
        found: Findings,
    ) -> None:
        self.document, self.languages, self.options = document, languages, options
        self.holding, self.found = holding, found

    def check(self, schema: Schema, keyword: str) -> None:
        pointer, found = schema.at(keyword), self.found
        again = (pointer, keyword) in found.treated
        if not schema.has(keyword):
            found.treated[pointer, keyword] = "annotation"
            found.notes += [] if again else [_ignored(schema, keyword, pointer)]
            return
        treatment = self.treatment(schema, keyword)
        found.treated[pointer, keyword] = treatment
        signature = self.document.signature(schema)
        found.stands.setdefault((pointer, keyword), []).append(signature)
        if treatment == "residual":
            found.residual[signature, keyword] = signature in self.holding
            if self.options.residual == "refuse" and not again:
                found.faults.append(self.refusal(schema, keyword))
        elif treatment == "enforced" and not again:
            _check_patterns(schema, keyword, self.languages, found)

    def refusal(self, schema: Schema, keyword: str) -> Diagnostic:
        if keyword in REFERENCES:
            why = self.document.reference(schema, keyword)
            if isinstance(why, Diagnostic):
                return why
        plain = unsupported_keyword(keyword, schema.at(keyword))
        return replace(plain, message=f"{plain.message}: {RESIDUAL[keyword]}")

    def treatment(self, schema: Schema, keyword: str) -> str:
        value = schema.value[keyword]
        if keyword == "uniqueItems":
            open_set = value is True and unique_values(self.document, schema) is None
            return "residual" if open_set else "enforced"
        if keyword == "multipleOf":
            judged = not is_number(value) or value <= 0 or remainders(value) <= MAX_DIVISOR
            return "enforced" if judged else "residual"
        if keyword == "minProperties":
            return "residual" if _counts_unknown_keys(schema) else "enforced"
        if keyword == "format" and isinstance(value, str):
            return "enforced" if self.languages.enforces(value, schema.dialect.asserts_formats) else "annotation"
        if keyword in REFERENCES:
            why = self.document.reference(schema, keyword)
            return "residual" if isinstance(why, Diagnostic) and why.detail["remote"] else "enforced"
        return KEYWORDS[keyword].treatment


def spread(
    document: Document, reached: dict[str, tuple[Schema, bool, bool]], holding: set[int], found: Findings
) -> None:
    """Marks keywords residual because of a residual keyword below them.

    A residual keyword counts as true where it may have to hold. Under `not`, or where a sub-schema's failing matters
    as much as its holding (`oneOf`, `if`, counted `contains`), that would block texts that may be valid; so the
    keyword around it is left to validation as a whole. So is an unevaluated keyword whose evaluators aren't all known.
    """
    if not found.residual:
        return
    above: dict[str, list[tuple[Schema, str]]] = {}
    for schema, _, _ in reached.values():
        for keyword, _, child in document.children(schema):
            above.setdefault(child.key, []).append((schema, keyword))
        for target in document.references(schema):
            if isinstance(target, Schema):
                above.setdefault(target.key, []).append((schema, "$ref"))
    marked = {s for s, _ in found.residual}
    work = [schema for schema, _, _ in reached.values() if document.signature(schema) in marked]
    seen = {s.key for s in work}
    while work:
        child = work.pop()
        for parent, keyword in above.get(child.key, ()):
            signature = document.signature(parent)
            if parent.key not in reached or (signature, keyword) in found.residual:
                continue
            positive = signature in holding
            if _misjudged(parent, keyword, positive, document.signature(child) in holding):
                found.residual[signature, keyword] = positive
            if _evaluates(keyword):
                found.residual |= {(signature, k): positive for k in UNEVALUATED if parent.has(k)}
            if parent.key not in seen:
                seen.add(parent.key)
                work.append(parent)


def _misjudged(parent: Schema, keyword: str, positive: bool, assumed: bool) -> bool:
    """Whether a keyword can't be judged by a sub-schema in which something is taken for true (`assumed`) or false.
    `positive`: the schema around it may have to hold, else it only has to fail."""
    if _polarity(parent, keyword, True, False) == (True, True):
        return True
    return assumed and positive == (keyword == "not")


UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def _evaluates(keyword: str) -> bool:
    """Whether a sub-schema's annotations count for the schema around it."""
    return keyword == "$ref" or KEYWORDS[keyword].in_place


def _counts_unknown_keys(schema: Schema) -> bool:
    """Whether `minProperties` needs more than one key that the schema doesn't name: they could be one key
    repeated."""
    needed = schema.value["minProperties"]
    named = {*(schema.get("properties") or ()), *(schema.get("required") or ())}
    in_place = any(KEYWORDS[k].in_place for k in schema.value if schema.has(k)) or schema.has("$ref")
    return isinstance(needed, int) and needed > 1 and needed > len(named) + 1 and not in_place


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


def _loops(document: Document, limit: int) -> Iterator[Diagnostic]:
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
                on_path.discard(schema.key)
                done.add(schema.key)
            elif child.key in on_path:
                yield loop(child)
            else:
                _enter(document, child, path, on_path, done)
                if len(path) > limit:
                    raise LimitExceeded("ref_expansion", limit, len(path), "schema", pointer=child.pointer)


def _enter(
    document: Document,
    schema: Schema,
    path: list[tuple[Schema, Iterator[Schema]]],
    on_path: set[str],
    done: set[str],
) -> None:
    if schema.key not in done:
        path.append((schema, _in_place(document, schema)))
        on_path.add(schema.key)


def _in_place(document: Document, schema: Schema) -> Iterator[Schema]:
    yield from (target for target in document.references(schema) if isinstance(target, Schema))
    for keyword, _, child in document.children(schema):
        if KEYWORDS[keyword].in_place:
            yield child
