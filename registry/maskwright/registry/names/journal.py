"""The journal: every change of names, channels, revocations and tokens, in one order, as objects of the store.

    journal/<20 digits of the revision>    one entry as a checksummed record, written once

A writer brings its state up to date, decides on it, and creates the next revision's object by compare-and-swap
from nothing. If another was first, it applies that entry and decides anew: so every change was valid on the
state that it meets, whoever raced, and whatever clocks say. A change is done exactly when its object is there;
a writer that dies before has changed nothing. The journal is the audit log too, and the truth: the state is
what the entries add up to, and the index keeps a copy of both so that a server starts without reading all.

Replicas follow by asking for the next revision's object. A state may lag behind the store by that interval;
`catch_up` closes it. Watchers are told after every entry that was applied.

An entry that's damaged in the store is an error for every change and every replica that hasn't read it yet, and is
never skipped: those who have go on answering, and an operator puts it back from one of their indexes.

Reading a journal anew costs a request for each stretch of entries (`segments`) and for each entry beyond the last full
one, sixteen at a time. In memory are the latest `KEPT_ENTRIES`; older ones come from the index, else from the store.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..content import ContentStore
from ..faults import Reason, RegistryError
from ..index import Index, Table
from ..store import BlobNotFound, PreconditionFailed, StoreUnavailable
from .rows import rows_of, state_of
from .segments import LENGTH, begins_segment, ends_segment, read_segment, write_segment
from .state import KEPT_REQUESTS, Entry, State, Token

TABLE = "journal"
KEPT_ENTRIES = 2 * LENGTH
READERS = 16
PAGE = 500
_BATCH = 256
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """What a writer wants to become an entry."""

    kind: str
    fields: Mapping[str, Any]


class Journal:
    """The journal of one store. Safe to share between threads; blocking."""

    def __init__(self, content: ContentStore, index: Index, now: Callable[[], datetime] | None = None) -> None:
        self._content, self._index = content, index
        self._now = now or (lambda: datetime.now(UTC))
        self._writing, self._lock = threading.RLock(), threading.Lock()
        self._state = State()
        self._entries: deque[Entry] = deque(maxlen=KEPT_ENTRIES)
        self._watchers: set[Callable[[], object]] = set()
        self._read_index()

    def read(self, look: Callable[[State], _Result]) -> _Result:
        """What `look` returns, from one state. Never waits for the store."""
        with self._lock:
            return look(self._state)

    def token(self, id_: str) -> Token | None:
        """The bearer token with this id."""
        with self._lock:
            return self._state.tokens.get(id_)

    def entries(self, after: int, limit: int = PAGE) -> list[Entry]:
        """At most `limit` of the entries known here after a revision, none where there's no later one.

        Old ones cost a look-up in the index, or requests to the store. Raises StoreUnavailable, CorruptBlob.
        """
        with self._lock:
            known = self._state.revision
            if not self._entries or after + 1 >= self._entries[0].revision:
                return [e for e in self._entries if e.revision > after][:limit]
        found = [_entry(json.loads(text)) for text in self._index.entries(after, limit)]
        if found:
            return [e for e in found if e.revision <= known]
        end = min(after + limit, known)
        return [e for e in (self._fetch(n) for n in range(after + 1, end + 1)) if e is not None]

    def history(self, after: int) -> Iterator[Entry]:
        """All entries known here after a revision. Raises as `entries`."""
        while page := self.entries(after):
            yield from page
            after = page[-1].revision

    def catch_up(self) -> int:
        """Applies what the store has beyond this state; the revision then. Raises StoreUnavailable, CorruptBlob."""
        with self._writing:
            new: list[Entry] = []
            try:
                for entry in self._fetch_from(self._state.revision + 1):
                    self._take(entry)
                    new.append(entry)
            finally:
                # What came before a damaged entry, or an outage, counts.
                if new:
                    self._keep(new)
            return self._state.revision

    def _keep(self, new: Sequence[Entry]) -> None:
        """After entries were applied: the index gets them, watchers are told."""
        parts = list(rows_of(self._state, self._state.touched))
        self._state.touched = set()
        texts = [(e.revision, e.request_id, json.dumps(e.to_json())) for e in new]
        self._index.put_fold(new[-1].revision, texts, parts)
        for entry in new:
            if entry.kind in ("collect", "collected"):
                self._index.delete(Table.ARTIFACTS, entry.fields["artifact_keys"])
        for wake in list(self._watchers):
            wake()

    def reread(self) -> int:
        """Forgets all and reads the store's journal anew; the revision then."""
        with self._writing:
            self._index.clear_journal()
            with self._lock:
                self._state = State()
                self._entries.clear()
            return self.catch_up()

    def change(self, decide: Callable[[State], Decision], by: str, request_id: str = "") -> Entry:
        """The entry that `decide` led to, or the one that the request id led to before.

        `decide` is called again when another writer was first, and raises RegistryError for what can't be done.
        Raises SwapUnsupported, StoreUnavailable.
        """
        with self._writing:
            while True:
                self.catch_up()
                known = self._state.requests.get(request_id) if request_id else None
                if known is not None:
                    return known
                self._check_end()
                decision, at = decide(self._state), self._now().isoformat(timespec="milliseconds")
                revision = self._state.revision + 1
                entry = Entry(revision, decision.kind, at, by, dict(decision.fields), request_id)
                try:
                    self._content.create_record(TABLE, _key(revision), entry.to_json())
                except PreconditionFailed:
                    continue
                self.catch_up()
                if ends_segment(revision):
                    self._write_segment(revision)
                return entry

    def _check_end(self) -> None:
        """A store that was put back to an earlier state must not get entries beyond a hole. Costs a request."""
        revision = self._state.revision
        if revision and self._fetch(revision) is None:
            message = f"the store lacks revision {revision}, which was there: was it put back? Restart this server"
            raise RegistryError(Reason.CORRUPT_BLOB, message, {"revision": str(revision)})

    def watch(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Calls `wake` after entries were applied, from any thread, until the returned function is called."""
        with self._lock:
            self._watchers.add(wake)
        return lambda: self._watchers.discard(wake)

    def _read_index(self) -> None:
        """Takes the index's copy where it's a beginning of the store's journal, else none of it."""
        fold = self._index.fold(KEPT_REQUESTS)
        if fold is None:
            self._index.clear_journal()
            return
        try:
            revocations = {revision: _entry(json.loads(text)) for revision, text in fold.revocations.items()}
            requests = [_entry(json.loads(text)) for text in fold.requests]
            state = state_of(fold.revision, fold.tables, revocations, requests)
            last = _entry(json.loads(fold.last))
            if not self._is_in_store(last):
                raise ValueError("the last entry isn't in the store")
        except (ValueError, LookupError, TypeError, RegistryError) as error:
            _log.warning("the index's copy of the journal isn't used: %s", error)
            self._index.clear_journal()
            return
        self._state = state
        self._entries.append(last)

    def _is_in_store(self, entry: Entry) -> bool:
        try:
            return self._fetch(entry.revision) == entry
        except StoreUnavailable:
            return True  # the copy is all that there is to answer from

    def _take(self, entry: Entry) -> None:
        """Raises RegistryError for an entry that doesn't fit."""
        with self._lock:
            try:
                self._state.apply(entry)
            except (ValueError, LookupError, TypeError) as error:
                message = f"entry {entry.revision} of the journal can't be applied"
                raise RegistryError(Reason.CORRUPT_BLOB, message, {"revision": str(entry.revision)}) from error
            self._entries.append(entry)

    def _fetch(self, revision: int) -> Entry | None:
        try:
            return _entry(self._content.get_record(TABLE, _key(revision)))
        except BlobNotFound:
            return None

    def _fetch_from(self, revision: int) -> Iterator[Entry]:
        """Entries from a revision on: full stretches, then one entry, then many at a time."""
        while begins_segment(revision) and (fields := read_segment(self._content, revision)) is not None:
            yield from map(_entry, fields)
            revision += LENGTH
        stretch: list[dict[str, Any]] = []
        for entry in self._fetch_singly(revision):
            yield entry
            if stretch or begins_segment(entry.revision):
                stretch.append(entry.to_json())
            if len(stretch) == LENGTH:
                write_segment(self._content, stretch)
                stretch = []

    def _fetch_singly(self, revision: int) -> Iterator[Entry]:
        found = self._fetch(revision)
        if found is None:
            return
        yield found
        start, count = revision + 1, READERS
        with ThreadPoolExecutor(READERS) as pool:
            while True:
                for entry in pool.map(self._fetch, range(start, start + count)):
                    if entry is None:
                        return
                    yield entry
                start, count = start + count, min(_BATCH, count * 2)

    def _write_segment(self, last: int) -> None:
        stretch = self.entries(last - LENGTH, LENGTH)
        if len(stretch) == LENGTH and stretch[-1].revision == last:
            write_segment(self._content, [e.to_json() for e in stretch])


def _key(revision: int) -> str:
    return f"{revision:020d}"


def _entry(fields: dict[str, Any]) -> Entry:
    try:
        return Entry(**fields)
    except TypeError as error:
        raise RegistryError(Reason.CORRUPT_BLOB, "a journal entry has other fields", {"table": TABLE}) from error


