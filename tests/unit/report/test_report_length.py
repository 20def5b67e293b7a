"""Whether texts are bounded, and by how much: against brute force on random automata, and on sources."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, initial, may_end, step
from maskwright.compiler.automaton.length import measure_length
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.schema import compile_schema

BOUNDED: list[tuple[Any, int, int]] = [
    ({"enum": ["a", "bcd"]}, 3, 5),
    ({"type": "integer", "minimum": 0, "maximum": 300}, 1, 3),
    ({"type": "boolean"}, 4, 5),
    ({"type": "array", "items": {"const": None}, "maxItems": 3}, 2, 16),
    ({"type": "array", "items": {"const": None}, "minItems": 40, "maxItems": 100}, 201, 501),
    (
        {
            "type": "object",
            "properties": {"a": {"const": ""}, "b": {"const": None}},
            "maxProperties": 2,
            "additionalProperties": False,
        },
        2,
        17,
    ),
    ({"type": "string", "pattern": "^[ab]{2,3}$"}, 4, 20),
]

UNBOUNDED: list[tuple[Any, str, str, bytes]] = [
    ({"type": "string"}, "string", "", b'"'),
    ({"type": "integer"}, "number", "", b"1"),
    ({"type": "array", "items": {"const": None}}, "array", "", b"[null"),
    ({"type": "array", "items": {"$ref": "#"}, "maxItems": 2}, "nesting", "", b"["),
    (
        {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}, "additionalProperties": False},
        "string",
        "",
        b'{"n":"',
    ),
    (
        {"prefixItems": [{"const": ""}, {"type": "array", "items": {"const": ""}}], "items": False, "type": "array"},
        "array",
        "/prefixItems/1",
        b'["",[""',
    ),
]


def automaton(schema: Any) -> ByteAutomaton:
    return minimise(compile_schema(schema, CompileOptions(whitespace="compact")).automaton)


@pytest.mark.parametrize(("schema", "least", "most"), BOUNDED)
def test_bounded(schema: Any, least: int, most: int) -> None:
    length = measure_length(automaton(schema))
    assert (length.least, length.most, length.loop) == (least, most, None)


@pytest.mark.parametrize(("schema", "name", "pointer", "after"), UNBOUNDED)
def test_unbounded(schema: Any, name: str, pointer: str, after: bytes) -> None:
    a = automaton(schema)
    length = measure_length(a)
    assert length.most is None
    assert length.loop is not None
    assert (length.loop.name, length.loop.pointer, length.loop.after) == (name, pointer, after)


@pytest.mark.parametrize(("schema", "least", "most"), [c for c in BOUNDED if c[2] < 30])
def test_bounds_are_reached(schema: Any, least: int, most: int) -> None:
    found = lengths(automaton(schema), most + 2)
    assert (min(found), max(found)) == (least, most)


def lengths(a: ByteAutomaton, most: int) -> set[int]:
    """The lengths of all texts up to `most` bytes, by following every configuration."""
    level: set[Configuration] = {initial(a)}
    out = set()
    for n in range(most + 1):
        if any(may_end(a, c) for c in level):
            out.add(n)
        level = {after for c in level for b in range(256) if (after := step(a, c, b)) is not None}
    return out


def test_reports_of_all_kinds() -> None:
    compiler = Compiler(Vocabulary.demo(), CompileOptions(default_max_length=5))
    bounded = compiler.compile_json_schema({"type": "string"}).report
    assert (bounded.bounded, bounded.unbounded, bounded.bounded_by) == (True, None, ("default_max_length",))
    assert bounded.to_json()["bounded"] is True
    assert compiler.compile_regex("a{2,4}").report.max_bytes == 4
    assert compiler.compile_gbnf('root ::= "a" | "bcd"').report.max_bytes == 3
    lark = compiler.compile_lark('start: "a" start "b" | "c"\n').report
    assert lark.unbounded is not None
    assert lark.unbounded.what == "nesting"
    assert "max_nesting" not in lark.unbounded.hint
    number = compiler.compile_json_schema({"type": "number"}).report
    assert number.unbounded is not None
    assert "default_max_digits" in number.unbounded.hint
