"""The service over real gRPC, with compiling children that fail on demand."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import faulty
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from servers import FAULTY, TOKENIZER, running, with_pool

from maskwright.registry.compiling import flow
from maskwright.registry.config import ServerConfig
from maskwright.registry.server import SERVICES, Server
from maskwright.v1 import compiler_pb2, compiler_pb2_grpc, registry_pb2, registry_pb2_grpc
from maskwright.workers.client import (
    BlobDigest,
    CallFailed,
    CorruptDownload,
    RegisteredTokenizer,
    RegistryClient,
    ServiceUnavailable,
    SourceRefused,
)

Connect = Callable[..., RegistryClient]
Count = Callable[[], int]


# -- compile -----------------------------------------------------------------------------------


def test_compile_then_hit(
    client: RegistryClient, tokenizer: RegisteredTokenizer, compilations: Count
) -> None:
    first = client.compile('{"a": 1}', tokenizer.fingerprint)
    again = client.compile('{ "a":1 }', tokenizer.fingerprint)
    assert (first.cached, again.cached) == (False, True)
    assert first.artifact == again.artifact
    assert first.report == {"states": 8}
    assert compilations() == 1


def test_key_depends_on_all_its_parts(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    other = client.register_tokenizer(b"another", "x.json").fingerprint
    results = [
        client.compile("{}", tokenizer.fingerprint),
        client.compile("{}", tokenizer.fingerprint, kind="regex"),
        client.compile("{ }", tokenizer.fingerprint, kind="regex"),
        client.compile("{}", tokenizer.fingerprint, options={"whitespace": "compact"}),
        client.compile("{}", tokenizer.fingerprint, options={"whitespace": 2}),
        client.compile("{}", other),
    ]
    assert len({r.key for r in results}) == len(results)


def test_identical_calls_compile_once(
    server: tuple[str, Server], tokenizer: RegisteredTokenizer, client: RegistryClient, compilations: Count
) -> None:
    with ThreadPoolExecutor(50) as pool:
        calls = [
            pool.submit(client.compile, "slow 0.5", tokenizer.fingerprint, kind="regex") for _ in range(50)
        ]
        results = [c.result() for c in calls]
    assert len({r.artifact for r in results}) == 1
    assert compilations() == 1
    assert [r.cached for r in results].count(False) == 1


def test_a_call_that_missed_just_before_the_artifact_was_kept_compiles_nothing(
    server: tuple[str, Server],
    tokenizer: RegisteredTokenizer,
    client: RegistryClient,
    compilations: Count,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The late caller looks up, misses, and is held until the first caller's compilation is over."""
    catalog, late = server[1].catalog, threading.Event()
    look_up, held = catalog.artifact, threading.Event()

    def slow(key: str) -> object:
        found = look_up(key)
        if threading.current_thread() not in seen:
            seen.append(threading.current_thread())
            if len(calls) == 2 and found is None and not held.is_set():
                held.set()
                late.wait(20)
        return found

    seen: list[threading.Thread] = []
    calls = [1]
    monkeypatch.setattr(catalog, "artifact", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.compile, "slow 1", tokenizer.fingerprint, kind="regex")
        time.sleep(0.5)
        calls.append(2)
        seen.clear()
        second = pool.submit(client.compile, "slow 1", tokenizer.fingerprint, kind="regex")
        assert held.wait(10)
        first.result()
        late.set()
        assert second.result().cached
    assert compilations() == 1


def test_refusal_has_diagnostics_and_is_remembered(
    client: RegistryClient, tokenizer: RegisteredTokenizer, compilations: Count
) -> None:
    for _ in range(2):
        with pytest.raises(SourceRefused) as caught:
            client.compile("refuse 1", tokenizer.fingerprint, kind="regex")
        error = caught.value
        assert (error.code, error.reason) == ("INVALID_ARGUMENT", "SOURCE_REFUSED")
        assert error.diagnostics == [faulty._diagnostic(0)]
    assert compilations() == 1
    # Other limits may not refuse, so the refusal isn't theirs.
    with pytest.raises(SourceRefused):
        client.compile("refuse 1", tokenizer.fingerprint, kind="regex", limits_profile="tight")
    assert compilations() == 2


