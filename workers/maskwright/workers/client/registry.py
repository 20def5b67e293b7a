"""A blocking client of one registry. May be shared between threads.

Each method is the steps of the same name in `RegistryCalls`, performed in the caller's thread (`calls` says how that's
divided): calls that failed because the service was unavailable or its queue full are tried again, after the delay that
it names or with growing pauses; everything fetched is checked before it's used or kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from maskwright.workers.steps import drive

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _blocking(
    steps: Callable[Concatenate[RegistryCalls, _P], Steps[_T]],
) -> Callable[Concatenate[RegistryClient, _P], _T]:
    def call(client: RegistryClient, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return client._drive(steps(client._calls, *args, **kwargs))

    return described(call, steps)  # type: ignore[no-any-return]


def _iterating(
    stream: Callable[Concatenate[RegistryCalls, _P], Stream[_T]],
) -> Callable[Concatenate[RegistryClient, _P], Iterator[_T]]:
    def call(client: RegistryClient, *args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        return client._iterate(stream(client._calls, *args, **kwargs))

    return described(call, stream)  # type: ignore[no-any-return]


class RegistryClient(Transport):
    """Calls the registry at `address` (host:port); close it, or use it in `with`.

    cache: a folder's cache; default that of the worker runtime (`$MASKWRIGHT_CACHE`, else
    `~/.cache/maskwright`). timeout: seconds for one call. attempts: tries of a call that may be tried
    again. credentials: TLS and token; default those of the environment (`Credentials.from_environment`).
    trusted_keys: only artifacts that one of them signed are used; default those of $MASKWRIGHT_TRUSTED_KEYS, and
    without any the registry is believed.

    Raises KeyFileError, OSError where keys or certificates can't be read.
    """

    _grpc = grpc

    register_tokenizer = _blocking(RegistryCalls.register_tokenizer)
    tokenizers = _blocking(RegistryCalls.tokenizers)
    compile = _blocking(RegistryCalls.compile)
    precompile = _iterating(RegistryCalls.precompile)
    explain = _blocking(RegistryCalls.explain)
    resolve = _blocking(RegistryCalls.resolve)
    capabilities = _blocking(RegistryCalls.capabilities)
    health = _blocking(RegistryCalls.health)

    fetch = _blocking(RegistryCalls.fetch)
    fetch_path = _blocking(RegistryCalls.fetch_path)
    load_artifact = _blocking(RegistryCalls.load_artifact)
    load_pack = _blocking(RegistryCalls.load_pack)
    warm = _blocking(RegistryCalls.warm_lock)
    all_diagnostics = _blocking(RegistryCalls.all_diagnostics)
    add_signature = _blocking(RegistryCalls.add_signature)
    signatures = _blocking(RegistryCalls.signatures)

    publish = _blocking(RegistryCalls.publish)
    promote = _blocking(RegistryCalls.promote)
    rollback = _blocking(RegistryCalls.rollback)
    pin = _blocking(RegistryCalls.pin)
    retire = _blocking(RegistryCalls.retire)
    revoke = _blocking(RegistryCalls.revoke)
    names = _blocking(RegistryCalls.names)
    versions = _blocking(RegistryCalls.versions)
    watch = _iterating(RegistryCalls.watch)
    lease = _blocking(RegistryCalls.lease)

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for channel in (self._channel, *self._retired):
            channel.close()

    def _drive(self, steps: Steps[_T]) -> _T:
        return drive(steps, self._perform)

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Ask():
                return self._send(operation.method, operation.make())
            case Receive():
                for message in self._send(operation.method, operation.make()):
                    operation.take(message)
            case Local():
                return operation.call()
            case Pause():
                time.sleep(operation.seconds)
            case Once():
                with self._turn(operation.key):
                    return self._drive(operation.steps())
            case Together():
                with ThreadPoolExecutor(operation.at_once) as pool:
                    return list(pool.map(self._drive, operation.steps))
        return None

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        """One goes first; the others wait, and find it done."""
        mine = threading.Lock()
        with mine:
            while (others := self._running.setdefault(key, mine)) is not mine:
                with others:
                    pass
            try:
                yield
            finally:
                del self._running[key]

    def _iterate(self, wanted: Stream[_T]) -> Iterator[_T]:
        stream = self._open(wanted.method, wanted.request)
        try:
            for message in stream:
                yield wanted.read(message)
        except grpc.RpcError as error:
            raise call_failed(error) from error
        finally:
            stream.cancel()
