"""Who may use the lab's calls: the same callers as of the gRPC service, and no other web page.

A browser sends requests to this host on behalf of any page that asks. Three checks keep other pages out:

    Host            on loopback it must be a name of loopback with the right port, or a name that was rebound to
                    127.0.0.1 would make a stranger's page the same origin as the lab's (DNS rebinding)
    Origin          where it's sent, it must be this origin
    Content-Type    calls are application/json, which no page may send to another origin without asking first

Callers are known by bearer token as everywhere (`security.authentication`); a page's request never carries one by
itself, so there is nothing to forge. The page and its files are the same for everyone and need no token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..faults import Reason, RegistryError, invalid_request
from ..security.authentication import Authenticator
from ..security.callers import ANONYMOUS, Caller, using_caller
from ..security.quotas import Quotas
from .http import Request

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """hosts: names that `Host` may have, with any port, beside those of loopback with the server's own. any_host: lets
    every name in, where callers need a token.
    """

    def __init__(
        self,
        hosts: tuple[str, ...] = (),
        any_host: bool = False,
        authenticator: Authenticator | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self._hosts, self._any_host = tuple(h.lower() for h in hosts), any_host
        self._authenticator, self._quotas = authenticator, quotas
        self.port: Callable[[], int] = lambda: 0

    def check_host(self, request: Request) -> None:
        """Raises RegistryError PERMISSION_DENIED."""
        host = request.headers.get("host", "")
        name, port = _split(host)
        known = name in self._hosts or (name in LOOPBACK_NAMES and port == self.port())
        if not known and not (self._any_host and name):
            raise RegistryError(Reason.PERMISSION_DENIED, f"this isn't {host!r}", {"host": host})

    @contextmanager
    def call(self, request: Request, scope: str, *, compiling: bool = False) -> Iterator[Caller]:
        """Around a call. Raises RegistryError UNAUTHENTICATED, PERMISSION_DENIED, QUOTA_EXCEEDED, INVALID_REQUEST."""
        self._check_origin(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise invalid_request("content-type", "must be application/json")
        caller = self._caller(request)
        caller.require(scope)
        with using_caller(caller):
            if self._quotas is None:
                yield caller
                return
            self._quotas.count_call(caller.name)
            if not compiling:
                yield caller
                return
            with self._quotas.compiling(caller.name):
                yield caller

    def _caller(self, request: Request) -> Caller:
        if self._authenticator is None:
            return ANONYMOUS
        metadata = [(n, v) for n, v in request.headers.items() if n == "authorization"]
        return self._authenticator.caller(metadata, {})

    def _check_origin(self, request: Request) -> None:
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        # Something in front may have taken TLS off, so https is this origin in any case.
        if origin is not None and origin != f"https://{host}" and (request.secure or origin != f"http://{host}"):
            raise RegistryError(Reason.PERMISSION_DENIED, f"not for pages of {origin!r}", {"origin": origin})


def _split(host: str) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower(), 80
    return name.lower(), int(port) if port.isdecimal() and len(port) <= 5 else 0
