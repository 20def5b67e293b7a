"""The samples of the tensors' tests, for adapters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
for folder in ("tensors", "property", "unit/workers", "hostile/artifact"):
    sys.path.insert(0, str(TESTS / folder))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
