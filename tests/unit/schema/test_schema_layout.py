"""Whitespace modes, nesting limits."""

from __future__ import annotations

import json

import pytest
from schema_texts import compiled, judge, library

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.diagnostics import CompileError

RECORD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array"}},
    "required": ["a"],
}


def test_compact_takes_no_whitespace() -> None:
    judge(
        RECORD,
        ['{"a":1,"b":[1,{}]}'],
        ['{"a": 1}', '{"a":1, "b":[]}', '{"a":1,"b":[1, 2]}'],
        whitespace="compact",
    )


@pytest.mark.parametrize("bound", [1, 3, 16])
def test_flexible_gaps_are_bounded(bound: int) -> None:
    gap = " \t\r\n" * 5
    full, over = gap[:bound], gap[: bound + 1]
    texts = [
        "{%s}",
        '{%s"a":1}',
        '{"a"%s:1}',
        '{"a":%s1}',
        '{"a":1%s}',
        '{"a":1%s,"b":[]}',
        '{"a":1,%s"b":[]}',
        '{"a":1,"b":[%s1%s,%s{%s"x"%s:%s2%s}%s]}',
    ]
    schema = {**RECORD, "required": []}
    good = [t.replace("%s", g) for t in texts for g in ("", full)]
    bad = [t.replace("%s", over) for t in texts] + [f" {good[0]}", f"{good[0]} "]
    judge(schema, good, bad, library(), max_whitespace=bound)


@pytest.mark.parametrize("indent", [0, 1, 2, 4])
def test_indent_is_the_layout_of_json_dumps(indent: int) -> None:
    values = [
        {"a": 1},
        {"a": 1, "b": []},
        {"a": 1, "b": [[], {}, [1, [2]], {"x": {"y": None}}], "c": "d"},
        {"a": 2, "é": [""]},
    ]
    automaton = compiled(RECORD, library(), whitespace=indent)
    for value in values:
        assert accepts(automaton, json.dumps(value, indent=indent, ensure_ascii=False).encode())
        assert not accepts(automaton, json.dumps(value, ensure_ascii=False).encode())
        assert not accepts(automaton, json.dumps(value, indent=indent + 1, ensure_ascii=False).encode())


def test_nesting_is_bounded() -> None:
    good, bad = "[" * 3 + "]" * 3, "[" * 4 + "]" * 4
    judge({"type": "array"}, [good, '[{"a":[1]}]'], [bad, '[{"a":[[1]]}]', "{}"], max_nesting=3)


def test_recursion_that_must_go_too_deep_is_never_begun() -> None:
    tree = {
        "type": "object",
        "properties": {
            "left": {"$ref": "#"},
            "leaf": {"type": "object", "required": ["x"], "properties": {"x": {"type": "array"}}},
        },
        "required": ["leaf"],
    }
    good = '{"leaf":{"x":[]}}'
    judge(tree, [good], [f'{{"left":{good},"leaf":{{"x":[]}}}}'], max_nesting=3)
    with pytest.raises(CompileError, match="UNSATISFIABLE"):
        compiled(tree, max_nesting=2)


def test_indent_has_a_default_nesting_limit() -> None:
    automaton = compiled({}, whitespace=1)
    nested: list[object] = []
    for _ in range(11):
        nested = [nested]
    assert accepts(automaton, json.dumps(nested, indent=1).encode())
    assert not accepts(automaton, json.dumps([nested], indent=1).encode())
