"""Spans of OpenTelemetry around the client's calls, where the process has loaded it; nothing otherwise.

One client span for a call with all its attempts, named like the server's, which becomes its child: the context goes
with the call as `traceparent`. Only names of methods, the address and codes are recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class CallSpan:
    """What's told of a call while it runs."""

    def __init__(self, span: Any = None) -> None:
        self._span, self._attempts = span, 0

    def failed(self, code: str) -> None:
        """An attempt failed."""
        if self._span is not None:
            self._attempts += 1
            self._span.set_attribute("maskwright.failed_attempts", self._attempts)
            self._span.add_event("attempt failed", {"rpc.grpc.status": code})


@contextmanager
def call_span(method: str, address: str) -> Iterator[CallSpan]:
    """Around a call of "Service/Method", of this package unless it's given."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield CallSpan()
        return
    full = method if method.startswith("grpc.") else f"maskwright.v1.{method}"
    service, _, name = full.partition("/")
    attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name}
    with trace.get_tracer("maskwright.client").start_as_current_span(
        f"/{full}",
        kind=trace.SpanKind.CLIENT,
        attributes={**attributes, "server.address": address},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield CallSpan(span)
        except Exception as error:
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


def traced(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with the current span's context where there is one."""
    propagate = sys.modules.get("opentelemetry.propagate")
    if propagate is None:
        return arguments
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {**arguments, "metadata": (*arguments["metadata"], *carrier.items())} if carrier else arguments
