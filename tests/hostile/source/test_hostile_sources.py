"""Every hostile source ends in an artifact or in typed diagnostics that name a place, within its limits.

Time and memory are held by the compiler's own limits, which the sources are given small; what's asserted of memory is
that it stays far below what the sources ask for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hostile_sources import SOURCES, Hostile

from maskwright.compiler import CompileError, CompileOptions, Compiler, Diagnostic, Limits, Vocabulary
from maskwright.compiler.memory import MemoryUse

LIMITS = replace(Limits.profile("strict"), compile_seconds=60.0)
MOST_BYTES = 800 << 20


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.demo()


@pytest.mark.parametrize("name", SOURCES)
def test_ends_typed(name: str, vocabulary: Vocabulary) -> None:
    hostile = SOURCES[name]
    source = hostile.make()
    memory = MemoryUse()
    compiler = Compiler(vocabulary, CompileOptions(**hostile.options), LIMITS)
    try:
        result = getattr(compiler, f"compile_{hostile.kind}")(source)
        assert result.report.artifact_bytes == len(result.to_bytes())
        codes = {"artifact"}
    except CompileError as error:
        codes = {d.code.value for d in error.diagnostics if d.severity == "error"}
        assert [d for d in error.diagnostics if not _placed(d, hostile)] == []
    assert not hostile.gives or codes == set(hostile.gives)
    assert memory.peak() < MOST_BYTES


def _placed(d: Diagnostic, hostile: Hostile) -> bool:
    """A pointer or span, or what a grammar's diagnostic names; a limit on the source as a whole has no place."""
    whole = d.detail.get("limit_name") in ("source_bytes", "grammar_rules")
    return whole or d.pointer is not None or d.span is not None or hostile.kind in ("lark", "gbnf")


def test_there_are_enough_of_them() -> None:
    assert len(SOURCES) >= 60
    assert {h.kind for h in SOURCES.values()} == {"json_schema", "regex", "lark", "gbnf", "tools"}
