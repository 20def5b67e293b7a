"""Bounds that are too large are refused by name and place, at once, however they're spelled."""

from __future__ import annotations

import json
import time
from typing import Literal

import pytest

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.diagnostics import Code, CompileError, LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema


@pytest.mark.parametrize(
    ("source", "limit_name"),
    [
        ('{"maxLength": 1e7}', "string_bound"),
        ('{"maxLength": 1e30}', "string_bound"),
        ('{"minLength": 10000000}', "string_bound"),
        ('{"maxItems": 1e6}', "array_bound"),
        ('{"minItems": 1000000}', "array_bound"),
        ('{"maxProperties": 1e30}', "array_bound"),
        ('{"contains": {}, "minContains": 1000000}', "array_bound"),
        ('{"multipleOf": 1e4000}', "number_digits"),
        ('{"minimum": 1e99999999999}', "number_digits"),
        ('{"exclusiveMaximum": 1e-99999}', "number_digits"),
        ('{"enum": [1, 1e5000]}', "number_digits"),
        ('{"const": 1e5000}', "number_digits"),
    ],
)
def test_large_bounds_are_refused(source: str, limit_name: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(LimitExceeded) as refused:
        compile_schema(source, CompileOptions(), Limits(), None, None)
    assert refused.value.limit_name == limit_name
    assert json.dumps([d.to_json() for d in refused.value.diagnostics])
    assert time.perf_counter() - begin < 5


def test_a_divisor_with_many_remainders_is_residual() -> None:
    for divisor in ("1e400", "0.123456789", "20001"):
        source = f'{{"multipleOf": {divisor}}}'
        with pytest.raises(CompileError) as refused:
            compile_schema(source)
        (found,) = refused.value.diagnostics
        assert (found.code, found.pointer) == (Code.UNSUPPORTED_KEYWORD, "/multipleOf")
        left = compile_schema(source, CompileOptions(residual="allow"))
        assert left.treatment == [("/multipleOf", "multipleOf", "residual")]
        assert accepts(left.automaton, b"1")


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        ("12345678901234567890123456789.5", "12345678901234567890123456789.5", "12345678901234567890123456789.4"),
        ("-0.10000000000000000000000000000000001", "-0.1", "-0.10000000000000000000000000000000002"),
    ],
)
def test_numbers_are_never_rounded(bound: str, inside: str, outside: str) -> None:
    automaton = compile_schema(f'{{"minimum": {bound}}}').automaton
    assert accepts(automaton, inside.encode())
    assert not accepts(automaton, outside.encode())
    one = f'{{"enum": [{bound}, {outside}]}}'
    values = compile_schema(f'{{"items": {one}, "uniqueItems": true}}').automaton
    assert accepts(values, f"[{bound}, {outside}]".encode())
    assert not accepts(values, f"[{bound}, {bound}0]".encode())


def test_a_bound_may_be_spelled_with_an_exponent() -> None:
    result = compile_schema('{"type": "string", "maxLength": 2e0}', CompileOptions(), Limits(), None, None)
    assert result.automaton.edges


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"if": {"required": ["k"]}, "then": {"maxProperties": 1}}, ['{"a":1,"b":1}', '{"k":1}'], ['{"k":1,"b":1}']),
        ({"dependentSchemas": {"k": {"maxProperties": 2}}}, ['{"a":1,"c":2,"d":3}'], ['{"k":1,"c":2,"d":3}']),
    ],
)
def test_a_count_that_a_missing_key_makes_void(
    order: Literal["declared", "any"], schema: dict[str, object], accepted: list[str], refused: list[str]
) -> None:
    options = CompileOptions(property_order=order)
    a = compile_schema({"type": "object", **schema}, options, Limits(), None, None).automaton
    assert [t for t in (*accepted, *refused) if accepts(a, t.encode())] == accepted
