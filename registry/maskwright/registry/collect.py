"""Retention and garbage collection. Nothing that a name, a pin or a live lease holds is removed.

A run, over the store alone (replicas may serve all the while):

    1  retire      versions beyond the latest `keep_versions` of their name, older than `keep_days`, that no channel
                   points to or would be rolled back to, and that aren't pinned
    2  collect     artifact records that no version and no live lease holds, older than `unnamed_days`. A `collect`
                   entry of the journal forbids naming them before they go; `collected` tells replicas that they're
                   gone. Both are decided on the state they meet, so a publish is before, and saves its artifact, or
                   after, and is refused.
    3  condemn     blobs that no record names get a record `condemned/<hash>`
    4  remove      blobs condemned at least `grace_hours` ago that still no record names

A writer that puts a blob which is there already takes the condemnation back (`ContentStore.put`), by the same
compare-and-swap by which step 4 claims the blob. A writer that put before the condemnation has the whole grace
period to write the record that names its blob. So a blob that's removed is one that nobody can name any more.

Ages are differences of the store's own times, so no clock but the store's makes anything old enough; leases allow for
skew. A run
that dies is finished by the next. A dry run (`plan`) tells what a run would do, and changes nothing.

Doesn't handle: refusals, request results and reports of kept artifacts; they're small and stay.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from .catalog import Catalog
from .content import CONDEMNED, MAX_RECORD, Digest, blob_key, decode_record, encode_record
from .index import Table
from .leases import leased_hashes
from .names import Author, Changes, Journal, State, Version
from .names.changes import versions_in_use
from .names.journal import Decision
from .signatures import remove_signatures
from .store import BlobNotFound, PreconditionFailed

DAY = 86400.0
MIN_GRACE_HOURS = 1.0
_BATCH = 200


@dataclass(frozen=True)
class Retention:
    """What is kept however little it's used. The grace period must be longer than any write takes."""

    keep_versions: int = 20
    keep_days: float = 30.0
    unnamed_days: float = 7.0
    grace_hours: float = 24.0

    def __post_init__(self) -> None:
        if self.keep_versions < 1 or self.keep_days < 0 or self.unnamed_days < 0:
            raise ValueError("keep_versions must be at least 1, days not negative")
        if self.grace_hours < MIN_GRACE_HOURS:
            raise ValueError(f"grace_hours must be at least {MIN_GRACE_HOURS:g}")


@dataclass
class Garbage:
    """What a run removes, or would. retired: versions by name. artifacts: hash by key. Blobs by hash."""

    retired: dict[str, list[int]] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    condemned: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


