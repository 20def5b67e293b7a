"""Tokenizer files on the server's disk, where the compiling children read them.

Copied from the store on first use, since a store needn't be a folder. A file keeps its name and its
companions, which tell the compiler more about it, and lies in a folder named by the digests of them all.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from maskwright.workers.whole_files import write_whole

from .catalog import TokenizerRecord
from .content import ContentStore, Digest
from .store import StoreUnavailable

COMPANIONS = ("generation_config.json", "tokenizer_config.json", "config.json")
STALE_SECONDS = 3600.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Workspace:
    """Files under `root`, which is created. Blocking."""

    def __init__(self, root: Path, content: ContentStore) -> None:
        self._root, self._content = root, content
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)

    def tokenizer(self, record: TokenizerRecord) -> Path:
        """The path of a registered file. Raises what `ContentStore.get` raises."""
        files = {record.name: record.file, **dict(record.companions)}
        folder = self._folder(files)
        for name, digest in files.items():
            if not _is_whole(folder / name, digest):
                _write(folder / name, self._content.get(digest))
        return folder / record.name

    def add(self, name: str, data: bytes, beside: Mapping[str, bytes]) -> Path:
        """The path of a file that isn't registered yet."""
        files = {name: data, **beside}
        folder = self._folder({n: Digest.of(d) for n, d in files.items()})
        for file, content in files.items():
            _write(folder / file, content)
        return folder / name

    def _folder(self, files: Mapping[str, Digest]) -> Path:
        text = "\n".join(f"{name} {digest}" for name, digest in sorted(files.items()))
        return self._root / hashlib.sha256(text.encode()).hexdigest()


def safe_name(name: str) -> str:
    """The last part of a file name, with nothing in it that a path could trip over."""
    last = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).lstrip(".")[-100:]
    return last if last and last not in COMPANIONS else "tokenizer.json"


def _is_whole(place: Path, digest: Digest) -> bool:
    if not place.exists() or place.stat().st_size != digest.size:
        return False
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest.hash


def _write(place: Path, data: bytes) -> None:
    """Raises StoreUnavailable: trying again may help, as with the store itself."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, data)
    except OSError as error:
        raise StoreUnavailable(f"workspace/{place.name}", error.strerror or str(error)) from error


def _sweep(root: Path) -> None:
    """Removes what servers that were killed didn't finish."""
    horizon = time.time() - STALE_SECONDS
    for staged in root.glob("*/.*"):
        with suppress(OSError):
            if staged.stat().st_mtime < horizon:
                staged.unlink()
