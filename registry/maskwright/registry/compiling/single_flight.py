"""Identical work in flight is done once: later callers wait for the first one's result.

The work belongs to all its callers: it's cancelled when the last of them has gone, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

_Result = TypeVar("_Result")
Around = Callable[[], AbstractContextManager[None]]


@dataclass
class _Flight(Generic[_Result]):
    task: asyncio.Task[_Result]
    callers: int = 0


class SingleFlight(Generic[_Result]):
    """Work by key; belongs to one event loop."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[_Result]] = {}

    async def run(
        self, key: str, work: Callable[[], Awaitable[_Result]], around: Around = nullcontext
    ) -> tuple[_Result, bool]:
        """(result of the work, whether this call began it). An exception goes to every caller.

        `around` is entered by the call that begins the work, and left when the work has ended, whoever waits then;
        what it raises goes to that caller alone, and nothing has begun.
        """
        flight = self._flights.get(key)
        began = flight is None
        if flight is None:
            held = ExitStack()
            held.enter_context(around())
            flight = _Flight(asyncio.ensure_future(_finish(work)))
            flight.task.add_done_callback(lambda _: held.close())
            self._flights[key] = flight
            flight.task.add_done_callback(lambda _: self._forget(key, flight))
        flight.callers += 1
        try:
            return await asyncio.shield(flight.task), began
        finally:
            flight.callers -= 1
            if not flight.callers and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()

    def callers(self) -> int:
        """How many wait for work in flight."""
        return sum(flight.callers for flight in self._flights.values())

    def _forget(self, key: str, flight: _Flight[_Result]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _finish(work: Callable[[], Awaitable[_Result]]) -> _Result:
    return await work()
