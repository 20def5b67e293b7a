"""Schemas made to cost: each compiles or is refused by a typed error, in bounded time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import CompileError, LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema

SECONDS = 20.0


def doubling(keyword: str, levels: int, last: Any) -> dict[str, Any]:
    """d0 has two references to d1, which has two to d2, and so on."""
    defs: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}", "title": "again"}]}
        for i in range(levels)
    }
    return {"$defs": {**defs, f"d{levels}": last}, "$ref": "#/$defs/d0"}


def members(levels: int) -> dict[str, Any]:
    refs = {f"d{i}": {"properties": {k: {"$ref": f"#/$defs/d{i + 1}"} for k in "abcd"}} for i in range(levels)}
    return {"$defs": {**refs, f"d{levels}": {"type": "null"}}, "$ref": "#/$defs/d0"}


def nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


CASES: dict[str, Callable[[], Any]] = {
    "allOf doubling": lambda: doubling("allOf", 60, {"type": "object", "properties": {"a": {"type": "null"}}}),
    "anyOf doubling": lambda: doubling("anyOf", 60, {"enum": ["a", "b"]}),
    "oneOf doubling": lambda: doubling("oneOf", 60, {"type": "integer"}),
    "unevaluated over doubling": lambda: {
        **doubling("anyOf", 60, {"properties": {"a": {}}}),
        "unevaluatedProperties": False,
    },
    "unique over doubling": lambda: {
        "$defs": doubling("anyOf", 60, {"type": "string"})["$defs"],
        "uniqueItems": True,
        "items": {"$ref": "#/$defs/d0"},
    },
    "members doubling": lambda: members(60),
    "many properties": lambda: {"properties": {f"property_{i}": {"type": "null"} for i in range(400)}},
    "many required": lambda: {
        "required": [f"name{i}" for i in range(300)],
        "additionalProperties": False,
        "properties": {f"name{i}": {"type": "null"} for i in range(300)},
    },
    "large enum": lambda: {"enum": [f"value-{i * 7919}" for i in range(5000)]},
    "large enum beside a pattern": lambda: {
        "anyOf": [{"enum": [f"v{i}" for i in range(500)]}, {"type": "string", "pattern": "^x"}]
    },
    "branches over properties": lambda: {
        "anyOf": [{"properties": {f"p{i}": {"const": 1}}, "required": [f"p{i}"]} for i in range(14)]
    },
    "late discriminator": lambda: {
        "anyOf": [
            {"properties": {"child": {"$ref": "#"}, "kind": {"const": i}}, "required": ["child", "kind"]}
            for i in range(8)
        ]
    },
    "length times pattern": lambda: {"pattern": "^(a{1,50}b){1,50}$", "maxLength": 5000},
    "two counters": lambda: {"contains": {"const": 1}, "maxContains": 200, "maxItems": 5000},
    "pairs of dependents": lambda: {"dependentRequired": {f"a{i}": [f"b{i}"] for i in range(14)}},
    "overlapping patterns": lambda: {"patternProperties": {f"[a-z]{{{i}}}x": {"minimum": i} for i in range(1, 12)}},
    "any order": lambda: {"properties": {f"p{i}": {} for i in range(30)}},
    "deep text": lambda: nested(5000),
    "deep text in a string": lambda: json.dumps({"const": "[" * 10_000}),
    "unbalanced text": lambda: "]" * 1000 + "[" * 1000,
    "huge bound": lambda: '{"minimum": 1e100000}',
    "huge integer": lambda: '{"minimum": ' + "9" * 5000 + "}",
    "tiny divisor": lambda: '{"multipleOf": 1e-300}',
    "deep constant": lambda: '{"const": ' + "[" * 200 + "]" * 200 + "}",
}


@pytest.mark.parametrize("name", CASES)
def test_bounded(name: str) -> None:
    source = CASES[name]()
    options = CompileOptions(property_order="any" if name == "any order" else "declared")
    limits = Limits(states=30_000, compile_seconds=SECONDS)
    begin = time.monotonic()
    try:
        compile_schema(
            source if isinstance(source, str) else json.dumps(source),
            options,
            limits,
            deadline=now() + SECONDS,
        )
    except LimitExceeded as e:
        assert e.limit_name and e.diagnostics
    except CompileError as e:
        assert e.diagnostics
    assert time.monotonic() - begin < SECONDS + 10


@pytest.mark.parametrize(
    "name",
    [
        "allOf doubling",
        "anyOf doubling",
        "members doubling",
        "many properties",
        "large enum",
        "late discriminator",
        "large enum beside a pattern",
    ],
)
def test_these_compile(name: str) -> None:
    compile_schema(json.dumps(CASES[name]()), limits=Limits(states=100_000))
