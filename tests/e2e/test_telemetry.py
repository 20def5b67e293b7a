"""What calls leave behind: metrics, spans in the caller's trace, log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from maskwright.registry.server import Server
from maskwright.v1 import registry_pb2, registry_pb2_grpc
from maskwright.workers.client import RegisteredTokenizer, RegistryClient, SourceRefused

Connect = Callable[..., RegistryClient]


def test_metrics(server: tuple[str, Server], client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    compiled = client.compile("x", tokenizer.fingerprint, kind="regex")
    client.compile("x", tokenizer.fingerprint, kind="regex")
    with pytest.raises(SourceRefused):
        client.compile("refuse 1", tokenizer.fingerprint, kind="regex")
    client.fetch(compiled.artifact)
    value = server[1].metrics.registry.get_sample_value
    compile_ = {"method": "CompilerService/Compile"}
    assert value("maskwright_calls_total", {**_short("Compile"), "code": "OK"}) == 2
    assert value("maskwright_calls_total", {**_short("Compile"), "code": "INVALID_ARGUMENT"}) == 1
    assert value("maskwright_call_seconds_count", _short("Compile")) == 3, compile_
    assert value("maskwright_compile_seconds_count", {"outcome": "done"}) == 1
    assert value("maskwright_compile_seconds_count", {"outcome": "refused"}) == 1
    assert value("maskwright_cache_lookups_total", {"layer": "catalog"}) == 1
    assert value("maskwright_cache_lookups_total", {"layer": "none"}) == 1
    assert value("maskwright_refusals_total", {"code": "UNSUPPORTED_KEYWORD"}) == 1
    assert value("maskwright_fetch_bytes_total") == compiled.artifact.size
    assert value("maskwright_compile_queue") == 0
    assert value("maskwright_compiling") == 0


def _short(method: str) -> dict[str, str]:
    return {"method": f"CompilerService/{method}"}


def test_a_call_is_a_span_of_the_callers_trace(server: tuple[str, Server], client: RegistryClient) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with grpc.insecure_channel(server[0]) as channel, pytest.raises(grpc.RpcError):
        stub = registry_pb2_grpc.RegistryServiceStub(channel)
        stub.Resolve(registry_pb2.ResolveRequest(artifact_key="0" * 64), metadata=[("traceparent", parent)])
    with trace.get_tracer("test").start_as_current_span("request") as mine:
        client.capabilities()
    named = {span.name.rpartition("/")[2]: span for span in spans.get_finished_spans()}
    assert f"{named['Resolve'].context.trace_id:032x}" == parent.split("-")[1]
    assert named["Resolve"].attributes["maskwright.reason"] == "UNKNOWN_ARTIFACT"
    assert named["GetCapabilities"].context.trace_id == mine.get_span_context().trace_id


def test_log_of_changes_and_failures(
    client: RegistryClient, tokenizer: RegisteredTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "maskwright.registry.calls")
    client.compile("x", tokenizer.fingerprint, kind="regex")
    client.capabilities()
    with pytest.raises(Exception, match="UNKNOWN_NAME"):
        client.resolve("n")
    logged = [(r.method, r.code, r.reason) for r in caplog.records]  # type: ignore[attr-defined]
    assert logged == [
        ("CompilerService/Compile", "OK", ""),
        ("RegistryService/Resolve", "NOT_FOUND", "UNKNOWN_NAME"),
    ]
