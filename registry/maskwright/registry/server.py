"""The server: wiring, start, graceful drain.

Everything that a server needs is made in `Server.__init__`, top to bottom.

On SIGTERM or SIGINT health turns to NOT_SERVING, new calls are refused, calls in flight get
`drain_seconds`, then the compiling children are killed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from maskwright.compiler.version import COMPILER_VERSION
from maskwright.v1 import (
    compiler_pb2,
    compiler_pb2_grpc,
    registry_pb2,
    registry_pb2_grpc,
    tokenizer_pb2,
    tokenizer_pb2_grpc,
)

from .catalog import Catalog
from .compiling import KEPT_VOCABULARIES, Call, ChildPool, CompileFlow, compile_source, read_tokenizer, warm_compiler
from .compiling.flow import CompileTask
from .config import ServerConfig
from .content import ContentStore
from .faults import RegistryError
from .hot_blobs import HotBlobs
from .index import Index
from .lab.server import Behind, Lab
from .names import Journal
from .security.authentication import Authenticator
from .security.quotas import Quotas
from .security.tls import grpc_credentials, http_context
from .service.calls import CallInterceptor
from .service.compiler import CompilerServicer
from .service.registry import RegistryServicer
from .service.tokenizer import ReadTask, TokenizerServicer
from .signatures import Signer
from .store import StoreError
from .store.locate import open_store
from .telemetry import Metrics
from .workspace import Workspace

_log = logging.getLogger(__name__)
THREADS = 64
"""For calls of the store and the index."""
SERVICES = (
    compiler_pb2.DESCRIPTOR.services_by_name["CompilerService"].full_name,
    registry_pb2.DESCRIPTOR.services_by_name["RegistryService"].full_name,
    tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"].full_name,
)


@dataclass(frozen=True)
class Tasks:
    """What the compiling children run; tests put faulty ones here."""

    compile: CompileTask = compile_source
    read: ReadTask = read_tokenizer
    compiler_version: str = COMPILER_VERSION
    warm: Callable[..., None] | None = None
    """Run by each child before its first job, with a tokenizer's path and fingerprint; None: children start cold."""


