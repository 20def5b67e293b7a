"""Fetched blobs on disk, shared by the processes of a host.

    <root>/packs/<hash>.mwpack      where `Artifact.load` looks too
    <root>/artifacts/<hash>.mwa
    <root>/blobs/<hash>             anything else
    <root>/revoked/<hash>           empty: the artifact mustn't be used, whatever else lies here
    <root>/signatures/<hash>.json   of an artifact; checked against the trusted keys at every use
    <root>/pointers/<name>.json     what a name last resolved to, for when the registry is down

A file appears whole, by rename. Its digest is checked at every use; a damaged file is removed and counts as
missing. When the sizes add up to more than `max_bytes`, the files used least recently go; a pack that a
process has mapped stays valid for it. Two processes may fetch the same blob at once; either's file serves.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from maskwright.workers.client.signing import Signature
from maskwright.workers.digests import is_digest
from maskwright.workers.whole_files import write_whole

FOLDERS = {"pack": ("packs", ".mwpack"), "artifact": ("artifacts", ".mwa"), "blob": ("blobs", "")}
DEFAULT_MAX_BYTES = 4 << 30


class DiskCache:
    """A folder of verified blobs. `root` is created on the first write."""

    def __init__(self, root: str | os.PathLike[str], max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.root, self.max_bytes = Path(root), max_bytes
        self._revoked: set[str] = set()

    def path(self, kind: str, hash_: str) -> Path:
        """Where a blob of `kind` ("pack", "artifact", "blob") lies or would lie."""
        if not is_digest(hash_):
            raise ValueError(f"not a SHA-256: {hash_!r}")
        folder, suffix = FOLDERS[kind]
        return self.root / folder / f"{hash_}{suffix}"

    def find(self, kind: str, hash_: str) -> Path | None:
        """The path of a blob whose digest was found right, else None. Cost: one SHA-256 over it."""
        path = self.path(kind, hash_)
        try:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == hash_:
                    os.utime(path)
                    return path
        except OSError:
            return None
        path.unlink(missing_ok=True)
        return None

    def read(self, kind: str, hash_: str) -> bytes | None:
        """The bytes of a blob whose digest was found right, else None."""
        path = self.path(kind, hash_)
        try:
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() == hash_:
                os.utime(path)
                return data
        except OSError:
            return None
        path.unlink(missing_ok=True)
        return None

    def put(self, kind: str, hash_: str, data: bytes) -> Path:
        """Keeps bytes that have this hash; visible when whole. Raises OSError."""
        path = self.path(kind, hash_)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
        self._evict(path)
        return path

    def revoke(self, hash_: str) -> None:
        """Remembers that an artifact mustn't be used, and removes it. Raises OSError, after it did what it could."""
        marker = self.root / "revoked" / self.path("artifact", hash_).stem
        self._revoked.add(hash_)
        for kind in FOLDERS:
            self.path(kind, hash_).unlink(missing_ok=True)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    def is_revoked(self, hash_: str) -> bool:
        return hash_ in self._revoked or (self.root / "revoked" / self.path("artifact", hash_).stem).exists()

    def put_pointer(self, name: str, fields: dict[str, Any]) -> None:
        """Keeps a few JSON values under any name. Raises OSError."""
        _write_json(self._pointer(name), fields)

    def find_pointer(self, name: str) -> dict[str, Any] | None:
        fields = _read_json(self._pointer(name))
        return fields if isinstance(fields, dict) else None

    def put_signatures(self, hash_: str, signatures: Iterable[Signature]) -> None:
        """Keeps an artifact's signatures, instead of those that were kept. Raises OSError."""
        _write_json(self._signatures(hash_), [s.to_json() for s in signatures])

    def find_signatures(self, hash_: str) -> list[Signature]:
        """Those that are kept, unchecked; none where the file is damaged."""
        listed = _read_json(self._signatures(hash_))
        try:
            return [Signature.from_json(fields) for fields in listed or ()]
        except (TypeError, ValueError):
            return []

    def _signatures(self, hash_: str) -> Path:
        return self.root / "signatures" / f"{self.path('artifact', hash_).stem}.json"

    def _pointer(self, name: str) -> Path:
        return self.root / "pointers" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"

    def _evict(self, kept: Path) -> None:
        files = []
        for folder, _ in FOLDERS.values():
            for path in (self.root / folder).glob("*"):
                try:
                    info = path.stat()
                except FileNotFoundError:
                    continue
                files.append((info.st_mtime, info.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.max_bytes:
                return
            if path != kept:
                path.unlink(missing_ok=True)
                (self.root / "signatures" / f"{path.stem}.json").unlink(missing_ok=True)
                total -= size


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(value).encode())


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
