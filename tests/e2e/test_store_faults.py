"""A server over a bucket that fails: it says so, loses nothing, and serves nothing that's wrong."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import s3_servers
from s3_faults import FaultyProxy, faulty_proxy
from servers import TOKENIZER, running, until

from maskwright.registry.config import ServerConfig
from maskwright.registry.store import StoreUnavailable
from maskwright.workers.client import CallFailed, CompiledSource, RegistryClient

Connect = Callable[..., RegistryClient]
FAULTS = ("500", "503", "refuse", "truncate", "corrupt", "corrupt_upload", "lost", "pass", "pass")


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    for name, value in s3_servers.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_servers.ministack(tmp_path) as endpoint, faulty_proxy(endpoint) as made:
        s3_servers.make_bucket(endpoint, "registry")
        yield made


@pytest.fixture
def over_s3(config: ServerConfig, proxy: FaultyProxy) -> ServerConfig:
    settings = f"endpoint={proxy.endpoint}&addressing=path&attempts=3&read_seconds=10"
    return replace(config, store=f"s3://registry/?{settings}", hot_bytes=0, follow_seconds=0.2)


def test_random_faults_lose_nothing(
    over_s3: ServerConfig, proxy: FaultyProxy, connect: Connect, tmp_path: Path
) -> None:
    choose, answered = random.Random(3), dict[str, CompiledSource]()
    versions = []
    with running(over_s3) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        for number in range(15):
            proxy.faults = [choose.choice(FAULTS) for _ in range(choose.randrange(12))]
            try:
                source = f"source {number}"
                answered[source] = client.compile(source, fingerprint, kind="regex")
                versions.append(client.publish("n", [answered[source].key]))
                fetched = connect(address, cache=f"c{number}").fetch(answered[source].artifact, "artifact")
                assert len(fetched) == answered[source].artifact.size
            except CallFailed as error:
                assert error.reason in ("STORE_UNAVAILABLE", "CORRUPT_BLOB", ""), error
        proxy.faults = []
    assert len(answered) > 3
    assert versions == sorted(set(versions))
    with running(replace(over_s3, data=tmp_path / "new-machine")) as (address, _):
        client = connect(address, cache="fresh")
        for source, before in answered.items():
            again = client.compile(source, fingerprint, kind="regex")
            assert (again.artifact, again.cached) == (before.artifact, True)
            assert client.fetch(again.artifact, "artifact")
        assert set(versions) <= {v.version for v in client.versions("n")}


def test_an_outage_is_told_and_known_names_are_served(
    over_s3: ServerConfig, proxy: FaultyProxy, connect: Connect
) -> None:
    with running(replace(over_s3, hot_bytes=1 << 20)) as (address, server):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        compiled = client.compile("x", fingerprint, kind="regex")
        client.publish("n", [compiled.key])
        assert connect(address, cache="c1").fetch(compiled.artifact, "artifact")
        proxy.faults = ["503"] * 10_000
        for call in (
            lambda: client.compile("new", fingerprint, kind="regex"),
            lambda: client.promote("n", "prod", 1),
        ):
            with pytest.raises(CallFailed) as caught:
                call()
            assert (caught.value.code, caught.value.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
            assert caught.value.retry_after
        assert connect(address, cache="c2").fetch(compiled.artifact, "artifact")
        assert [v.version for v in client.versions("n")] == [1]
        proxy.faults = []
        assert client.promote("n", "prod", 1) == 2
        assert server.journal.read(lambda s: s.revision) == 2


def test_a_store_without_swap_compiles_but_holds_no_names(
    over_s3: ServerConfig, proxy: FaultyProxy, connect: Connect
) -> None:
    proxy.mode = "no_swap"
    with running(over_s3) as (address, _):
        client = connect(address)
        compiled = client.compile("x", client.register_tokenizer(TOKENIZER).fingerprint, kind="regex")
        assert client.fetch(compiled.artifact)
        assert not client.capabilities().get("names")
        with pytest.raises(CallFailed) as caught:
            client.publish("n", [compiled.key])
        assert (caught.value.code, caught.value.reason) == ("FAILED_PRECONDITION", "NAMES_UNSUPPORTED")
        assert "doesn't compare and swap" in caught.value.message


def test_many_identical_calls_over_two_replicas_compile_once_each(
    over_s3: ServerConfig, connect: Connect, tmp_path: Path
) -> None:
    with running(over_s3) as (one, _), running(replace(over_s3, data=tmp_path / "d2")) as (two, _):
        clients = [connect(a, cache=a) for a in (one, two)]
        fingerprint = clients[0].register_tokenizer(TOKENIZER).fingerprint
        with ThreadPoolExecutor(20) as pool:
            done = list(pool.map(lambda n: clients[n % 2].compile("slow 0.5", fingerprint, kind="regex"), range(40)))
        assert len({d.artifact for d in done}) == 1
        assert [d.cached for d in done].count(False) <= 2


def test_what_is_known_is_told_in_an_outage(
    over_s3: ServerConfig, proxy: FaultyProxy, connect: Connect
) -> None:
    """Look-ups, hits and watches of what was asked for before."""
    with running(replace(over_s3, hot_bytes=1 << 20)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        compiled = client.compile("x", fingerprint, kind="regex")
        client.promote("n", "prod", client.publish("n", [compiled.key]))
        assert client.resolve("n:prod").artifact == compiled.artifact
        proxy.faults = ["503"] * 10_000
        assert client.resolve("n:prod").artifact == compiled.artifact
        assert client.resolve(hash=compiled.artifact.hash).key == compiled.key
        assert client.compile("x", fingerprint, kind="regex") == replace(compiled, cached=True)
        assert next(client.watch(after=2)) == (2, None)
        with pytest.raises(CallFailed) as caught:
            next(client.watch(after=3))
        assert caught.value.reason == "STORE_UNAVAILABLE"
        proxy.faults = []


def test_a_store_that_hangs_doesnt_stop_what_is_known(
    config: ServerConfig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(replace(config, follow_seconds=0.1)) as (address, server):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        compiled = client.compile("x", fingerprint, kind="regex")
        client.publish("n", [compiled.key])
        assert client.resolve("n").artifact == compiled.artifact
        store, go_on, hanging = server.catalog.content.store, threading.Event(), threading.Semaphore(0)

        def hang(*arguments: object) -> bytes:
            hanging.release()
            go_on.wait(120)
            raise StoreUnavailable("k", "hung")

        with monkeypatch.context() as patched, ThreadPoolExecutor(20) as pool:
            for name in ("get", "get_range", "head", "size"):
                patched.setattr(store, name, hang)
            stuck = [pool.submit(connect(address, cache=f"c{n}").fetch, "f" * 64) for n in range(20)]
            for _ in range(20):
                assert hanging.acquire(timeout=60)
            assert client.resolve("n").artifact == compiled.artifact
            assert client.compile("x", fingerprint, kind="regex").cached
            go_on.set()
            for call in stuck:
                with pytest.raises(CallFailed):
                    call.result()


def test_a_replica_goes_on_following_after_anything(
    config: ServerConfig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, follow_seconds=0.05)
    with running(config) as (_, server):
        failures, catch_up = [], server.journal.catch_up

        def failing() -> int:
            if len(failures) < 3:
                failures.append(1)
                raise RuntimeError("nothing that anybody foresaw")
            return catch_up()

        monkeypatch.setattr(server.journal, "catch_up", failing)
        until(lambda: len(failures) == 3)
        with running(replace(config, store=f"file:{config.data / 'store'}", data=config.data / "other")) as (two, _):
            client = connect(two)
            compiled = client.compile("x", client.register_tokenizer(TOKENIZER).fingerprint, kind="regex")
            client.publish("n", [compiled.key])
        until(lambda: server.journal.read(lambda state: state.revision) == 1)
