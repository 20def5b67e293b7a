"""Content-addressed blobs and checksummed records over any blob store.

    blobs/<first two digits>/<sha256>   immutable bytes under their own digest
    condemned/<sha256>                  a blob that garbage collection will remove: {"state": ...}
    <table>/<name>                      records: small JSON objects, each beside its checksum

A blob is checked on every read. A record is `{"record": {...}, "sha256": <of the record's compact JSON>}`,
so that a damaged one is an error and never a wrong answer. Records that are written once use put-if-absent:
the first writer wins, and a loser reads the winner's. A lost race on a blob is harmless, since both hold
the same bytes.

A put of a blob that's there already promises that it stays, so it takes back a condemnation (see `collect`):
both sides swap the same small record, and one of them is first.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from maskwright.workers.digests import is_digest

from .store import BlobNotFound, BlobStore, CorruptBlob, PreconditionFailed, StoreUnavailable

MAX_RECORD = 1 << 20
CONDEMNED = "condemned"
RESCUE_TRIES, RESCUE_SECONDS = 50, 0.1


@dataclass(frozen=True, order=True)
class Digest:
    """Name of an immutable blob: SHA-256 in hexadecimal, and the length."""

    hash: str
    size: int

    def __post_init__(self) -> None:
        if not is_digest(self.hash) or self.size < 0:
            raise ValueError(f"not a digest: {self.hash!r}, {self.size!r}")

    @classmethod
    def of(cls, data: bytes) -> Digest:
        return cls(hashlib.sha256(data).hexdigest(), len(data))

    def __str__(self) -> str:
        return f"sha256:{self.hash}/{self.size}"


class ContentStore:
    """Blobs by digest and records by name in one `BlobStore`. Blocking, like the store."""

    def __init__(self, store: BlobStore) -> None:
        self.store = store

    def put(self, data: bytes) -> Digest:
        """Keeps bytes; durable on return. A damaged copy that's already there is found and replaced."""
        digest = Digest.of(data)
        key = blob_key(digest.hash)
        for _ in range(RESCUE_TRIES):
            if self.store.put_if_absent(key, data):
                return digest
            if self._rescue(digest.hash):
                break
            time.sleep(RESCUE_SECONDS)  # it's being removed this moment; then it's put anew
        else:
            raise StoreUnavailable(key, "garbage collection is removing it and doesn't end")
        if not self._is_whole(digest):
            self.store.delete(key)
            self.store.put_if_absent(key, data)
        return digest

    def _rescue(self, hash_: str) -> bool:
        """Takes back a condemnation; False where it's too late."""
        key = f"{CONDEMNED}/{hash_}"
        while True:
            try:
                data, etag = self.store.get_tagged(key, MAX_RECORD)
            except BlobNotFound:
                return True
            if decode_record(key, data)["state"] != "condemned":
                return bool(decode_record(key, data)["state"] == "rescued")
            try:
                self.store.compare_and_swap(key, etag, encode_record({"state": "rescued"}))
            except PreconditionFailed:
                continue
            return True

    def _is_whole(self, digest: Digest) -> bool:
        try:
            self.get(digest)
        except (BlobNotFound, CorruptBlob):
            return False
        return True

    def find(self, hash_: str) -> Digest:
        """The digest of a blob that's there, without reading it. Raises BlobNotFound."""
        return Digest(hash_, self.store.size(blob_key(hash_)))

    def get(self, digest: Digest, max_bytes: int | None = None) -> bytes:
        """A blob's bytes. Raises BlobNotFound, BlobTooLarge, CorruptBlob."""
        key = blob_key(digest.hash)
        data = self.store.get(key, max_bytes)
        found = Digest.of(data)
        if found != digest:
            raise CorruptBlob(key, str(digest), str(found))
        return data

    def get_prefix(self, digest: Digest, length: int) -> bytes:
        """The first bytes of a blob, unchecked. Raises BlobNotFound."""
        return self.store.get_range(blob_key(digest.hash), 0, length)

    def chunks(self, digest: Digest, offset: int, chunk_bytes: int) -> Iterator[tuple[int, bytes]]:
        """(place, bytes) pieces from `offset`; the last comes only after the whole blob was checked.

        Reads from the start whatever the offset, since the digest covers everything; holds two chunks in
        memory. Raises BlobNotFound, CorruptBlob.
        """
        key, sha, held = blob_key(digest.hash), hashlib.sha256(), (offset, b"")
        for start in range(0, digest.size, chunk_bytes):
            data = self.store.get_range(key, start, min(chunk_bytes, digest.size - start))
            sha.update(data)
            if start + len(data) > offset:
                if held[1]:
                    yield held
                skip = max(offset - start, 0)
                held = (start + skip, data[skip:])
        if sha.hexdigest() != digest.hash:
            raise CorruptBlob(key, digest.hash, sha.hexdigest())
        yield held

    def put_record(self, table: str, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Writes a record unless there is one; returns the one that's kept."""
        if self.store.put_if_absent(f"{table}/{name}", encode_record(record)):
            return record
        return self.get_record(table, name)

    def create_record(self, table: str, name: str, record: dict[str, Any]) -> None:
        """Writes a record where there's none, exactly once. Raises PreconditionFailed, SwapUnsupported."""
        self.store.compare_and_swap(f"{table}/{name}", None, encode_record(record))

    def swap_record(
        self, table: str, name: str, update: Callable[[dict[str, Any] | None], dict[str, Any]]
    ) -> dict[str, Any]:
        """Replaces a record by what `update` makes of it, again while others are first; returns what it made.

        Raises SwapUnsupported, CorruptBlob.
        """
        key = f"{table}/{name}"
        while True:
            try:
                data, etag = self.store.get_tagged(key, MAX_RECORD)
                new = update(decode_record(key, data))
            except BlobNotFound:
                etag, new = "", update(None)
            try:
                self.store.compare_and_swap(key, etag or None, encode_record(new))
            except PreconditionFailed:
                continue
            return new

    def get_record(self, table: str, name: str) -> dict[str, Any]:
        """Raises BlobNotFound, CorruptBlob."""
        key = f"{table}/{name}"
        return decode_record(key, self.store.get(key, MAX_RECORD))

    def find_record(self, table: str, name: str) -> dict[str, Any] | None:
        try:
            return self.get_record(table, name)
        except BlobNotFound:
            return None

    def list_records(self, table: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """(name, record) pairs in order of name."""
        for key in self.store.list(f"{table}/"):
            record = self.find_record(table, key.removeprefix(f"{table}/"))
            if record is not None:
                yield key.removeprefix(f"{table}/"), record


def blob_key(hash_: str) -> str:
    """Where a blob lies. Raises ValueError for what isn't a hash."""
    if not is_digest(hash_):
        raise ValueError(f"not a SHA-256: {hash_!r}")
    return f"blobs/{hash_[:2]}/{hash_}"


def encode_record(record: dict[str, Any]) -> bytes:
    body = _compact(record)
    return _compact({"record": record, "sha256": hashlib.sha256(body).hexdigest()})


def decode_record(key: str, data: bytes) -> dict[str, Any]:
    try:
        outer = json.loads(data)
        record, wanted = outer["record"], outer["sha256"]
        found = hashlib.sha256(_compact(record)).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptBlob(key, "a record", "other bytes") from error
    if found != wanted or not isinstance(record, dict):
        raise CorruptBlob(key, str(wanted), found)
    return record


def _compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
