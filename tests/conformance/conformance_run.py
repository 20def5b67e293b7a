"""Judges groups of tests in the form of the official JSON Schema Test Suite, by the byte path.

exact       the text is accepted exactly when the instance is valid (a text that isn't, in no spelling)
narrower    valid and blocked as written, for a reason of the canonical form or of an approximated format
residual    the schema is refused for a keyword that an automaton can't express; with `residual="allow"` it
            compiles, and no valid instance is blocked
refused     the schema is refused for another reason
wrong       an invalid instance is accepted, or a valid one blocked without such a reason
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance_texts import accepts_in_other_spelling, write

from maskwright.compiler.automaton.ir import ByteAutomaton, accepts
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema
from maskwright.compiler.schema.formats import FORMATS

CATEGORIES = ("exact", "narrower", "residual", "refused", "wrong")
"""From best to worst: a baseline only moves to the left."""
LIMITS = Limits(compile_seconds=30.0)


@dataclass(frozen=True)
class Outcome:
    category: str
    why: str = ""


class Subject:
    """One schema, compiled; `blocked` is set when it was refused."""

    def __init__(self, schema: Any, options: Mapping[str, Any], resources: Mapping[str, str]) -> None:
        self.schema, self.source = schema, write(schema)
        self.options, self.resources = dict(options), resources
        self.automaton: ByteAutomaton | None = None
        self.refusal: CompileError | None = None
        self.residual = False
        try:
            self.automaton = self.compiled("refuse")
        except CompileError as e:
            self.refusal = e
            codes = {d.code for d in e.diagnostics}
            if codes == {Code.UNSATISFIABLE}:
                self.refusal = None
            elif codes <= {Code.UNSUPPORTED_KEYWORD, Code.UNRESOLVED_REFERENCE}:
                self.allow()

    def compiled(self, residual: str) -> ByteAutomaton:
        options = CompileOptions(**self.options, residual=residual)  # type: ignore[arg-type]
        return compile_schema(self.source, options, LIMITS, resources=self.resources).automaton

    def allow(self) -> None:
        try:
            self.automaton = self.compiled("allow")
        except CompileError as e:
            if any(d.code is not Code.UNSATISFIABLE for d in e.diagnostics):
                return
        self.residual = True

    def outcome(self, value: Any, valid: bool) -> Outcome:
        if self.refusal is not None and not self.residual:
            return Outcome("refused", str(self.refusal))
        judged = self._judged(value, valid)
        if not self.residual:
            return judged
        blocked = valid and judged.category == "wrong"
        return judged if blocked else Outcome("residual", str(self.refusal))

    def _judged(self, value: Any, valid: bool) -> Outcome:
        automaton = self.automaton
        if automaton is None:
            return Outcome("wrong", "no text is accepted, and one is valid") if valid else Outcome("exact")
        if accepts(automaton, write(value).encode("utf-8", "surrogatepass")):
            return Outcome("exact") if valid else Outcome("wrong", "an invalid text is accepted")
        if not valid:
            # In draft 4 a number with a fraction of zeros is another value than the integer.
            other = accepts_in_other_spelling(automaton, value, self.options["draft"] != "4")
            return Outcome("wrong", "another text of the invalid instance is accepted") if other else Outcome("exact")
        for why, numbers in (("order of keys", False), ("spelling of numbers", True)):
            if accepts_in_other_spelling(automaton, value, numbers):
                return Outcome("narrower", why)
        names = sorted(set(_formats(self.schema)))
        approximated = [n for n in names if FORMATS[n].narrower] if self.options.get("formats") != "annotate" else []
        if approximated:
            return Outcome("narrower", f"format {', '.join(approximated)}")
        return Outcome("wrong", "a valid text is blocked")


def _formats(schema: Any) -> Iterator[str]:
    """Standard formats anywhere in the schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("format"), str) and schema["format"] in FORMATS:
            yield str(schema["format"])
        for below in schema.values():
            yield from _formats(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from _formats(below)


def judge(
    groups: Iterable[Mapping[str, Any]], options: Mapping[str, Any], resources: Mapping[str, str]
) -> Iterator[tuple[str, Outcome]]:
    """("group/test", outcome) by position of every test."""
    for g, group in enumerate(groups):
        subject = Subject(group["schema"], options, resources)
        for t, test in enumerate(group["tests"]):
            yield f"{g}/{t}", subject.outcome(test["data"], test["valid"])
