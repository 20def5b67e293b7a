"""Item counts: every boundary around a chunk, in each layout, alone and with other bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from schema_texts import compiled, library

from maskwright.compiler.automaton.ir import accepts

COUNTS = [0, 1, 2, 31, 32, 33, 34, 63, 64, 65, 66, 96, 97, 99, 100, 101, 127, 128, 129, 200]
ITEMS = {"type": "array", "items": {"type": "integer"}}


def check(schema: Any, want: list[int], **options: Any) -> int:
    automaton = compiled(schema, library(), **options)
    indent = options.get("whitespace")
    layout: dict[str, Any] = {"indent": indent} if isinstance(indent, int) else {}
    texts = {n: json.dumps([1] * n, **layout) for n in COUNTS}
    assert [n for n, text in texts.items() if accepts(automaton, text.encode())] == want
    return len(automaton.edges)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 33), (1, 100), (65, 100), (65, None), (64, 64), (33, 128), (2, 3), (0, 0)]
)
def test_boundaries(low: int, high: int | None) -> None:
    bounds = {"minItems": low} | ({} if high is None else {"maxItems": high})
    want = [n for n in COUNTS if low <= n and (high is None or n <= high)]
    check({**ITEMS, **bounds}, want)
    check({**ITEMS, **bounds}, want, whitespace=1)


def test_two_bounds_watched_at_once() -> None:
    schema = {"oneOf": [{"type": "array", "maxItems": 100}, {"type": "array", "minItems": 65, "maxItems": 128}]}
    check(schema, [n for n in COUNTS if n < 65 or 100 < n <= 128])


def test_prefix_and_contains_inside_a_chunk() -> None:
    schema = {
        "prefixItems": [{"const": 1}],
        "items": {"enum": [1, 2]},
        "contains": {"const": 2},
        "maxItems": 70,
    }
    automaton = compiled({"type": "array", **schema}, library())
    for text, want in (
        ([1, 2], True),
        ([2, 2], False),
        ([1] * 70, False),
        ([1] * 69 + [2], True),
        ([1] * 70 + [2], False),
    ):
        assert accepts(automaton, json.dumps(text).encode()) == want


def test_large_bounds_cost_few_states() -> None:
    assert check({**ITEMS, "maxItems": 100_000}, COUNTS) < 14_000
    assert check({**ITEMS, "maxItems": 1000}, COUNTS) < 300


@pytest.mark.parametrize(
    ("items", "good", "bad"),
    [
        ({"enum": ["a", "b", 1]}, [[], ["a", 1, "b"]], [["a", "a"], ["b", 1, "b"], [1, 1.0]]),
        ({"type": ["boolean", "null"]}, [[True, None, False]], [[None, True, None]]),
        (
            {"anyOf": [{"const": [1]}, {"const": {"k": 2}}]},
            [[[1], {"k": 2}]],
            [[[1], [1.0]], [{"k": 2}, {"k": 2}]],
        ),
    ],
)
def test_unique_items_of_a_finite_set(items: Any, good: list[Any], bad: list[Any]) -> None:
    automaton = compiled({"type": "array", "items": items, "uniqueItems": True}, library())
    assert all(accepts(automaton, json.dumps(v).encode()) for v in good)
    assert not any(accepts(automaton, json.dumps(v).encode()) for v in bad)
