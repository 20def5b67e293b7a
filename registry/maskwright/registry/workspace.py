"""Tokenizer files on the server's disk, where the compiling children read them.

Copied from the store on first use, since a store needn't be a folder; each lies under its digest and keeps
its name, whose suffix tells the format.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path

from .catalog import TokenizerRecord
from .content import ContentStore, Digest

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Workspace:
    """Files under `root`, which is created. Blocking."""

    def __init__(self, root: Path, content: ContentStore) -> None:
        self._root, self._content = root, content
        root.mkdir(parents=True, exist_ok=True)

    def tokenizer(self, record: TokenizerRecord) -> Path:
        """The path of a registered file. Raises what `ContentStore.get` raises."""
        place = self._place(record.file, record.name)
        if not _is_whole(place, record.file):
            self._write(place, self._content.get(record.file))
        return place

    def add(self, name: str, data: bytes) -> Path:
        """The path of a file that isn't registered yet."""
        place = self._place(Digest.of(data), name)
        self._write(place, data)
        return place

    def _place(self, digest: Digest, name: str) -> Path:
        return self._root / digest.hash / safe_name(name)

    def _write(self, place: Path, data: bytes) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        staged = place.with_name(f".{secrets.token_hex(8)}")
        staged.write_bytes(data)
        staged.replace(place)


def safe_name(name: str) -> str:
    """The last part of a file name, with nothing in it that a path could trip over."""
    last = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).lstrip(".")[-100:]
    return last or "tokenizer.json"


def _is_whole(place: Path, digest: Digest) -> bool:
    if not place.exists() or place.stat().st_size != digest.size:
        return False
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest.hash
