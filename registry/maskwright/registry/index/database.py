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

    seal, in each but usage: a checksum of the row, since SQLite has none; fold's is over the seals of the six tables.
    A row whose seal doesn't fit counts as missing.

Rows of tokenizers, artifacts, refusals, requests and journal are records of the store under the table's name; fold and
what follows is what the journal adds up to, written in one transaction with its entries. Only `usage` is nowhere else,
so the file can be deleted at any time. A file that can't be read or fails its check is set aside as `<name>.damaged`
and a new one begun; an error later on is logged and counts as a miss. Nothing is answered from here that the store
didn't hold when it was written.

One connection, behind a lock: a look-up takes tens of microseconds, so threads don't gain from more.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
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
_NO_DAMAGE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_ENTRIES = "SELECT * FROM journal WHERE"
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
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _NO_DAMAGE:
                raise OSError(f"index {path}: {error}") from error
            _log.warning("index %s is damaged (%s); starting a new one", path, error)
            _set_aside(path)
            self.is_new = True
            self._database = _open(path)

    def get(self, table: Table, key: str) -> Row | None:
        """The row with this primary key."""
        return self._first(table, f"SELECT * FROM {table} WHERE {KEYS[table]} = ?", key)

    def artifact_by_hash(self, hash_: str) -> Row | None:
        return self._first(Table.ARTIFACTS, "SELECT * FROM artifacts WHERE artifact_hash = ? LIMIT 1", hash_)

    def put(self, table: Table, rows: Iterable[Row]) -> None:
        """Inserts or replaces rows, in one transaction."""
        with self._lock:
            try:
                sealed = ({**row, "seal": _seal(table, row)} for row in rows)
                self._database.table(str(table)).insert_all(sealed, pk=KEYS[table], replace=True)
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
        revision, seal = self._fold_state()
        query = self._database.query
        (known,) = query("SELECT count(*) AS count, max(revision) AS last FROM journal")
        if not revision or not revision == known["count"] == known["last"]:
            return None
        tables: dict[str, list[Row]] = {}
        total = 0
        for table in FOLD_KEYS:
            rows = list(query(f"SELECT * FROM {table}"))
            for row in rows:
                total ^= int(_seal(table, row), 16)
            tables[table] = [{name: value for name, value in row.items() if name != "seal"} for row in rows]
        asked = _whole("journal", query(f"{_ENTRIES} request_id != '' ORDER BY revision DESC LIMIT ?", [requests]))
        revoked = _whole("journal", query(f"{_ENTRIES} revision IN (SELECT revision FROM revocations)"))
        final = _whole("journal", query(f"{_ENTRIES} revision = ?", [revision]))
        if total != seal or not final:
            _log.warning("index %s: the journal's copy is damaged", self._path)
            return None
        texts = {int(row["revision"]): str(row["entry"]) for row in revoked}
        return Fold(revision, final[0]["entry"], tables, texts, [row["entry"] for row in reversed(asked)])

    def _fold_state(self) -> tuple[int, int]:
        """(revision, the seal over the six tables)."""
        row = self._database.conn.execute("SELECT revision, seal FROM fold").fetchone()
        try:
            return (int(row[0]), int(row[1], 16)) if row else (0, 0)
        except ValueError:
            return 0, 0

    def entries(self, after: int, limit: int) -> list[str]:
        """At most `limit` entries that follow each other after a revision; fewer, or none, where some are missing."""
        with self._lock:
            try:
                rows = list(self._database.query(f"{_ENTRIES} revision > ? ORDER BY revision LIMIT ?", [after, limit]))
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: the journal can't be read: %s", self._path, error)
                return []
        found: list[str] = []
        for row in rows:
            if row["revision"] != after + 1 + len(found) or row["seal"] != _seal("journal", row):
                break
            found.append(row["entry"])
        return found

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
        execute, (known, total) = self._database.conn.execute, self._fold_state()
        if known >= revision:
            return
        if known < entries[0][0] - 1:
            self._empty(_JOURNAL_TABLES)
            return
        for place, request_id, text in entries:
            row = {"revision": place, "request_id": request_id, "entry": text}
            self._replace("journal", {**row, "seal": _seal("journal", row)})
        for part, changed in parts:
            table, key = str(part[0]), part[1:]
            where = " AND ".join(f"{name} = ?" for name in FOLD_KEYS[table])
            for before in self._database.query(f"SELECT * FROM {table} WHERE {where}", key):
                total ^= int(_seal(table, before), 16)
            if changed is None:
                execute(f"DELETE FROM {table} WHERE {where}", key)
                continue
            seal = _seal(table, changed)
            total ^= int(seal, 16)
            self._replace(table, {**changed, "seal": seal})
        execute("DELETE FROM fold")
        execute("INSERT INTO fold VALUES (?, ?)", [revision, f"{total:x}"])

    def _replace(self, table: str, row: Row) -> None:
        marks = ", ".join(f":{name}" for name in row)
        self._database.conn.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", row)

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

    def _first(self, table: Table, statement: str, value: str) -> Row | None:
        with self._lock:
            try:
                found = list(self._database.query(statement, [value]))
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: a look-up failed: %s", self._path, error)
                return None
        return next(iter(_whole(table, found)), None)


def _whole(table: str, rows: Iterable[Row]) -> list[Row]:
    """The rows whose seal fits, without it."""
    found = []
    for row in rows:
        seal = row.pop("seal")
        if seal == _seal(table, row):
            found.append(row)
        else:
            _log.warning("index: a row of %s is damaged", table)
    return found


def _seal(table: str, row: Row) -> str:
    """A checksum of a row's other fields, in hexadecimal."""
    fields = sorted((name, value) for name, value in row.items() if name != "seal")
    return hashlib.sha256(repr((str(table), fields)).encode("utf-8", "backslashreplace")).hexdigest()[:16]


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
        if _schema(connection) != _expected_schema():
            raise sqlite3.DatabaseError("its tables aren't what they should be")
    except BaseException:
        connection.close()
        raise
    return database


@cache
def _expected_schema() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection)
        return _schema(connection)


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


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
