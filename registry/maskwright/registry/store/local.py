"""A blob store in a local folder.

    <root>/objects/<key>       visible blobs
    <root>/staging/<random>    blobs being written
    <root>/locks/<name>        one empty file per lock stripe

A write goes to a staging file, is flushed to the disk and read back to compare its size and digest; then
it's linked to its place (`link` fails where the place is taken, which makes put-if-absent exact), and the
folder is flushed. A swap takes a file lock on the key's stripe, compares, and renames over. A crash leaves
at most a staging file, swept when the store is next opened and the file is old. The root must be one file
system, with hard links.

Doesn't handle: network file systems whose `link` or `flock` isn't atomic.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .interface import (
    BlobInfo,
    BlobNotFound,
    BlobTooLarge,
    CorruptBlob,
    PreconditionFailed,
    StoreCapabilities,
    StoreUnavailable,
    check_key,
)

STALE_STAGING_SECONDS = 3600.0
LOCK_STRIPES = 64


class LocalStore:
    """A `BlobStore` under `root`, which is created. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects, self._staging, self._locks = root / "objects", root / "staging", root / "locks"
        with _unavailable(str(root)):
            for folder in (self._objects, self._staging, self._locks):
                folder.mkdir(parents=True, exist_ok=True)
            self._sweep()

    def capabilities(self) -> StoreCapabilities:
        return StoreCapabilities(put_if_absent=True, compare_and_swap=True)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        place = self._place(key)
        if place.exists():
            return False
        with _unavailable(key):
            self._make_parents(place)
            staged = self._stage(key, data)
            try:
                os.link(staged, place)
            except FileExistsError:
                return False
            finally:
                staged.unlink(missing_ok=True)
            _flush_folder(place.parent)
        return True

    def get(self, key: str, max_bytes: int | None = None) -> bytes:
        with _unavailable(key), self._place(key).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if max_bytes is not None and size > max_bytes:
                raise BlobTooLarge(key, size, max_bytes)
            return file.read()

    def get_tagged(self, key: str, max_bytes: int | None = None) -> tuple[bytes, str]:
        data = self.get(key, max_bytes)
        return data, hashlib.sha256(data).hexdigest()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with _unavailable(key), self._place(key).open("rb") as file:
            return os.pread(file.fileno(), length, start)

    def head(self, key: str) -> BlobInfo:
        with _unavailable(key), self._place(key).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            status = os.fstat(file.fileno())
            return BlobInfo(key, status.st_size, digest, status.st_mtime)

    def size(self, key: str) -> int:
        with _unavailable(key):
            return self._place(key).stat().st_size

    def list(self, prefix: str) -> Iterator[str]:
        folder = self._objects / prefix.rpartition("/")[0]
        keys = (
            (Path(base) / name).relative_to(self._objects).as_posix()
            for base, _, names in os.walk(folder)
            for name in names
        )
        yield from sorted(key for key in keys if key.startswith(prefix))

    def compare_and_swap(self, key: str, expected: str | None, data: bytes) -> str:
        place = self._place(key)
        with _unavailable(key), self._locked(key):
            found = self.head(key).etag if place.exists() else None
            if found != expected:
                raise PreconditionFailed(key, expected, found)
            staged = self._stage(key, data)
            try:
                self._make_parents(place)
                staged.replace(place)
            finally:
                staged.unlink(missing_ok=True)
            _flush_folder(place.parent)
        return hashlib.sha256(data).hexdigest()

    def delete(self, key: str) -> bool:
        place = self._place(key)
        with _unavailable(key), self._locked(key):
            if not place.exists():
                return False
            place.unlink()
            _flush_folder(place.parent)
        return True

    def _place(self, key: str) -> Path:
        return self._objects / check_key(key)

    def _stage(self, key: str, data: bytes) -> Path:
        """Writes, flushes, reads back: what gets linked is known to be whole."""
        staged = self._staging / secrets.token_hex(16)
        try:
            with staged.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with staged.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            wanted = hashlib.sha256(data).hexdigest()
            if found != wanted:
                raise CorruptBlob(key, wanted, found)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise
        return staged

    def _make_parents(self, place: Path) -> None:
        """Creates missing folders and flushes each one's parent, or a crash could lose the folder."""
        missing = []
        folder = place.parent
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            _flush_folder(folder.parent)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        stripe = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) % LOCK_STRIPES
        with (self._locks / f"{stripe:02d}").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sweep(self) -> None:
        horizon = time.time() - STALE_STAGING_SECONDS
        for staged in self._staging.iterdir():
            try:
                if staged.stat().st_mtime < horizon:
                    staged.unlink(missing_ok=True)
            except FileNotFoundError:
                continue


@contextmanager
def _unavailable(key: str) -> Iterator[None]:
    """Turns the operating system's errors into the interface's."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            raise BlobNotFound(key) from error
        raise StoreUnavailable(key, error.strerror or str(error)) from error


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
