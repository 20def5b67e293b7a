"""Metrics for Prometheus, spans for OpenTelemetry, logs for machines.

Metrics are in a registry of their own, so that two servers in a process don't mix. Labels have few values: method,
gRPC code, outcome, layer, diagnostic code; never a caller, a name or a digest.

Spans use OpenTelemetry's API: without a configured SDK they cost next to nothing. A caller's `traceparent` makes
a call part of its trace.

A log line is one JSON object. Only fields that are named here get into it, so that nothing secret does by accident:
metadata, sources and tokens aren't among them.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Literal

from opentelemetry import propagate, trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_COUNTS = (1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000)
_BYTES = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)
LOG_FIELDS = ("method", "caller", "code", "reason", "seconds", "revision", "kind")


class Metrics:
    """All metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self.calls = Counter("maskwright_calls", "Calls by method and gRPC code.", ["method", "code"], registry=r)
        self.call_seconds = Histogram(
            "maskwright_call_seconds", "Time of a call.", ["method"], buckets=_SECONDS, registry=r
        )
        self.compile_seconds = Histogram(
            "maskwright_compile_seconds",
            "Time of a compilation with its wait for a child, by outcome: done, refused, or why it failed.",
            ["outcome"],
            buckets=_SECONDS,
            registry=r,
        )
        self.cache = Counter(
            "maskwright_cache_lookups",
            "Compile calls by what had the artifact: catalog, flight (another's compilation), none.",
            ["layer"],
            registry=r,
        )
        self.hot = Counter("maskwright_hot_blob_lookups", "Fetches by whether memory had it.", ["hit"], registry=r)
        self.fetch_bytes = Counter("maskwright_fetch_bytes", "Bytes of blobs sent.", registry=r)
        self.refusals = Counter("maskwright_refusals", "Refused sources by diagnostic code.", ["code"], registry=r)
        self.waiting = Gauge("maskwright_compile_queue", "Compilations that wait for a child.", registry=r)
        self.running = Gauge("maskwright_compiling", "Compilations that run.", registry=r)
        self.revision = Gauge("maskwright_journal_revision", "Last revision known to this replica.", registry=r)
        self.store_failures = Counter("maskwright_store_failures", "Times the journal couldn't be read.", registry=r)
        self.masks = Histogram(
            "maskwright_artifact_masks", "Distinct masks of a compiled artifact.", buckets=_COUNTS, registry=r
        )
        self.artifact_bytes = Histogram(
            "maskwright_artifact_bytes", "Bytes of a compiled artifact.", buckets=_BYTES, registry=r
        )
        self.largest_mask = Gauge(
            "maskwright_largest_mask_tokens", "Legal tokens in the largest mask of the last artifact.", registry=r
        )

    def observe_report(self, report: dict[str, Any]) -> None:
        """What a fresh artifact's masks cost."""
        for metric, name in ((self.masks, "masks"), (self.artifact_bytes, "artifact_bytes")):
            if isinstance(report.get(name), int | float):
                metric.observe(report[name])
        if isinstance(report.get("largest_mask"), int | float):
            self.largest_mask.set(report["largest_mask"])

    def serve(self, address: str) -> Callable[[], None]:
        """Serves them at http://address/metrics until the returned function is called. Raises OSError."""
        host, _, port = address.rpartition(":")
        server, thread = start_http_server(int(port), host or "127.0.0.1", self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


@contextmanager
def call_span(method: str, metadata: Iterable[tuple[str, Any]]) -> Iterator[Any]:
    """A server span around a call, in the caller's trace; a span that records nothing where there's no SDK."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        yield trace.INVALID_SPAN
        return
    carrier = {name: value for name, value in metadata if name in ("traceparent", "tracestate")}
    context = propagate.extract(carrier)
    tracer = trace.get_tracer("maskwright.registry")
    with tracer.start_as_current_span(
        method, context=context, kind=trace.SpanKind.SERVER, attributes={"rpc.system": "grpc"}
    ) as span:
        yield span


def start_tracing(exporter: Literal["none", "log", "otlp"]) -> None:
    """Sets OpenTelemetry's SDK up. "otlp" needs opentelemetry-exporter-otlp and reads its environment.

    Raises ModuleNotFoundError where that isn't installed.
    """
    if exporter == "none":
        return
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    chosen: Any
    if exporter == "otlp":
        chosen = import_module("opentelemetry.exporter.otlp.proto.grpc.trace_exporter").OTLPSpanExporter()
    else:
        chosen = ConsoleSpanExporter(out=sys.stderr)
    provider = TracerProvider(resource=Resource.create({"service.name": "maskwright-registry"}))
    provider.add_span_processor(BatchSpanProcessor(chosen))
    trace.set_tracer_provider(provider)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the trace, and those of `LOG_FIELDS` that are given."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields.update((name, getattr(record, name)) for name in LOG_FIELDS if hasattr(record, name))
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            fields["trace_id"] = f"{span.trace_id:032x}"
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def start_logging(format_: Literal["text", "json"], level: str) -> None:
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if format_ == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