class Server:
    """One server over a local data folder. Use within one event loop: `start`, then `wait`, then `stop`."""

    def __init__(self, config: ServerConfig, tasks: Tasks | None = None) -> None:
        tasks = tasks or Tasks(warm=warm_compiler)
        self.config = config
        self.catalog = open_catalog(config)
        self.journal = Journal(self.catalog.content, self.catalog.index)
        self.pool, self.metrics = ChildPool(config.pool), Metrics()
        self.metrics.waiting.set_function(lambda: self.pool.waiting)
        self.metrics.running.set_function(lambda: self.pool.running)
        workspace = self._workspace = Workspace(config.data / "workspace", self.catalog.content)
        self._warm_task = tasks.warm if config.pool.warm else None
        self.flow = CompileFlow(self.catalog, workspace, self.pool, tasks.compiler_version, tasks.compile, self.metrics)
        quotas = Quotas(config.quotas)
        authenticator = Authenticator(
            self.journal, config.authentication.mode == "required", config.authentication.certificates
        )
        interceptor = CallInterceptor(authenticator, quotas, self.metrics)
        self._lab = self._make_lab(authenticator, quotas) if config.lab.address else None
        self.lab_page = ""
        self._grpc = grpc.aio.server(interceptors=[interceptor], options=_channel_options(config))
        self._health = health.aio.HealthServicer()
        swaps = self.catalog.content.store.capabilities().compare_and_swap
        signer = Signer(self.catalog.content, config.signing.key) if config.signing.key else None
        compiler = CompilerServicer(self.flow, self.journal, config, tasks.compiler_version, swaps, quotas, signer)
        tokenizer = TokenizerServicer(self.catalog, workspace, self.pool, tasks.read, config.max_tokenizer_bytes)
        hot = HotBlobs(self.catalog.content, config.hot_bytes)
        self.registry = RegistryServicer(self.catalog, self.journal, hot, config.chunk_bytes, quotas, self.metrics)
        self._following: asyncio.Task[None] | None = None
        self._stop_metrics: Callable[[], None] | None = None
        self._threads = ThreadPoolExecutor(THREADS, "maskwright")
        additions: list[tuple[Callable[..., None], object]] = [
            (compiler_pb2_grpc.add_CompilerServiceServicer_to_server, compiler),
            (
                registry_pb2_grpc.add_RegistryServiceServicer_to_server,
                self.registry,
            ),
            (tokenizer_pb2_grpc.add_TokenizerServiceServicer_to_server, tokenizer),
            (health_pb2_grpc.add_HealthServicer_to_server, self._health),
        ]
        for add, servicer in additions:
            add(servicer, self._grpc)
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._grpc)

    async def start(self) -> str:
        """Binds and serves; returns host:port as bound. Raises OSError where the address is taken."""
        host = self.config.address.rpartition(":")[0]
        try:
            port = self._listen()
        except RuntimeError as error:
            raise OSError(str(error)) from error
        if self.config.telemetry.metrics_address:
            self._stop_metrics = self.metrics.serve(self.config.telemetry.metrics_address)
        # Python's own default has a handful: a store that hangs would take them all, and then nothing is answered.
        asyncio.get_running_loop().set_default_executor(self._threads)
        await asyncio.to_thread(self._catch_up)
        if self._warm_task is not None:
            self.pool.start(self._warm_calls)
        self._following = asyncio.ensure_future(self._follow())
        if self._lab is not None:
            self.lab_page = await self._lab.start()
        await self._grpc.start()
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return f"{host}:{port}"

    def _warm_calls(self) -> list[Call]:
        """What a new child loads: the tokenizers that it can keep, or the compiler alone."""
        assert self._warm_task is not None
        found = self.catalog.tokenizers("", KEPT_VOCABULARIES)
        arguments: list[tuple[str, ...]] = [(str(self._workspace.tokenizer(t)), t.fingerprint) for t in found]
        return [(self._warm_task, a) for a in arguments or [()]]

    def _listen(self) -> int:
        port: int
        if self.config.tls is None:
            port = self._grpc.add_insecure_port(self.config.address)
        else:
            port = self._grpc.add_secure_port(self.config.address, grpc_credentials(self.config.tls))
        return port

    def _make_lab(self, authenticator: Authenticator, quotas: Quotas) -> Lab:
        config = self.config
        any_host = not config.lab.hosts and not config.lab.on_loopback
        tls = None if config.tls is None else http_context(config.tls)
        behind = Behind(self.catalog, self._workspace, authenticator, quotas, config.lab.hosts, any_host, tls)
        return Lab(config.lab.address, behind)

    async def stop(self) -> None:
        """Drains and ends. Safe to call twice."""
        await self._health.enter_graceful_shutdown()
        if self._lab is not None:
            await self._lab.stop()
        self.registry.end_watches()
        await self._grpc.stop(self.config.drain_seconds)
        if self._following is not None:
            self._following.cancel()
        await self.pool.close()
        await self.registry.usage.close()
        self.catalog.index.close()
        if self._stop_metrics is not None:
            await asyncio.to_thread(self._stop_metrics)
            self._stop_metrics = None
        self._threads.shutdown(wait=False)

    async def _follow(self) -> None:
        """Other replicas' changes, within `follow_seconds`."""
        while True:
            await asyncio.sleep(self.config.follow_seconds)
            try:
                await asyncio.to_thread(self._catch_up)
            except Exception:
                # Nothing that's known to happen; but a replica that stopped following would serve old answers for ever.
                _log.exception("following the journal failed")

    def _catch_up(self) -> None:
        """Takes new entries. A store that's down or damaged there must not stop what can be served without it."""
        try:
            self.metrics.revision.set(self.journal.catch_up())
        except (StoreError, RegistryError) as error:
            self.metrics.store_failures.inc()
            _log.warning("the journal can't be read: %s", error)


def open_catalog(config: ServerConfig) -> Catalog:
    """The catalog: the store where the configuration says, else under `data`; the index in `data`.

    Raises StoreUnavailable.
    """
    content = ContentStore(open_store(config.location))
    return Catalog(content, Index(config.data / "index.sqlite"))


async def serve(config: ServerConfig, on_ready: Callable[[str, str], None]) -> None:
    """Serves until SIGTERM or SIGINT, then drains. `on_ready` gets the address, and the lab's page or ""."""
    server, stopping = Server(config), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    address = await server.start()
    on_ready(address, server.lab_page)
    await stopping.wait()
    _log.info("draining for at most %g s", config.drain_seconds)
    await server.stop()


def _channel_options(config: ServerConfig) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", config.max_message_bytes),
        ("grpc.max_send_message_length", config.max_message_bytes),
        ("grpc.so_reuseport", 0),
        # Clients that watch for long ping once a minute.
        ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
    ]