def test_many_diagnostics_fit_and_the_rest_can_be_fetched(
    client: RegistryClient, tokenizer: RegisteredTokenizer
) -> None:
    with pytest.raises(SourceRefused) as caught:
        client.compile("refuse 500", tokenizer.fingerprint, kind="regex")
    error = caught.value
    assert 5 < len(error.diagnostics) < 500
    assert len(error.diagnostics) + error.omitted == 500
    assert {d["severity"] for d in error.diagnostics} == {"error"}
    assert client.all_diagnostics(error.all_diagnostics) == [faulty._diagnostic(n) for n in range(500)]


@pytest.mark.parametrize(
    ("source", "reason"),
    [("crash", "COMPILER_CRASHED"), ("memory", "COMPILE_MEMORY"), ("overrun", "COMPILE_TIMEOUT")],
)
def test_failed_resources_are_told_apart_and_not_remembered(
    client: RegistryClient, tokenizer: RegisteredTokenizer, compilations: Count, source: str, reason: str
) -> None:
    for _ in range(2):
        with pytest.raises(CallFailed) as caught:
            client.compile(source, tokenizer.fingerprint, kind="regex")
        assert (caught.value.code, caught.value.reason) == ("RESOURCE_EXHAUSTED", reason)
    assert compilations() == 2
    assert not client.compile("fine", tokenizer.fingerprint, kind="regex").cached


