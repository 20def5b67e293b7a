"""Shared by all tests: where optional data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
