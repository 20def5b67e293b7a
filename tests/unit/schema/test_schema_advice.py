"""Warnings about what commonly goes wrong: code, place and the next step."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.compiler.diagnostics import Code, Diagnostic
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema


def notes(schema: Any, **options: Any) -> list[Diagnostic]:
    return compile_schema(schema, CompileOptions(**options)).notes


def found(schema: Any, **options: Any) -> list[tuple[str, str | None]]:
    return [(n.code.value, n.pointer) for n in notes(schema, **options)]


def test_what_stands_in_many_places_is_one_diagnostic() -> None:
    word = {"type": "string"}
    (note,) = notes({"type": "object", "properties": {"a": word, "b": word}, "additionalProperties": False})
    assert note.code is Code.UNBOUNDED
    assert note.severity == "warning"
    assert note.hint is not None
    assert note.detail == {"kind": "string", "count": 2, "pointers": ["/properties/a", "/properties/b"]}


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"type": "string"}, [""]),
        ({"type": ["string", "null"], "pattern": "^a*$"}, [""]),
        ({"type": "string", "maxLength": 9}, []),
        ({"type": "string", "enum": ["a"]}, []),
        ({"type": "string", "pattern": "^a{1,3}$"}, []),
        ({"type": "string", "format": "date"}, []),
        ({"type": "string", "format": "uri"}, [""]),
        ({"type": "string", "allOf": [{"maxLength": 3}]}, []),
        ({"type": "string", "anyOf": [{"maxLength": 3}, {}]}, [""]),
        ({"not": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "null"}}, [""]),
        ({"type": "array", "maxItems": 3}, []),
        ({"type": "array", "prefixItems": [{"type": "null"}], "items": False}, []),
    ],
)
def test_unbounded_values(schema: Any, pointers: list[str]) -> None:
    assert [p for code, p in found(schema) if code == "UNBOUNDED"] == pointers


def test_default_bounds_answer_the_warning() -> None:
    schema = {"type": ["string", "array"]}
    assert len(found(schema)) == 2
    assert found(schema, default_max_length=10, default_max_items=10) == []


def test_open_objects() -> None:
    assert found({"type": "object", "properties": {"a": {"type": "null"}}}) == [("OPEN_OBJECT", "")]
    for closed in ({"additionalProperties": False}, {"unevaluatedProperties": {"type": "null"}}, {"maxProperties": 1}):
        assert found({"type": "object", "properties": {"a": {"type": "null"}}, **closed}) == []
    assert found({"type": "object"}) == []


def test_patterns_that_match_anywhere() -> None:
    assert ("UNANCHORED_PATTERN", "") in found({"pattern": "^a", "maxLength": 3})
    assert found({"pattern": "^a$"}) == []


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"then": {"type": "null"}}, "/then"),
        ({"if": {"type": "null"}}, "/if"),
        ({"type": "array", "maxItems": 1, "maxContains": 1}, "/maxContains"),
        ({"type": "integer", "maxLength": 3}, "/maxLength"),
        ({"type": "string", "maxLength": 1, "required": ["a"]}, "/required"),
    ],
)
def test_keywords_without_effect(schema: Any, pointer: str) -> None:
    assert found(schema) == [("IGNORED_KEYWORD", pointer)]


def test_keywords_about_integers_have_effect_under_integer() -> None:
    assert found({"type": "integer", "minimum": 1}) == []
    assert found({"if": {"type": "null"}, "else": {"type": "integer"}}) == []


def test_formats() -> None:
    assert found({"format": "phone"}) == [("UNKNOWN_FORMAT", "/format")]
    assert found({"format": "email"}) == [("NARROWER_FORMAT", "/format")]
    assert found({"format": "email"}, formats="annotate") == []
    assert found({"format": "ipv4"}) == []


def test_values_that_the_type_excludes() -> None:
    assert found({"type": "string", "enum": ["a", 1, "b", None]}) == [
        ("UNREACHABLE", "/enum/1"),
        ("UNREACHABLE", "/enum/3"),
    ]
    assert found({"type": "integer", "enum": [1, 2]}) == []


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}, "b": {}}}, ["/properties/a"]),
        ({"properties": {"a": {"type": "integer", "maxProperties": 0}}, "maxProperties": 0}, ["/properties/a"]),
        ({"properties": {"a": False, "b": {"not": {}}}}, []),
        (
            {"allOf": [{"properties": {"z": {}}}, {"properties": {"a": {}}, "additionalProperties": False}]},
            ["/allOf/0/properties/z"],
        ),
        ({"properties": {"a": {"type": "object", "properties": {"b": {"enum": []}}}}}, ["/properties/a/properties/b"]),
        (
            {"properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/never"}, "minItems": 1}},
             "$defs": {"never": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/never"}}}}},
            ["/properties/a"],
        ),
        ({"if": {"required": ["a"]}, "then": {"properties": {"b": {}}}, "properties": {"a": {}, "b": {}}}, []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["declared", "any"])
def test_properties_that_can_never_be_written(schema: Any, pointers: list[str], order: str) -> None:
    schema = {"type": "object", **schema}
    assert [p for code, p in found(schema, property_order=order) if code == "UNREACHABLE"] == pointers