def test_endless_compilation_is_killed(
    client: RegistryClient, tokenizer: RegisteredTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "KILL_EXTRA_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(CallFailed) as caught:
        client.compile("hang", tokenizer.fingerprint, kind="regex", limits_profile="tight")
    assert caught.value.reason == "COMPILE_TIMEOUT"
    assert time.monotonic() - began < 20
    assert not client.compile("fine", tokenizer.fingerprint, kind="regex").cached


def test_callers_deadline_ends_the_compilation(
    server: tuple[str, Server], tokenizer: RegisteredTokenizer, connect: Connect
) -> None:
    hasty = connect(server[0], timeout=2.0)
    with pytest.raises(ServiceUnavailable) as caught:
        hasty.compile("hang", tokenizer.fingerprint, kind="regex")
    assert caught.value.code == "DEADLINE_EXCEEDED"
    # The only child is free again, long before the hanging job would have ended.
    assert not connect(server[0]).compile("fine", tokenizer.fingerprint, kind="regex").cached


def test_one_caller_leaving_doesnt_stop_the_others(
    server: tuple[str, Server], tokenizer: RegisteredTokenizer, connect: Connect, compilations: Count
) -> None:
    hasty, patient = connect(server[0], timeout=1.0), connect(server[0])
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(hasty.compile, "slow 3", tokenizer.fingerprint, kind="regex")
        second = pool.submit(patient.compile, "slow 3", tokenizer.fingerprint, kind="regex")
        with pytest.raises(ServiceUnavailable):
            first.result()
        assert second.result().artifact.size
    assert compilations() == 1


def test_server_answers_while_compiling(
    server: tuple[str, Server], client: RegistryClient, tokenizer: RegisteredTokenizer
) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.compile, "slow 2", tokenizer.fingerprint, kind="regex")
        times = []
        while not slow.done():
            began = time.monotonic()
            client.capabilities()
            times.append(time.monotonic() - began)
        slow.result()
    assert len(times) > 20
    assert sorted(times)[len(times) // 2] < 0.1


def test_full_queue_refuses_with_a_delay(config: ServerConfig, connect: Connect) -> None:
    with running(with_pool(config, queue=0)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(client.compile, "slow 2", fingerprint, kind="regex")
            time.sleep(0.7)
            with pytest.raises(CallFailed) as caught:
                client.compile("other", fingerprint, kind="regex")
            slow.result()
            patient = pool.submit(connect(address, attempts=5).compile, "slow 1", fingerprint, kind="regex")
            time.sleep(0.3)
            assert connect(address, attempts=5).compile("other", fingerprint, kind="regex").artifact.size
            patient.result()
        assert (caught.value.code, caught.value.reason) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL")
        assert caught.value.retry_after == 1.0


def test_artifact_brings_the_pack_that_it_needs(
    client: RegistryClient, tokenizer: RegisteredTokenizer
) -> None:
    """A later compiler builds another pack for a vocabulary that was registered before."""
    compiled = client.compile("newpack", tokenizer.fingerprint, kind="regex")
    assert compiled.pack != tokenizer.pack
    assert client.fetch(compiled.pack, "pack").endswith(b"of a later compiler")
    assert client.compile("x", tokenizer.fingerprint, kind="regex").pack == tokenizer.pack


def test_validate_only_keeps_nothing(
    config: ServerConfig, client: RegistryClient, tokenizer: RegisteredTokenizer, compilations: Count
) -> None:
    checked = client.compile("x", tokenizer.fingerprint, kind="regex", validate_only=True)
    with pytest.raises(CallFailed) as caught:
        client.fetch(checked.artifact)
    assert caught.value.reason == "UNKNOWN_BLOB"
    with pytest.raises(SourceRefused):
        client.compile("refuse 1", tokenizer.fingerprint, kind="regex", validate_only=True)
    stored = client.compile("x", tokenizer.fingerprint, kind="regex")
    assert (stored.artifact, stored.cached) == (checked.artifact, False)
    assert not (config.data / "store/objects/refusals").exists()


def test_request_id_returns_the_first_result_and_isnt_reused(
    client: RegistryClient, tokenizer: RegisteredTokenizer
) -> None:
    first = client.compile("x", tokenizer.fingerprint, kind="regex", request_id="r-1")
    assert (
        client.compile("x", tokenizer.fingerprint, kind="regex", request_id="r-1").artifact == first.artifact
    )
    with pytest.raises(CallFailed) as caught:
        client.compile("y", tokenizer.fingerprint, kind="regex", request_id="r-1")
    assert (caught.value.code, caught.value.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")


def test_request_id_outlives_an_upgrade(config: ServerConfig, connect: Connect) -> None:
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        first = client.compile("x", fingerprint, kind="regex", request_id="r-1")
    with running(config, replace(FAULTY, compiler_version="test-2")) as (address, _):
        client = connect(address)
        assert client.compile("x", fingerprint, kind="regex", request_id="r-1").key == first.key
        assert client.compile("x", fingerprint, kind="regex").compiler_version == "test-2"


# -- requests that can't be served -------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "reason", "metadata"),
    [
        ({"fingerprint": "0" * 64}, "NOT_FOUND", "UNKNOWN_TOKENIZER", {"fingerprint": "0" * 64}),
        (
            {"fingerprint": "../../x"},
            "INVALID_ARGUMENT",
            "INVALID_REQUEST",
            {"field": "tokenizer_fingerprint"},
        ),
        ({"fingerprint": ""}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "tokenizer_fingerprint"}),
        ({"limits_profile": "no"}, "NOT_FOUND", "UNKNOWN_PROFILE", {"profile": "no"}),
        ({"request_id": "a b"}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "request_id"}),
        ({"options": {"max_nesting": 0}}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "options"}),
    ],
)
def test_bad_fields(
    client: RegistryClient,
    tokenizer: RegisteredTokenizer,
    changes: dict[str, object],
    code: str,
    reason: str,
    metadata: dict[str, str],
) -> None:
    with pytest.raises(CallFailed) as caught:
        client.compile("x", **{"fingerprint": tokenizer.fingerprint, "kind": "regex", **changes})  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.reason, caught.value.metadata) == (code, reason, metadata)


