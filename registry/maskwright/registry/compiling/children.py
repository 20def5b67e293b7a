"""A pool of child processes, any of which can be killed without touching the others.

Each slot has one child, started by spawn (no state, locks or threads of the server leak into it), and one pipe to it. A
child is warmed before it takes jobs: `warm` loads what every job needs. A job that runs too long, or whose caller went
away, is ended by SIGKILL of its child; a child that ended for whatever reason is replaced and warmed in the background,
and meanwhile the others work. The server waits for the pipe in its event loop, so no thread is bound by a job.

The operating system holds a child to its limits: address space (RLIMIT_AS) for the child and, lower, for a job, and
processor time (RLIMIT_CPU) for a job, so that a child ends even if the server isn't there to end it. A child also ends
when the server is gone, and ignores the terminal's interrupt.

Waiting is bounded: a job beyond `queue` is refused at once. `ProcessPoolExecutor` can't stop one job, and breaks as a
whole when a child dies; pools that can (pebble's) don't tell a child's end by a limit from a crash.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

from ..faults import Reason, RegistryError
from .child import Failed, serve_jobs

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")
_log = logging.getLogger(__name__)
_spawn = multiprocessing.get_context("spawn")

Call = tuple[Callable[..., object], tuple[Any, ...]]
WARM_SECONDS = 300.0
"""A vocabulary that was never prepared takes long; it's done once."""
JOIN_SECONDS = 5.0
"""For the end of a child whose pipe has ended."""


@dataclass(frozen=True)
class PoolLimits:
    """children: processes. queue: jobs that may wait. memory_bytes: address space of one, 0: no cap. warm: load the
    compiler and known vocabularies when a child starts, not with its first job."""

    children: int = 2
    queue: int = 1024
    memory_bytes: int = 16 << 30
    warm: bool = True


class ChildPool:
    """Runs picklable functions in children; belongs to one event loop."""

    def __init__(self, limits: PoolLimits) -> None:
        self.limits = limits
        self._idle: asyncio.LifoQueue[_Slot] = asyncio.LifoQueue()
        self._slots = [_Slot(limits.memory_bytes) for _ in range(limits.children)]
        for slot in self._slots:
            self._idle.put_nowait(slot)
        self._waiting = 0
        self._warm: Callable[[], Sequence[Call]] | None = None
        self._background: set[asyncio.Task[None]] = set()

    def start(self, warm: Callable[[], Sequence[Call]]) -> None:
        """Starts the children now and has each make the calls that `warm` returns, which is asked for every child.
        Without it children start with their first job, cold. Returns at once."""
        self._warm = warm
        for _ in range(self._idle.qsize()):
            self._renew(self._idle.get_nowait())

    async def run(
        self,
        function: Callable[[*_Arguments], _Result],
        *arguments: *_Arguments,
        seconds: float,
    ) -> _Result:
        """The function's result. Cancelling ends the child. `seconds` bounds wall time and processor time.

        Raises RegistryError QUEUE_FULL, COMPILE_TIMEOUT, COMPILE_MEMORY or COMPILER_CRASHED, and what the function
        raises.
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
            result: _Result = await slot.run(function, arguments, seconds)
            return result
        finally:
            if slot.alive or self._warm is None:
                self._idle.put_nowait(slot)
            else:
                self._renew(slot)

    def refresh(self) -> None:
        """Has the children that are idle make `warm`'s calls again: there's something new in them."""
        if self._warm is not None:
            for _ in range(self._idle.qsize()):
                self._renew(self._idle.get_nowait())

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def running(self) -> int:
        """Children that aren't free: at a job, or getting ready."""
        return self.limits.children - self._idle.qsize()

    async def close(self) -> None:
        """Kills every child; what waits for one ends with it. Their threads are gone when they are."""
        self._warm, warming = None, tuple(self._background)
        for task in warming:
            task.cancel()
        for slot in self._slots:
            slot.kill()
        await asyncio.gather(*warming, return_exceptions=True)

    def _renew(self, slot: _Slot) -> None:
        task = asyncio.ensure_future(self._make_ready(slot))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _make_ready(self, slot: _Slot) -> None:
        try:
            calls = [] if self._warm is None else await asyncio.to_thread(self._warm)
            for function, arguments in calls:
                await slot.run(function, arguments, WARM_SECONDS)
        except Exception as error:
            # A cold child works; what's wrong with a vocabulary is told to those who use it.
            _log.warning("a compiling process couldn't be warmed: %s", error)
        finally:
            self._idle.put_nowait(slot)


