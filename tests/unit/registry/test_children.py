"""Limits on children, how they're warmed and replaced, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from maskwright.registry.compiling import ChildPool, PoolLimits
from maskwright.registry.compiling.child import memory_growth, processor_time
from maskwright.registry.faults import Reason, RegistryError


def _spin(seconds: float) -> None:
    with processor_time(seconds):
        while True:
            pass


def _grow(most: int, size: int) -> int:
    with memory_growth(most):
        return len(bytearray(size))


def _mark(path: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")


def _unreadable() -> None:
    raise _Demanding("a", "b")


class _Demanding(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


async def test_processor_time_is_capped_by_the_system() -> None:
    pool = ChildPool(PoolLimits(children=1))
    with pytest.raises(RegistryError) as caught:
        await pool.run(_spin, 0.1, seconds=60)
    assert caught.value.reason is Reason.COMPILE_TIMEOUT
    assert caught.value.metadata["resource"] == "cpu"
    assert await pool.run(abs, -3, seconds=30) == 3
    await pool.close()


async def test_memory_of_a_job_is_capped_by_the_system() -> None:
    pool = ChildPool(PoolLimits(children=1))
    assert await pool.run(_grow, 256 << 20, 1 << 20, seconds=30) == 1 << 20
    before = await pool.run(os.getpid, seconds=30)
    with pytest.raises(RegistryError) as caught:
        await pool.run(_grow, 64 << 20, 1 << 30, seconds=30)
    assert caught.value.reason is Reason.COMPILE_MEMORY
    assert await pool.run(os.getpid, seconds=30) != before
    await pool.close()


async def test_children_are_warmed_before_their_first_job_and_when_replaced(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pool = ChildPool(PoolLimits(children=2))
    pool.start(lambda: [(_mark, (str(log),))])
    first = await pool.run(os.getpid, seconds=60)
    with pytest.raises(RegistryError):
        await pool.run(os._exit, 1, seconds=60)
    while pool.running:
        await asyncio.sleep(0.01)
    warmed = log.read_text().split()
    assert str(first) in warmed
    assert len(set(warmed)) == 3
    pool.refresh()
    while pool.running:
        await asyncio.sleep(0.01)
    assert len(log.read_text().split()) == 5
    await pool.close()


async def test_a_child_that_is_being_replaced_delays_no_one() -> None:
    pool, warm_seconds = ChildPool(PoolLimits(children=2)), [0.0]
    pool.start(lambda: [(time.sleep, (warm_seconds[0],))])
    pids = {await pool.run(os.getpid, seconds=60)}
    while pool.running:
        await asyncio.sleep(0.01)
    warm_seconds[0] = 600.0
    with pytest.raises(RegistryError):
        await pool.run(os._exit, 1, seconds=60)
    for _ in range(3):
        pids.add(await pool.run(os.getpid, seconds=60))
    assert pool.running == 1
    await pool.close()


async def test_a_warming_that_fails_leaves_a_cold_child() -> None:
    pool = ChildPool(PoolLimits(children=1))
    pool.start(lambda: [(divmod, (1, 0))])
    assert await pool.run(abs, -3, seconds=60) == 3
    await pool.close()


async def test_an_exception_that_cannot_be_read_again_comes_as_text() -> None:
    pool = ChildPool(PoolLimits(children=1))
    with pytest.raises(RuntimeError, match="_Demanding: ab"):
        await pool.run(_unreadable, seconds=60)
    await pool.close()


async def test_a_result_that_cannot_be_sent_comes_as_failure() -> None:
    pool = ChildPool(PoolLimits(children=1))
    with pytest.raises(Exception, match="pickle"):
        await pool.run(memory_growth, 1, seconds=60)
    assert await pool.run(abs, -3, seconds=60) == 3
    await pool.close()


async def test_nothing_is_left() -> None:
    before = set(threading.enumerate())
    pool = ChildPool(PoolLimits(children=2))
    first = await asyncio.gather(*(pool.run(os.getpid, seconds=60) for _ in range(2)))
    calls = [asyncio.ensure_future(pool.run(time.sleep, 600, seconds=600)) for _ in range(2)]
    await asyncio.sleep(0.1)
    calls[0].cancel()
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises((RegistryError, asyncio.CancelledError)):
        await calls[1]
    for _ in range(600):
        reapers = [t for t in set(threading.enumerate()) - before if "asyncio" not in t.name]
        if not reapers and not any(Path(f"/proc/{pid}").exists() for pid in first):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{reapers} or a child is left")


async def test_a_closed_pool_leaves_nothing_behind() -> None:
    """Closed while its children are made and warmed: no task is left for a loop that's about to end."""
    for pause in (0.0, 0.0, 0.2):
        pool = ChildPool(PoolLimits(children=2))
        pool.start(lambda: [(time.sleep, (60.0,))])
        await asyncio.sleep(pause)
        await pool.close()
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task() and "_make_ready" in repr(t)] == []
