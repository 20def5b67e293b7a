"""Driving steps, and that both clients offer every call with the same parameters."""

import inspect
from collections.abc import Callable, Generator
from typing import Any

import pytest

from maskwright.workers.client import AsyncRegistryClient, RegistryClient
from maskwright.workers.client.transport import RegistryCalls
from maskwright.workers.steps import drive, drive_async

OTHER_NAMES = {"warm_lock": "warm"}
"""Of the blocking client's, where it isn't that of the steps."""
INNER = {"ask", "ask_pages", "attempt", "warm_blobs"}


def _steps(log: list[str]) -> Generator[str, Any, str]:
    answers = [(yield "a")]
    try:
        yield "raise"
    except KeyError as error:
        answers.append(repr(error))
    try:
        answers.append((yield "b"))
    finally:
        log.append("cleaned up")
    return "/".join(answers)


def _perform(operation: str) -> str:
    if operation == "raise":
        raise KeyError("wrong")
    return operation.upper()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_answers_and_errors_reach_the_steps(asynchronous: bool) -> None:
    async def perform(operation: str) -> str:
        return _perform(operation)

    log: list[str] = []
    steps = _steps(log)
    assert (await drive_async(steps, perform) if asynchronous else drive(steps, _perform)) == "A/KeyError('wrong')/B"
    assert log == ["cleaned up"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_the_steps_dont_catch_is_raised(error: type[BaseException]) -> None:
    def perform(operation: str) -> None:
        if operation == "b":
            raise error

    def steps(log: list[str]) -> Generator[str, Any, str]:
        try:
            yield "b"
        finally:
            log.append("cleaned up")
        return "unreachable"

    log: list[str] = []
    with pytest.raises(error):
        drive(steps(log), perform)
    assert log == ["cleaned up"]


def _public(cls: type) -> dict[str, Callable[..., Any]]:
    return {name: call for name, call in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(call).parameters.values())


def test_both_clients_have_every_call() -> None:
    blocking, awaited = _public(RegistryClient), _public(AsyncRegistryClient)
    for name, steps in _public(RegistryCalls).items():
        if name not in INNER:
            assert _parameters(blocking[OTHER_NAMES.get(name, name)]) == _parameters(steps), name
            assert _parameters(awaited[name]) == _parameters(steps), name
            assert steps.__doc__ == awaited[name].__doc__
            assert steps.__doc__
    assert set(blocking) - {"close"} == {OTHER_NAMES.get(n, n) for n in set(_public(RegistryCalls)) - INNER}
