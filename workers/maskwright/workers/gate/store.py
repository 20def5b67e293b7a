"""Idempotency keys on disk: which calls began, which are done, and what came of them.

One SQLite file in WAL mode with `synchronous=FULL`: a change that was answered survives a killed process and a
power cut. Beside it the folder `<file>.running` with a lock for each running action (`locks`).

    calls        scope, key* | content | state | claim | text | started_at | done_at | result | note
    settlements  scope, key | content | took_effect | result | by | why | at        (who settled what; only grows)

    (scope, key) is the primary key. content: SHA-256 of who asked and what for. text: what was asked, kept until
    the call is done, for whoever has to settle it. result: JSON. Times are seconds since 1970, for people only.

States, and what moves them; each arrow is one transaction:

    nothing --claim--> started --finish--> done
    started --release--> nothing              the action said that nothing happened
    started --doubt--> doubt                  the action raised, or its process is gone
    doubt --settle--> done or nothing         a person or a tool decided; nothing else leaves this state

A `started` row whose lock is held is running. One whose lock isn't is read a second time, since its owner may have
finished in between; if it's still started, its owner is gone and the call is in doubt. The lock is taken before the
row is written and given up after its last change, so a row without lock is never one that runs.

What it doesn't do: other hosts (a network file system breaks SQLite's locks as well as these), and encryption:
texts of unfinished calls and results lie in the file as they are.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from maskwright.workers.gate.errors import CannotSettle, StoreError
from maskwright.workers.gate.locks import ClaimLock, is_held, sweep

Step = Callable[[str], None]
FORMAT = 1
_TABLES = """
CREATE TABLE calls (
    scope TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL, state TEXT NOT NULL, claim TEXT NOT NULL,
    text TEXT, started_at REAL NOT NULL, done_at REAL, result TEXT, note TEXT, PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX open_calls ON calls (started_at) WHERE state <> 'done';
CREATE TABLE settlements (
    scope TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL, took_effect INTEGER NOT NULL, result TEXT,
    by TEXT NOT NULL, why TEXT NOT NULL, at REAL NOT NULL
);
"""
_COLUMNS = "scope, key, content, state, claim, text, started_at, done_at, result, note"


class State(StrEnum):
    """Of a call. `RUNNING` is a started call whose process is alive; it's never written."""

    STARTED = "started"
    RUNNING = "running"
    DOUBT = "doubt"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Entry:
    """A call as the store knows it. `text` is there until it's done, `result` (a JSON value) and `done_at` from then
    on."""

    scope: str
    key: str
    content: str
    state: State
    text: str | None
    started_at: float
    done_at: float | None
    result: Any
    note: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one call's action; it's held until `finish`, `release` or `doubt`."""

    scope: str
    key: str
    started_at: float
    lock: ClaimLock


class SqliteStore:
    """A store in the file `path`, made when it isn't there. Shared by threads and by processes of one host.

    `busy_seconds`: how long a change waits for another process's. Raises StoreError where the file can't be used; a
    damaged one is never replaced, since forgetting it would run calls twice.
    """

    def __init__(self, path: str | os.PathLike[str], busy_seconds: float = 10.0) -> None:
        if str(path) == ":memory:":
            raise ValueError("a store in memory would forget its keys with the process")
        self.path, self._busy = Path(path).absolute(), busy_seconds
        self._running = self.path.with_name(self.path.name + ".running")
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._inherited: list[sqlite3.Connection] = []
        with self._failures():
            self._running.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(self._running)
            with self._lock:
                self._open()

    # -- the life of a call ----------------------------------------------------------------------------------

    def look(self, scope: str, key: str) -> Entry | None:
        """The call of this key, None when there is none. A call whose process is gone becomes one in doubt here."""
        row = self._read(scope, key)
        if row is None or row["state"] != State.STARTED:
            return None if row is None else _entry(row)
        with self._failures():
            held = is_held(self._running, row["claim"])
        if held:
            return _entry(row, State.RUNNING)
        with self._change() as c:  # does nothing where the owner finished in between
            c.execute(
                "UPDATE calls SET state = 'doubt', note = 'its process ended while the action ran'"
                " WHERE scope = ? AND key = ? AND claim = ? AND state = 'started'",
                (scope, key, row["claim"]),
            )
        row = self._read(scope, key)
        return None if row is None else _entry(row)

    def claim(self, scope: str, key: str, content: str, text: str, at: Step) -> Claim | None:
        """Takes the key, durably, for exactly one caller; None when it's taken already."""
        with self._failures():
            lock = ClaimLock(self._running)
        at("locked")
        started = time.time()
        try:
            with self._change() as c:
                c.execute(
                    "INSERT INTO calls (scope, key, content, state, claim, text, started_at)"
                    " VALUES (?, ?, ?, 'started', ?, ?, ?) ON CONFLICT DO NOTHING",
                    (scope, key, content, lock.name, text, started),
                )
                taken: int = c.execute("SELECT changes()").fetchone()[0]
                at("claim written")
        except BaseException:
            lock.release()
            raise
        if taken:
            return Claim(scope, key, started, lock)
        lock.release()
        return None

    def finish(self, claim: Claim, result: str, note: str | None, at: Step) -> float:
        """Records that the action took effect; `result` is JSON. Returns when."""
        done = time.time()
        self._end(
            claim,
            "UPDATE calls SET state = 'done', done_at = ?, result = ?, note = ?, text = NULL",
            (done, result, note),
            at,
        )
        return done

    def release(self, claim: Claim, at: Step) -> None:
        """Frees the key: the action had no effect."""
        self._end(claim, "DELETE FROM calls", (), at)

    def doubt(self, claim: Claim, note: str, at: Step) -> None:
        """Records that nobody knows whether the action took effect."""
        self._end(claim, "UPDATE calls SET state = 'doubt', note = ?", (note,), at)

    def _end(self, claim: Claim, change: str, values: tuple[Any, ...], at: Step) -> None:
        try:
            with self._change() as c:
                c.execute(
                    f"{change} WHERE scope = ? AND key = ? AND claim = ? AND state = 'started'",
                    (*values, claim.scope, claim.key, claim.lock.name),
                )
                if c.execute("SELECT changes()").fetchone()[0] != 1:
                    raise StoreError(str(self.path), f"the claim of key {claim.key!r} is gone")
                at("end written")
        finally:
            claim.lock.release()

    # -- for people and tools --------------------------------------------------------------------------------

    def in_doubt(self, scope: str | None = None) -> list[Entry]:
        """All calls in doubt (of one scope), oldest first."""
        with self._failures(), self._lock:
            rows = (
                self._open()
                .execute(f"SELECT {_COLUMNS} FROM calls WHERE state <> 'done' ORDER BY started_at")
                .fetchall()
            )
        entries = (self.look(r["scope"], r["key"]) for r in rows if scope is None or r["scope"] == scope)
        return [e for e in entries if e is not None and e.state == State.DOUBT]

    def settle(self, key: str, *, took_effect: bool, by: str, why: str, result: Any = None, scope: str = "") -> None:
        """Ends a doubt: `took_effect` and its result, which duplicates get from now on; or not, and the key is free.

        `by` and `why` are kept for ever. Raises CannotSettle for a call that isn't in doubt; TypeError or ValueError
        for a result that isn't JSON, ValueError for texts that are none.
        """
        if not by or not why:
            raise ValueError("who settles, and why, must be told")
        stored = json.dumps(result, allow_nan=False) if took_effect else None
        entry = self.look(scope, key)
        if entry is None or entry.state != State.DOUBT:
            raise CannotSettle(scope, key, "unknown" if entry is None else entry.state)
        place, now = (scope, key), time.time()
        with self._change() as c:
            if took_effect:
                c.execute(
                    "UPDATE calls SET state = 'done', done_at = ?, result = ?, text = NULL, note = ?"
                    " WHERE scope = ? AND key = ? AND state = 'doubt'",
                    (now, stored, f"settled by {by}: {why}", *place),
                )
            else:
                c.execute("DELETE FROM calls WHERE scope = ? AND key = ? AND state = 'doubt'", place)
            if c.execute("SELECT changes()").fetchone()[0] != 1:
                raise CannotSettle(scope, key, "settled by somebody else")
            values = (scope, key, entry.content, took_effect, stored, by, why, now)
            c.execute("INSERT INTO settlements VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def settlements(self) -> list[dict[str, Any]]:
        """Who settled what, oldest first."""
        with self._failures(), self._lock:
            rows = self._open().execute("SELECT * FROM settlements ORDER BY rowid").fetchall()
        return [{**dict(row), "took_effect": bool(row["took_effect"])} for row in rows]

    def prune(self, older_than_seconds: float) -> int:
        """Forgets the done calls older than this, and returns how many: from then on their keys run again."""
        with self._change() as c:
            before = time.time() - older_than_seconds
            return c.execute("DELETE FROM calls WHERE state = 'done' AND done_at < ?", (before,)).rowcount

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- SQLite ----------------------------------------------------------------------------------------------

    def _read(self, scope: str, key: str) -> sqlite3.Row | None:
        with self._failures(), self._lock:
            row: sqlite3.Row | None = (
                self._open()
                .execute(f"SELECT {_COLUMNS} FROM calls WHERE scope = ? AND key = ?", (scope, key))
                .fetchone()
            )
            return row

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction, undone on any error."""
        with self._failures(), self._lock:
            c = self._open()
            c.execute("BEGIN IMMEDIATE")
            try:
                yield c
                c.execute("COMMIT")
            except BaseException:
                if c.in_transaction:
                    c.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._owner == os.getpid():
                return self._connection
            # Forked: SQLite forbids to use, and even to close, a connection of the parent.
            self._inherited.append(self._connection)
            self._connection = None
        c = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
        try:
            c.row_factory = sqlite3.Row
            self._prepare(c)
        except BaseException:
            c.close()
            raise
        self._connection, self._owner = c, os.getpid()
        return c

    def _prepare(self, c: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._busy
        while True:  # changing the journal's mode doesn't wait by itself
            try:
                c.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        c.execute("PRAGMA synchronous = FULL")
        c.execute("BEGIN IMMEDIATE")
        version = c.execute("PRAGMA user_version").fetchone()[0]
        if not version and not c.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES.split(";"):
                c.execute(statement)
            c.execute(f"PRAGMA user_version = {FORMAT}")
        elif version != FORMAT or not c.execute("SELECT 1 FROM sqlite_master WHERE name = 'settlements'").fetchone():
            c.execute("ROLLBACK")
            raise StoreError(str(self.path), f"isn't a store of format {FORMAT}")
        c.execute("COMMIT")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(str(self.path), str(error)) from error


def _entry(row: sqlite3.Row, state: State | None = None) -> Entry:
    return Entry(
        scope=row["scope"],
        key=row["key"],
        content=row["content"],
        state=state or State(row["state"]),
        text=row["text"],
        started_at=row["started_at"],
        done_at=row["done_at"],
        result=None if row["result"] is None else json.loads(row["result"]),
        note=row["note"],
    )