class Collector:
    """Collects over one catalog and journal. Blocking; two at once are safe, and pointless."""

    def __init__(self, catalog: Catalog, journal: Journal, retention: Retention, author: Author) -> None:
        self._catalog, self._journal, self._retention, self._author = catalog, journal, retention, author
        self._content, self._store = catalog.content, catalog.content.store

    def plan(self) -> Garbage:
        """What `run` would do now. Reads every record; writes only the object that tells the store's time."""
        self._journal.catch_up()
        now, found = self._store_time(), Garbage()
        found.retired = self._retired(now)
        held = self._journal.read(lambda state: _held(state, found.retired)) | leased_hashes(self._content, now)
        found.artifacts = self._unnamed(held, now)
        named = self._named_blobs(without=found.artifacts.keys())
        for hash_ in self._unnamed_blobs(named):
            (found.removed if self._is_due(hash_, now) else found.condemned).append(hash_)
        return found

    def run(self) -> Garbage:
        """Raises SwapUnsupported, StoreUnavailable, CorruptBlob."""
        self._finish(self._journal.read(lambda state: sorted(state.collecting)))
        self._journal.catch_up()
        now, done = self._store_time(), Garbage()
        done.retired = self._retired(now)
        changes = Changes(self._journal, self._catalog)
        for name, versions in done.retired.items():
            changes.retire(name, versions, self._author)
        held = self._journal.read(lambda state: _held(state, {})) | leased_hashes(self._content, now)
        unnamed = self._unnamed(held, now)
        for batch in _batches(sorted(unnamed)):
            done.artifacts.update((key, unnamed[key]) for key in self._collect(batch, unnamed))
        named = self._named_blobs(without=())
        self._pardon(named)
        for hash_ in self._unnamed_blobs(named):
            if self._is_due(hash_, now):
                if self._remove(hash_):
                    done.removed.append(hash_)
            elif self._condemn(hash_):
                done.condemned.append(hash_)
        return done

    def _retired(self, now: float) -> dict[str, list[int]]:
        """Versions to retire by name. What writers' clocks make old must be so by the store's, too."""
        found: dict[str, list[int]] = {}
        for name, versions in self._journal.read(lambda state: self._retirable(state, now)).items():
            old = [v.version for v in versions if now - self._published(v) >= self._retention.keep_days * DAY]
            if old:
                found[name] = old
        return found

    def _published(self, version: Version) -> float:
        return self._store.head(f"journal/{version.revision:020d}").modified

    def _retirable(self, state: State, now: float) -> dict[str, list[Version]]:
        found = {}
        for name, known in state.names.items():
            kept = set(sorted(known.versions)[-self._retention.keep_versions :]) | versions_in_use(known)
            old = [
                version
                for number, version in sorted(known.versions.items())
                if number not in kept and not version.pinned and _age(version.at, now) >= self._retention.keep_days
            ]
            if old:
                found[name] = old
        return found

    def _unnamed(self, held: set[str], now: float) -> dict[str, str]:
        found = {}
        for key, record in self._content.list_records(Table.ARTIFACTS):
            if record["artifact_hash"] in held:
                continue
            try:
                age = now - self._store.head(f"{Table.ARTIFACTS}/{key}").modified
            except BlobNotFound:
                continue
            if age >= self._retention.unnamed_days * DAY:
                found[key] = str(record["artifact_hash"])
        return found

    def _collect(self, keys: list[str], hashes: dict[str, str]) -> list[str]:
        chosen: list[str] = []

        def decide(state: State) -> Decision:
            held = _held(state, {})
            chosen[:] = [key for key in keys if hashes[key] not in held]
            return Decision("collect", {"artifact_keys": chosen})

        self._journal.change(decide, self._author.caller)
        self._finish(chosen)
        return chosen

    def _finish(self, keys: list[str]) -> None:
        if not keys:
            return
        for key in keys:
            record = self._content.find_record(Table.ARTIFACTS, key)
            if record is not None:
                self._store.delete(f"{Table.ARTIFACTS}/{key}")
                self._store.delete(f"artifact_keys/{record['artifact_hash']}")
                remove_signatures(self._content, str(record["artifact_hash"]))
        self._journal.change(lambda _: Decision("collected", {"artifact_keys": keys}), self._author.caller)
        self._catalog.index.delete(Table.ARTIFACTS, keys)

    def _named_blobs(self, without: Iterable[str]) -> set[str]:
        """Hashes that records name. A record that can't be read ends the run: what it names isn't known."""
        left_out, named = set(without), set()
        for key, record in self._content.list_records(Table.ARTIFACTS):
            if key not in left_out:
                named |= {record["artifact_hash"], record["pack_hash"], record["report_hash"]}
        for _, record in self._content.list_records(Table.TOKENIZERS):
            named |= {record["file_hash"], record["pack_hash"]}
            named |= {hash_ for _, hash_, _ in json.loads(record["beside"])}
        for _, record in self._content.list_records(Table.REFUSALS):
            named.add(record["diagnostics_hash"])
        return named

    def _unnamed_blobs(self, named: set[str]) -> Iterator[str]:
        for key in self._store.list("blobs/"):
            hash_ = key.rpartition("/")[2]
            if hash_ not in named:
                yield Digest(hash_, 0).hash

    def _pardon(self, named: set[str]) -> None:
        for key in self._store.list(f"{CONDEMNED}/"):
            if key.rpartition("/")[2] in named:
                self._store.delete(key)

    def _is_due(self, hash_: str, now: float) -> bool:
        key = f"{CONDEMNED}/{hash_}"
        try:
            state = decode_record(key, self._store.get(key, MAX_RECORD))["state"]
            age = now - self._store.head(key).modified
        except BlobNotFound:
            return False
        if state == "removing":
            return age >= MIN_GRACE_HOURS * 3600  # by a run that died; a live one takes seconds
        return bool(state == "condemned" and age >= self._retention.grace_hours * 3600)

    def _condemn(self, hash_: str) -> bool:
        """Whether it's condemned from now; not where it was already, or where it was rescued within the grace."""
        key = f"{CONDEMNED}/{hash_}"
        try:
            data, etag = self._store.get_tagged(key, MAX_RECORD)
        except BlobNotFound:
            self._store.put_if_absent(key, encode_record({"state": "condemned"}))
            return True
        if decode_record(key, data)["state"] == "rescued":
            try:
                self._store.compare_and_swap(key, etag, encode_record({"state": "condemned"}))
            except PreconditionFailed:
                return False
            return True
        return False

    def _remove(self, hash_: str) -> bool:
        key = f"{CONDEMNED}/{hash_}"
        try:
            data, etag = self._store.get_tagged(key, MAX_RECORD)
            if decode_record(key, data)["state"] == "condemned":
                self._store.compare_and_swap(key, etag, encode_record({"state": "removing"}))
        except (BlobNotFound, PreconditionFailed):
            return False  # rescued this moment
        self._store.delete(blob_key(hash_))
        self._store.delete(key)
        return True

    def _store_time(self) -> float:
        """Now, by the store's clock."""
        key = f"clock/{secrets.token_hex(8)}"
        self._store.put_if_absent(key, b"")
        try:
            return self._store.head(key).modified
        finally:
            self._store.delete(key)


def _held(state: State, retired: dict[str, list[int]]) -> set[str]:
    """Hashes of artifacts that a version holds."""
    return {
        artifact.artifact_hash
        for name, known in state.names.items()
        for number, version in known.versions.items()
        if number not in retired.get(name, ())
        for artifact in version.artifacts
    }


def _age(at: str, now: float) -> float:
    """Days since a time of the journal, by its writer's clock: a first look, which spares asking the store for all."""
    return (now - datetime.fromisoformat(at).timestamp()) / DAY


def _batches(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]
