"""Servers on loopback, each in a thread with an event loop of its own; and waiting for what they come to.

A test waits for a state, never for a time: machines that run many tests at once are slow.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

    address, server = asyncio.run_coroutine_threadsafe(start(), loop).result(300)
    try:
        yield address, server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(300)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def until(condition: Callable[[], object]) -> None:
    """Returns once the condition holds. Fails after two minutes."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it didn't come to that")


def lasting_address() -> str:
    """An address that stays free when its server has gone: not one that the system gives to whoever asks for any."""
    for port in random.Random().sample(range(20_000, 30_000), 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"
    raise AssertionError("no port is free")


def with_pool(config: ServerConfig, **changes: int) -> ServerConfig:
    return replace(config, pool=replace(config.pool, **changes))
