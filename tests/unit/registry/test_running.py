"""Single-flight, the pool of children, and statuses."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
import pytest_asyncio
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo

from maskwright.registry.compiling import ChildPool, PoolLimits, SingleFlight
from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.service.status import CODES, MAX_DETAIL_BYTES, status_of
from maskwright.registry.store import BlobNotFound, CorruptBlob, StoreUnavailable
from maskwright.v1 import types_pb2

# -- single-flight ------------------------------------------------------------------------------------------


def _work(log: list[str], result: object = 7, seconds: float = 0.05) -> Callable[[], Awaitable[object]]:
    async def work() -> object:
        log.append("began")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        if isinstance(result, Exception):
            raise result
        return result

    return work


async def test_callers_share_one_run() -> None:
    log: list[str] = []
    flights: SingleFlight[object] = SingleFlight()
    results = await asyncio.gather(*(flights.run("k", _work(log)) for _ in range(20)))
    assert log == ["began"]
    assert sorted(results) == [(7, False)] * 19 + [(7, True)]


async def test_other_keys_and_later_calls_run_again() -> None:
    log: list[str] = []
    flights: SingleFlight[object] = SingleFlight()
    await asyncio.gather(flights.run("a", _work(log)), flights.run("b", _work(log)))
    await flights.run("a", _work(log))
    assert log == ["began"] * 3


async def test_exception_goes_to_every_caller() -> None:
    flights: SingleFlight[object] = SingleFlight()
    work = _work([], ValueError("no"))
    results = await asyncio.gather(*(flights.run("k", work) for _ in range(3)), return_exceptions=True)
    assert [type(r) for r in results] == [ValueError] * 3


async def test_work_ends_with_its_last_caller() -> None:
    log: list[str] = []
    flights: SingleFlight[object] = SingleFlight()
    calls = [asyncio.ensure_future(flights.run("k", _work(log, seconds=5))) for _ in range(2)]
    await asyncio.sleep(0.01)
    calls[0].cancel()
    await asyncio.sleep(0.01)
    assert log == ["began"]
    calls[1].cancel()
    await asyncio.sleep(0.01)
    assert log == ["began", "cancelled"]
    assert await flights.run("k", _work(log, 8)) == (8, True)


# -- children -----------------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ChildPool]:
    made = ChildPool(PoolLimits(children=1, queue=1, memory_bytes=2 << 30))
    yield made
    await made.close()


def _grow(size: int) -> int:
    return len(bytearray(size))


async def test_child_is_reused_and_another_process(pool: ChildPool) -> None:
    first = await pool.run(os.getpid, seconds=30)
    assert first == await pool.run(os.getpid, seconds=30) != os.getpid()


async def test_timed_out_child_is_gone(pool: ChildPool) -> None:
    first = await pool.run(os.getpid, seconds=30)
    with pytest.raises(RegistryError) as caught:
        await pool.run(time.sleep, 100, seconds=0.2)
    assert caught.value.reason is Reason.COMPILE_TIMEOUT
    assert await pool.run(os.getpid, seconds=30) != first
    await _gone(first)


async def test_cancelled_call_kills_its_child(pool: ChildPool) -> None:
    first = await pool.run(os.getpid, seconds=30)
    call = asyncio.ensure_future(pool.run(time.sleep, 100, seconds=100))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _gone(first)
    assert await pool.run(os.getpid, seconds=30) != first


async def test_crash_and_memory_are_told_apart(pool: ChildPool) -> None:
    with pytest.raises(RegistryError) as crashed:
        await pool.run(os._exit, 3, seconds=30)
    with pytest.raises(RegistryError) as starved:
        await pool.run(_grow, 1 << 40, seconds=30)
    assert (crashed.value.reason, starved.value.reason) == (Reason.COMPILER_CRASHED, Reason.COMPILE_MEMORY)
    assert await pool.run(_grow, 10, seconds=30) == 10


async def test_functions_own_exceptions_pass(pool: ChildPool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 1, 0, seconds=30)


async def test_bounded_queue(pool: ChildPool) -> None:
    calls = [asyncio.ensure_future(pool.run(time.sleep, 0.3, seconds=30)) for _ in range(3)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    refused = [d for d in done if isinstance(d, RegistryError)]
    assert [r.reason for r in refused] == [Reason.QUEUE_FULL]
    assert refused[0].retry_after_seconds


async def _gone(pid: int) -> None:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"process {pid} still runs")


# -- statuses -----------------------------------------------------------------------------------------------


def test_every_reason_has_a_code() -> None:
    assert set(CODES) == set(Reason)
    assert grpc.StatusCode.OK not in CODES.values()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BlobNotFound("k"), "UNKNOWN_BLOB"),
        (CorruptBlob("k", "a", "b"), "CORRUPT_BLOB"),
        (StoreUnavailable("k", "full"), "STORE_UNAVAILABLE"),
        (RegistryError(Reason.QUEUE_FULL, "m"), "QUEUE_FULL"),
    ],
)
def test_store_errors_have_reasons(error: Exception, reason: str) -> None:
    status = status_of(error)
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == (reason, "maskwright")


def test_unforeseen_errors_dont_leak(caplog: pytest.LogCaptureFixture) -> None:
    status = status_of(KeyError("a password"))
    assert "password" not in str(status)
    info = ErrorInfo()
    status.details[0].Unpack(info)
    assert info.metadata["reference"] in caplog.text
    assert "a password" in caplog.text


def test_retry_info() -> None:
    status = status_of(RegistryError(Reason.QUEUE_FULL, "m", retry_after_seconds=1.5))
    retry = RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 1500


def test_status_stays_small() -> None:
    diagnostics = [{"code": "C", "message": "x" * 300, "detail": {"n": n}} for n in range(1000)]
    status = status_of(RegistryError(Reason.SOURCE_REFUSED, "y" * 10_000, diagnostics=diagnostics))
    assert status.ByteSize() < MAX_DETAIL_BYTES + 1500
    listed = types_pb2.DiagnosticList()
    assert status.details[1].Unpack(listed)
    assert len(listed.diagnostics) + listed.omitted == 1000


def test_one_huge_diagnostic_is_left_out_not_sent() -> None:
    diagnostics = [{"code": "C", "message": "x" * 100_000}]
    status = status_of(RegistryError(Reason.SOURCE_REFUSED, "m", diagnostics=diagnostics))
    listed = types_pb2.DiagnosticList()
    assert status.details[1].Unpack(listed)
    assert (len(listed.diagnostics), listed.omitted) == (0, 1)
