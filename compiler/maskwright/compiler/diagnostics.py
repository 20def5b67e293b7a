"""One shape for everything a user is told: `Diagnostic`, `CompileError`, `LimitExceeded`.

A diagnostic has a stable code, the place in the source (a JSON pointer for schemas, a character span for
patterns and grammars), the values that its message mentions (`detail`) and a hint that names the next step.
Messages are rendered from fields: no caller needs to parse text.

Codes (`Code`) are stable: a code's meaning never changes, a new meaning gets a new code. `DIAGNOSTICS.md` lists each
with an example and its cure; it's made from `diagnostic_codes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from maskwright.compiler.deadline import now

Severity = str  # "error" | "warning" | "note"


class Code(StrEnum):
    """Stable names of what can be wrong."""

    INVALID_SOURCE = "INVALID_SOURCE"
    """The source isn't of its kind at all: not JSON, not a schema, a pattern with a syntax error."""
    UNSUPPORTED_KEYWORD = "UNSUPPORTED_KEYWORD"
    """An assertion or applicator that would have to be enforced and isn't."""
    UNSUPPORTED_PATTERN = "UNSUPPORTED_PATTERN"
    """A pattern construct that isn't regular or isn't supported, with its span."""
    UNSUPPORTED_GRAMMAR = "UNSUPPORTED_GRAMMAR"
    """A grammar, or a construct of one, that can't be compiled."""
    UNRESOLVED_REFERENCE = "UNRESOLVED_REFERENCE"
    """A `$ref` whose target isn't in the sources supplied."""
    UNSATISFIABLE = "UNSATISFIABLE"
    """No text at all is in the language."""
    VOCABULARY_INCOMPLETE = "VOCABULARY_INCOMPLETE"
    """The vocabulary can't spell bytes that every member needs."""
    INVALID_VOCABULARY = "INVALID_VOCABULARY"
    """The tokenizer file can't be read, or its decoder isn't a concatenation of token bytes."""
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    """A limit of `Limits` was passed; see `LimitExceeded`."""
    IGNORED_KEYWORD = "IGNORED_KEYWORD"
    """Note: a keyword without effect here (an annotation, or unknown). Warning: one that was meant to have some."""
    UNBOUNDED = "UNBOUNDED"
    """Warning: strings or arrays that may become as long as the model likes."""
    OPEN_OBJECT = "OPEN_OBJECT"
    """Note: objects that take any member besides those declared."""
    UNANCHORED_PATTERN = "UNANCHORED_PATTERN"
    """Warning: a pattern that matches anywhere in the string."""
    UNREACHABLE = "UNREACHABLE"
    """Warning: a property or value that no text has."""
    UNKNOWN_FORMAT = "UNKNOWN_FORMAT"
    """Warning: a format that isn't enforced because nobody knows it."""
    NARROWER_FORMAT = "NARROWER_FORMAT"
    """Note: a format some of whose texts are left out."""
    UNKNOWN_DIALECT = "UNKNOWN_DIALECT"
    """Warning: a `$schema` that names no known draft and no resource supplied."""
    AMBIGUOUS_NAME = "AMBIGUOUS_NAME"
    """Warning: an `$id` or anchor that is given twice."""


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `pointer` is an RFC 6901 JSON pointer; `span` is (start, end) in characters of the source."""

    code: Code
    message: str
    severity: Severity = "error"
    source: str | None = None
    pointer: str | None = None
    span: tuple[int, int] | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    hint: str | None = None

    def __str__(self) -> str:
        place = ""
        if self.pointer is not None:
            place = f" at {self.pointer or '/'}" if self.pointer else " at the root"
        if self.span is not None:
            place += f" at {self.span[0]}..{self.span[1]}"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code.value}{place}: {self.message}{hint}"

    def to_json(self) -> dict[str, Any]:
        """The fields that are set, as JSON values."""
        out: dict[str, Any] = {"code": self.code.value, "severity": self.severity, "message": self.message}
        for name in ("source", "pointer", "hint"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if self.span is not None:
            out["span"] = list(self.span)
        if self.detail:
            out["detail"] = self.detail
        return out


class CompileError(Exception):
    """A source was refused. `diagnostics` holds at least one of severity error."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        self.diagnostics: list[Diagnostic] = [diagnostics] if isinstance(diagnostics, Diagnostic) else list(diagnostics)
        super().__init__("; ".join(str(d) for d in self.diagnostics))


