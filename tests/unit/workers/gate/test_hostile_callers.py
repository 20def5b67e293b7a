"""What the caller's own code hands back, at its worst: nothing of it leaves a key that only looks as if it ran."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from maskwright.workers.gate import (
    CommitGate,
    Committed,
    Duplicate,
    InDoubt,
    NotDone,
    Rejected,
    SqliteStore,
    StoreError,
)
from maskwright.workers.gate.locks import ClaimLock, is_held

TEXT = '{"action":"refund","amount":7}'


class Mute(RuntimeError):
    """An exception that can't be read."""

    def __str__(self) -> str:
        raise OSError("unreadable")


class Odd(dict[str, int]):
    """A value whose own method fails."""

    def items(self) -> Any:
        raise AttributeError("items")


@pytest.mark.parametrize("error", [Mute(), RuntimeError("half a character: \ud83d")])
def test_an_action_that_raises_what_cant_be_written_down(gate: CommitGate, error: Exception) -> None:
    def action(_: object) -> None:
        raise error

    first = gate.commit(TEXT, "k", action, ended="stop")
    assert isinstance(first, InDoubt) and not first.running and type(error).__name__ in first.cause
    assert gate.commit(TEXT, "k", action, ended="stop") == first


def test_a_reason_is_text(gate: CommitGate) -> None:
    def action(_: object) -> None:
        raise NotDone("\ud83d")

    outcome = gate.commit(TEXT, "k", action, ended="stop")
    assert isinstance(outcome, Rejected) and outcome.reasons[0].message == "\\ud83d"


def test_a_result_that_fails_while_it_is_written_is_no_failure(gate: CommitGate) -> None:
    first = gate.commit(TEXT, "k", lambda _: Odd(a=1), ended="stop")
    assert isinstance(first, Committed) and first.result is None and first.note is not None
    assert isinstance(gate.commit(TEXT, "k", lambda _: None, ended="stop"), Duplicate)


def test_what_could_never_run_takes_no_key(gate: CommitGate, store: SqliteStore) -> None:
    action: Any = None
    with pytest.raises(TypeError, match="action"):
        gate.commit(TEXT, "k", action, ended="stop")
    principal: Any = 5
    with pytest.raises(TypeError, match="principal"):
        gate.commit(TEXT, "k", len, ended="stop", principal=principal)
    reason: Any = None
    with pytest.raises(TypeError, match="finish reason"):
        gate.commit(TEXT, "k", len, ended=reason)
    with pytest.raises(ValueError, match="a key"):
        gate.commit(TEXT, "\ud800", len, ended="stop")
    with pytest.raises(ValueError, match="tokens"):
        gate.commit(TEXT, "k", len, ended="stop", tokens=[-1])
    assert store.look("", "k") is None and store.in_doubt() == []


def test_a_lock_is_given_up_though_its_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    lock = ClaimLock(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        lock.release()
    assert (tmp_path / f"{lock.name}.lock").exists() and not is_held(tmp_path, lock.name)


def test_locks_that_cant_be_looked_at_are_a_failure_of_the_store(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = store.claim("", "k", "c", TEXT, lambda _: None)
    assert claim is not None

    def too_many(*_: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", too_many)
        with pytest.raises(StoreError, match="Too many"):
            store.look("", "k")
    store.release(claim, lambda _: None)
