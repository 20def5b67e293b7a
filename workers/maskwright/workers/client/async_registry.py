"""The client for asyncio. Belongs to one event loop.

Each method is the steps of the same name in `RegistryCalls`, as for `RegistryClient`, so checks, retries, errors and
the disk cache are the same. Files are read, written and hashed in threads; calls are gRPC's own asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc

from maskwright.workers.client.calls import (
    Ask,
    Local,
    Once,
    Operation,
    Pause,
    Receive,
    Steps,
    Stream,
    Together,
    described,
)
from maskwright.workers.client.errors import call_failed
from maskwright.workers.client.transport import RegistryCalls, Transport
from maskwright.workers.steps import drive_async

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _awaited(
    steps: Callable[Concatenate[RegistryCalls, _P], Steps[_T]],
) -> Callable[Concatenate[AsyncRegistryClient, _P], Coroutine[Any, Any, _T]]:
    async def call(client: AsyncRegistryClient, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await client._drive(steps(client._calls, *args, **kwargs))

    return described(call, steps)  # type: ignore[no-any-return]


def _iterating(
    stream: Callable[Concatenate[RegistryCalls, _P], Stream[_T]],
) -> Callable[Concatenate[AsyncRegistryClient, _P], AsyncIterator[_T]]:
    def call(client: AsyncRegistryClient, *args: _P.args, **kwargs: _P.kwargs) -> AsyncIterator[_T]:
        return client._iterate(stream(client._calls, *args, **kwargs))

    return described(call, stream)  # type: ignore[no-any-return]


class AsyncRegistryClient(Transport):
    """Calls the registry at `address`; use it in `async with`. The arguments are `RegistryClient`'s."""

    _grpc = grpc.aio

    register_tokenizer = _awaited(RegistryCalls.register_tokenizer)
    tokenizers = _awaited(RegistryCalls.tokenizers)
    compile = _awaited(RegistryCalls.compile)
    precompile = _iterating(RegistryCalls.precompile)
    explain = _awaited(RegistryCalls.explain)
    resolve = _awaited(RegistryCalls.resolve)
    capabilities = _awaited(RegistryCalls.capabilities)
    health = _awaited(RegistryCalls.health)

    fetch = _awaited(RegistryCalls.fetch)
    fetch_path = _awaited(RegistryCalls.fetch_path)
    load_artifact = _awaited(RegistryCalls.load_artifact)
    load_pack = _awaited(RegistryCalls.load_pack)
    warm = _awaited(RegistryCalls.warm_blobs)
    warm_lock = _awaited(RegistryCalls.warm_lock)
    all_diagnostics = _awaited(RegistryCalls.all_diagnostics)
    add_signature = _awaited(RegistryCalls.add_signature)
    signatures = _awaited(RegistryCalls.signatures)

    publish = _awaited(RegistryCalls.publish)
    promote = _awaited(RegistryCalls.promote)
    rollback = _awaited(RegistryCalls.rollback)
    pin = _awaited(RegistryCalls.pin)
    retire = _awaited(RegistryCalls.retire)
    revoke = _awaited(RegistryCalls.revoke)
    names = _awaited(RegistryCalls.names)
    versions = _awaited(RegistryCalls.versions)
    watch = _iterating(RegistryCalls.watch)
    lease = _awaited(RegistryCalls.lease)

    async def __aenter__(self) -> AsyncRegistryClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        for channel in (self._channel, *self._retired):
            await channel.close()

    async def _drive(self, steps: Steps[_T]) -> _T:
        return await drive_async(steps, self._perform)

    async def _perform(self, operation: Operation) -> Any:
        match operation:
            case Ask():
                return await self._send(operation.method, operation.make())
            case Receive():
                async for message in self._send(operation.method, operation.make()):
                    operation.take(message)
            case Local():
                return await asyncio.to_thread(operation.call)
            case Pause():
                await asyncio.sleep(operation.seconds)
            case Once():
                # Who gives up waiting doesn't stop it for the others.
                return await asyncio.shield(self._task(operation))
            case Together():
                return await self._together(operation.steps, operation.at_once)
        return None

    def _task(self, wanted: Once) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] | None = self._running.get(wanted.key)
        if task is None:
            task = self._running[wanted.key] = asyncio.ensure_future(self._drive(wanted.steps()))
            task.add_done_callback(partial(self._ended, wanted.key))
        return task

    def _ended(self, key: str, task: asyncio.Task[Any]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # looked at, for when nobody waits any more

    async def _together(self, wanted: Sequence[Steps[_T]], at_once: int) -> list[_T]:
        slots = asyncio.Semaphore(at_once)

        async def one(steps: Steps[_T]) -> _T:
            async with slots:
                return await self._drive(steps)

        return await asyncio.gather(*(one(steps) for steps in wanted))

    async def _iterate(self, wanted: Stream[_T]) -> AsyncIterator[_T]:
        stream = self._open(wanted.method, wanted.request)
        try:
            async for message in stream:
                yield wanted.read(message)
        except grpc.RpcError as error:
            raise call_failed(error) from error
        finally:
            stream.cancel()
