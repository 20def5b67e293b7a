"""S3 stores as the tests open them."""

from __future__ import annotations

from typing import Any

from maskwright.registry.store import StoreCapabilities
from maskwright.registry.store.s3 import S3Settings, S3Store

BUCKET = "blobs"
BOTH = StoreCapabilities(put_if_absent=True, compare_and_swap=True)


def s3_store(endpoint: str, **changes: Any) -> S3Store:
    """A store of its own in the shared bucket; believed to honour conditions, to save the check."""
    capabilities = changes.pop("capabilities", BOTH)
    settings = S3Settings(BUCKET, **{"endpoint": endpoint, "addressing": "path", **changes})
    return S3Store(settings, capabilities)
