"""What a call to the registry does, step by step, written once for the blocking client and the one for asyncio.

A call is a generator of operations (`maskwright.workers.steps`). It makes the requests, reads the replies, checks what
it's told, decides what is tried again and says what a failure means; a transport (`registry`, `async_registry`) only
performs the operations:

    Ask        sends a message, or several, of "Service/Method"      -> the reply; raises grpc.RpcError
    Receive    takes every message of a reply that is a stream       -> None; raises grpc.RpcError
    Local      reads, writes or hashes on this host                  -> what the call returns
    Pause      waits
    Once       steps that need to run once for all who want their result at a time     -> their result
    Together   steps that may run at the same time, some at once     -> their results, in order

A reply that the caller takes message by message is no steps but a `Stream`, which the transport hands out.
"""

from __future__ import annotations

import inspect
import logging
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.errors import ArtifactRevoked, call_failed
from maskwright.workers.client.signing import TrustedKeys
from maskwright.workers.client.tracing import call_span

LONGEST_PAUSE = 30.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """`make` gives the message, or the messages, anew for each attempt."""

    method: str
    make: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Receive:
    """`take` is called with each message; what it raises ends the call."""

    method: str
    make: Callable[[], Any]
    take: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Local:
    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Once:
    """`key` tells whose result it is. They may run again when nobody runs them, so they look first what is there."""

    key: str
    steps: Callable[[], Steps[Any]]


@dataclass(frozen=True, slots=True)
class Together:
    steps: Sequence[Steps[Any]]
    at_once: int = 8


Operation = Ask | Receive | Local | Pause | Once | Together
Steps = Generator[Operation, Any, _T]


@dataclass(frozen=True, slots=True)
class Stream(Generic[_T]):
    """Replies of "Service/Method", each read by `read`. Not tried again: the caller knows where to go on."""

    method: str
    request: Any
    read: Callable[[Any], _T]


class Calls:
    """What all calls share. `trusted`: whose signatures an artifact needs, None where the registry is believed."""

    def __init__(self, address: str, cache: DiskCache, attempts: int, trusted: TrustedKeys | None) -> None:
        self.address, self.cache, self.trusted = address, cache, trusted
        self._attempts = attempts

    def ask(self, method: str, request: Any) -> Steps[Any]:
        """The reply to one message."""
        return self.attempt(Ask(method, lambda: request))

    def ask_pages(self, method: str, request: Any) -> Steps[list[Any]]:
        """The replies to a request whose reply comes in pages."""
        replies = []
        while True:
            replies.append((yield from self.ask(method, request)))
            request.page_token = replies[-1].next_page_token
            if not request.page_token:
                return replies

    def attempt(self, operation: Ask | Receive) -> Steps[Any]:
        """Every call here may be tried again: it changes nothing, or is the same when done twice."""
        with call_span(operation.method, self.address) as span:
            for attempt in range(1, self._attempts + 1):
                try:
                    return (yield operation)
                except grpc.RpcError as error:
                    span.failed(error.code().name)
                    pause = pause_before(error, attempt, self._attempts, self.cache)
                yield Pause(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")


def pause_before(error: grpc.RpcError, attempt: int, attempts: int, cache: DiskCache) -> float:
    """Seconds before the next attempt, or raises the error's typed form. A revoked artifact leaves the cache."""
    failed = call_failed(error)
    if failed.reason == "REVOKED":
        hash_ = failed.metadata.get("artifact_hash", "")
        remember_revoked(cache, hash_)
        raise ArtifactRevoked(hash_, failed.metadata.get("why", "")) from error
    if attempt == attempts or not (failed.code == "UNAVAILABLE" or failed.retry_after is not None):
        raise failed from error
    # Callers that failed together don't come back together.
    pause = failed.retry_after or 0.1 * 2 ** min(attempt, 10)
    return min(pause, LONGEST_PAUSE) * random.uniform(1.0, 1.3)


def remember_revoked(cache: DiskCache, hash_: str) -> None:
    """A registry's word that an artifact mustn't be used; no word that can be used names no artifact."""
    try:
        cache.revoke(hash_)
    except (OSError, ValueError) as error:
        _log.warning("that %r is revoked isn't kept on disk: %s", hash_, error)


def described(call: Any, steps: Callable[..., Any]) -> Any:
    """`call` with the name, docstring and parameters of the steps that it runs; what it returns isn't theirs."""
    call.__name__, call.__doc__ = steps.__name__, steps.__doc__
    call.__signature__ = inspect.signature(steps).replace(return_annotation=inspect.Signature.empty)
    return call
