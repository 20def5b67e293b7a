"""Bounds that options impose on values whose schema has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.automaton.length import measure_length
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema

BOUNDED = CompileOptions(default_max_length=10, default_max_items=3, default_max_digits=4, max_nesting=3)

CASES: list[tuple[Any, list[str], list[str]]] = [
    ({"type": "string"}, ['"0123456789"', '""', '"' + "\\u00e9" * 10 + '"'], ['"01234567890"']),
    ({"type": "string", "minLength": 12}, ['"012345678901"'], ['"0123456789012"', '"0"']),
    ({"type": "string", "maxLength": 20}, ['"' + "a" * 20 + '"'], ['"' + "a" * 21 + '"']),
    ({"type": "string", "pattern": "^a+$"}, ['"' + "a" * 10 + '"'], ['"' + "a" * 11 + '"', '"b"']),
    ({"type": "string", "pattern": "^a{15}$"}, ['"' + "a" * 15 + '"'], []),
    ({"enum": ["a" * 30, 123456]}, ['"' + "a" * 30 + '"', "123456"], []),
    ({"type": "string", "format": "date"}, ['"2020-01-01"'], []),
    ({"items": {"type": "boolean"}, "type": "array"}, ["[true,true,true]"], ["[true,true,true,true]"]),
    ({"minItems": 5, "type": "array"}, ["[1,1,1,1,1]"], ["[1,1,1,1,1,1]"]),
    ({"contains": {"const": 1}, "minContains": 4, "type": "array"}, ["[1,1,1,1]"], ["[1,1,1,1,1]", "[1,1,1]"]),
    ({"maxItems": 5, "type": "array"}, ["[1,1,1,1,1]"], ["[1,1,1,1,1,1]"]),
    ({"prefixItems": [True] * 5, "items": False, "type": "array"}, ["[1,1,1,1,1]"], ["[1,1,1,1,1,1]"]),
    ({"type": "object"}, ['{"a":1,"b":2}', '{"aaaaaaaaaa":1}'], ['{"a":1,"b":2,"c":3,"d":4}', '{"elevenchars":1}']),
    ({"maxProperties": 4, "type": "object"}, ['{"a":1,"b":2,"c":3,"d":4}'], ['{"a":1,"b":2,"c":3,"d":4,"e":5}']),
    ({"patternProperties": {"^x": {"const": 1}}}, ['{"x":1,"xx":1,"y":2}'], ['{"x":1,"y":1,"z":1,"u":1}', '{"x":2}']),
    ({"type": "integer"}, ["1234", "-9999"], ["12345"]),
    ({"type": "number"}, ["1234.5678e1234"], ["12345", "1.23456", "1e12345"]),
    ({"type": "integer", "minimum": 100000}, ["100000", "999999"], ["1000000", "5"]),
    (True, ["[[[1]]]", '{"a":{"b":[]}}'], ["[[[[1]]]]", "[1,2,3,4]", '"aaaaaaaaaaa"']),
    ({"not": {"type": "string", "maxLength": 5}}, ['"123456"', "1"], ['"12345"', '"01234567890"']),
    (
        {"properties": {"name": {"type": "string"}, "a_name_of_many_letters": {"type": "null"}}},
        ['{"name":"x"}', '{"a_name_of_many_letters":null}', '{"a_name":1}'],
        ['{"a_name_of_many":1}', '{"x":1,"y":1,"z":1,"w":1}'],
    ),
    (
        {"anyOf": [{"type": "string", "maxLength": 20, "pattern": "^a"}, {"type": "string", "maxLength": 15}]},
        ['"' + "a" * 20 + '"', '"' + "b" * 15 + '"'],
        ['"' + "b" * 16 + '"'],
    ),
]


@pytest.mark.parametrize(("schema", "inside", "outside"), CASES, ids=lambda v: json.dumps(v)[:40])
def test_imposed(schema: Any, inside: list[str], outside: list[str]) -> None:
    a = minimise(compile_schema(schema, BOUNDED).automaton)
    assert [text for text in inside if not accepts(a, text.encode())] == []
    assert [text for text in outside if accepts(a, text.encode())] == []
    length = measure_length(a)
    assert length.loop is None
    assert length.most is not None
    assert length.least <= min(len(text.encode()) for text in inside)
    assert length.most >= max(len(text.encode()) for text in inside)


def test_large_bounds_are_cheap() -> None:
    options = CompileOptions(default_max_length=1_000_000, default_max_items=100_000, max_nesting=2)
    schema = {"type": "array", "items": {"type": "string"}}
    a = minimise(compile_schema(schema, options, Limits(states=20_000)).automaton)
    length = measure_length(a)
    assert length.most is not None
    assert length.most > 10**11


def test_options_are_in_the_key_only_where_set() -> None:
    assert "default_max" not in CompileOptions().canonical()
    assert '"default_max_items":3' in BOUNDED.canonical()


@pytest.mark.parametrize("name", ["default_max_length", "default_max_items", "default_max_digits", "max_nesting"])
def test_options_are_checked(name: str) -> None:
    for value in (-1, 1.5, True, 10**9):
        with pytest.raises(ValueError, match=name):
            CompileOptions(**{name: value})  # type: ignore[arg-type]
