"""Shortcuts for the schema tests: compile without a library, judge texts by the byte path."""

from __future__ import annotations

import functools
import json
from typing import Any

from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.ir import ByteAutomaton, accepts, verify
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema, library_frames


@functools.cache
def library() -> ByteAutomaton:
    """The frames of a vocabulary pack."""
    return minimise(specialise(explore_library(library_frames(CompileOptions.max_whitespace))))


def compiled(schema: Any, base: ByteAutomaton | None = None, **options: Any) -> ByteAutomaton:
    automaton = compile_schema(json.dumps(schema), CompileOptions(**options), library=base).automaton
    assert verify(automaton) == []
    return automaton


def judge(schema: Any, good: list[str], bad: list[str], base: ByteAutomaton | None = None, **options: Any) -> None:
    """Asserts that the texts are in the language and not in it."""
    automaton = compiled(schema, base, **options)
    assert [t for t in good if not accepts(automaton, t.encode())] == []
    assert [t for t in bad if accepts(automaton, t.encode())] == []
