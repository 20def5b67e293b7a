"""Compile over real gRPC, with compiling children that fail on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import faulty
import grpc
import pytest
from servers import FAULTY, TOKENIZER, running, until, with_pool

from maskwright.compiler.options import Limits
from maskwright.registry.compiling import flow
from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.v1 import compiler_pb2_grpc
from maskwright.workers.client import (
    CallFailed,
    RegisteredTokenizer,
    RegistryClient,
    ServiceUnavailable,
    SourceRefused,
)
from maskwright.workers.client.messages import compile_request

Connect = Callable[..., RegistryClient]
Count = Callable[[], int]


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
    gate: Path,
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
                late.wait(60)
        return found

    seen: list[threading.Thread] = []
    calls = [1]
    monkeypatch.setattr(catalog, "artifact", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.compile, f"wait {gate}", tokenizer.fingerprint, kind="regex")
        until(compilations)
        calls.append(2)
        seen.clear()
        second = pool.submit(client.compile, f"wait {gate}", tokenizer.fingerprint, kind="regex")
        assert held.wait(60)
        gate.touch()
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
    with pytest.raises(CallFailed) as caught:
        client.compile("hang", tokenizer.fingerprint, kind="regex", limits_profile="tight")
    assert caught.value.reason == "COMPILE_TIMEOUT"
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
    server: tuple[str, Server],
    tokenizer: RegisteredTokenizer,
    client: RegistryClient,
    compilations: Count,
    gate: Path,
) -> None:
    flow_ = server[1].flow
    request = compile_request(f"wait {gate}", tokenizer.fingerprint, kind="regex")
    with ThreadPoolExecutor(1) as pool, grpc.insecure_channel(server[0]) as channel:
        first = compiler_pb2_grpc.CompilerServiceStub(channel).Compile.future(request)
        until(compilations)
        second = pool.submit(client.compile, f"wait {gate}", tokenizer.fingerprint, kind="regex")
        until(lambda: flow_.callers() == 2)
        first.cancel()
        until(lambda: flow_.callers() == 1)
        gate.touch()
        assert second.result().artifact.size
    assert compilations() == 1


def test_a_compilation_that_everyone_left_is_stopped(
    server: tuple[str, Server],
    tokenizer: RegisteredTokenizer,
    client: RegistryClient,
    compilations: Count,
    gate: Path,
) -> None:
    request = compile_request(f"wait {gate}", tokenizer.fingerprint, kind="regex")
    with grpc.insecure_channel(server[0]) as channel:
        stub = compiler_pb2_grpc.CompilerServiceStub(channel)
        calls = [stub.Compile.future(request) for _ in range(3)]
        until(lambda: server[1].flow.callers() == 3)
        for call in calls:
            call.cancel()
        until(lambda: server[1].pool.running == 0)
        assert client.compile("fine", tokenizer.fingerprint, kind="regex").artifact.size
        gate.touch()
        assert not client.compile(f"wait {gate}", tokenizer.fingerprint, kind="regex").cached
    assert compilations() == 3


def test_server_answers_while_compiling(
    client: RegistryClient, tokenizer: RegisteredTokenizer, compilations: Count, gate: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.compile, f"wait {gate}", tokenizer.fingerprint, kind="regex")
        until(compilations)
        for _ in range(20):
            client.capabilities()
        assert not slow.done()
        gate.touch()
        slow.result()


def _refused(server: Server) -> float:
    labels = {"method": "CompilerService/Compile", "code": "RESOURCE_EXHAUSTED"}
    return server.metrics.registry.get_sample_value("maskwright_calls_total", labels) or 0


def test_full_queue_refuses_with_a_delay(
    config: ServerConfig, connect: Connect, compilations: Count, gate: Path
) -> None:
    with running(with_pool(config, queue=1)) as (address, server):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        with ThreadPoolExecutor(3) as pool:
            compile_ = partial(client.compile, fingerprint=fingerprint, kind="regex")
            running_ = pool.submit(compile_, f"wait {gate}")
            until(compilations)
            waiting = pool.submit(compile_, "waiting")
            until(lambda: server.pool.waiting == 1)
            with pytest.raises(CallFailed) as caught:
                compile_("other")
            patient = pool.submit(connect(address, attempts=50).compile, "other", fingerprint, kind="regex")
            until(lambda: _refused(server) >= 2)
            gate.touch()
            assert all(call.result().artifact.size for call in (running_, waiting, patient))
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
    limits = replace(config, profiles={"default": Limits(states=12_345), "tight": Limits()})
    with running(limits, replace(FAULTY, compiler_version="test-2")) as (address, _):
        client = connect(address)
        assert client.compile("x", fingerprint, kind="regex", request_id="r-1").key == first.key
        for other in ({"limits_profile": "tight"}, {"options": {"whitespace": "compact"}}):
            with pytest.raises(CallFailed, match="REQUEST_ID_REUSED"):
                client.compile("x", fingerprint, kind="regex", request_id="r-1", **other)
        assert client.compile("x", fingerprint, kind="regex").compiler_version == "test-2"
