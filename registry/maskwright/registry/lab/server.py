"""The lab as a server: the page, its calls, and a compiling child of its own.

    maskwright lab            by itself, on loopback
    maskwright serve --lab    beside the gRPC service, with its callers, quotas and tokenizers

The pool is the lab's own, so that people who type never wait behind the fleet's compilations, nor it behind them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from dataclasses import dataclass

from maskwright.compiler.options import Limits

from .. import DEFAULT_LAB_ADDRESS
from ..catalog import Catalog
from ..compiling import ChildPool, PoolLimits
from ..faults import RegistryError
from ..security.authentication import Authenticator
from ..security.quotas import Quotas
from ..workspace import Workspace
from .api import Api, failure
from .guard import Guard
from .http import HttpServer, Request, Response
from .site import PREFIX, Site
from .tokenizers import Tokenizers
from .workbench import Workbench

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
LIMITS = Limits(
    source_bytes=256_000,
    states=50_000,
    frames=5_000,
    stack_classes=10_000,
    mask_bytes=256 << 20,
    artifact_bytes=16 << 20,
    compile_seconds=10.0,
)
QUEUE = 16
MEMORY_BYTES = 8 << 30
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Behind:
    """The service that the lab belongs to. hosts: what it's called beside the names of loopback. any_host: it may be
    called anything, because every caller needs a token.
    """

    catalog: Catalog
    workspace: Workspace
    authenticator: Authenticator
    quotas: Quotas
    hosts: tuple[str, ...]
    any_host: bool
    tls: ssl.SSLContext | None = None


class Lab:
    """One lab. Use within one event loop: `start`, then `stop`."""

    def __init__(self, address: str = DEFAULT_LAB_ADDRESS, behind: Behind | None = None) -> None:
        """Raises ValueError for an address that only a service with tokens may have."""
        self._host, _, port = address.rpartition(":")
        self._port, self._tls = int(port), behind.tls if behind else None
        if behind is None and self._host not in LOOPBACK:
            raise ValueError(f"{address} isn't this host's own: serve the lab behind the service's tokens")
        # With others, one may be judged while another's source takes its time.
        self._pool = ChildPool(PoolLimits(children=2 if behind else 1, queue=QUEUE, memory_bytes=MEMORY_BYTES))
        if behind is None:
            self._guard = Guard()
            self._tokenizers = Tokenizers(self._pool)
        else:
            self._guard = Guard(behind.hosts, behind.any_host, behind.authenticator, behind.quotas)
            self._tokenizers = Tokenizers(self._pool, behind.catalog, behind.workspace)
        self._guard.port = lambda: self._port
        self.workbench = Workbench(self._pool, self._tokenizers, LIMITS)
        self._api, self._site = Api(self._guard, self._tokenizers, self.workbench, behind is None), Site()
        self._http = HttpServer(self._answer)
        self._warming: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Binds and serves; returns the page's address. The compiler is loaded meanwhile. Raises OSError."""
        self._port = await self._http.start(self._host.strip("[]"), self._port, self._tls)
        self._pool.start(self._tokenizers.warm_calls)
        self._warming = asyncio.ensure_future(self._warm())
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}{PREFIX}"

    async def stop(self) -> None:
        """Ends at once: nothing here is worth waiting for. Safe to call twice."""
        await self._http.stop()
        if self._warming is not None:
            self._warming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._warming
        await self._tokenizers.close()
        await self._pool.close()
        self._api.close()

    async def _answer(self, request: Request) -> Response:
        try:
            self._guard.check_host(request)
        except RegistryError as error:
            return failure(error)
        if request.path.startswith(f"{PREFIX}/api/"):
            return await self._api.answer(request)
        return self._site.answer(request)

    async def _warm(self) -> None:
        try:
            await self.workbench.warm()
        except RegistryError as error:
            _log.warning("the compiler can't be loaded: %s", error)
