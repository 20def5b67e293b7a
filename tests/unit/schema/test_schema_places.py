"""Frames carry the place in the schema that they come from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema


def places(schema: Any, **options: Any) -> list[tuple[str, str]]:
    automaton = minimise(compile_schema(json.dumps(schema), CompileOptions(**options)).automaton)
    return [(f.name, f.pointer) for f in automaton.frames if f.pointer]


def test_a_frame_takes_the_place_of_its_sub_schema() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "pattern": "^b"},
            "b": {"type": "array", "items": {"minimum": 3, "type": "integer"}},
            "c": {"type": "object", "properties": {"d": {"enum": ["x", "y"]}}, "additionalProperties": False},
        },
        "additionalProperties": False,
    }
    assert sorted(places(schema)) == [
        ("array", "/properties/b"),
        ("enum", "/properties/c/properties/d"),
        ("number", "/properties/b/items"),
        ("object", "/properties/c"),
        ("string", "/properties/a"),
    ]


def test_of_several_sub_schemas_the_one_that_all_its_atoms_stand_in() -> None:
    branches = {"anyOf": [{"type": "string", "pattern": "^a+$"}, {"type": "integer", "minimum": 2}, {"type": "null"}]}
    found = places({"type": "array", "items": branches})
    assert ("string", "/items/anyOf/0") in found
    assert ("number", "/items/anyOf/1") in found


def test_of_mixed_atoms_the_schema_that_judges_the_value() -> None:
    mixed = {"pattern": "^a+$", "anyOf": [{"maxLength": 3}, {"minLength": 5}], "type": "string"}
    assert ("string", "/items") in places({"type": "array", "items": mixed})


def test_a_reference_gives_the_place_of_what_it_leads_to() -> None:
    node = {"type": "object", "properties": {"v": {"type": "integer", "minimum": 1}}, "additionalProperties": False}
    schema = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, "$defs": {"n": node}}
    assert places(schema) == [
        ("object", "/$defs/n"),
        ("number", "/$defs/n/properties/v"),
    ]


def test_an_atom_met_elsewhere_first_does_not_lend_its_place() -> None:
    schema = {
        "prefixItems": [
            {"type": "object", "required": ["id"], "maxProperties": 1},
            {"type": "object", "required": ["id"]},
        ],
        "items": False,
    }
    assert [p for name, p in places(schema) if name == "object"] == ["/prefixItems/0", "/prefixItems/1"]


def test_values_of_an_enum_take_the_place_of_the_enum() -> None:
    found = places({"properties": {"a#b": {"enum": [{"k": [1]}, 2]}}, "additionalProperties": False})
    assert {p for _, p in found} == {"/properties/a#b"}


def test_equal_frames_are_merged_and_the_first_place_stays() -> None:
    word = {"type": "string", "pattern": "^[a-f]+$"}
    schema = {"properties": {"x": word, "y": word, "z": word}, "additionalProperties": False}
    assert places(schema) == [("string", "/properties/x")]
    assert places(schema) == places(schema)


def test_a_passed_limit_names_the_part_that_costs_most() -> None:
    costly = {"type": "array", "items": {"enum": list(range(10))}, "uniqueItems": True}
    schema = {"properties": {"cheap": {"type": "array", "items": {"const": 1}}, "costly": costly}}
    with pytest.raises(LimitExceeded) as caught:
        compile_schema(json.dumps(schema), limits=Limits(states=2_000))
    assert caught.value.limit_name == "states"
    pointer = caught.value.diagnostics[0].pointer
    assert pointer == "/properties/costly/items"  # a frame for each set of values seen


def test_lengths_left_to_validation_are_named_where_they_stand() -> None:
    name = {"type": "string", "pattern": "^(a*b){9}c*$", "maxLength": 300}
    schema = {"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "array", "items": name}}, "$defs": {"n": name}}
    result = compile_schema(json.dumps(schema), CompileOptions(residual="allow"), Limits(states=1_000))
    left = [p for p, _, how in result.treatment if how == "residual"]
    assert sorted(left) == ["/$defs/n/maxLength", "/properties/b/items/maxLength"]
