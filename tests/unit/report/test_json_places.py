"""From pointers to spans, against `json` itself; and the faults of a text, all with their places."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.json_places import locate, make_pointer, parse_pointer, unescape, values
from maskwright.compiler.schema import compile_schema
from maskwright.registry.cli.excerpts import describe

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
JSON = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3))


def walk(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value), *(found for k, v in below for found in walk(v, (*path, str(k))))]


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
@settings(deadline=None, max_examples=80)
def test_values_are_where_json_has_them(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = list(values(text))
    assert [v.path for v in found] == [path for path, _ in walk(value)]
    for place, (path, expected) in zip(found, walk(value), strict=True):
        token = text[slice(*place.span)]
        assert token == "{" if isinstance(expected, dict) else token == "[" if isinstance(expected, list) else True
        if not isinstance(expected, dict | list):
            assert json.loads(token) == expected
        assert parse_pointer(make_pointer(path)) == path
        if place.key is not None:
            assert unescape(text[slice(*place.key)]) == path[-1]


def test_locating() -> None:
    text = '{"a": [1, {"b/c": 2}], "d": {}}'
    expected = {"": "{", "/a": '"a"', "/a/1/b~1c": '"b/c": 2', "/d": '"d"', "/a/0": "1", "/zz": "{", "/a/7": '"a"'}
    assert {p: text[slice(*(locate(text, p) or (0, 0)))] for p in expected} == expected
    assert locate("", "/a") is None


def test_depth_costs_nothing() -> None:
    assert sum(1 for _ in values("[" * 3000 + "]" * 3000)) == 3000


def test_all_faults_of_a_text_are_found() -> None:
    text = '{"a": NaN,\n "a": 1,\n "b": ["\\ud800", ' + "1" * 1200 + "]}"
    with pytest.raises(CompileError) as caught:
        compile_schema(text)
    found = [(d.pointer, text[slice(*d.span)][:9]) for d in caught.value.diagnostics if d.span]
    assert found == [("/a", "NaN"), ("/a", '"a"'), ("/b/0", '"\\ud800"'), ("/b/1", "1" * 9)]


def test_sizes_and_faults_together() -> None:
    schema = {"properties": {"a": {"maxLength": 10**12}, "b": {"maxItems": 10**9}, "c": {"minimum": "x"}}}
    with pytest.raises(CompileError) as caught:
        compile_schema(schema)
    assert [d.pointer for d in caught.value.diagnostics] == [
        "/properties/a/maxLength",
        "/properties/b/maxItems",
        "/properties/c/minimum",
    ]


def test_excerpts() -> None:
    text = '{\n  "p": {"pattern": "^(ab"}\n}'
    with pytest.raises(CompileError) as caught:
        compile_schema('{"properties": ' + text + "}")
    whole = '{"properties": ' + text + "}"
    lines = list(describe(caught.value.diagnostics[0].to_json(), whole, colour=False))
    assert lines[1] == '  2 |   "p": {"pattern": "^(ab"}'
    assert lines[2] == "    |         " + "^" * 17
    assert lines[3:5] == ["  1 | ^(ab", "    |  ^^^"]
    coloured = "\n".join(describe(caught.value.diagnostics[0].to_json(), whole, colour=True))
    assert "\x1b[1;31merror INVALID_SOURCE\x1b[0m" in coloured
