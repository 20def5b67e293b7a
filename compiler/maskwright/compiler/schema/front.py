"""Schema text to byte automaton: the front end's pipeline.

read        text -> value                                        (read.py)
index       value -> sub-schemas, references                     (document.py)
check       faults, treatment of each keyword                    (check.py)
lower       sub-schemas -> formulas, when a value is judged      (lower.py)
explore     frames -> byte automaton                             (values.py, ../automaton/explore.py)
specialise  cut what can't finish                                (../automaton/specialise.py)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from maskwright.compiler.automaton.explore import Frame, State, explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, gather
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.advise import advise, unreachable
from maskwright.compiler.schema.check import Findings, Residual, Treatment, check
from maskwright.compiler.schema.conflict import unsatisfiable
from maskwright.compiler.schema.document import Document
from maskwright.compiler.schema.formula import Space
from maskwright.compiler.schema.goals import Goal
from maskwright.compiler.schema.keywords import DRAFTS
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import root_nest
from maskwright.compiler.schema.lower import Lowering
from maskwright.compiler.schema.read import Source, read_resources, read_source
from maskwright.compiler.schema.values import RootFrame, Values

RECURSION = 20_000
"""Lowering recurses over sub-schemas that judge one value (`check.MAX_IN_PLACE` of them at most)."""


@dataclass(frozen=True)
class SchemaResult:
    """`automaton` is explored and specialised; `treatment` says for each keyword (pointer, keyword,
    treatment)."""

    automaton: ByteAutomaton
    treatment: list[Treatment]
    notes: list[Diagnostic]


def compile_schema(
    source: Source,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
    library: ByteAutomaton | None = None,
    deadline: float | None = None,
    resources: Mapping[str, Source] | None = None,
) -> SchemaResult:
    """The automaton of the texts of a schema's valid instances in canonical form.

    `resources`: schemas by URI (without fragment) that references may lead to. `deadline` is a `deadline.now`
    value. Raises CompileError with every independent fault, LimitExceeded.
    """
    options, limits = options or CompileOptions(), limits or Limits()
    try:
        return _compile(read_source(source, limits), options, limits, library, deadline, resources or {})
    except CompileError as e:
        e.diagnostics = [in_its_source(d) for d in e.diagnostics]
        raise


def _compile(
    value: Any,
    options: CompileOptions,
    limits: Limits,
    library: ByteAutomaton | None,
    deadline: float | None,
    resources: Mapping[str, Source],
) -> SchemaResult:
    document = Document(value, DRAFTS[options.draft], read_resources(resources, limits))
    space = Space()
    languages = Languages(space, options, limits, deadline)
    found = check(document, languages, options, limits)
    if found.faults or found.limits:
        raise gather([*found.limits, *found.faults])
    seen: dict[Frame, dict[State, int]] = {}
    kept: set[int] = set()
    frame = judge_root(document, languages, found.residual, options, limits, library)
    with deep_recursion(), closing(frame.values):
        raw = explore(frame, library, limits=limits, deadline=deadline, seen=seen)
        automaton = _live(raw, frame, found, limits, deadline, kept)
        found.notes += advise(document, found.reached, languages, options)
        found.notes += unreachable(frame.values, seen, kept)
    found.residual |= dict.fromkeys(frame.values.unjudged, True)
    return SchemaResult(automaton, found.treatment, [in_its_source(d) for d in found.notes])


def judge_root(
    document: Document,
    languages: Languages,
    residual: Residual,
    options: CompileOptions,
    limits: Limits,
    library: ByteAutomaton | None,
) -> RootFrame:
    lowering = Lowering(document, languages.space, languages, residual)
    root = document.root
    goal = Goal(lowering.holds(root), (), (root,))
    return RootFrame(Values(lowering, options, limits, library), goal, root_nest(options))


def _live(
    raw: ByteAutomaton, frame: RootFrame, found: Findings, limits: Limits, deadline: float | None, kept: set[int]
) -> ByteAutomaton:
    """Specialised. A schema without instances is refused with the smallest conflict found."""
    try:
        return specialise(raw, limits, kept)
    except CompileError as e:
        if any(d.code is not Code.UNSATISFIABLE for d in e.diagnostics):
            raise
    values, low = frame.values, frame.values.lowering

    def explored(residual: Residual, states: int) -> ByteAutomaton:
        small = replace(limits, states=min(states, limits.states))
        compact = replace(values.options, whitespace="compact", property_order="declared")  # no verdict changes
        languages = Languages(low.space, compact, small, deadline, known=low.languages)
        top = judge_root(low.document, languages, residual, compact, small, values.library)
        with closing(top.values):
            return explore(top, values.library, limits=small, deadline=deadline)

    raise CompileError(unsatisfiable(found, explored))


def in_its_source(diagnostic: Diagnostic) -> Diagnostic:
    """A place in a supplied resource as the resource's URI and a pointer in it."""
    uri, found, pointer = (diagnostic.pointer or "").partition("#")
    if not found or uri.startswith("/") or not uri:
        return diagnostic
    return replace(diagnostic, source=uri, pointer=pointer)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises the interpreter's recursion limit for a while; the depth itself is bounded by `check`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
