"""Opening the store that a location names.

file:FOLDER or a bare path      the local folder
s3://BUCKET/PREFIX?endpoint=…   S3; the query's names and values are those of `S3Settings`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ..numbers import finite
from .interface import BlobStore
from .local import LocalStore

_CONVERT: dict[str, Callable[[str], Any]] = {"int": int, "float": finite}


def open_store(location: str) -> BlobStore:
    """The store at a location. Raises ValueError for a malformed one, StoreUnavailable."""
    if not location.startswith("s3:"):
        return LocalStore(Path(location.removeprefix("file:")))
    # Late: a second of imports that a local folder doesn't need.
    from .s3 import S3Store

    return S3Store(s3_settings(location))


def store_exists(location: str) -> bool:
    """Whether opening it wouldn't make a new one; of a bucket, whose prefixes come and go, it's taken for granted."""
    return location.startswith("s3:") or (Path(location.removeprefix("file:")) / "objects").is_dir()


def s3_settings(location: str) -> Any:
    """`S3Settings` of an s3: location. Raises ValueError."""
    from .s3 import S3Settings

    parts = urlsplit(location)
    if parts.username or parts.password or parts.fragment:
        raise ValueError("credentials come by AWS's usual chain, not in the location of a store")
    kinds = {f.name: str(f.type) for f in fields(S3Settings)}
    chosen: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in kinds or name in ("bucket", "prefix"):
            raise ValueError(f"no such setting of an S3 store: {name}")
        chosen[name] = _CONVERT.get(kinds[name], str)(value)
    path = parts.path.strip("/")
    return S3Settings(bucket=parts.netloc, prefix=f"{path}/" if path else "", **chosen)
