"""The index and the workspace are caches: losing them loses nothing, and replicas agree without them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from servers import TOKENIZER, running

from maskwright.registry.config import ServerConfig
from maskwright.workers.client import (
    RegistryClient,
    SourceRefused,
)

Connect = Callable[..., RegistryClient]
Count = Callable[[], int]


@pytest.mark.parametrize("damage", ["delete", "garbage", "truncate"])
def test_lost_index_loses_nothing(
    config: ServerConfig, connect: Connect, damage: str, compilations: Count
) -> None:
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        first = client.compile("x", fingerprint, kind="regex", request_id="r")
        with pytest.raises(SourceRefused):
            client.compile("refuse 1", fingerprint, kind="regex")
    index = config.data / "index.sqlite"
    if damage == "delete":
        index.unlink()
    elif damage == "garbage":
        index.write_bytes(b"\xff" * 5000)
    else:
        index.write_bytes(index.read_bytes()[:3000])
    with running(config) as (address, server):
        client = connect(address, cache="other")
        assert client.compile("x", fingerprint, kind="regex", request_id="r").cached
        assert client.resolve(hash=first.artifact.hash).key == first.key
        with pytest.raises(SourceRefused):
            client.compile("refuse 1", fingerprint, kind="regex")
        assert compilations() == 2
        assert server.catalog.index.artifact_by_hash(first.artifact.hash) is not None


def test_lost_workspace_is_made_again(config: ServerConfig, connect: Connect) -> None:
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        shutil.rmtree(config.data / "workspace")
        assert client.compile("x", fingerprint, kind="regex").artifact.size


def test_two_servers_over_one_store_agree(config: ServerConfig, connect: Connect, tmp_path: Path) -> None:
    other = replace(config, data=tmp_path / "data2")
    other.data.mkdir()
    config.data.mkdir()
    (other.data / "store").symlink_to(config.data / "store")
    with running(config) as (one, _), running(other) as (two, _):
        first, second = connect(one, cache="c1"), connect(two, cache="c2")
        fingerprint = first.register_tokenizer(TOKENIZER).fingerprint
        compiled = first.compile("x", fingerprint, kind="regex")
        assert second.compile("x", fingerprint, kind="regex").cached
        assert second.resolve(hash=compiled.artifact.hash).key == compiled.key
        with ThreadPoolExecutor(2) as pool:
            raced = list(
                pool.map(lambda c: c.compile("slow 0.3", fingerprint, kind="regex"), (first, second))
            )
        assert raced[0].artifact == raced[1].artifact
        assert first.resolve(key=raced[0].key) == second.resolve(key=raced[0].key)
