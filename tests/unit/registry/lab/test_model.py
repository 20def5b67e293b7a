"""The real model: what's missing is said; where it's installed it writes what the schema wants."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.lab import model
from maskwright.registry.lab.api import Api
from maskwright.registry.lab.guard import Guard
from maskwright.registry.lab.http import Request


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda name: None if name == "gguf" else find_spec("json"))
    assert model.missing_packages() == ["gguf"]
    with pytest.raises(RegistryError) as caught:
        model.RealModel()
    assert caught.value.reason is Reason.INVALID_REQUEST and "pip install gguf" in caught.value.message


async def test_beside_a_service_it_is_not_loaded() -> None:
    guard = Guard()
    guard.port = lambda: 80
    api = Api(guard, None, None, False)  # type: ignore[arg-type]
    headers = {"host": "localhost", "content-type": "application/json"}
    answer = await api.answer(Request("POST", "/lab/api/model", headers, b"{}"))
    assert answer.status == 400 and "maskwright lab" in json.loads(answer.body)["error"]["message"]


class _Cache:
    """As transformers' cache: `crop` by a negative number."""

    def __init__(self, length: int) -> None:
        self.length = length

    def crop(self, n: int) -> None:
        assert n < 0
        self.length += n


@pytest.mark.parametrize(
    ("cached", "ids", "kept"),
    [
        ([1, 2, 3], [1, 2, 3, 4], 3),  # one step on
        ([1, 2, 3], [1, 2], 1),  # undone: the last one's logits are asked for again
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 2, 3], [1, 9, 9, 9], 1),
        ([1, 2, 3], [7, 8], 0),
        ([], [7, 8], 0),
    ],
)
def test_what_was_read_before_is_not_read_again(cached: list[int], ids: list[int], kept: int) -> None:
    real: Any = object.__new__(model.RealModel)
    real._cache, real._cached = (_Cache(len(cached)) if cached else None), cached
    assert real._keep_common(ids) == kept
    assert (real._cache.length if real._cache else 0) == kept


@pytest.mark.skipif(bool(model.missing_packages()), reason="the real model isn't installed")
def test_the_real_model_speaks_in_its_own_tokens() -> None:
    real = model.RealModel()
    try:
        first = real.logits("Say hello.", [], 49152)
        again = real.logits("Say hello.", [], 49152)
        assert first.source == "model" and first.logits.shape == (49152,)
        assert int(first.logits.argmax()) == int(again.logits.argmax())
        step = real.logits("Say hello.", [int(first.logits.argmax())], 49152)
        assert int(step.logits.argmax()) != int(first.logits.argmax())
    finally:
        real.close()
