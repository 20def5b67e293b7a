"""An index with flipped bits answers what the store holds, or nothing; never something else."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from test_journal import ANN, Replica

from maskwright.registry.index import Index
from maskwright.registry.names import State

ROUNDS = 120


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def one(tmp_path: Path) -> Replica:
    replica = Replica(tmp_path, "one")
    for number in range(1, 13):
        replica.publish(number, name=f"tool{number % 3}")
    for name in ("tool0", "tool1", "tool2"):
        for version in (1, 2, 3):
            replica.changes.promote(name, "prod", version, ANN)
    replica.changes.revoke(replica.artifact(12).artifact_hash, "why", ANN)
    return replica


def _names(state: State) -> dict[str, Any]:
    return {"names": dict(state.names), "revoked": dict(state.revoked)}


def test_flipped_bits(one: Replica, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    truth, artifacts = one.journal.read(_names), [one.artifact(number) for number in range(1, 13)]
    history = list(one.journal.history(0))
    one.index.close()
    path, choose = tmp_path / "one.sqlite", random.Random(1)
    whole = path.read_bytes()
    for _ in range(ROUNDS):
        data = bytearray(whole)
        for _ in range(choose.choice((1, 1, 8))):
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        for file in tmp_path.glob("one.sqlite*"):
            file.unlink()
        path.write_bytes(data)
        again = Replica(tmp_path, "one")
        assert again.journal.catch_up() == len(history)
        assert again.journal.read(_names) == truth
        assert list(again.journal.history(0)) == history
        for artifact in artifacts:
            assert again.catalog.artifact(artifact.artifact_key) == artifact
            assert again.catalog.artifact_by_hash(artifact.artifact_hash) == artifact
        again.index.close()


def test_what_the_system_refuses_isnt_damage(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    Index(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.MonkeyPatch.context() as patched:
        connect = sqlite3.connect
        patched.setattr(sqlite3, "connect", lambda p, **more: connect(p, **{**more, "timeout": 0.1}))
        with pytest.raises(OSError, match="locked"):
            Index(path)
    holder.close()
    assert not list(tmp_path.glob("*.damaged"))
    Index(path).close()
