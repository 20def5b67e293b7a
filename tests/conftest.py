"""Shared by all tests: where optional data lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files, don't compare them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a file, or writes the file with `--update-golden`."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return check


def shared_folder() -> Path | None:
    """The folder with real schemas and tokenizers, if there is one."""
    for candidate in (os.environ.get("MASKWRIGHT_SHARED"), Path(__file__).parents[2] / "shared"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


@pytest.fixture(scope="session")
def shared() -> Path:
    """Skips when the data isn't there."""
    found = shared_folder()
    if found is None:
        pytest.skip("the shared data folder isn't here (set MASKWRIGHT_SHARED)")
    return found
