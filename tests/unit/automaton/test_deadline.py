"""The time limit holds inside the passes that can take long, not only between them."""

from __future__ import annotations

import time

import pytest

from maskwright.compiler import Compiler, LimitExceeded, Limits, Vocabulary

SLOW = [
    ("regex", ".{%d}", 4000),
    ("json_schema", '{"type": "array", "minItems": %d}', 99_999),
    ("json_schema", '{"type": "string", "minLength": %d}', 999_999),
]


def compile_source(compiler: Compiler, kind: str, source: str) -> None:
    compiler.compile_regex(source) if kind == "regex" else compiler.compile_json_schema(source)


@pytest.mark.parametrize(("kind", "source", "size"), SLOW)
def test_the_time_limit_holds(kind: str, source: str, size: int) -> None:
    # On a fresh machine the first use compiles kernels, for as long as that takes.
    compile_source(Compiler(Vocabulary.demo()), kind, source % 300)
    compiler = Compiler(Vocabulary.demo(), limits=Limits(compile_seconds=1.0))
    begin = time.monotonic()
    try:
        compile_source(compiler, kind, source % size)
    except LimitExceeded as refused:
        assert refused.limit_name in ("compile_seconds", "states", "frames", "stack_classes")
    assert time.monotonic() - begin < 10
