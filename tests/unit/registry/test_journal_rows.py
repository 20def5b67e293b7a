"""The journal's state as rows of the index, and its stretches as segments: the same as folding every entry."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.registry.content import ContentStore
from maskwright.registry.index import FOLD_KEYS, Index
from maskwright.registry.names import Entry, Journal, State, segments
from maskwright.registry.names import journal as journal_module
from maskwright.registry.names.journal import Decision
from maskwright.registry.names.rows import parts_of, rows_of
from maskwright.registry.store import LocalStore

_ARTIFACT = {"fingerprint": "f", "artifact_key": "k", "artifact_hash": "h", "artifact_size": 1}
STEPS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(1, 3)), max_size=40)


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of entries; whether they outlive a crash of the machine isn't the question here."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


class Counting(LocalStore):
    """Counts reads."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = 0

    def get(self, key: str, max_bytes: int | None = None) -> bytes:
        self.reads += 1
        return super().get(key, max_bytes)


@pytest.fixture
def store(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "store")


@pytest.fixture
def opened(store: Counting, tmp_path: Path) -> Callable[[str], Journal]:
    return lambda name="index": Journal(ContentStore(store), Index(tmp_path / f"{name}.sqlite"))


def _value(state: State) -> dict[str, Any]:
    return {k: v for k, v in vars(state).items() if k != "touched"}


