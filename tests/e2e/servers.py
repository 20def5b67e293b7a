"""Servers on loopback, each in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import faulty

from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server, Tasks

FAULTY = Tasks(faulty.compile_source, faulty.read_tokenizer, "test-1")
TOKENIZER = b"not a tokenizer, but the tasks don't mind " * 100


@contextmanager
def running(config: ServerConfig, tasks: Tasks | None = FAULTY) -> Iterator[tuple[str, Server]]:
    """A server; yields its address and itself."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[str, Server]:
        server = Server(config, tasks)
        return await server.start(), server

    address, server = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    try:
        yield address, server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def with_pool(config: ServerConfig, **changes: int) -> ServerConfig:
    return replace(config, pool=replace(config.pool, **changes))
