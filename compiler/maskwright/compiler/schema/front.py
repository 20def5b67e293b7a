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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.automaton.explore import explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Diagnostic, gather
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.check import Treatment, check
from maskwright.compiler.schema.document import Document
from maskwright.compiler.schema.formula import Space
from maskwright.compiler.schema.goals import Goal
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import root_nest
from maskwright.compiler.schema.lower import Lowering
from maskwright.compiler.schema.read import read_source
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
    source: str | bytes | dict[str, Any] | bool,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
    library: ByteAutomaton | None = None,
    deadline: float | None = None,
) -> SchemaResult:
    """The automaton of the texts of a schema's valid instances in canonical form.

    `deadline` is a `time.monotonic` value. Raises CompileError with every independent fault, LimitExceeded.
    """
    options, limits = options or CompileOptions(), limits or Limits()
    document = Document(read_source(source, limits))
    space = Space()
    languages = Languages(space, options, limits, deadline)
    found = check(document, languages, options, limits)
    if found.faults or found.limits:
        raise gather([*found.limits, *found.faults])
    with deep_recursion():
        lowering = Lowering(document, space, languages, found.residual)
        values = Values(lowering, options, limits, library)
        root = document.root
        frame = RootFrame(values, Goal(lowering.holds(root), (), (root,)), root_nest(options))
        raw = explore(frame, library, limits=limits, deadline=deadline)
        automaton = specialise(raw, limits)
    return SchemaResult(automaton, _with_unjudged(found.treatment, document, values), found.notes)


def _with_unjudged(treatment: list[Treatment], document: Document, values: Values) -> list[Treatment]:
    """What was found residual only while frames were made is marked so at every place that says the same."""
    if not values.unjudged:
        return treatment
    out: list[Treatment] = []
    for pointer, keyword, how in treatment:
        schema = document.schemas[pointer.rpartition("/")[0]]
        left = (document.signature(schema), keyword) in values.unjudged
        out.append((pointer, keyword, "residual" if left else how))
    return out


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises the interpreter's recursion limit for a while; the depth itself is bounded by `check`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
