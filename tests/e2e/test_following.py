"""Workers that follow a channel, and the client for asyncio; with the real compiler, so that artifacts load."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from servers import lasting_address, running, until

from maskwright.registry.config import ServerConfig
from maskwright.workers import Matcher
from maskwright.workers.client import (
    ArtifactRevoked,
    AsyncRegistryClient,
    CallFailed,
    ChannelFollower,
    CompiledSource,
    DiskCache,
    RegistryClient,
    ServiceUnavailable,
    SourceRefused,
)

TOKENIZER = Path(str(files("maskwright.compiler") / "data" / "demo.tokenizer.json"))
Connect = Callable[..., RegistryClient]


@dataclass
class Fleet:
    """A registry with two versions of one name."""

    address: str
    client: RegistryClient
    fingerprint: str
    compiled: list[CompiledSource]


def _compile(client: RegistryClient, fingerprint: str, pattern: str) -> CompiledSource:
    return client.compile(pattern, fingerprint, kind="regex")


@pytest.fixture
def fleet(config: ServerConfig, connect: Connect) -> Iterator[Fleet]:
    with running(replace(config, follow_seconds=0.2), tasks=None) as (address, _):
        client = connect(address, cache="deployer")
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        compiled = [_compile(client, fingerprint, p) for p in ("old", "new")]
        for one in compiled:
            client.publish("tool", [one.key])
        client.promote("tool", "prod", 1)
        yield Fleet(address, client, fingerprint, compiled)


def test_a_worker_follows_and_swaps_between_requests(fleet: Fleet, connect: Connect) -> None:
    swapped = threading.Event()
    worker = connect(fleet.address, cache="worker")
    with ChannelFollower(worker, "tool", "prod", fleet.fingerprint, lambda _: swapped.set()) as channel:
        assert channel.current.version == 1
        request = Matcher(channel.current.artifact)  # a request that's in progress
        fleet.client.promote("tool", "prod", 2)
        assert swapped.wait(60)
        assert (channel.current.version, channel.current.hash) == (2, fleet.compiled[1].artifact.hash)
        assert Matcher(channel.current.artifact).accept_string(b"new")
        assert request.accept_string(b"old")
        swapped.clear()
        fleet.client.rollback("tool", "prod")
        assert swapped.wait(60)
        assert channel.current.version == 1
        swapped.clear()
        fleet.client.publish("tool", [fleet.compiled[1].key])
        assert not swapped.wait(1)


def test_a_revoked_artifact_isnt_current(fleet: Fleet, connect: Connect) -> None:
    with ChannelFollower(connect(fleet.address, cache="worker"), "tool", "prod") as channel:
        fleet.client.promote("tool", "prod", 2)
        until(lambda: channel.current.version == 2)
        fleet.client.revoke(fleet.compiled[1].artifact.hash, "lets too much through")
        with pytest.raises(ArtifactRevoked, match="lets too much through"):
            until(lambda: channel.current.version != 2)
        fleet.client.rollback("tool", "prod")
        until(lambda: _version(channel) == 1)


def _version(channel: ChannelFollower) -> int:
    try:
        return channel.current.version
    except ArtifactRevoked:
        return 0


def test_a_worker_starts_and_goes_on_without_the_registry(config: ServerConfig, connect: Connect) -> None:
    config = replace(config, follow_seconds=0.2, address=lasting_address())
    with running(config, tasks=None) as (address, _):
        client = connect(address, cache="deployer")
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        for pattern in ("old", "new"):
            client.publish("tool", [_compile(client, fingerprint, pattern).key])
        client.promote("tool", "prod", 1)
        worker = connect(address, cache="worker", timeout=60.0)
        with ChannelFollower(worker, "tool", "prod") as channel:
            assert channel.current.version == 1
    assert channel.current.version == 1
    with ChannelFollower(connect(address, cache="worker", timeout=60.0), "tool", "prod") as late:
        assert (late.current.version, late.current.revision) == (1, 0)
        assert Matcher(late.current.artifact).accept_string(b"old")
        with running(config, tasks=None):
            connect(address, attempts=10).promote("tool", "prod", 2)
            until(lambda: late.current.version == 2)
    with pytest.raises(ServiceUnavailable):
        ChannelFollower(connect(address, cache="empty", timeout=1.0), "tool", "prod")


# -- asyncio ------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def client(fleet: Fleet, tmp_path: Path) -> AsyncIterator[AsyncRegistryClient]:
    async with AsyncRegistryClient(fleet.address, cache=DiskCache(tmp_path / "async"), timeout=30) as made:
        yield made


async def test_async_client(fleet: Fleet, client: AsyncRegistryClient, tmp_path: Path) -> None:
    found = await client.resolve("tool:prod", fingerprint=fleet.fingerprint)
    assert (found.version, found.artifact) == (1, fleet.compiled[0].artifact)
    compiled = await client.compile("old", fleet.fingerprint, kind="regex")
    assert compiled == replace(found, version=0, revision=0)
    artifact = await client.load_artifact(found.artifact)
    assert Matcher(artifact).accept_string(b"old")
    await client.warm([c.artifact for c in fleet.compiled])
    async with AsyncRegistryClient("127.0.0.1:9", cache=client.cache, timeout=1, attempts=1) as nowhere:
        assert await nowhere.fetch(fleet.compiled[1].artifact, "artifact")
        with pytest.raises(ServiceUnavailable):
            await nowhere.resolve("tool")
    with pytest.raises(CallFailed) as caught:
        await client.resolve("nothing")
    assert caught.value.reason == "UNKNOWN_NAME"


class _Counting:
    """A service's stub that counts the calls of each method."""

    def __init__(self, stub: Any) -> None:
        self._stub, self.calls = stub, Counter[str]()

    def __getattr__(self, method: str) -> Any:
        self.calls[method] += 1
        return getattr(self._stub, method)


