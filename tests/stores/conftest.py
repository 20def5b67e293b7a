"""Every store runs the same suite: add a factory to `FACTORIES`.

`s3` talks over the wire to ministack, `s3_virtual` the same in virtual-host style, `s3_moto` to moto's server,
a different implementation, where that is installed.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import s3_servers
from s3_stores import BUCKET, s3_store

from maskwright.registry.store import BlobStore, LocalStore

Opener = Callable[[], BlobStore]


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """ministack with an empty bucket `BUCKET`."""
    with s3_servers.ministack(tmp_path_factory.mktemp("ministack")) as address:
        s3_servers.make_bucket(address, BUCKET)
        yield address


@pytest.fixture(scope="session")
def moto_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if s3_servers.moto_server() is None:
        pytest.skip("moto's server isn't installed")
    with s3_servers.moto(tmp_path_factory.mktemp("moto")) as address:
        s3_servers.make_bucket(address, BUCKET)
        yield address


@pytest.fixture(autouse=True, scope="session")
def credentials() -> Iterator[None]:
    """By the usual chain: the environment."""
    before = {name: os.environ.get(name) for name in s3_servers.CREDENTIALS}
    os.environ.update(s3_servers.CREDENTIALS)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True, scope="session")
def names_of_localhost() -> Iterator[None]:
    """Not every resolver knows <bucket>.localhost."""
    before = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        inside = isinstance(host, str) and host.endswith(".localhost")
        return before("127.0.0.1" if inside else host, *rest, **more)

    socket.getaddrinfo = resolve
    yield
    socket.getaddrinfo = before


def _local(request: pytest.FixtureRequest, folder: Path) -> Opener:
    return lambda: LocalStore(folder / "root")


def _s3(fixture: str, addressing: str) -> Callable[[pytest.FixtureRequest, Path], Opener]:
    def make(request: pytest.FixtureRequest, folder: Path) -> Opener:
        address, prefix = request.getfixturevalue(fixture), f"{secrets.token_hex(6)}/"
        return lambda: s3_store(address, prefix=prefix, addressing=addressing)

    return make


FACTORIES: dict[str, Callable[[pytest.FixtureRequest, Path], Opener]] = {
    "local": _local,
    "s3": _s3("endpoint", "path"),
    "s3_virtual": _s3("endpoint", "virtual"),
    "s3_moto": _s3("moto_endpoint", "path"),
}


@pytest.fixture(params=sorted(FACTORIES))
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the store anew, over the same blobs."""
    return FACTORIES[request.param](request, tmp_path)


@pytest.fixture
def store(reopen: Opener) -> BlobStore:
    return reopen()
