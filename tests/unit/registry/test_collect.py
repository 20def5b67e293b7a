"""Retention and garbage collection: what's held stays, whoever writes at the same time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maskwright.registry.catalog import ArtifactRecord, Catalog
from maskwright.registry.collect import Collector, Retention
from maskwright.registry.content import ContentStore, blob_key
from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.index import Index
from maskwright.registry.leases import put_lease
from maskwright.registry.names import Author, Changes, Journal
from maskwright.registry.store import BlobNotFound, LocalStore, StoreUnavailable

ANN = Author("ann")
NOW = Retention(keep_versions=1, keep_days=0, unnamed_days=0, grace_hours=1)


class Place:
    """One replica over a store whose blobs can be made old."""

    def __init__(self, folder: Path, name: str = "index") -> None:
        self.folder = folder
        self.content = ContentStore(LocalStore(folder / "store"))
        self.catalog = Catalog(self.content, Index(folder / f"{name}.sqlite"))
        self.journal = Journal(self.content, self.catalog.index)
        self.changes = Changes(self.journal, self.catalog)

    def artifact(self, number: int) -> ArtifactRecord:
        artifact, pack, report = (self.content.put(b"%s%d" % (k, number)) for k in (b"a", b"p", b"r"))
        key = f"{number:064x}"
        sizes = (artifact.hash, artifact.size, pack.hash, pack.size, report.hash, report.size)
        return self.catalog.add_artifact(ArtifactRecord(key, "s", "regex", "{}", "f", "1", *sizes))

    def collector(self, retention: Retention = NOW) -> Collector:
        return Collector(self.catalog, self.journal, retention, Author("gc"))

    def grow_old(self) -> None:
        for path in (self.folder / "store/objects").rglob("*"):
            if path.is_file():
                past = path.stat().st_mtime - 7200
                os.utime(path, (past, past))

    def collect_fully(self) -> None:
        self.collector().run()
        self.grow_old()
        self.collector().run()

    def has(self, record: ArtifactRecord) -> bool:
        """Whether record and blobs are all there; half of them would be a fault."""
        there = []
        for digest in (record.artifact, record.pack, record.report):
            try:
                there.append(bool(self.content.get(digest)))
            except BlobNotFound:
                there.append(False)
        recorded = self.content.find_record("artifacts", record.artifact_key) is not None
        assert not recorded or all(there)
        return recorded and all(there)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_is_held_stays_and_the_rest_goes(place: Place) -> None:
    named, leased, loose = (place.artifact(n) for n in (1, 2, 3))
    place.changes.publish("n", [named.artifact_key], "", ANN)
    put_lease(place.content, "ann", "l", [leased.artifact_hash], 3600)
    planned = place.collector().plan()
    assert list(planned.artifacts) == [loose.artifact_key]
    assert set(planned.condemned) == {loose.artifact_hash, loose.pack_hash, loose.report_hash}
    assert place.has(loose)
    assert place.collector().run().artifacts == planned.artifacts
    assert place.content.get(loose.artifact)  # within the grace period
    place.grow_old()
    assert set(place.collector().run().removed) == set(planned.condemned)
    assert [place.has(r) for r in (named, leased, loose)] == [True, True, False]
    assert place.catalog.artifact(loose.artifact_key) is None
    assert list(place.content.store.list("condemned/")) == []
    assert list(place.content.store.list("clock/")) == []


def test_versions_in_use_or_pinned_or_late_stay(place: Place) -> None:
    records = [place.artifact(n) for n in range(1, 8)]
    for record in records:
        place.changes.publish("n", [record.artifact_key], "", ANN)
    for version in (1, 2, 3):
        place.changes.promote("n", "prod", version, ANN)
    place.changes.pin("n", 5, True, ANN)
    place.collect_fully()
    assert place.journal.read(lambda s: sorted(s.names["default/n"].versions)) == [2, 3, 5, 7]
    assert [place.has(r) for r in records] == [False, True, True, False, True, False, True]
    place.changes.rollback("n", "prod", ANN)
    assert place.changes.publish("n", [records[1].artifact_key], "", ANN).fields["version"] == 8


def test_young_things_stay(place: Place) -> None:
    young = Retention(keep_versions=1, keep_days=1, unnamed_days=1, grace_hours=1)
    records = [place.artifact(n) for n in (1, 2, 3)]
    for record in records[:2]:
        place.changes.publish("n", [record.artifact_key], "", ANN)
    done = place.collector(young).run()
    assert (done.retired, done.artifacts, done.condemned, done.removed) == ({}, {}, [], [])


def test_what_tokenizers_and_refusals_name_stays(place: Place) -> None:
    refusal = place.catalog.add_refusal("b" * 64, "a" * 64, [{"code": "X", "message": "m"}])
    loose = place.content.put(b"left by a dead writer")
    place.collect_fully()
    assert place.catalog.get_json(refusal.diagnostics)
    with pytest.raises(BlobNotFound):
        place.content.get(loose)


def test_a_put_takes_a_condemnation_back(place: Place) -> None:
    """The writer puts what's there already, and names it only after the next run began."""
    loose = place.content.put(b"a1")
    place.collector().run()
    place.grow_old()
    assert place.content.put(b"a1") == loose
    assert place.collector().run().removed == []
    record = place.artifact(1)
    place.grow_old()
    place.changes.publish("n", [record.artifact_key], "", ANN)
    place.collect_fully()
    assert place.has(record)


