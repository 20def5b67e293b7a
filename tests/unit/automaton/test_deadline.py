"""The time limit holds inside the passes that can take long, not only between them."""

from __future__ import annotations

import time

import pytest

from maskwright.compiler import Compiler, LimitExceeded, Limits, Vocabulary

SLOW = [
    ("regex", ".{4000}"),
    ("json_schema", '{"type": "array", "minItems": 99999}'),
    ("json_schema", '{"type": "string", "minLength": 999999}'),
]


@pytest.mark.parametrize(("kind", "source"), SLOW)
def test_the_time_limit_holds(kind: str, source: str) -> None:
    compiler = Compiler(Vocabulary.demo(), limits=Limits(compile_seconds=1.0))
    # On a fresh machine the first use compiles kernels, for as long as that takes.
    Compiler(Vocabulary.demo()).compile_json_schema('{"type": "array", "items": {"type": "string", "minLength": 3}}')
    begin = time.monotonic()
    try:
        compiler.compile_regex(source) if kind == "regex" else compiler.compile_json_schema(source)
    except LimitExceeded as refused:
        assert refused.limit_name in ("compile_seconds", "states", "frames", "stack_classes")
    assert time.monotonic() - begin < 10
