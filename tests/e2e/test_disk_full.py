"""A disk that's full, under a server or a client: told as such, nothing is lost, and it goes on afterwards."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from servers import TOKENIZER, running

from maskwright.registry.config import ServerConfig
from maskwright.registry.store import local
from maskwright.workers.client import CallFailed, RegistryClient

Connect = Callable[..., RegistryClient]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own; where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system can't be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def _filled(folder: Path) -> Iterator[None]:
    """While no byte more can be written."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x")
    yield
    ballast.unlink()


def _refused(call: Callable[[], object]) -> None:
    with pytest.raises(CallFailed) as caught:
        call()
    assert (caught.value.code, caught.value.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
    assert "No space left" in caught.value.message
    assert caught.value.retry_after


def test_a_full_disk_under_the_server(config: ServerConfig, connect: Connect, disk: Path) -> None:
    config = replace(config, data=disk / "data")
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        before = client.compile("before", fingerprint, kind="regex", request_id="r-1")
        client.publish("n", [before.key])
        with _filled(disk):
            for _ in range(3):
                _refused(lambda: client.compile("after", fingerprint, kind="regex"))
            _refused(lambda: client.register_tokenizer(b"another tokenizer" * 1000))
            _refused(lambda: client.promote("n", "prod", 1))
            _refused(lambda: client.publish("n", [before.key]))
            # What's there is served.
            assert connect(address, cache="c2").fetch(before.artifact, "artifact")
            assert client.compile("before", fingerprint, kind="regex", request_id="r-1").key == before.key
            assert client.resolve("n").version == 1
        after = client.compile("after", fingerprint, kind="regex")
        assert not after.cached
        client.promote("n", "prod", client.publish("n", [after.key]))
        assert not list((config.data / "store" / "staging").iterdir())
    for index in config.data.glob("index.sqlite*"):
        index.unlink()
    with running(config) as (address, _):
        client = connect(address, cache="c3")
        assert client.resolve("n:prod").artifact == after.artifact
        assert [v.version for v in client.versions("n")] == [2, 1]
        for one in (before, after):
            assert len(client.fetch(one.artifact, "artifact")) == one.artifact.size


def test_a_server_over_a_full_disk_says_so(disk: Path) -> None:
    serve = [sys.executable, "-m", "maskwright.registry.cli", "serve", "--listen", "127.0.0.1:0"]
    (disk / "data").mkdir()
    with _filled(disk):
        done = subprocess.run([*serve, "--data", str(disk / "data")], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1), done.stderr
    assert "full" in done.stderr or "No space left" in done.stderr


@pytest.mark.parametrize(("failing", "steps"), [("fsync", 4), ("link", 3)])
def test_no_space_at_any_step_of_a_write(
    config: ServerConfig, connect: Connect, monkeypatch: pytest.MonkeyPatch, failing: str, steps: int
) -> None:
    """The same where nothing can be mounted: the step says that there's no space, the first or the second time."""
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        before = client.compile("before", fingerprint, kind="regex")
        step = getattr(os, failing)
        for good in range(steps):
            left = [good]

            def full(*arguments: object, left: list[int] = left) -> object:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return step(*arguments)

            with monkeypatch.context() as patched:
                patched.setattr(local.os, failing, full)
                _refused(lambda good=good: client.compile(f"after {good}", fingerprint, kind="regex"))
        if failing == "fsync":
            with monkeypatch.context() as patched:
                patched.setattr(local.os, failing, full)
                _refused(lambda: client.publish("n", [before.key]))
        for good in range(steps):
            assert client.compile(f"after {good}", fingerprint, kind="regex").artifact.size
        assert client.publish("n", [before.key]) == 1
        assert not list((config.data / "store" / "staging").iterdir())


def test_a_full_disk_under_a_client_costs_downloads_only(
    config: ServerConfig, connect: Connect, disk: Path
) -> None:
    with running(config) as (address, _):
        client = connect(address, cache="disk/cache")
        compiled = client.compile("x", client.register_tokenizer(TOKENIZER).fingerprint, kind="regex")
        with _filled(disk):
            assert len(client.fetch(compiled.artifact, "artifact")) == compiled.artifact.size
            assert client.cache.find("artifact", compiled.artifact.hash) is None
        assert client.fetch(compiled.artifact, "artifact")
        assert client.cache.find("artifact", compiled.artifact.hash) is not None
        assert not list((disk / "cache" / "artifacts").glob(".*"))
