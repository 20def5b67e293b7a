"""String lengths: every boundary, for characters of every width, and no state per character."""

from __future__ import annotations

import pytest
from schema_texts import compiled, library

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema

CHARS = ["a", "\\u00e9", "é", "\\ud83d\\ude00", "😀", "\\n"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 0),
        (0, 5),
        (1, None),
        (2, 7),
        (10, 10),
        (0, 255),
        (0, 256),
        (1, 256),
        (256, 256),
        (300, 1000),
        (600, 600),
        (257, None),
    ],
)
@pytest.mark.parametrize("with_library", [False, True], ids=["own", "library"])
def test_boundaries(low: int, high: int | None, with_library: bool) -> None:
    schema = {"type": "string", "minLength": low, **({} if high is None else {"maxLength": high})}
    automaton = compiled(schema, library() if with_library else None)
    lengths = {0, 1, low - 1, low, low + 1, *((high - 1, high, high + 1) if high is not None else (2000,))}
    for n in sorted(x for x in lengths if x >= 0):
        for char in CHARS:
            want = low <= n and (high is None or n <= high)
            assert accepts(automaton, f'"{char * n}"'.encode()) == want, (n, char)


@pytest.mark.parametrize("high", [255, 1000, 65536, 1_000_000])
def test_large_bounds_cost_few_states(high: int) -> None:
    automaton = compiled({"type": "string", "maxLength": high}, library())
    assert len(automaton.edges) < 300
    text = "a" * high
    assert accepts(automaton, f'"{text}"'.encode())
    assert not accepts(automaton, f'"{text}a"'.encode())


def test_several_bounds_on_one_string() -> None:
    schema = {
        "oneOf": [
            {"type": "string", "maxLength": 300},
            {"type": "string", "minLength": 200, "maxLength": 900},
        ]
    }
    automaton = compiled(schema, library())
    for n in (0, 199, 200, 300, 301, 900, 901):
        assert accepts(automaton, f'"{"a" * n}"'.encode()) == (n < 200 or 300 < n <= 900)
    inside = compiled({"properties": {"x": schema}}, library())
    assert accepts(inside, f'{{"x":"{"a" * 301}"}}'.encode())
    assert not accepts(inside, f'{{"x":"{"a" * 250}"}}'.encode())


def test_a_length_that_costs_too_much_beside_a_format() -> None:
    schema = {"properties": {"u": {"type": "string", "format": "uri", "maxLength": 65536}}}
    with pytest.raises(LimitExceeded) as e:
        compile_schema(schema, limits=Limits(states=20_000))
    assert e.value.limit_name == "states"
    result = compile_schema(schema, CompileOptions(residual="allow"), Limits(states=20_000))
    assert ("/properties/u/maxLength", "maxLength", "residual") in result.treatment
    assert ("/properties/u/format", "format", "enforced") in result.treatment
    assert accepts(result.automaton, b'{"u": "http://a.b/"}')
    assert not accepts(result.automaton, b'{"u": "/a"}')