def test_unknown_enum_values_are_refused(server: tuple[str, Server], tokenizer: RegisteredTokenizer) -> None:
    with grpc.insecure_channel(server[0]) as channel:
        stub = compiler_pb2_grpc.CompilerServiceStub(channel)
        request = compiler_pb2.CompileRequest(source="x", tokenizer_fingerprint=tokenizer.fingerprint)
        for kind in (0, 99):
            request.kind = kind
            with pytest.raises(grpc.RpcError) as caught:
                stub.Compile(request)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_too_large_a_message_is_refused(config: ServerConfig, connect: Connect) -> None:
    with running(replace(config, max_message_bytes=100_000)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(b"short").fingerprint
        with pytest.raises(CallFailed) as caught:
            client.compile("x" * 200_000, fingerprint, kind="regex")
        assert caught.value.code == "RESOURCE_EXHAUSTED"


# -- tokenizers --------------------------------------------------------------------------------


def test_register_is_idempotent_and_listed(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    again = client.register_tokenizer(TOKENIZER, "demo.json")
    assert (tokenizer.created, again.created) == (True, False)
    assert replace(again, created=True) == tokenizer
    other = client.register_tokenizer(b"other", "../../etc/passwd")
    assert other.name == "passwd"
    listed = client.tokenizers()
    assert [t.fingerprint for t in listed] == sorted([tokenizer.fingerprint, other.fingerprint])


def test_list_pages(server: tuple[str, Server], client: RegistryClient) -> None:
    from maskwright.v1 import tokenizer_pb2, tokenizer_pb2_grpc

    made = sorted(client.register_tokenizer(b"t%d" % n).fingerprint for n in range(5))
    found, token = [], ""
    with grpc.insecure_channel(server[0]) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)
        while True:
            reply = stub.List(tokenizer_pb2.ListRequest(page_size=2, page_token=token))
            assert len(reply.tokenizers) <= 2
            found += [t.fingerprint for t in reply.tokenizers]
            token = reply.next_page_token
            if not token:
                break
    assert found == made


def test_companions_travel_with_a_tokenizer_json(client: RegistryClient, tmp_path: Path) -> None:
    path = tmp_path / "model" / "tokenizer.json"
    path.parent.mkdir()
    path.write_bytes(b"model")
    path.with_name("generation_config.json").write_text("{}")
    path.with_name("secrets.json").write_text("{}")
    registered = client.register_tokenizer(path)
    assert registered.stop_token_ids == (1, 2)
    assert client.compile("x", registered.fingerprint, kind="regex").artifact.size
    path.with_name("generation_config.json").unlink()
    with pytest.raises(CallFailed) as caught:
        client.register_tokenizer(path)
    assert (caught.value.code, caught.value.reason) == ("ALREADY_EXISTS", "TOKENIZER_DIFFERS")


def test_unusable_tokenizer(client: RegistryClient) -> None:
    with pytest.raises(SourceRefused) as caught:
        client.register_tokenizer(b"bad")
    assert caught.value.reason == "INVALID_TOKENIZER"
    assert caught.value.diagnostics


def test_oversized_tokenizer(config: ServerConfig, connect: Connect) -> None:
    with (
        running(replace(config, max_tokenizer_bytes=5000)) as (address, _),
        pytest.raises(CallFailed) as caught,
    ):
        connect(address).register_tokenizer(b"x" * 6000)
    assert caught.value.reason == "TOKENIZER_TOO_LARGE"


def test_upload_that_isnt_what_it_says(server: tuple[str, Server]) -> None:
    from maskwright.v1 import tokenizer_pb2 as messages
    from maskwright.v1 import tokenizer_pb2_grpc, types_pb2

    digest = types_pb2.Digest(hash="0" * 64, size_bytes=3)
    header = messages.RegisterRequest(header=messages.RegisterRequest.Header(digest=digest, name="x"))
    data = messages.RegisterRequest(data=b"abc")
    with grpc.insecure_channel(server[0]) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)
        for parts in ([header, data], [data], [], [header]):
            with pytest.raises(grpc.RpcError) as caught:
                stub.Register(iter(parts))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


# -- fetch and resolve -------------------------------------------------------------------------


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


# -- the index is a cache, the store is the truth ----------------------------------------------


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


# -- operation ---------------------------------------------------------------------------------


def test_health_and_reflection(server: tuple[str, Server]) -> None:
    with grpc.insecure_channel(server[0]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", *SERVICES):
            reply = stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        assert set(SERVICES) <= set(ProtoReflectionDescriptorDatabase(channel).get_services())


def test_drain_lets_calls_finish(config: ServerConfig, connect: Connect) -> None:
    with running(replace(config, drain_seconds=10.0)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        done: list[object] = []
        thread = threading.Thread(
            target=lambda: done.append(client.compile("slow 1.5", fingerprint, kind="regex"))
        )
        thread.start()
        time.sleep(0.5)
    thread.join(10)
    assert len(done) == 1
    with pytest.raises(ServiceUnavailable):
        connect(address).compile("x", fingerprint, kind="regex")


def test_client_tries_again_until_the_server_is_there(config: ServerConfig, connect: Connect) -> None:
    with running(config) as (address, _):
        pass
    client = connect(address, attempts=6)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.capabilities)
        time.sleep(0.5)
        with running(replace(config, address=address)):
            assert json.dumps(waiting.result(30)["compiler_version"]) == '"test-1"'
