"""Undeclared keys that repeat: readers keep the last value, so none that was replaced may make a text valid."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from schema_texts import compiled

from maskwright.compiler.automaton.ir import accepts

NOT_ALL = {"type": "object", "not": {"additionalProperties": {"type": "integer"}}}
ONE_MAP = {"oneOf": [{"additionalProperties": {"type": "integer"}}, {"patternProperties": {"^a": {"minimum": 3}}}]}
IF_MAP = {"if": {"patternProperties": {"^a": {"type": "null"}}}, "then": {"maxProperties": 1}}
WATCHED = {"not": {"properties": {"m": {"additionalProperties": {"type": "integer"}}}, "required": ["m"]}}
REST = {"oneOf": [{"required": ["k"], "unevaluatedProperties": {"type": "null"}}, {"properties": {"k": {"const": 1}}}]}


@pytest.mark.parametrize("schema", [NOT_ALL, ONE_MAP, IF_MAP, WATCHED, REST])
def test_a_value_that_was_replaced_makes_no_text_valid(schema: dict[str, Any]) -> None:
    automaton, oracle = compiled(schema), jsonschema_rs.Draft202012Validator(schema)
    members = [f'"{key}": {value}' for key in ("ab", "x") for value in ("1", "5", "null")]
    taken = 0
    for first in members:
        for second in members:
            for third in (None, *members):
                inner = "{" + ", ".join(m for m in (first, second, third) if m) + "}"
                text = {id(WATCHED): f'{{"m": {inner}}}', id(REST): f'{{"k": 1, {inner[1:]}'}.get(id(schema), inner)
                if accepts(automaton, text.encode()):
                    taken += 1
                    assert oracle.is_valid(json.loads(text)), text
    assert taken


def test_a_failure_counts_until_it_may_have_been_replaced() -> None:
    taken = compiled(NOT_ALL)
    assert accepts(taken, b'{"y": 1, "x": null}')
    assert accepts(taken, b'{"x": null, "y": null}')
    assert not accepts(taken, b'{"x": null, "y": 1}')
    assert accepts(taken, b'{"x": null, "y": 1, "z": null}')


def test_keys_of_other_patterns_replace_nothing() -> None:
    taken = compiled({"type": "object", "not": {"patternProperties": {"^a": {"type": "integer"}, "^b": {}}}})
    assert accepts(taken, b'{"a": null, "b": 1}')
    assert not accepts(taken, b'{"a": null, "aa": 1}')


def test_a_declared_key_comes_once_and_fails_for_good() -> None:
    taken = compiled({"type": "object", "not": {"properties": {"a": {"type": "integer"}}}})
    assert accepts(taken, b'{"a": null, "b": 1, "b": 2}')