HINTS = {
    "source_bytes": "split the source, or take out descriptions and examples",
    "schema_depth": "give the inner parts names in $defs and refer to them",
    "ref_expansion": "shorten the chain: let references lead to their targets directly",
    "properties": "split the object, or describe its keys by patternProperties",
    "enum_values": "split this enum, or describe its values by a pattern",
    "branches": "split the alternatives by a property that tells them apart, one schema for each",
    "pattern_length": "split the pattern, or bound the length instead",
    "string_bound": "a smaller bound, or none",
    "array_bound": "a smaller bound, or none",
    "frames": "share equal parts through $ref, and split alternatives that are open at once",
    "states": "bound this array or string, split this enum, close this object, or give alternatives a discriminator "
    "that comes first",
    "stack_classes": "give alternatives a discriminator that comes first, or split the source",
    "mask_bytes": "split the source: what is open at once multiplies the masks",
    "artifact_bytes": "split the source",
    "compile_seconds": "simplify the part named, or compile it ahead with the limits of profile large",
    "compile_memory": "simplify the part named, or compile it ahead with the limits of profile large",
    "number_digits": "a bound with fewer digits",
    "multiple_of": "a divisor with fewer digits",
}
"""The next step by limit, where the pass that checks it knows none of its own."""
_HINTS_IN = {
    ("states", "regex"): "bound or anchor what repeats before this: its ends have to be told apart all at once",
    ("states", "strings"): "bound or anchor what repeats in this pattern, or leave the length bound beside it out",
    ("states", "numbers"): "a divisor or bound with fewer digits",
    ("states", "pushdown"): "simplify the terminals, or split the grammar",
    ("states", "liveness"): "simplify the rules that nest, or split the grammar",
}
"""As HINTS, in one pass."""


class LimitExceeded(CompileError):
    """A limit was passed: `limit_name`, `limit`, `observed`, `stage`, and the pointer or span that costs most."""

    def __init__(
        self,
        limit_name: str,
        limit: float,
        observed: float,
        stage: str,
        *,
        pointer: str | None = None,
        span: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> None:
        self.limit_name, self.limit, self.observed, self.stage = limit_name, limit, observed, stage
        super().__init__(
            Diagnostic(
                Code.LIMIT_EXCEEDED,
                f"{limit_name} is {_shown(limit)}, reached {_shown(observed)} in {stage}",
                pointer=pointer,
                span=span,
                detail={
                    "limit_name": limit_name,
                    "limit": limit,
                    "observed": observed if abs(observed) < 1 << 63 else _shown(observed),
                    "stage": stage,
                },
                hint=hint or _HINTS_IN.get((limit_name, stage)) or HINTS.get(limit_name, "simplify this part"),
            )
        )

    def near(self, pointer: str | None) -> LimitExceeded:
        """The same with a pointer, where it has no place yet."""
        d = self.diagnostics[0]
        if d.pointer is None and d.span is None and pointer is not None:
            self.diagnostics[0] = replace(d, pointer=pointer)
            self.args = (str(self.diagnostics[0]),)
        return self


def out_of_time(seconds: float, deadline: float, stage: str, pointer: str | None = None) -> LimitExceeded:
    """The error for a pass that found `deadline` behind it, a `deadline.now` value; `seconds` is what was allowed."""
    observed = round(seconds + now() - deadline, 3)
    return LimitExceeded("compile_seconds", seconds, observed, stage, pointer=pointer)


def gather(faults: Iterable[Diagnostic | LimitExceeded]) -> CompileError:
    """One error for several faults; LimitExceeded, with the others behind its own, where there's one."""
    listed = list(faults)
    limits = [f for f in listed if isinstance(f, LimitExceeded)]
    plain = [f for f in listed if isinstance(f, Diagnostic)]
    if not limits:
        return CompileError(plain)
    first = limits[0]
    first.diagnostics += [d for other in limits[1:] for d in other.diagnostics] + plain
    first.args = ("; ".join(str(d) for d in first.diagnostics),)
    return first


def _shown(number: float) -> str:
    """A number for people; whole numbers may be too large for a float."""
    try:
        return f"{number:g}" if abs(number) >= 1e6 or number != int(number) else str(int(number))
    except OverflowError:
        return f"10^{int(number.bit_length() * 0.30103)}" if isinstance(number, int) else str(number)


def unsupported_keyword(keyword: str, pointer: str) -> Diagnostic:
    """The diagnostic for an assertion or applicator that isn't enforced; `pointer` names the keyword itself."""
    return Diagnostic(
        Code.UNSUPPORTED_KEYWORD,
        f"keyword {keyword!r} isn't enforced",
        pointer=pointer,
        detail={"keyword": keyword},
        hint="remove it or validate it after decoding",
    )
