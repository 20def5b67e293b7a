"""Schemas without instances are refused with the keywords that exclude each other."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema

WORD = {"enum": ["a", "b"], "minLength": 4}
NODE = {"type": "object", "required": ["v"], "properties": {"v": WORD}}


def refusal(schema: Any, **options: Any) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        compile_schema(schema, CompileOptions(**options))
    (found,) = caught.value.diagnostics
    assert found.code is Code.UNSATISFIABLE
    return found


@pytest.mark.parametrize(
    ("schema", "conflict"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 2, "title": "t"}, ["/type", "/minimum", "/maximum"]),
        (
            {"type": "object", "properties": {"a": False, "b": {}}, "required": ["a"]},
            ["/type", "/properties", "/required"],
        ),
        (
            {"type": "object", "required": ["x"], "properties": {"a": {}}, "additionalProperties": False},
            ["/type", "/required", "/additionalProperties"],
        ),
        (
            {"allOf": [{"type": "string"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": ["integer", "null"]}}},
            ["/allOf/0/type", "/$defs/a/type"],
        ),
        (
            {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
            ["/type", "/properties", "/required"],
        ),
        ({"const": 1, "not": {"type": "number"}, "maximum": 7}, ["/const", "/not/type"]),
        ({"oneOf": [{"minimum": 3}, {"minimum": 3}], "minLength": 3}, ["/oneOf"]),
        ({"enum": []}, ["/enum"]),
        ({"type": "string", "pattern": "^a", "allOf": [{"pattern": "b$"}, {"maxLength": 1}]},
         ["/type", "/pattern", "/allOf/0/pattern", "/allOf/1/maxLength"]),
        (
            {"prefixItems": [{"type": "integer", "maximum": 1}], "items": False, "type": "array", "minItems": 2},
            ["/type", "/items", "/minItems"],
        ),
        (
            {"type": "array", "minItems": 1, "maxItems": 9, "items": NODE},
            ["/type", "/minItems", "/items/type", "/items/required", *(f"/items/properties/v/{k}" for k in WORD)],
        ),
        (
            {"type": "object", "minProperties": 1, "propertyNames": False},
            ["/type", "/minProperties", "/propertyNames"],
        ),
        (False, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whitespace", ["flexible", 2])
def test_smallest_conflicts(schema: Any, conflict: list[str] | None, whitespace: Any) -> None:
    found = refusal(schema, residual="allow", whitespace=whitespace)
    if conflict is None:
        assert found.pointer == ""
    else:
        assert sorted(found.detail["conflict"]) == sorted(conflict)
        assert all(pointer in found.message for pointer in conflict)
        assert found.hint


def without(schema: Any, pointer: str) -> Any:
    out = copy.deepcopy(schema)
    *path, last = pointer.split("/")[1:]
    at = out
    for key in path:
        at = at[int(key)] if isinstance(at, list) else at[key]
    del at[last]
    return out


def test_each_keyword_of_a_conflict_is_needed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 3},
            "b": {"type": "array", "minItems": 2, "items": NODE, "uniqueItems": False},
        },
        "required": ["a", "b"],
        "maxProperties": 5,
    }
    for pointer in refusal(schema).detail["conflict"]:
        assert compile_schema(without(schema, pointer)).automaton.edges


def test_equal_schemas_are_switched_together() -> None:
    bad = {"type": "integer", "minimum": 3, "maximum": 2}
    schema = {"type": "object", "properties": {"a": bad, "b": bad}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    found = refusal(schema).detail["conflict"]
    assert {"/properties/a/minimum", "/properties/a/maximum"} < set(found)


def test_no_explanation_beyond_the_probes_limits() -> None:
    words = {"enum": [f"{i:05}" for i in range(4_000)], "maxLength": 3}
    schema = {"type": "object", "required": ["w"], "properties": {"w": words}}
    with pytest.raises(CompileError) as caught:
        compile_schema(schema, limits=Limits(states=40))
    assert caught.value.diagnostics[0].code in (Code.UNSATISFIABLE, Code.LIMIT_EXCEEDED)