async def test_async_fetches_are_shared_and_verified(fleet: Fleet, client: AsyncRegistryClient) -> None:
    counting = client._stubs["RegistryService"] = _Counting(client._stubs["RegistryService"])
    wanted = fleet.compiled[0].artifact
    got = await asyncio.gather(*(client.fetch(wanted, "artifact") for _ in range(20)))
    assert len(set(got)) == 1
    assert counting.calls["Fetch"] == 1
    await asyncio.to_thread(fleet.client.revoke, wanted.hash, "why")
    with pytest.raises(ArtifactRevoked):
        await client.resolve("tool:prod")
    with pytest.raises(ArtifactRevoked):
        await client.fetch(wanted, "artifact")


async def test_async_watch(fleet: Fleet, client: AsyncRegistryClient) -> None:
    seen = []
    async for revision, change in client.watch(names=["tool"]):
        if change is not None:
            seen.append(change.kind)
        elif revision == 3:
            await asyncio.to_thread(fleet.client.promote, "tool", "beta", 2)
        else:
            break
    assert seen == ["publish", "publish", "promote", "promote"]


async def test_a_shared_fetch_outlives_who_gives_up(fleet: Fleet, client: AsyncRegistryClient) -> None:
    wanted = fleet.compiled[0].artifact
    first, second = (asyncio.ensure_future(client.fetch(wanted, "artifact")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert len(await second) == wanted.size
    with pytest.raises(asyncio.CancelledError):
        await first


def test_threads_share_a_fetch(fleet: Fleet, connect: Connect) -> None:
    worker, wanted = connect(fleet.address, cache="threads"), fleet.compiled[0].artifact
    counting = worker._stubs["RegistryService"] = _Counting(worker._stubs["RegistryService"])
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: worker.fetch(wanted, "artifact"), range(16)))
    assert len(set(got)) == 1
    assert counting.calls["Fetch"] == 1


async def test_async_changes_of_names(fleet: Fleet, client: AsyncRegistryClient) -> None:
    assert await client.publish("other", [fleet.compiled[0].key]) == 1
    await client.promote("other", "prod", 1)
    assert [(n.name, n.channels) for n in await client.names("default/o")] == [("default/other", {"prod": 1})]
    assert [v.version for v in await client.versions("tool")] == [2, 1]
    done = [found async for found in client.precompile([_item(fleet, "old"), _item(fleet, "[")])]
    assert {place for place, _ in done} == {0, 1}
    assert {type(found) for _, found in done} == {CompiledSource, SourceRefused}
    assert await client.health() == "SERVING"


def _item(fleet: Fleet, pattern: str) -> dict[str, str]:
    return {"source": pattern, "fingerprint": fleet.fingerprint, "kind": "regex"}
