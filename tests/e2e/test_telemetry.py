"""What calls leave behind: metrics, spans in the caller's trace, log lines."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from maskwright.registry.server import Server
from maskwright.v1 import registry_pb2, registry_pb2_grpc
from maskwright.workers.client import RegisteredTokenizer, RegistryClient, ServiceUnavailable, SourceRefused

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
    named = {(span.name.rpartition("/")[2], span.kind): span for span in spans.get_finished_spans()}
    resolved = named["Resolve", trace.SpanKind.SERVER]
    assert f"{resolved.context.trace_id:032x}" == parent.split("-")[1]
    assert resolved.attributes["maskwright.reason"] == "UNKNOWN_ARTIFACT"
    # The test's span, the client's in it, the server's in that.
    asked, served = (named["GetCapabilities", k] for k in (trace.SpanKind.CLIENT, trace.SpanKind.SERVER))
    assert asked.parent.span_id == mine.get_span_context().span_id
    assert served.parent.span_id == asked.context.span_id
    assert served.context.trace_id == asked.context.trace_id == mine.get_span_context().trace_id
    assert asked.name == served.name == "/maskwright.v1.CompilerService/GetCapabilities"
    assert asked.attributes["rpc.service"] == "maskwright.v1.CompilerService"
    assert asked.attributes["server.address"] == server[0]
    failing = RegistryClient("127.0.0.1:9", cache=client.cache, attempts=2, timeout=1)
    with failing, pytest.raises(ServiceUnavailable):
        failing.capabilities()
    failed = spans.get_finished_spans()[-1]
    assert (failed.status.status_code, failed.attributes["maskwright.failed_attempts"]) == (trace.StatusCode.ERROR, 2)
    assert [e.attributes["rpc.grpc.status"] for e in failed.events] == ["UNAVAILABLE", "UNAVAILABLE"]


class _Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Of OTLP: keeps the names of spans."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.came = threading.Event()

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
        scopes = [scope for resource in request.resource_spans for scope in resource.scope_spans]
        self.names += [span.name for scope in scopes for span in scope.spans]
        self.came.set()
        return trace_service_pb2.ExportTraceServiceResponse()


def test_spans_go_to_a_collector(tmp_path: Path, connect: Connect) -> None:
    collector = _Collector()
    receiver = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, receiver)
    port = receiver.add_insecure_port("127.0.0.1:0")
    receiver.start()
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    command = [sys.executable, "-m", "maskwright.registry.cli", "serve", "--json", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings, "MASKWRIGHT_SERVER_TELEMETRY__TRACES": "otlp"},
    )
    try:
        assert server.stdout is not None
        connect(json.loads(server.stdout.readline())["address"]).capabilities()
        assert collector.came.wait(60)
    finally:
        server.terminate()
        server.wait(60)
        receiver.stop(0)
    assert "/maskwright.v1.CompilerService/GetCapabilities" in collector.names


def test_log_of_changes_and_failures(
    client: RegistryClient, tokenizer: RegisteredTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "maskwright.registry.calls")
    client.compile("x", tokenizer.fingerprint, kind="regex")
    client.capabilities()
    with pytest.raises(Exception, match="UNKNOWN_NAME"):
        client.resolve("n")
    records = [r for r in caplog.records if r.name == "maskwright.registry.calls"]
    logged = [(r.method, r.code, r.reason) for r in records]  # type: ignore[attr-defined]
    assert logged == [
        ("CompilerService/Compile", "OK", ""),
        ("RegistryService/Resolve", "NOT_FOUND", "UNKNOWN_NAME"),
    ]
