"""The order of keys inside members and items: that of the schemas that judge them, wherever else those stand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from schema_texts import judge

XY, YX = '{"x": 1, "y": 2}', '{"y": 1, "x": 2}'
INSIDE_XY: Any = {"properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
INSIDE_YX: Any = {"properties": {"y": {"type": "integer"}, "x": {"type": "integer"}}}


def member(inside: Any) -> Any:
    return {"properties": {"a": inside}}


def pattern(inside: Any) -> Any:
    return {"patternProperties": {"^a": inside}}


def others(inside: Any) -> Any:
    return {"additionalProperties": inside}


def items(inside: Any) -> Any:
    return {"items": inside}


def long_items(inside: Any) -> Any:
    return {"items": inside, "maxItems": 100}


def first_item(inside: Any) -> Any:
    return {"prefixItems": [inside]}


def found(inside: Any) -> Any:
    return {"contains": inside}


SAME_VALUE = [
    *(('{{"a": {}}}', pair) for pair in itertools.product((member, pattern, others), repeat=2)),
    *(("[{}]", pair) for pair in itertools.product((items, long_items, first_item, found), repeat=2)),
]


@pytest.mark.parametrize(("text", "places"), SAME_VALUE)
def test_the_first_schema_gives_the_order_in_every_place(text: str, places: Any) -> None:
    first, then = places[0](INSIDE_XY), places[1](INSIDE_YX)
    schema = {"properties": {"p": {"allOf": [then, first]}, "q": {"allOf": [first, then]}}}
    xy, yx = text.format(XY), text.format(YX)
    judge(schema, [f'{{"p": {yx}}}', f'{{"q": {xy}}}'], [f'{{"p": {xy}}}', f'{{"q": {yx}}}'])


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        ({"allOf": [member(INSIDE_XY)], **member(INSIDE_YX)}, YX),
        ({"$ref": "#/$defs/d", **member(INSIDE_YX), "$defs": {"d": member(INSIDE_XY)}}, YX),
        ({"allOf": [member(INSIDE_XY)], "$ref": "#/$defs/d", "$defs": {"d": member(INSIDE_YX)}}, YX),
        ({"anyOf": [member(INSIDE_XY)], "allOf": [member(INSIDE_YX)]}, XY),
        ({"allOf": [{"allOf": [member(INSIDE_YX)], **member(INSIDE_XY)}]}, XY),
        ({**pattern(INSIDE_XY), **member(INSIDE_YX)}, YX),
    ],
)
def test_own_keywords_come_first(schema: Any, first: str) -> None:
    other = YX if first == XY else XY
    judge(schema, [f'{{"a": {first}}}'], [f'{{"a": {other}}}'])


def test_only_branches_that_may_still_hold_give_the_order() -> None:
    branches = [
        {"properties": {"kind": {"const": kind}, "a": inside}} for kind, inside in ((1, INSIDE_XY), (2, INSIDE_YX))
    ]
    good = [f'{{"kind": 1, "a": {XY}}}', f'{{"kind": 2, "a": {YX}}}', f'{{"a": {XY}}}']
    bad = [f'{{"kind": 1, "a": {YX}}}', f'{{"kind": 2, "a": {XY}}}', f'{{"a": {YX}}}']
    judge({"type": "object", "properties": {"kind": {}}, "anyOf": branches}, good, bad)


def test_the_order_holds_below_what_is_shared() -> None:
    deep = [{"items": member(INSIDE_XY)}, {"items": member(INSIDE_YX)}]
    schema = {"properties": {"p": {"allOf": deep[::-1]}, "q": {"allOf": deep}}}
    good = [f'{{"p": [{{"a": {YX}}}, {{"a": {YX}}}]}}', f'{{"q": [{{"a": {XY}}}, {{"a": {XY}}}]}}']
    judge(schema, good, [f'{{"p": [{{"a": {YX}}}, {{"a": {XY}}}]}}', f'{{"q": [{{"a": {XY}}}, {{"a": {YX}}}]}}'])


def test_an_equal_schema_behind_a_prefix_doesn_t_stand_for_another_before_its_time() -> None:
    xy, w = {"items": INSIDE_XY}, {"items": {"properties": {"w": {"type": "integer"}}}}
    schema = {**xy, "prefixItems": [{}], "allOf": [w, xy]}
    first, then = '{"w": 1, "x": 1, "y": 1}', '{"x": 1, "y": 1, "w": 1}'
    judge(schema, [f"[{first}, {then}, {then}]"], [f"[{then}]", f"[{first}, {first}]", f"[{first}, {then}, {first}]"])
    judge({"allOf": [w, {**xy, "prefixItems": [{}]}]}, [f"[{{}}, {first}]"], [f"[{{}}, {then}]"])
