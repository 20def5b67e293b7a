"""What is refused, by code and pointer, and how keywords are reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.compiler.diagnostics import Code, CompileError, LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema


def faults(schema: Any, **options: Any) -> set[tuple[str, str | None]]:
    with pytest.raises(CompileError) as e:
        compile_schema(schema if isinstance(schema, str | bytes) else json.dumps(schema), CompileOptions(**options))
    return {(d.code.value, d.pointer) for d in e.value.diagnostics}


@pytest.mark.parametrize(
    "source",
    [
        "",
        "{",
        "nul",
        "[1]",
        "3",
        '{"a":1,"a":2}',
        '{"minimum": NaN}',
        '{"maximum": 1e999999999, "x": Infinity}',
        '{"const": "\\ud800"}',
        b'{"const": "\xff"}',
        '{"type": ["string"]} x',
        "\ufeff{}",
    ],
)
def test_sources_that_are_not_schemas(source: str | bytes) -> None:
    assert {code for code, _ in faults(source)} == {Code.INVALID_SOURCE.value}


def test_every_fault_is_reported() -> None:
    schema = {
        "type": "strnig",
        "properties": {"a": {"minLength": -1}, "b/c": {"required": "x"}, "d": {"$ref": "#/nowhere"}},
        "anyOf": [],
        "items": {"uniqueItems": True, "items": [1]},
    }
    assert faults(schema) == {
        ("INVALID_SOURCE", "/type"),
        ("INVALID_SOURCE", "/properties/a/minLength"),
        ("INVALID_SOURCE", "/properties/b~1c/required"),
        ("INVALID_SOURCE", "/anyOf"),
        ("INVALID_SOURCE", "/items/items"),
        ("UNRESOLVED_REFERENCE", "/properties/d/$ref"),
        ("UNSUPPORTED_KEYWORD", "/items/uniqueItems"),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
    ],
)
def test_loops_without_a_member_in_between(schema: Any) -> None:
    assert {code for code, _ in faults(schema)} == {"INVALID_SOURCE"}


def test_remote_references_are_not_fetched() -> None:
    assert faults({"items": {"$ref": "http://example.com/x"}}) == {("UNRESOLVED_REFERENCE", "/items/$ref")}


def test_bad_patterns_name_the_place() -> None:
    assert faults({"properties": {"a": {"pattern": "("}}, "patternProperties": {"[": True}}) == {
        ("INVALID_SOURCE", "/properties/a/pattern"),
        ("INVALID_SOURCE", "/patternProperties/["),
    }


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "enum": ["x"]},
        {"required": ["a"], "properties": {"a": False}, "type": "object"},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"not": {}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    ],
)
def test_unsatisfiable(schema: Any) -> None:
    assert {code for code, _ in faults(schema)} == {"UNSATISFIABLE"}


def test_limits() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"not": deep}
    for schema, limits, name in (
        (deep, Limits(), "schema_depth"),
        ({"enum": list(range(10))}, Limits(enum_values=9), "enum_values"),
        ({"properties": {str(i): {} for i in range(10)}}, Limits(properties=9), "properties"),
        ({"maxLength": 10}, Limits(string_bound=9), "string_bound"),
        ({"anyOf": [{"minimum": i} for i in range(10)]}, Limits(branches=9), "branches"),
        ({"description": "x" * 100}, Limits(source_bytes=99), "source_bytes"),
        ({"enum": ["abcdefgh" * 5]}, Limits(states=20), "states"),
        ({"minimum": 0, "pattern": "a" * 10}, Limits(pattern_length=9), "pattern_length"),
    ):
        with pytest.raises(LimitExceeded) as e:
            compile_schema(json.dumps(schema), limits=limits)
        assert e.value.limit_name == name


def test_deep_but_legal_schemas_compile() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(200):
        deep = {"allOf": [deep]} if _ % 2 else {"not": {"not": deep}} if _ % 7 == 0 and _ < 50 else {"anyOf": [deep]}
    try:
        compile_schema(json.dumps(deep))
    except LimitExceeded as e:
        assert e.limit_name == "schema_depth"
    chain: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(500)}
    compile_schema({"$defs": {**chain, "d500": {"type": "null"}}, "$ref": "#/$defs/d0"})


def test_treatment_of_keywords() -> None:
    result = compile_schema(
        {"type": "string", "title": "t", "format": "date", "x-unit": 1, "uniqueItems": True, "then": {}},
        CompileOptions(residual="allow"),
    )
    assert set(result.treatment) == {
        ("/type", "type", "enforced"),
        ("/title", "title", "annotation"),
        ("/format", "format", "enforced"),
        ("/x-unit", "x-unit", "annotation"),
        ("/uniqueItems", "uniqueItems", "residual"),
        ("/then", "then", "enforced"),
    }
    ignored = [(n.severity, n.pointer) for n in result.notes if n.code is Code.IGNORED_KEYWORD]
    assert ignored == [("note", "/x-unit"), ("warning", "/uniqueItems"), ("warning", "/then")]


def test_unused_definitions_do_not_matter() -> None:
    compile_schema({"$defs": {"a": {"uniqueItems": True, "$dynamicRef": "#x", "$ref": "#/nope"}}, "type": "null"})
