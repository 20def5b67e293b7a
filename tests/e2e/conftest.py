"""Fixtures: a server with faulty tasks, clients, a registered tokenizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers import TOKENIZER, running

from maskwright.compiler.options import Limits
from maskwright.registry.compiling import PoolLimits
from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.workers.client import DiskCache, RegisteredTokenizer, RegistryClient


@pytest.fixture(autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests, and a cache of its own; only packs, which are slow to build, are shared."""
    for name in os.environ:
        if name.startswith("MASKWRIGHT_") and name not in ("MASKWRIGHT_KILLS", "MASKWRIGHT_SHARED"):
            monkeypatch.delenv(name)
    packs, cache = tmp_path_factory.getbasetemp() / "packs", tmp_path_factory.mktemp("cache")
    packs.mkdir(exist_ok=True)
    (cache / "packs").symlink_to(packs)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(cache))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that "wait" compilations wait for."""
    return tmp_path / "gate"


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    return ServerConfig(
        address="127.0.0.1:0",
        data=tmp_path / "data",
        pool=PoolLimits(children=1, queue=64, memory_bytes=4 << 30),
        profiles={"default": Limits(), "tight": Limits(compile_seconds=0.2)},
        chunk_bytes=4096,
        drain_seconds=0.5,
    )


@pytest.fixture
def server(config: ServerConfig) -> Iterator[tuple[str, Server]]:
    with running(config) as started:
        yield started


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., RegistryClient]]:
    """Makes clients; `cache` names their folder. They don't try again unless told to."""
    made: list[RegistryClient] = []

    def make(address: str, cache: str = "cache", attempts: int = 1, timeout: float = 300.0) -> RegistryClient:
        made.append(
            RegistryClient(address, cache=DiskCache(tmp_path / cache), attempts=attempts, timeout=timeout)
        )
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(server: tuple[str, Server], connect: Callable[..., RegistryClient]) -> RegistryClient:
    return connect(server[0])


@pytest.fixture
def tokenizer(client: RegistryClient) -> RegisteredTokenizer:
    return client.register_tokenizer(TOKENIZER, "demo.json")


@pytest.fixture
def compilations(config: ServerConfig) -> Callable[[], int]:
    """How many compilations children have begun."""

    def count() -> int:
        logs = (config.data / "workspace").rglob("compiled.log")
        return sum(len(log.read_text().splitlines()) for log in logs)

    return count