def _decision(state: State, kind: int, name: int, number: int) -> Decision | None:
    """Something that may be done to a state, of every kind of entry."""
    full, channel = f"d/n{name}", f"c{number}"
    known = state.names.get(full)
    if kind <= 2 or known is None:
        version = (known.latest if known else 0) + 1
        return Decision("publish", {"name": full, "version": version, "artifacts": [_ARTIFACT], "note": "ä"})
    if kind == 3:
        return Decision("promote", {"name": full, "channel": channel, "version": known.latest})
    if kind == 4:
        history = known.channels[channel].history if channel in known.channels else ()
        return Decision("rollback", {"name": full, "channel": channel, "version": history[-1]}) if history else None
    if kind == 5:
        present = sorted(known.versions)
        return Decision("pin", {"name": full, "version": present[0], "pinned": number > 1}) if present else None
    if kind == 6:
        return Decision("retire", {"name": full, "versions": sorted(known.versions)[:1]})
    if kind == 7:
        return Decision("revoke", {"artifact_hash": f"h{name}", "reason": "why"})
    fields = {"id": f"t{name}", "token_hash": "x", "scopes": ["read"], "namespaces": [], "caller": "c", "expires": None}
    return Decision("token", fields) if number > 1 else Decision("untoken", {"id": f"t{name}"})


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_rows_are_the_fold(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    content, index = ContentStore(LocalStore(folder / "store")), Index(folder / "index.sqlite")
    journal = Journal(content, index)
    for place, step in enumerate(steps):
        decision = journal.read(lambda state, step=step: _decision(state, *step))
        if decision is not None:
            journal.change(lambda _, d=decision: d, "ann", f"r{place}" if place % 3 else "")
    journal.change(lambda _: Decision("collect", {"artifact_keys": ["a", "b"]}), "gc")
    journal.change(lambda _: Decision("collected", {"artifact_keys": ["a"]}), "gc")
    folded = State()
    for entry in journal.history(0):
        folded.apply(entry)
    again = Journal(content, index)
    assert again.read(_value) == journal.read(_value) == _value(folded)
    assert {part for part, _ in rows_of(folded, folded.touched | parts_of(folded)) if _ is not None} == parts_of(folded)
    rebuilt = Journal(content, Index(folder / "other.sqlite"))
    rebuilt.catch_up()
    assert rebuilt.read(_value) == _value(folded)
    assert _dump(folder / "other.sqlite") == _dump(folder / "index.sqlite")
    index.close()


def _dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as database:
        tables = ("journal", "fold", *FOLD_KEYS)
        return {table: sorted(database.execute(f"SELECT * FROM {table}").fetchall()) for table in tables}


def _promote(journal: Journal, count: int) -> None:
    publish = Decision("publish", {"name": "d/n", "version": 1, "artifacts": [_ARTIFACT], "note": ""})
    if journal.read(lambda state: state.revision) == 0:
        journal.change(lambda _: publish, "ann")
        count -= 1
    for _ in range(count):
        journal.change(lambda _: Decision("promote", {"name": "d/n", "channel": "prod", "version": 1}), "ann")


# -- the index is behind, ahead, or another's -----------------------------------------------------


def test_a_failed_write_empties_the_copy_and_nothing_else(
    opened: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = opened()
    _promote(one, 3)
    with monkeypatch.context() as patched:
        patched.setattr(Index, "put_fold", lambda *_: None)  # as a full disk does
        _promote(one, 2)
    _promote(one, 1)
    assert one.read(lambda state: state.revision) == 6
    assert [e.revision for e in one.history(0)] == [1, 2, 3, 4, 5, 6]
    assert _dump(tmp_path / "index.sqlite")["fold"] == []
    late = opened()
    assert late.catch_up() == 6
    assert late.read(_value) == one.read(_value)
    assert opened().read(lambda state: state.revision) == 6


def test_two_processes_over_one_index(opened: Callable[..., Journal], tmp_path: Path) -> None:
    """A command beside its server: either may have written what the other learns."""
    server, command = opened(), opened()
    for journal in (server, command, command, server, command):
        _promote(journal, 1)
    assert server.catch_up() == command.catch_up() == 5
    fresh = opened("fresh")
    fresh.catch_up()
    assert _dump(tmp_path / "index.sqlite") == _dump(tmp_path / "fresh.sqlite")


# -- segments and pages ---------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    """Segments of ten entries, of which twenty are in memory."""
    monkeypatch.setattr(segments, "LENGTH", 10)
    monkeypatch.setattr(journal_module, "LENGTH", 10)
    monkeypatch.setattr(journal_module, "KEPT_ENTRIES", 20)
    return 10


def test_a_long_journal_is_read_by_segments(
    opened: Callable[..., Journal], store: Counting, short: int
) -> None:
    one = opened()
    _promote(one, 47)
    assert len(list(store.list("segments/"))) == 4
    assert len(list(store.list("journal/"))) == 47
    store.reads = 0
    other = opened("other")
    assert other.catch_up() == 47
    assert store.reads < 4 + 1 + 7 + 2 + journal_module.READERS
    assert other.read(_value) == one.read(_value)


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"record":{"entries":[]},"sha256":"0"}', None])
def test_segments_are_only_copies(
    opened: Callable[..., Journal], store: Counting, short: int, damage: bytes | None
) -> None:
    one = opened()
    _promote(one, 25)
    first = next(iter(store.list("segments/")))
    store.delete(first)
    if damage is not None:
        store.put_if_absent(first, damage)
    other = opened("other")
    assert other.catch_up() == 25
    assert other.read(_value) == one.read(_value)
    # One that's missing is written by whoever reads the stretch.
    assert (segments.read_segment(ContentStore(store), 1) is not None) == (damage is None)


def test_old_entries_come_from_the_index_or_the_store(
    opened: Callable[..., Journal], store: Counting, short: int
) -> None:
    one = opened()
    _promote(one, 45)
    assert len(one._entries) == 20
    for after in (0, 3, 24, 25, 26, 44, 45):
        assert [e.revision for e in one.history(after)] == list(range(after + 1, 46))
        assert [e.revision for e in one.entries(after, 7)] == list(range(after + 1, min(after + 8, 46)))
    one._index.clear_journal()
    assert [e.revision for e in one.history(0)] == list(range(1, 46))
    restarted = opened()
    assert restarted.catch_up() == 45
    assert [json.dumps(e.to_json()) for e in restarted.history(0)] == [json.dumps(e.to_json()) for e in one.history(0)]


def test_a_restart_knows_the_latest_requests(opened: Callable[..., Journal]) -> None:
    one = opened()
    _promote(one, 2)
    change = Decision("promote", {"name": "d/n", "channel": "beta", "version": 1})
    first: Entry = one.change(lambda _: change, "ann", "r-1")
    assert opened().change(lambda _: change, "ann", "r-1") == first