def test_a_writers_clock_retires_nothing(place: Place) -> None:
    """Published a moment ago, by a server whose clock is a year behind."""
    behind = Journal(place.content, Index(place.folder / "behind.sqlite"), lambda: datetime(2001, 1, 1, tzinfo=UTC))
    changes = Changes(behind, place.catalog)
    for number in (1, 2, 3):
        changes.publish("n", [place.artifact(number).artifact_key], "", ANN)
    retention = replace(NOW, keep_days=0.04)
    assert place.collector(retention).plan().retired == {}
    assert place.collector(retention).run().retired == {}
    place.grow_old()
    assert place.collector(retention).plan().retired == {"default/n": [1, 2]}


def test_a_put_waits_for_a_removal(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = place.content.put(b"a1")
    place.collector().run()
    place.grow_old()
    removing, go_on, delete = threading.Event(), threading.Event(), place.content.store.delete

    def slow(key: str) -> bool:
        if key == blob_key(digest.hash):
            removing.set()
            go_on.wait(10)
        return delete(key)

    monkeypatch.setattr(place.content.store, "delete", slow)
    collecting = threading.Thread(target=place.collector().run)
    collecting.start()
    removing.wait(10)
    writing = threading.Thread(target=lambda: place.content.put(b"a1"))
    writing.start()
    time.sleep(0.3)
    assert writing.is_alive()
    go_on.set()
    collecting.join()
    writing.join()
    assert place.content.get(digest) == b"a1"


def test_a_dead_run_is_finished_by_the_next(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [place.artifact(n) for n in (1, 2, 3)]

    delete = place.content.store.delete

    def die(key: str) -> bool:
        if key.startswith("artifacts/"):
            raise StoreUnavailable(key, "gone")
        return delete(key)

    with monkeypatch.context() as patch:
        patch.setattr(place.content.store, "delete", die)
        with pytest.raises(StoreUnavailable):
            place.collector().run()
    # The first record was about to go, so it can't be named any more; nor is anything half there.
    for record in records:
        with pytest.raises(RegistryError) as caught:
            place.changes.publish("n", [record.artifact_key], "", ANN)
        assert caught.value.reason is Reason.UNKNOWN_ARTIFACT
    again = place.artifact(4)
    place.changes.publish("n", [again.artifact_key], "", ANN)
    place.collect_fully()
    assert [place.has(r) for r in records] == [False] * 3
    assert place.has(again)
    assert not place.journal.read(lambda s: s.collecting)


def test_another_replica_doesnt_name_what_was_collected(place: Place, tmp_path: Path) -> None:
    record = place.artifact(1)
    other = Place(tmp_path, "other")
    assert other.catalog.artifact(record.artifact_key) == record
    place.collector().run()
    with pytest.raises(RegistryError) as caught:
        other.changes.publish("n", [record.artifact_key], "", ANN)
    assert caught.value.reason is Reason.UNKNOWN_ARTIFACT
    assert place.artifact(1) == record
    assert other.changes.publish("n", [record.artifact_key], "", ANN).fields["version"] == 1


def test_ended_leases_go(place: Place) -> None:
    record = place.artifact(1)
    put_lease(place.content, "ann", "l", [record.artifact_hash], -7200)
    assert list(place.collector().plan().artifacts) == [record.artifact_key]
    assert list(place.content.store.list("leases/")) == []


def test_a_collecting_host_whose_clock_is_days_ahead_keeps_leases(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.artifact(1)
    put_lease(place.content, "ann", "l", [record.artifact_hash], 3600)
    ahead = time.time() + 3 * 86400
    monkeypatch.setattr(time, "time", lambda: ahead)
    assert place.collector().run().artifacts == {}
    assert place.has(record)


def test_limits_of_retention() -> None:
    for wrong in ({"keep_versions": 0}, {"keep_days": -1}, {"grace_hours": 0.5}):
        with pytest.raises(ValueError, match="must be"):
            Retention(**wrong)  # type: ignore[arg-type]
