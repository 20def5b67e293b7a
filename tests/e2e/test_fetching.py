"""Fetch and Resolve: every byte is checked, by both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest
from servers import running

from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.v1 import registry_pb2, registry_pb2_grpc
from maskwright.workers.client import (
    BlobDigest,
    CallFailed,
    CorruptDownload,
    RegisteredTokenizer,
    RegistryClient,
)

Connect = Callable[..., RegistryClient]


def test_fetch_is_verified_and_cached(
    server: tuple[str, Server], client: RegistryClient, tokenizer: RegisteredTokenizer, connect: Connect
) -> None:
    compiled = client.compile("x", tokenizer.fingerprint, kind="regex")
    data = client.fetch(compiled.artifact, "artifact")
    assert (len(data), BlobDigest(compiled.artifact.hash, len(data))) == (
        compiled.artifact.size,
        compiled.artifact,
    )
    nowhere = connect("127.0.0.1:9", timeout=1.0)
    assert nowhere.fetch(compiled.artifact, "artifact") == data
    path = client.cache.path("artifact", compiled.artifact.hash)
    path.write_bytes(data[:-1] + b"?")
    assert client.fetch(compiled.artifact, "artifact") == data


@pytest.mark.parametrize("hot_bytes", [0, 1 << 20])
def test_fetch_in_many_chunks_and_from_an_offset(config: ServerConfig, hot_bytes: int) -> None:
    with running(replace(config, hot_bytes=hot_bytes)) as server:
        _fetch_everywhere(server, config)


def _fetch_everywhere(server: tuple[str, Server], config: ServerConfig) -> None:
    data = bytes(range(256)) * 400
    digest = server[1].catalog.content.put(data)
    with grpc.insecure_channel(server[0]) as channel:
        stub = registry_pb2_grpc.RegistryServiceStub(channel)
        for offset in (0, 1, 4095, 4096, 4097, len(data) - 1, len(data)):
            request = registry_pb2.FetchRequest(offset=offset)
            request.digest.hash = digest.hash
            parts = list(stub.Fetch(request))
            assert parts[0].digest.size_bytes == len(data)
            assert not any(p.HasField("digest") for p in parts[1:])
            assert b"".join(p.data for p in parts) == data[offset:]
            place = offset
            for part in parts:
                assert part.offset == place
                assert len(part.data) <= config.chunk_bytes
                place += len(part.data)


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"offset": 10**9}, "OUT_OF_RANGE", "OFFSET_TOO_LARGE"),
        ({"offset": -1}, "OUT_OF_RANGE", "OFFSET_TOO_LARGE"),
        ({"size": 5}, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        ({"hash": "../../x"}, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        ({"hash": "f" * 64}, "NOT_FOUND", "UNKNOWN_BLOB"),
    ],
)
def test_fetch_refuses(server: tuple[str, Server], change: dict[str, object], code: str, reason: str) -> None:
    from maskwright.workers.client.errors import call_failed

    digest = server[1].catalog.content.put(b"some bytes")
    request = registry_pb2.FetchRequest(offset=change.get("offset", 0))  # type: ignore[arg-type]
    request.digest.hash = str(change.get("hash", digest.hash))
    request.digest.size_bytes = change.get("size", 0)  # type: ignore[assignment]
    with grpc.insecure_channel(server[0]) as channel, pytest.raises(grpc.RpcError) as caught:
        list(registry_pb2_grpc.RegistryServiceStub(channel).Fetch(request))
    failed = call_failed(caught.value)
    assert (failed.code, failed.reason) == (code, reason)


@pytest.mark.parametrize("hot_bytes", [0, 1 << 20])
def test_corrupt_blob_is_never_sent_whole(config: ServerConfig, connect: Connect, hot_bytes: int) -> None:
    with running(replace(config, hot_bytes=hot_bytes)) as server:
        _fetch_corrupt(config, server, connect(server[0]))


def _fetch_corrupt(config: ServerConfig, server: tuple[str, Server], client: RegistryClient) -> None:
    data = b"abc" * 10_000
    digest = server[1].catalog.content.put(data)
    path = config.data / "store/objects/blobs" / digest.hash[:2] / digest.hash
    path.write_bytes(data[:-1] + b"?")
    with pytest.raises(CallFailed) as caught:
        client.fetch(digest.hash)
    assert (caught.value.code, caught.value.reason) == ("DATA_LOSS", "CORRUPT_BLOB")
    assert client.cache.find("blob", digest.hash) is None
    server[1].catalog.content.put(data)
    assert client.fetch(digest.hash) == data


class _Liar:
    """A server's stub that sends other bytes than asked for."""

    def Fetch(self, request: registry_pb2.FetchRequest, **arguments: object) -> list[registry_pb2.FetchResponse]:
        return [registry_pb2.FetchResponse(data=b"other bytes")]


def test_client_checks_what_a_server_sends(client: RegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client._stubs, "RegistryService", _Liar())
    with pytest.raises(CorruptDownload) as caught:
        client.fetch("e" * 64)
    assert caught.value.expected.startswith("e" * 64)
    assert client.cache.find("blob", "e" * 64) is None


def test_resolve(client: RegistryClient, tokenizer: RegisteredTokenizer, server: tuple[str, Server]) -> None:
    compiled = client.compile("x", tokenizer.fingerprint, kind="regex")
    assert client.resolve(key=compiled.key) == replace(compiled, cached=True)
    assert client.resolve(hash=compiled.artifact.hash) == replace(compiled, cached=True)
    with pytest.raises(CallFailed) as caught:
        client.resolve(hash="0" * 64)
    assert caught.value.reason == "UNKNOWN_ARTIFACT"
    with grpc.insecure_channel(server[0]) as channel, pytest.raises(grpc.RpcError) as refused:
        registry_pb2_grpc.RegistryServiceStub(channel).Resolve(
            registry_pb2.ResolveRequest(artifact_key=compiled.key, readable_majors=[7, 8])
        )
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
