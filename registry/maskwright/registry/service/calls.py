"""Around every call: who calls, may they, how much did they use; errors to status; metrics, a span, a log line.

Messages are parsed in here, after the caller is known: gRPC itself would answer what can't be parsed with UNKNOWN and a
stack trace in the log, for anybody. Health and reflection (`/grpc.…`) pass as they are: probes have no token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_status.rpc_status import to_status

from ..faults import RegistryError, invalid_request
from ..security import Caller, using_caller
from ..security.authentication import Authenticator
from ..security.quotas import Quotas
from ..telemetry import Metrics, call_span
from .status import CODES, as_registry_error, status_of

_log = logging.getLogger("maskwright.registry.calls")
_C, _R, _T = (f"/maskwright.v1.{name}Service/" for name in ("Compiler", "Registry", "Tokenizer"))
SCOPES = {
    _C + "Compile": "compile",
    _C + "Precompile": "compile",
    _C + "Explain": "compile",
    _C + "GetCapabilities": "read",
    _R + "Resolve": "read",
    _R + "Fetch": "read",
    _R + "ListNames": "read",
    _R + "ListVersions": "read",
    _R + "Watch": "read",
    _R + "Lease": "read",
    _R + "GetSignatures": "read",
    _R + "Publish": "publish",
    _R + "Promote": "publish",
    _R + "Rollback": "publish",
    _R + "Pin": "publish",
    _R + "Retire": "publish",
    _R + "AddSignature": "publish",
    _R + "Revoke": "admin",
    _T + "Register": "compile",
    _T + "List": "read",
}
"""What a method needs; one that isn't here needs `admin`."""
_COMPILING = {_C + "Precompile", _T + "Register"}
"""Methods that count as a compilation as a whole; Compile and Explain only where they begin one."""
_QUIET = {_T + "List", _C + "GetCapabilities"} | {
    _R + name for name in ("Resolve", "Fetch", "ListNames", "ListVersions", "GetSignatures")
}
"""Methods that change nothing: logged when they fail."""


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Wraps every method of the three services. Cancellation passes through."""

    def __init__(self, authenticator: Authenticator, quotas: Quotas, metrics: Metrics) -> None:
        self._authenticator, self._quotas, self._metrics = authenticator, quotas, metrics

    async def intercept_service(
        self, continuation: Callable[..., Any], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        handler, method = await continuation(handler_call_details), handler_call_details.method
        if handler is None or method.startswith("/grpc."):
            return handler
        parse = partial(_parse_each if handler.request_streaming else _parse, handler.request_deserializer)
        handler = handler._replace(request_deserializer=None)
        if handler.unary_unary:
            return handler._replace(unary_unary=self._guard(method, handler.unary_unary, parse))
        if handler.stream_unary:
            return handler._replace(stream_unary=self._guard(method, handler.stream_unary, parse))
        if handler.unary_stream:
            return handler._replace(unary_stream=self._guard_stream(method, handler.unary_stream, parse))
        return handler._replace(stream_stream=self._guard_stream(method, handler.stream_stream, parse))

    def _guard(self, method: str, function: Callable[..., Any], parse: Callable[[Any], Any]) -> Callable[..., Any]:
        async def guarded(request: Any, context: grpc.aio.ServicerContext) -> Any:
            try:
                with self._call(method, context):
                    return await function(parse(request), context)
            except _Failed as failed:
                return await _abort(context, failed)

        return guarded

    def _guard_stream(
        self, method: str, function: Callable[..., Any], parse: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        async def guarded(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            try:
                with self._call(method, context):
                    async for response in function(parse(request), context):
                        yield response
            except _Failed as failed:
                await _abort(context, failed)

        return guarded

    @contextmanager
    def _call(self, method: str, context: grpc.aio.ServicerContext) -> Iterator[None]:
        """Everything around a call; what the call raises comes out as `_Failed`."""
        began, code, reason, caller = time.perf_counter(), "OK", "", "unknown"
        metadata = context.invocation_metadata() or ()
        try:
            with call_span(method, metadata) as span:
                try:
                    known = self._authenticator.caller(metadata, context.auth_context() or {})
                    caller = known.name
                    span.set_attribute("maskwright.caller", caller)
                    with self._admitted(method, known), using_caller(known):
                        yield
                except Exception as error:
                    found = as_registry_error(error)
                    code, reason = CODES[found.reason].name, str(found.reason)
                    span.set_attribute("maskwright.reason", reason)
                    raise _Failed(found) from error
        except (asyncio.CancelledError, GeneratorExit):
            code = "CANCELLED"
            raise
        finally:
            self._tell(method, caller, code, reason, time.perf_counter() - began)

    @contextmanager
    def _admitted(self, method: str, caller: Caller) -> Iterator[None]:
        caller.require(SCOPES.get(method, "admin"))
        self._quotas.count_call(caller.name)
        if method not in _COMPILING:
            yield
            return
        with self._quotas.compiling(caller.name):
            yield

    def _tell(self, method: str, caller: str, code: str, reason: str, seconds: float) -> None:
        short = method.rpartition(".")[2]  # "CompilerService/Compile"
        self._metrics.calls.labels(short, code).inc()
        self._metrics.call_seconds.labels(short).observe(seconds)
        if code == "OK" and method in _QUIET:
            return
        fields = {"method": short, "caller": caller, "code": code, "reason": reason, "seconds": round(seconds, 4)}
        _log.info("%s by %s: %s %s", short, caller, code, reason, extra=fields)


def _parse(message_of: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return message_of(data)
    except DecodeError as error:
        raise invalid_request("message", "can't be parsed as one of this method's") from error


async def _parse_each(message_of: Callable[[bytes], Any], messages: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    async for data in messages:
        yield _parse(message_of, data)


class _Failed(Exception):
    def __init__(self, error: RegistryError) -> None:
        self.error = error
        super().__init__(str(error))


async def _abort(context: grpc.aio.ServicerContext, failed: _Failed) -> None:
    rich = to_status(status_of(failed.error))
    context.set_trailing_metadata(rich.trailing_metadata)
    await context.abort(rich.code, rich.details)
