"""What the page may ask for: every field checked, by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.registry.faults import RegistryError
from maskwright.registry.lab.orders import (
    MAX_SOURCE,
    MAX_TOKENS,
    compile_request,
    judge_request,
    parse_body,
    state_request,
)

DIGEST = "0123456789abcdef" * 4


def body(**fields: Any) -> Any:
    return parse_body(json.dumps(fields).encode())


def test_defaults() -> None:
    request = state_request(body(artifact=DIGEST))
    assert request.tokens == () and request.budget == 0 and request.masked and request.speaker.name == "noise"
    assert request.settings.neutral and request.settings.seed == 1
    assert compile_request(body(kind="regex", source="a")).fingerprint is None


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("artifact", {"artifact": "no"}),
        ("artifact", {"artifact": 5}),
        ("tokens", {"tokens": "1"}),
        ("tokens", {"tokens": [1, True]}),
        ("tokens", {"tokens": [-1]}),
        ("tokens", {"tokens": [1 << 40]}),
        ("tokens", {"tokens": [1.5]}),
        ("tokens", {"tokens": [0] * (MAX_TOKENS + 1)}),
        ("settings.temperature", {"settings": {"temperature": -1}}),
        ("settings.temperature", {"settings": {"temperature": "1"}}),
        ("settings.temperature", {"settings": {"temperature": 10**400}}),
        ("settings.temperature", {"settings": {"temperature": float("nan")}}),
        ("settings.top_p", {"settings": {"top_p": 0}}),
        ("settings.top_k", {"settings": {"top_k": 1.5}}),
        ("settings.seed", {"settings": {"seed": 1 << 40}}),
        ("settings.color", {"settings": {"color": 1}}),
        ("settings", {"settings": []}),
        ("budget", {"budget": -1}),
        ("steps", {"steps": 0}),
        ("masked", {"masked": 1}),
        ("search", {"search": "a" * 65}),
        ("search", {"search": "\ud800"}),
        ("speaker.name", {"speaker": {"name": "oracle"}}),
        ("speaker.example", {"speaker": {"name": "table", "example": "none"}}),
        ("color", {"color": "red"}),
    ],
)
def test_what_does_not_fit_is_named(place: str, fields: dict[str, Any]) -> None:
    with pytest.raises(RegistryError) as caught:
        state_request(body(**{"artifact": DIGEST, **fields}))
    assert caught.value.metadata == {"field": place}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(number: str) -> None:
    with pytest.raises(RegistryError):
        state_request(parse_body(f'{{"artifact": "{DIGEST}", "settings": {{"temperature": {number}}}}}'.encode()))


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("kind", {"kind": "yaml"}),
        ("source", {"source": 5}),
        ("source", {"source": "a" * (MAX_SOURCE + 1)}),
        ("options", {"options": {"whitespace": "much"}}),
        ("options", {"options": {"__class__": 1}}),
        ("options", {"options": {"max_whitespace": 10**9}}),
        ("tokenizer", {"tokenizer": "../../etc/passwd"}),
    ],
)
def test_compile_orders_that_do_not_fit(place: str, fields: dict[str, Any]) -> None:
    with pytest.raises(RegistryError) as caught:
        compile_request(body(**{"kind": "regex", "source": "a", **fields}))
    assert caught.value.metadata == {"field": place}


def test_judging() -> None:
    assert judge_request(body(artifact=DIGEST, text="x")) == (DIGEST, "x")
    with pytest.raises(RegistryError):
        judge_request(body(artifact=DIGEST))
