"""Keys: equal for equal input, different for every difference that matters."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.compiler.options import Limits
from maskwright.registry import keys

PATIENT = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@PATIENT
@given(JSON, st.sampled_from([None, 0, 1, 4, "\t"]))
def test_white_space_doesnt_matter(value: object, indent: int | str | None) -> None:
    compact = keys.source_hash("json_schema", json.dumps(value, separators=(",", ":")))
    assert keys.source_hash("json_schema", f" \n{json.dumps(value, indent=indent)}\t") == compact


@PATIENT
@given(JSON, JSON)
def test_other_values_have_other_hashes(one: object, two: object) -> None:
    first, second = json.dumps(one), json.dumps(two)
    same = keys.source_hash("json_schema", first) == keys.source_hash("json_schema", second)
    assert same == (first == second)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1}'),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":1e400}', '{"a":1e401}'),
        ('"\\u0041"', '"A"'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ('{"a":"x y"}', '{"a":"xy"}'),
        ("[1 2]", "[12]"),
        ("tr ue", "true"),
        ('{"a":"\\" \\""}', '{"a":"\\"\\""}'),
        ("[" * 100_000, "[ " + "[" * 99_999),
    ],
)
def test_differences_that_matter(one: str, two: str) -> None:
    assert keys.source_hash("json_schema", one) != keys.source_hash("json_schema", two)


def test_other_kinds_keep_their_white_space() -> None:
    assert keys.source_hash("regex", "[1, 2]") != keys.source_hash("regex", "[1,2]")
    assert keys.source_hash("regex", "[1,2]") != keys.source_hash("json_schema", "[1,2]")


def test_every_field_is_in_the_artifact_key() -> None:
    fields = ["s", "k", "o", "f", "v"]
    made = {keys.artifact_key(*fields)}
    for position in range(5):
        made.add(keys.artifact_key(*(x + "!" * (n == position) for n, x in enumerate(fields))))
    assert len(made) == 6


def test_limits_are_in_the_refusal_key() -> None:
    assert keys.refusal_key("a", Limits()) == keys.refusal_key("a", Limits())
    assert keys.refusal_key("a", Limits()) != keys.refusal_key("a", replace(Limits(), states=1))
