"""Driving steps: a procedure is a generator that yields operations and is sent their answers, and does none itself.

One procedure serves a thread and an event loop alike: only who performs an operation differs. What an operation raises
is raised inside the steps, at the place where they asked for it, so they may catch it, clean up or try again. (The
pattern is known as sans-IO; generators for it are from PEP 342.)

The commit gate and the registry's client are written so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

_Operation = TypeVar("_Operation")
_Result = TypeVar("_Result")


def drive(steps: Generator[_Operation, Any, _Result], perform: Callable[[_Operation], Any]) -> _Result:
    """Runs the steps to their end, each operation by `perform`; returns what they return, raises what they raise."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            operation = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as stop:
            result: _Result = stop.value
            return result
        answer = error = None
        try:
            answer = perform(operation)
        except BaseException as raised:
            error = raised


async def drive_async(
    steps: Generator[_Operation, Any, _Result], perform: Callable[[_Operation], Awaitable[Any]]
) -> _Result:
    """`drive` on an event loop. A cancellation is raised inside the steps like any other exception."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            operation = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as stop:
            result: _Result = stop.value
            return result
        answer = error = None
        try:
            answer = await perform(operation)
        except BaseException as raised:
            error = raised
