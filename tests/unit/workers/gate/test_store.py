"""The store by itself: races, crashes of other processes, files that can't be trusted."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from maskwright.workers.gate import CannotSettle, SqliteStore, State, StoreError
from maskwright.workers.gate.__main__ import main
from maskwright.workers.gate.locks import ClaimLock, is_held, sweep


def _at(step: str) -> None:
    """Nobody listens."""


def _fork(path: Path, finish: bool) -> None:
    """A process that claims key "k" and ends, after finishing or without."""
    child = os.fork()
    if not child:
        store = SqliteStore(path)
        claim = store.claim("", "k", "c", "text", _at)
        if claim is not None and finish:
            store.finish(claim, "1", None, _at)
        os._exit(0)
    os.waitpid(child, 0)


def test_the_life_of_a_call(store: SqliteStore) -> None:
    assert store.look("", "k") is None
    claim = store.claim("", "k", "c", "the text", _at)
    assert claim is not None
    assert store.claim("", "k", "c", "the text", _at) is None
    entry = store.look("", "k")
    assert entry is not None
    assert (entry.state, entry.text, entry.content) == (State.RUNNING, "the text", "c")
    store.finish(claim, '{"a":1}', None, _at)
    entry = store.look("", "k")
    assert entry is not None
    assert (entry.state, entry.text, entry.result) == (State.DONE, None, {"a": 1})
    assert list((store.path.parent / "calls.sqlite.running").iterdir()) == []
    other = store.claim("", "k2", "c", "", _at)
    assert other is not None
    store.release(other, _at)
    assert store.look("", "k2") is None


def test_a_claim_ends_once(store: SqliteStore) -> None:
    claim = store.claim("", "k", "c", "", _at)
    assert claim is not None
    store.finish(claim, "1", None, _at)
    for again in (lambda: store.finish(claim, "2", None, _at), lambda: store.release(claim, _at)):
        with pytest.raises(StoreError, match="gone"):
            again()
    entry = store.look("", "k")
    assert entry is not None
    assert entry.result == 1


def test_a_process_that_is_gone_leaves_a_doubt(tmp_path: Path) -> None:
    path = tmp_path / "s"
    _fork(path, finish=False)
    store = SqliteStore(path)
    entry = store.look("", "k")
    assert entry is not None
    assert (entry.state, entry.text) == (State.DOUBT, "text")
    assert store.claim("", "k", "c", "", _at) is None
    assert [e.key for e in store.in_doubt()] == ["k"]
    assert store.in_doubt("elsewhere") == []
    store.close()


def test_a_process_that_finished_doesnt(tmp_path: Path) -> None:
    _fork(tmp_path / "s", finish=True)
    store = SqliteStore(tmp_path / "s")
    entry = store.look("", "k")
    assert entry is not None
    assert entry.state == State.DONE
    store.close()


def test_a_store_survives_a_fork(store: SqliteStore) -> None:
    claim = store.claim("", "parent", "c", "", _at)
    assert claim is not None
    child = os.fork()
    if not child:
        own = store.claim("", "child", "c", "", _at)
        seen = store.look("", "parent")
        good = own is not None and seen is not None and seen.state == State.RUNNING
        if own is not None:
            store.finish(own, "1", None, _at)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.finish(claim, "1", None, _at)
    states = [store.look("", key) for key in ("parent", "child")]
    assert [e.state for e in states if e is not None] == [State.DONE, State.DONE]


def test_threads_race_for_one_key(store: SqliteStore) -> None:
    won: list[int] = []
    start = threading.Barrier(8)

    def race(number: int) -> None:
        start.wait()
        claim = store.claim("", "k", "c", "", _at)
        if claim is not None:
            won.append(number)
            time.sleep(0.02)
            store.finish(claim, "1", None, _at)

    threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_only_doubts_are_settled(store: SqliteStore) -> None:
    def settle(key: str) -> None:
        store.settle(key, took_effect=True, by="ann", why="seen")

    with pytest.raises(CannotSettle) as unknown:
        settle("k")
    assert unknown.value.state == "unknown"
    claim = store.claim("", "k", "c", "", _at)
    assert claim is not None
    with pytest.raises(CannotSettle) as running:
        settle("k")
    assert running.value.state == "running"
    store.finish(claim, "1", None, _at)
    with pytest.raises(CannotSettle) as done:
        settle("k")
    assert done.value.state == "done"
    with pytest.raises(ValueError, match="why"):
        store.settle("k", took_effect=True, by="ann", why="")
    with pytest.raises(TypeError):
        store.settle("k", took_effect=True, by="ann", why="x", result=object())


def test_prune_forgets_done_calls_alone(store: SqliteStore) -> None:
    for key in ("done", "doubt", "running"):
        claim = store.claim("", key, "c", "", _at)
        assert claim is not None
        if key == "done":
            store.finish(claim, "1", None, _at)
        elif key == "doubt":
            store.doubt(claim, "who knows", _at)
    assert store.prune(3600) == 0
    assert store.prune(-1) == 1
    assert store.look("", "done") is None
    left = [store.look("", key) for key in ("doubt", "running")]
    assert [e.state for e in left if e is not None] == [State.DOUBT, State.RUNNING]


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"this is no data base, whatever its length is" * 40)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "text")
    assert (tmp_path / "text").read_bytes().startswith(b"this is")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE calls (x)")
    other.close()
    with pytest.raises(StoreError, match="format"):
        SqliteStore(tmp_path / "other")
    SqliteStore(tmp_path / "newer").close()
    with sqlite3.connect(tmp_path / "newer") as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(StoreError, match="format"):
        SqliteStore(tmp_path / "newer")
    with pytest.raises(ValueError, match="memory"):
        SqliteStore(":memory:")
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "text" / "below a file")


def test_locks_tell_the_living(tmp_path: Path) -> None:
    lock = ClaimLock(tmp_path)
    assert is_held(tmp_path, lock.name)
    sweep(tmp_path)
    assert is_held(tmp_path, lock.name)
    lock.release()
    lock.release()
    assert not is_held(tmp_path, lock.name)
    (tmp_path / "litter.lock").touch()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_swept_while_it_is_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.workers.gate import locks

    flock, swept = locks.fcntl.flock, []

    def sweep_first(file: int, how: int) -> None:
        if not swept:
            swept.append(True)
            for path in tmp_path.iterdir():
                path.unlink()
        flock(file, how)

    monkeypatch.setattr(locks.fcntl, "flock", sweep_first)
    lock = ClaimLock(tmp_path)
    assert is_held(tmp_path, lock.name)
    lock.release()


def test_the_command_settles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    assert main([str(path)]) == 3
    assert not path.exists()
    _fork(path, finish=False)
    assert main([str(path)]) == 1
    assert '"text": "text"' in capsys.readouterr().out
    assert main([str(path), "settle", "nobody", "--no-effect", "--by", "ann", "--why", "x"]) == 1
    for wrong in (
        ["k", "--took-effect", "{", "--by", "ann", "--why", "x"],
        ["k", "--took-effect", "NaN", "--by", "ann", "--why", "x"],
        ["k", "--took-effect", "1e999", "--by", "ann", "--why", "x"],
        ["k", "--took-effect", "[" * 100_000, "--by", "ann", "--why", "x"],
        ["k", "--no-effect", "--by", "", "--why", "x"],
        ["k", "--no-effect", "--by", "ann", "--why", ""],
        ["k\udcff", "--no-effect", "--by", "ann", "--why", "x"],
        ["k", "--no-effect", "--by", "ann\udcff", "--why", "x"],
    ):
        assert main([str(path), "settle", *wrong]) == 2
        assert capsys.readouterr().err
    assert main([str(path), "settle", "k", "--took-effect", '{"id":1}', "--by", "ann", "--why", "seen"]) == 0
    assert main([str(path)]) == 0
    store = SqliteStore(path)
    entry = store.look("", "k")
    assert entry is not None
    assert (entry.result, entry.note) == ({"id": 1}, "settled by ann: seen")
    store.close()
    path.write_bytes(b"broken" * 200)
    assert main([str(path)]) == 3
