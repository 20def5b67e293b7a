"""The operations that a commit's steps ask for, and who performs them: the caller's thread, or an event loop.

On a loop the store's work is done in threads, and never interrupted: a cancellation that comes meanwhile is raised at
the next operation that isn't the store's. So one that comes before the action begins frees the key, one that comes
while it runs leaves the call in doubt, and one that comes later finds the end on disk.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maskwright.workers.gate.asked import Request, name_of


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of the caller's code. It may return an awaitable."""

    call: Callable[[Request], Any]
    request: Request


@dataclass(frozen=True, slots=True)
class Stored:
    """Work of the store. It's never interrupted."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


class Checkpoint:
    """A point where a cancellation may strike."""


Operation = Ask | Stored | Wait | Checkpoint


def perform(operation: Operation) -> Any:
    if isinstance(operation, Stored):
        return operation.call()
    if isinstance(operation, Wait):
        return time.sleep(operation.seconds)
    if isinstance(operation, Checkpoint):
        return None
    if inspect.iscoroutinefunction(operation.call):
        raise TypeError(f"{name_of(operation.call)} is async: use commit_async")
    answer = operation.call(operation.request)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(f"{name_of(operation.call)} returned an awaitable: use commit_async")
    return answer


class OnLoop:
    """Performs one commit's operations on the running event loop. `cancelled`: what struck, and is to be raised."""

    def __init__(self) -> None:
        self.cancelled: asyncio.CancelledError | None = None

    async def perform(self, operation: Operation) -> Any:
        if isinstance(operation, Stored):
            return await self._uninterrupted(operation.call)
        if self.cancelled is not None:
            raise self.cancelled
        if isinstance(operation, Wait):
            return await asyncio.sleep(operation.seconds)
        if isinstance(operation, Checkpoint):
            return await asyncio.sleep(0)
        answer = operation.call(operation.request)
        return await answer if inspect.isawaitable(answer) else answer

    async def _uninterrupted(self, call: Callable[[], Any]) -> Any:
        work = asyncio.ensure_future(asyncio.to_thread(call))
        while not work.done():
            try:
                await asyncio.wait((work,))
            except asyncio.CancelledError as error:
                self.cancelled = error
        return work.result()