class _Slot:
    """One child at a time."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._child: _Child | None = None

    @property
    def alive(self) -> bool:
        return self._child is not None

    async def run(self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
        child = await self._ready()
        try:
            answer = await asyncio.wait_for(child.ask((function, arguments, seconds)), seconds)
        except TimeoutError as error:
            self.kill()
            raise _timed_out(seconds, "wall") from error
        except (EOFError, OSError) as error:
            status = await asyncio.to_thread(child.status)
            self.kill()
            raise _ended(status, seconds) from error
        except asyncio.CancelledError:
            self.kill()
            raise
        if isinstance(answer, Failed):
            raise self._failure(answer.error)
        return answer

    async def _ready(self) -> _Child:
        if self._child is not None and not self._child.process.is_alive():
            self.kill()  # ended while it was idle
        if self._child is None:
            making = asyncio.ensure_future(asyncio.to_thread(_Child, self._memory_bytes))
            try:
                self._child = await asyncio.shield(making)
            except asyncio.CancelledError:
                making.add_done_callback(lambda made: made.result().end())
                raise
        return self._child

    def _failure(self, error: BaseException) -> BaseException:
        if not isinstance(error, MemoryError):
            return error
        self.kill()  # what's left of it may be anything
        metadata = {"bytes": str(self._memory_bytes)}
        failure = RegistryError(Reason.COMPILE_MEMORY, "more memory than a compilation may take", metadata)
        failure.__cause__ = error
        return failure

    def kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


class _Child:
    """A process and the pipe to it. Making one blocks for some milliseconds."""

    def __init__(self, memory_bytes: int) -> None:
        self._pipe, theirs = _spawn.Pipe()
        self.process = _spawn.Process(target=serve_jobs, args=(theirs, memory_bytes), daemon=True)
        self.process.start()
        theirs.close()
        self._blocking = threading.Lock()
        """Held while a thread is at the pipe, so that it's closed behind no one's back."""
        self._watch: tuple[asyncio.AbstractEventLoop, int, asyncio.Future[None]] | None = None
        """While the event loop watches the pipe: what for. A pipe that's closed then would never wake it."""

    async def ask(self, job: tuple[object, ...]) -> Any:
        """The job's answer, or EOFError or OSError where the child ended."""
        await asyncio.to_thread(self._send, job)
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()

        def ready() -> None:
            if not readable.done():
                readable.set_result(None)

        self._watch = loop, self._pipe.fileno(), readable
        loop.add_reader(self._pipe.fileno(), ready)
        try:
            await readable
        finally:
            self._look_away()
        return await asyncio.to_thread(self._receive)

    def _send(self, job: tuple[object, ...]) -> None:
        with self._blocking:
            self._pipe.send(job)

    def _receive(self) -> Any:
        with self._blocking:
            return self._pipe.recv()

    def status(self) -> int | None:
        """The exit status of a child whose pipe has ended; None where it isn't to be had, or was seen to already."""
        try:
            self.process.join(JOIN_SECONDS)
            return self.process.exitcode
        except ValueError:
            return None

    def _look_away(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            loop, number, readable = watch
            loop.remove_reader(number)
            if not readable.done():
                readable.set_exception(EOFError("the child was ended"))

    def end(self) -> None:
        """Kills it; whoever waits for its answer gets EOFError. Called in the event loop.

        A thread of its own sees to what's left of it, which may take the kernel a while.
        """
        self.process.kill()
        self._look_away()
        threading.Thread(target=self._reap).start()

    def _reap(self) -> None:
        self.process.join()
        with self._blocking:
            self._pipe.close()
        self.process.close()


def _timed_out(seconds: float, resource: str) -> RegistryError:
    message = f"killed after {seconds:g} s" + (" of processor time" if resource == "cpu" else "")
    return RegistryError(Reason.COMPILE_TIMEOUT, message, {"seconds": f"{seconds:g}", "resource": resource})


def _ended(status: int | None, seconds: float) -> RegistryError:
    """What to say of a child that ended by itself."""
    if status == -signal.SIGXCPU:
        return _timed_out(seconds, "cpu")
    how = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
    return RegistryError(Reason.COMPILER_CRASHED, f"the compiling process ended {how}", {"exit": str(status)})
