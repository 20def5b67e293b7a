"""Random schemas against another validator: an instance is valid exactly when one of its key orders is
accepted.

The departures of the canonical form that random instances can meet: `minProperties` and `maxProperties` where
they may have to fail count undeclared keys in two ways, and what they disagree about is left out. Nothing
invalid may pass.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from random_schemas import DRAFTS, SchemaMaker, accepts_in_some_order

from maskwright.compiler.automaton.ir import ByteAutomaton, accepts, verify
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema

LIMITS = Limits(states=20_000)


def automaton_of(schema: Any, options: CompileOptions) -> ByteAutomaton | str | None:
    """None: no member at all. A string: the code of another refusal."""
    try:
        automaton = compile_schema(json.dumps(schema), options, LIMITS).automaton
    except CompileError as e:
        code = e.diagnostics[0].code
        return None if code is Code.UNSATISFIABLE else code.value
    assert verify(automaton) == []
    return automaton


def taken(automaton: ByteAutomaton, value: Any, layout: dict[str, Any]) -> bool:
    if "indent" in layout:
        spelled = (json.dumps(v, ensure_ascii=False, **layout) for v in orders(value))
        return any(accepts(automaton, text.encode()) for text in spelled)
    return accepts_in_some_order(automaton, value, *layout.get("separators", (", ", ": ")))


def orders(value: Any) -> Iterator[Any]:
    """The value with its keys in every order; for small values."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            for members in itertools.product(*(list(orders(value[k])) for k in keys)):
                yield dict(zip(keys, members, strict=True))
    elif isinstance(value, list):
        yield from (list(items) for items in itertools.product(*(list(orders(v)) for v in value)))
    else:
        yield value


ORACLES: dict[int, Any] = {
    2020: jsonschema_rs.Draft202012Validator,
    2019: jsonschema_rs.Draft201909Validator,
    7: jsonschema_rs.Draft7Validator,
    6: jsonschema_rs.Draft6Validator,
    4: jsonschema_rs.Draft4Validator,
}


def compare(seed: int, options: CompileOptions, layout: dict[str, Any], instances: int = 25, draft: int = 2020) -> int:
    """The number of instances compared for one random schema."""
    maker = SchemaMaker(random.Random(seed), draft=draft)
    schema = maker.schema()
    automaton = automaton_of(schema, options)
    if isinstance(automaton, str):
        assert automaton in ("INVALID_SOURCE", "LIMIT_EXCEEDED", "UNSUPPORTED_KEYWORD"), (automaton, schema)
        return 0
    oracle = ORACLES[draft](schema, validate_formats=True)
    counts = "maxProperties" in json.dumps(schema)
    for _ in range(instances):
        value = maker.value(2)
        valid = oracle.is_valid(value)
        got = automaton is not None and taken(automaton, value, layout)
        assert got == valid or (valid and counts), (seed, schema, value, valid)
    return instances


@pytest.mark.parametrize("block", range(8))
def test_random_schemas(block: int) -> None:
    pairs = sum(compare(seed, CompileOptions(), {}) for seed in range(block * 25, block * 25 + 25))
    assert pairs > 250


@pytest.mark.parametrize("draft", [2019, 7, 6, 4])
def test_older_drafts(draft: int) -> None:
    options = CompileOptions(draft=DRAFTS[draft])  # type: ignore[arg-type]
    pairs = sum(compare(seed, options, {}, draft=draft) for seed in range(4000 + draft, 4040 + draft))
    assert pairs > 400


def test_compact() -> None:
    options = CompileOptions(whitespace="compact")
    assert sum(compare(seed, options, {"separators": (",", ":")}) for seed in range(1000, 1025)) > 250


def test_indent() -> None:
    options = CompileOptions(whitespace=2)
    assert sum(compare(seed, options, {"indent": 2}, 10) for seed in range(2000, 2010)) > 50


@pytest.mark.parametrize("block", range(2))
def test_any_property_order(block: int) -> None:
    """Every order of a valid instance is accepted, none of an invalid one."""
    pairs = 0
    for seed in range(3000 + block * 20, 3020 + block * 20):
        maker = SchemaMaker(random.Random(seed))
        schema = maker.schema()
        automaton = automaton_of(schema, CompileOptions(property_order="any"))
        if isinstance(automaton, str):
            continue
        oracle = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        counts = "maxProperties" in json.dumps(schema)
        for _ in range(15):
            value = maker.value(2)
            valid = oracle.is_valid(value)
            got = {
                automaton is not None and accepts(automaton, json.dumps(v, ensure_ascii=False).encode())
                for v in itertools.islice(orders(value), 100)
            }
            assert got == {valid} or (valid and counts), (seed, schema, value, valid)
            pairs += 1
    assert pairs > 150
