"""`commit_async`: async hooks, cancellation at every step, racing tasks."""

from __future__ import annotations

import asyncio
import threading

import pytest
from gate_samples import SCHEMA

from maskwright.workers import Artifact
from maskwright.workers.gate import (
    STEPS,
    CommitGate,
    Committed,
    Duplicate,
    InDoubt,
    Layer,
    NotDone,
    Outcome,
    Rejected,
    Request,
    SqliteStore,
    StoreError,
)

TEXT = '{"action":"ask"}'


async def _pay(request: Request) -> str:
    await asyncio.sleep(0)
    return "paid"


async def test_hooks_may_be_async(artifact: Artifact, store: SqliteStore) -> None:
    async def late(request: Request) -> str | None:
        await asyncio.sleep(0)
        return "too late" if request.key == "late" else None

    async def authorise(request: Request) -> bool:
        return request.principal == "ann"

    gate = CommitGate(artifact, SCHEMA, [late, lambda r: None], store, authorise=authorise)
    first = await gate.commit_async(TEXT, "k", _pay, ended="stop", principal="ann")
    assert first == Committed("k", "paid")
    assert isinstance(await gate.commit_async(TEXT, "k", _pay, ended="stop", principal="ann"), Duplicate)
    assert isinstance(gate.commit(TEXT, "k", lambda r: None, ended="stop", principal="ann"), Duplicate)
    rejected = [
        await gate.commit_async(TEXT, "late", _pay, ended="stop", principal="ann"),
        await gate.commit_async(TEXT, "k2", _pay, ended="stop", principal="eve"),
    ]
    assert [r.layer for r in rejected if isinstance(r, Rejected)] == [Layer.BUSINESS, Layer.PERMISSION]
    sync = await gate.commit_async(TEXT, "sync", lambda r: "at once", ended="stop", principal="ann")
    assert sync == Committed("sync", "at once")


async def test_racing_tasks_run_it_once(artifact: Artifact, store: SqliteStore) -> None:
    ran = 0

    async def slow(request: Request) -> int:
        nonlocal ran
        ran += 1
        await asyncio.sleep(0.02)
        return ran

    gate = CommitGate(artifact, SCHEMA, [], store)
    outcomes = await asyncio.gather(*(gate.commit_async(TEXT, "k", slow, ended="stop") for _ in range(12)))
    assert ran == 1
    assert sorted(o.name for o in outcomes) == ["committed", *["duplicate"] * 11]
    assert {o.result for o in outcomes if isinstance(o, Committed | Duplicate)} == {1}


async def test_a_waiter_gives_up_on_a_long_run(artifact: Artifact, store: SqliteStore) -> None:
    done = asyncio.Event()

    async def wait(request: Request) -> str:
        await done.wait()
        return "first"

    gate = CommitGate(artifact, SCHEMA, [], store, wait_seconds=0)
    first = asyncio.create_task(gate.commit_async(TEXT, "k", wait, ended="stop"))
    while not store.look("", "k"):
        await asyncio.sleep(0.001)
    second = await gate.commit_async(TEXT, "k", wait, ended="stop")
    assert isinstance(second, InDoubt)
    assert second.running
    done.set()
    assert await first == Committed("k", "first")


async def test_a_waiter_goes_on_when_the_key_is_freed(artifact: Artifact, store: SqliteStore) -> None:
    tried = 0

    async def second_time(request: Request) -> int:
        nonlocal tried
        tried += 1
        await asyncio.sleep(0.01)
        if tried == 1:
            raise NotDone
        return tried

    gate = CommitGate(artifact, SCHEMA, [], store)
    outcomes = await asyncio.gather(*(gate.commit_async(TEXT, "k", second_time, ended="stop") for _ in range(3)))
    assert sorted(o.name for o in outcomes) == ["committed", "duplicate", "rejected"]
    assert tried == 2


@pytest.mark.parametrize("step", STEPS)
async def test_cancelled_at_every_step(artifact: Artifact, store: SqliteStore, step: str) -> None:
    """Before the action: the key is free. During it: in doubt. After it: done. Never twice."""
    ran: list[str] = []
    task: asyncio.Task[Outcome] | None = None

    def cancel(reached: str) -> None:
        if reached == step and task is not None:
            loop.call_soon_threadsafe(task.cancel)

    async def pay(request: Request) -> str:
        await asyncio.sleep(0)
        ran.append(request.key)
        return "paid"

    loop = asyncio.get_running_loop()

    async def authorise(request: Request) -> bool:
        await asyncio.sleep(0)
        return True

    gate = CommitGate(artifact, SCHEMA, [lambda r: None], store, authorise=authorise, on_step=cancel)
    task = asyncio.create_task(gate.commit_async(TEXT, "k", pay, ended="stop"))
    first = (await asyncio.gather(task, return_exceptions=True))[0]
    assert isinstance(first, asyncio.CancelledError | Committed)
    before = len(ran)
    calm = CommitGate(artifact, SCHEMA, [], store)
    again = await calm.commit_async(TEXT, "k", pay, ended="stop")
    if not before:
        assert isinstance(again, Committed | InDoubt)
    else:
        assert isinstance(again, Duplicate)
    assert len(ran) <= 1
    if isinstance(first, Committed):
        assert isinstance(again, Duplicate)
        assert again.result == first.result


async def test_cancelled_during_the_action(artifact: Artifact, store: SqliteStore) -> None:
    began = asyncio.Event()

    async def for_ever(request: Request) -> None:
        began.set()
        await asyncio.Event().wait()

    gate = CommitGate(artifact, SCHEMA, [], store)
    task = asyncio.create_task(gate.commit_async(TEXT, "k", for_ever, ended="stop"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = await gate.commit_async(TEXT, "k", _pay, ended="stop")
    assert isinstance(again, InDoubt)
    assert "CancelledError" in again.cause


async def test_a_coroutine_that_is_dropped(artifact: Artifact, store: SqliteStore) -> None:
    """Closed while its action waits, as a loop that goes away does."""
    began = asyncio.Event()

    async def for_ever(request: Request) -> None:
        began.set()
        await asyncio.Event().wait()

    gate = CommitGate(artifact, SCHEMA, [], store)
    coroutine = gate.commit_async(TEXT, "k", for_ever, ended="stop")
    task = asyncio.create_task(coroutine)
    await began.wait()
    coroutine.close()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert isinstance(gate.commit(TEXT, "k", lambda r: None, ended="stop"), InDoubt)


async def test_a_cancellation_isnt_lost_when_the_store_fails(
    artifact: Artifact, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, writing, cancelled = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def full(*arguments: object) -> float:
        loop.call_soon_threadsafe(writing.set)
        cancelled.wait(60)
        raise StoreError("calls.sqlite", "no space")

    monkeypatch.setattr(store, "finish", full)
    gate = CommitGate(artifact, SCHEMA, [], store)
    task = asyncio.ensure_future(gate.commit_async(TEXT, "k", _pay, ended="stop"))
    await writing.wait()
    task.cancel()
    await asyncio.sleep(0)
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await task
