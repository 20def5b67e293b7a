"""Every store runs the same suite: add a factory to `FACTORIES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maskwright.registry.store import BlobStore, LocalStore

Factory = Callable[[Path], BlobStore]
FACTORIES: dict[str, Factory] = {"local": LocalStore}


@pytest.fixture(params=sorted(FACTORIES))
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], BlobStore]:
    """Opens the store anew, over the same blobs."""
    return lambda: FACTORIES[request.param](tmp_path / "root")


@pytest.fixture
def store(reopen: Callable[[], BlobStore]) -> BlobStore:
    return reopen()
