"""A pool of child processes, any of which can be killed without touching the others.

`ProcessPoolExecutor` has no way to stop one job, and the death of a child breaks the whole executor. So
each slot is an executor of its own with one child, started by spawn (no state, locks or threads of the
server leak into it). A job that runs too long, or whose caller went away, is ended by SIGKILL of its child,
and the slot begins a new one. A child caps its own address space, ignores the terminal's interrupt, and
ends when the server is gone.

Waiting is bounded: a job beyond `queue` is refused at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple

from ..faults import Reason, RegistryError

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


@dataclass(frozen=True)
class PoolLimits:
    """children: processes. queue: jobs that may wait. memory_bytes: address space of one, 0: no cap."""

    children: int = 2
    queue: int = 1024
    memory_bytes: int = 16 << 30


class ChildPool:
    """Runs picklable functions in children; belongs to one event loop."""

    def __init__(self, limits: PoolLimits) -> None:
        self.limits = limits
        self._idle: asyncio.LifoQueue[_Slot] = asyncio.LifoQueue()
        self._slots = [_Slot(limits.memory_bytes) for _ in range(limits.children)]
        for slot in self._slots:
            self._idle.put_nowait(slot)
        self._waiting = 0

    async def run(
        self,
        function: Callable[[*_Arguments], _Result],
        *arguments: *_Arguments,
        seconds: float,
    ) -> _Result:
        """The function's result. Cancelling ends the child.

        Raises RegistryError QUEUE_FULL, COMPILE_TIMEOUT (after `seconds` of running), COMPILE_MEMORY or
        COMPILER_CRASHED, and what the function raises.
        """
        if self._idle.empty() and self._waiting >= self.limits.queue:
            raise RegistryError(
                Reason.QUEUE_FULL,
                f"{self._waiting} compilations are waiting",
                {"waiting": str(self._waiting)},
                retry_after_seconds=1.0,
            )
        self._waiting += 1
        try:
            slot = await self._idle.get()
        finally:
            self._waiting -= 1
        try:
            return await slot.run(function, *arguments, seconds=seconds)
        finally:
            self._idle.put_nowait(slot)

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def running(self) -> int:
        return self.limits.children - self._idle.qsize()

    def close(self) -> None:
        """Kills every child."""
        for slot in self._slots:
            slot.kill()


class _Slot:
    """One child at a time. `_pid` stays valid while the executor lives: nobody else reaps the child."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._executor: ProcessPoolExecutor | None = None
        self._pid: int | None = None

    async def run(
        self,
        function: Callable[[*_Arguments], _Result],
        *arguments: *_Arguments,
        seconds: float,
    ) -> _Result:
        loop = asyncio.get_running_loop()
        try:
            executor = await self._ready(loop)
            return await asyncio.wait_for(loop.run_in_executor(executor, function, *arguments), seconds)
        except TimeoutError as error:
            self.kill()
            message = f"killed after {seconds:g} s"
            raise RegistryError(Reason.COMPILE_TIMEOUT, message, {"seconds": f"{seconds:g}"}) from error
        except BrokenProcessPool as error:
            self.kill()
            raise RegistryError(Reason.COMPILER_CRASHED, "the compiling process ended") from error
        except MemoryError as error:
            self.kill()
            message = f"more than {self._memory_bytes} bytes of address space"
            raise RegistryError(Reason.COMPILE_MEMORY, message, {"bytes": str(self._memory_bytes)}) from error
        except asyncio.CancelledError:
            self.kill()
            raise

    async def _ready(self, loop: asyncio.AbstractEventLoop) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1, multiprocessing.get_context("spawn"), _enter_child, (self._memory_bytes,)
            )
            self._pid = await loop.run_in_executor(self._executor, os.getpid)
        return self._executor

    def kill(self) -> None:
        if self._executor is None:
            return
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor, self._pid = None, None


def _enter_child(memory_bytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
