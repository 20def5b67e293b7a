"""SQLite (through sqlite-utils, in WAL mode) as a cache of the blob store.

    tokenizers  fingerprint* | name | vocab_size | file_hash, file_size | pack_hash, pack_size
                | stop_token_ids | logits_width | beside     (the two lists as JSON)
    artifacts   artifact_key* | source_hash | kind | options | fingerprint | compiler_version
                | artifact_hash, artifact_size | pack_hash, pack_size | report_hash, report_size
                by artifact_hash; by (source_hash, fingerprint)
    refusals    refusal_key* | artifact_key | diagnostics_hash, diagnostics_size
    requests    request_id* | request_hash | artifact_key
    journal     revision* | request_id | entry     (JSON)
    fold        revision                           (one row: the revision whose state the next six tables hold)
    names       name* | latest
    versions    name*, version* | artifacts (JSON) | note | at | by | revision | pinned
    channels    name*, channel* | version | revision | history (JSON)
    revocations artifact_hash* | revision          (of the journal's entry)
    tokens      id* | token_hash | scopes, namespaces (JSON) | caller | expires
    collecting  artifact_key*
    usage       artifact_hash* | fetches            (not in the store: lost when the file is)

    * primary key.  artifacts.fingerprint -> tokenizers; refusals and requests name an artifact_key.
    No foreign keys are declared: a row may arrive before the row that it names.

Rows of tokenizers, artifacts, refusals, requests and journal are records of the store under the table's name; fold and
what follows is what the journal adds up to, written in one transaction with its entries. Only `usage` is nowhere else,
so the file can be deleted at any time. A file that can't be read or fails its check is set aside as `<name>.damaged`
and a new one begun; an error later on is logged and counts as a miss. Nothing is answered from here that the store
didn't hold when it was written.

One connection, behind a lock: a look-up takes tens of microseconds, so threads don't gain from more.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import sqlite_utils

from .migrations import MIGRATIONS

Row = dict[str, Any]
_log = logging.getLogger(__name__)


class Table(StrEnum):
    """Tables that mirror records of the store under the same name."""

    TOKENIZERS = "tokenizers"
    ARTIFACTS = "artifacts"
    REFUSALS = "refusals"
    REQUESTS = "requests"


KEYS = {
    Table.TOKENIZERS: "fingerprint",
    Table.ARTIFACTS: "artifact_key",
    Table.REFUSALS: "refusal_key",
    Table.REQUESTS: "request_id",
}


FOLD_KEYS = {
    "names": ("name",),
    "versions": ("name", "version"),
    "channels": ("name", "channel"),
    "revocations": ("artifact_hash",),
    "tokens": ("id",),
    "collecting": ("artifact_key",),
}
"""Tables of what the journal adds up to, with their primary keys."""
_JOURNAL_TABLES = ("journal", "fold", *FOLD_KEYS)


@dataclass(frozen=True)
class Fold:
    """What the index has of the journal: all entries up to `revision`, whose state `tables` hold.

    `last`: the last entry's text. `revocations`: entries by revision. `requests`: the latest entries with a request id,
    oldest first.
    """

    revision: int
    last: str
    tables: dict[str, list[Row]]
    revocations: dict[int, str]
    requests: list[str]


class Index:
    """The index in the file `path`, created or brought up to date.

    `is_new` says that the file was begun now, so that a caller may fill it from the store. Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.is_new = not path.exists()
        try:
            self._database = _open(path)
        except sqlite3.OperationalError as error:  # locked, no space, no permission: not damage
            raise OSError(f"index {path}: {error}") from error
        except sqlite3.DatabaseError as error:
            _log.warning("index %s is damaged (%s); starting a new one", path, error)
            _set_aside(path)
            self.is_new = True
            self._database = _open(path)

    def get(self, table: Table, key: str) -> Row | None:
        """The row with this primary key."""
        return self._first(f"SELECT * FROM {table} WHERE {KEYS[table]} = ?", [key])

    def artifact_by_hash(self, hash_: str) -> Row | None:
        return self._first("SELECT * FROM artifacts WHERE artifact_hash = ? LIMIT 1", [hash_])

    def put(self, table: Table, rows: Iterable[Row]) -> None:
        """Inserts or replaces rows, in one transaction."""
        with self._lock:
            try:
                self._database.table(str(table)).insert_all(rows, pk=KEYS[table], replace=True)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a write to %s failed: %s", self._path, table, error)

    def count_fetches(self, counts: Mapping[str, int]) -> None:
        """Adds to how often blobs were fetched."""
        statement = "INSERT INTO usage VALUES (?1, ?2) ON CONFLICT DO UPDATE SET fetches = fetches + ?2"
        self._write(statement, counts.items())

    def delete(self, table: Table, keys: Iterable[str]) -> None:
        """Removes rows by primary key."""
        self._write(f"DELETE FROM {table} WHERE {KEYS[table]} = ?", ((key,) for key in keys))

    def fold(self, requests: int) -> Fold | None:
        """The copy of the journal's state, where it's whole; `requests`: most entries with a request id."""
        with self._lock:
            try:
                return self._read_fold(requests)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: the journal can't be read: %s", self._path, error)
                return None

    def _read_fold(self, requests: int) -> Fold | None:
        execute = self._database.conn.execute
        revision = self._fold_revision()
        count, last = execute("SELECT count(*), max(revision) FROM journal").fetchone()
        if not revision or not revision == count == last:
            return None
        entry = "SELECT entry FROM journal WHERE"
        asked = execute(f"{entry} request_id != '' ORDER BY revision DESC LIMIT ?", [requests]).fetchall()
        revoked = execute(
            "SELECT revision, entry FROM journal WHERE revision IN (SELECT revision FROM revocations)"
        ).fetchall()
        tables = {table: list(self._database.query(f"SELECT * FROM {table}")) for table in FOLD_KEYS}
        final = execute(f"{entry} revision = ?", [revision]).fetchone()[0]
        return Fold(revision, final, tables, dict(revoked), [text for (text,) in reversed(asked)])

    def _fold_revision(self) -> int:
        row = self._database.conn.execute("SELECT revision FROM fold").fetchone()
        return int(row[0]) if row else 0

    def entries(self, after: int, limit: int) -> list[str]:
        """At most `limit` entries that follow each other after a revision; fewer, or none, where some are missing."""
        statement = "SELECT revision, entry FROM journal WHERE revision > ? ORDER BY revision LIMIT ?"
        with self._lock:
            try:
                rows = self._database.conn.execute(statement, [after, limit]).fetchall()
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: the journal can't be read: %s", self._path, error)
                return []
        return [text for place, (revision, text) in enumerate(rows, after + 1) if revision == place]

    def put_fold(
        self,
        revision: int,
        entries: Sequence[tuple[int, str, str]],
        parts: Iterable[tuple[tuple[str | int, ...], Row | None]],
    ) -> None:
        """Adds entries (revision, request id, text) up to a revision, and the rows of what they changed; at once.

        Where another process wrote them, nothing changes. Where earlier ones are missing, because a write failed, the
        copy is emptied, and filled when the journal is read again.
        """
        with self._lock:
            try:
                with self._database.conn:
                    self._database.conn.execute("BEGIN IMMEDIATE")
                    self._put_fold(revision, entries, parts)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a write of the journal failed: %s", self._path, error)

    def _put_fold(
        self,
        revision: int,
        entries: Sequence[tuple[int, str, str]],
        parts: Iterable[tuple[tuple[str | int, ...], Row | None]],
    ) -> None:
        execute, known = self._database.conn.execute, self._fold_revision()
        if known >= revision:
            return
        if known < entries[0][0] - 1:
            self._empty(_JOURNAL_TABLES)
            return
        self._database.conn.executemany("INSERT OR REPLACE INTO journal VALUES (?, ?, ?)", entries)
        for part, row in parts:
            table, key = str(part[0]), part[1:]
            if row is None:
                execute(f"DELETE FROM {table} WHERE {' AND '.join(f'{k} = ?' for k in FOLD_KEYS[table])}", key)
            else:
                marks = ", ".join(f":{name}" for name in row)
                execute(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
        execute("DELETE FROM fold")
        execute("INSERT INTO fold VALUES (?)", [revision])

    def clear_journal(self) -> None:
        with self._lock:
            try:
                with self._database.conn:
                    self._empty(_JOURNAL_TABLES)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a write failed: %s", self._path, error)

    def clear(self) -> None:
        """Empties every table that mirrors the store."""
        with self._lock, self._database.conn:
            self._empty((*Table, *_JOURNAL_TABLES))

    def count(self) -> int:
        """How many rows mirror the store, or follow from it."""
        with self._lock:
            tables = (*Table, "journal", *FOLD_KEYS)
            counts = (self._database.conn.execute(f"SELECT count(*) FROM {table}") for table in tables)
            return sum(row[0] for found in counts for row in found)

    def _empty(self, tables: Iterable[str]) -> None:
        for table in tables:
            self._database.conn.execute(f"DELETE FROM {table}")

    def close(self) -> None:
        with self._lock:
            self._database.conn.close()

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._lock:
            try:
                with self._database.conn:
                    self._database.conn.executemany(statement, rows)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a write failed: %s", self._path, error)

    def _first(self, statement: str, values: list[str]) -> Row | None:
        with self._lock:
            try:
                return next(iter(self._database.query(statement, values)), None)
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a look-up failed: %s", self._path, error)
                return None


def _open(path: Path) -> sqlite_utils.Database:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=10)
    try:
        database = sqlite_utils.Database(connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        database.enable_wal()
        connection.execute("PRAGMA synchronous = NORMAL")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return database


def migrate(connection: sqlite3.Connection) -> None:
    """Applies the steps that are missing, each in its own transaction; processes that race do each step once.

    Raises sqlite3.DatabaseError for a file of a later release.
    """
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            done = connection.execute("PRAGMA user_version").fetchone()[0]
            if done > len(MIGRATIONS):
                raise sqlite3.DatabaseError(f"schema {done} is newer than {len(MIGRATIONS)}")
            if done == len(MIGRATIONS):
                return
            for statement in MIGRATIONS[done]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {done + 1}")
            connection.commit()
        finally:
            connection.rollback()


def _set_aside(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.replace(path.with_name(f"{path.name}.damaged{suffix}"))
