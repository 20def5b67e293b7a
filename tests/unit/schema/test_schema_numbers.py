"""Number languages against exact arithmetic."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import compiled

from maskwright.compiler.automaton.ir import accepts

DECIMALS = st.decimals(min_value=-2000, max_value=2000, allow_nan=False, places=2)
BOUNDS = {
    "minimum": lambda v, b: v >= b,
    "exclusiveMinimum": lambda v, b: v > b,
    "maximum": lambda v, b: v <= b,
    "exclusiveMaximum": lambda v, b: v < b,
}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(BOUNDS)), DECIMALS, st.lists(DECIMALS, min_size=1, max_size=20))
def test_bounds_are_exact(keyword: str, bound: Decimal, values: list[Decimal]) -> None:
    schema = f'{{"type": "number", "{keyword}": {bound}}}'
    from maskwright.compiler.schema import compile_schema

    automaton = compile_schema(schema).automaton
    near = [
        bound,
        bound + Decimal("0.001"),
        bound - Decimal("0.001"),
        -bound,
        bound * 10,
        Decimal(0),
        Decimal("-0.0"),
    ]
    for value in [*values, *near]:
        want = BOUNDS[keyword](value, bound)
        assert accepts(automaton, format(value, "f").encode()) == want
        assert accepts(automaton, (format(value, "f") + ("0" if "." in format(value, "f") else ".0")).encode()) == want


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["1", "2", "7", "10", "0.5", "0.01", "2.5", "1e1", "0.3"]),
    st.lists(DECIMALS, min_size=1, max_size=20),
)
def test_multiples_are_exact(divisor: str, values: list[Decimal]) -> None:
    from maskwright.compiler.schema import compile_schema

    automaton = compile_schema(f'{{"type": "number", "multipleOf": {divisor}}}').automaton
    for value in [*values, *(v * Decimal(divisor) for v in values)]:
        want = value % Decimal(divisor) == 0
        assert accepts(automaton, format(value, "f").encode()) == want


def test_bounds_with_exponents_and_large_numbers() -> None:
    automaton = compiled({"type": "integer", "minimum": 1e3, "maximum": 10**30})
    assert accepts(automaton, b"1000")
    assert not accepts(automaton, b"999")
    assert accepts(automaton, b"1" + b"0" * 30)
    assert not accepts(automaton, b"1" + b"0" * 29 + b"1")


def test_number_tables_are_small() -> None:
    assert len(compiled({"type": "integer", "minimum": 0, "maximum": 65535}).edges) < 30
