"""One shape for everything a user is told: `Diagnostic`, `CompileError`, `LimitExceeded`.

A diagnostic has a stable code, the place in the source (a JSON pointer for schemas, a character span for
patterns and grammars), the values that its message mentions (`detail`) and a hint that names the next step.
Messages are rendered from fields: no caller needs to parse text.

Codes used so far (`Code`) are stable: a code's meaning never changes, a new meaning gets a new code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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
    """Note: a keyword without effect here (an annotation, or unknown)."""


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
                hint=hint,
            )
        )


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
