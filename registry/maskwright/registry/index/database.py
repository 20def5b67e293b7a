"""SQLite (through sqlite-utils, in WAL mode) as a cache of the blob store.

    tokenizers  fingerprint* | name | vocab_size | file_hash, file_size | pack_hash, pack_size
                | stop_token_ids | logits_width | beside     (the two lists as JSON)
    artifacts   artifact_key* | source_hash | kind | options | fingerprint | compiler_version
                | artifact_hash, artifact_size | pack_hash, pack_size | report_hash, report_size
                by artifact_hash; by (source_hash, fingerprint)
    refusals    refusal_key* | artifact_key | diagnostics_hash, diagnostics_size
    requests    request_id* | request_hash | artifact_key
    journal     revision* | entry                  (JSON; names, versions, channels, revocations, tokens follow)
    usage       artifact_hash* | fetches            (not in the store: lost when the file is)

    * primary key.  artifacts.fingerprint -> tokenizers; refusals and requests name an artifact_key.
    No foreign keys are declared: a row may arrive before the row that it names.

Every row but those of `usage` is a record of the store under the table's name, so the file can be deleted
at any time. A file that can't be read or fails its check is set aside as `<name>.damaged` and a new one
begun; an error later on is logged and counts as a miss. Nothing is answered from here that the store didn't
hold when it was written.

One connection, behind a lock: a look-up takes tens of microseconds, so threads don't gain from more.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
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


class Index:
    """The index in the file `path`, created or brought up to date.

    `is_new` says that the file was begun now, so that a caller may fill it from the store.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.is_new = not path.exists()
        try:
            self._database = _open(path)
        except sqlite3.OperationalError:  # locked, no space, no permission: not damage
            raise
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

    def journal(self) -> list[str]:
        """The copy of the journal, entry by entry from revision 1."""
        with self._lock:
            try:
                rows = self._database.execute("SELECT entry FROM journal ORDER BY revision").fetchall()
            except sqlite3.DatabaseError as error:
                _log.warning("index %s: the journal can't be read: %s", self._path, error)
                return []
        return [row[0] for row in rows]

    def put_journal(self, entries: Iterable[tuple[int, str]]) -> None:
        self._write("INSERT OR REPLACE INTO journal VALUES (?, ?)", entries)

    def clear_journal(self) -> None:
        self._write("DELETE FROM journal", [()])

    def clear(self) -> None:
        """Empties every table that mirrors the store."""
        with self._lock, self._database.conn:
            for table in (*Table, "journal"):
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
