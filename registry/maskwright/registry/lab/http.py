"""A small HTTP/1.1 server on asyncio: what the lab's page and its JSON calls need, and nothing that they don't.

One request at a time on a connection, `Content-Length` bodies, no upgrades, no chunked requests. RFC 9112 is
followed strictly where laxity lets requests be smuggled or memory be filled: a request line or header that isn't
by the grammar, a second `Host` or `Content-Length`, or any `Transfer-Encoding` is refused and the connection
closed. Every wait has a deadline and every size a limit (`HttpLimits`), so a client that sends slowly, reads
slowly, or never ends only holds one of `connections`.

What a path means is the handler's business. A handler that raises is answered with 500 and logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

_log = logging.getLogger(__name__)
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/(1\.[01]|[02-9]\.[0-9])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t\x80-\xff]*?)[ \t]*")
_LENGTH = re.compile(r"[0-9]{1,12}")
_ONCE = frozenset({"host", "content-length", "content-type", "authorization", "origin", "transfer-encoding"})


@dataclass(frozen=True)
class HttpLimits:
    """Bytes, seconds and counts that one client may take."""

    head_bytes: int = 16 << 10
    headers: int = 64
    body_bytes: int = 2 << 20
    connections: int = 128
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 30.0
    write_seconds: float = 30.0


@dataclass(frozen=True)
class Request:
    """`path` is decoded, without the query. Header names are lower case. `secure`: it came over TLS."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    secure: bool = False


@dataclass(frozen=True)
class Response:
    body: bytes = b""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """A request that breaks a rule; `status` answers it, then the connection is closed."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


class HttpServer:
    """Serves one handler on one address; belongs to one event loop."""

    def __init__(self, handler: Handler, limits: HttpLimits | None = None) -> None:
        self._handler, self.limits = handler, limits or HttpLimits()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Binds and serves; returns the port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._connected, host, port, limit=self.limits.head_bytes, ssl=tls, backlog=self.limits.connections
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Closes the address and every connection. Safe to call twice."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) > self.limits.connections:
                await self._send(writer, _refusal(503, "too many connections"), close=True)
                return
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client went away, or took too long to say anything
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(Exception):
                await asyncio.wait_for(writer.wait_closed(), 1.0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secure, seconds = writer.get_extra_info("ssl_object") is not None, self.limits.head_seconds
        while True:
            try:
                request, keep = await self._read(reader, secure, seconds)
            except BadRequest as bad:
                await self._send(writer, _refusal(bad.status, bad.message), close=True)
                return
            response = await self._answer(request)
            if request.method == "HEAD":
                length = {"Content-Length": str(len(response.body))}
                response = Response(b"", response.status, response.content_type, {**response.headers, **length})
            await self._send(writer, response, close=not keep)
            if not keep:
                return
            seconds = self.limits.idle_seconds

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return _refusal(500, "something went wrong in the server; its log says what")

    async def _read(
        self, reader: asyncio.StreamReader, secure: bool, seconds: float
    ) -> tuple[Request, bool]:
        """A request, and whether the connection may be kept. Raises BadRequest, and what a broken connection
        raises."""
        try:
            async with asyncio.timeout(seconds):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise BadRequest(431, f"the head has more than {self.limits.head_bytes} bytes") from error
        method, path, version, headers = parse_head(head[:-4], self.limits.headers)
        length = _body_length(headers, self.limits.body_bytes)
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                body = await reader.readexactly(length) if length else b""
        except TimeoutError as error:
            raise BadRequest(408, "the body took too long") from error
        keep = version == "1.1" and headers.get("connection", "").lower() != "close"
        return Request(method, path, headers, body, secure), keep

    async def _send(self, writer: asyncio.StreamWriter, response: Response, *, close: bool) -> None:
        phrase = HTTPStatus(response.status).phrase
        headers = {
            "Content-Type": response.content_type,
            "Content-Length": str(len(response.body)),
            "Connection": "close" if close else "keep-alive",
            **response.headers,
        }
        lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + response.body)
        async with asyncio.timeout(self.limits.write_seconds):
            await writer.drain()


def parse_head(head: bytes, max_headers: int) -> tuple[str, str, str, dict[str, str]]:
    """(method, path, version, headers) of a head without its last empty line. Raises BadRequest."""
    first, *lines = head.split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise BadRequest(400, "not a request line")
    version = match[3].decode()
    if version not in ("1.0", "1.1"):
        raise BadRequest(505, "HTTP 1.0 and 1.1 are spoken here")
    if len(lines) > max_headers:
        raise BadRequest(431, f"more than {max_headers} headers")
    return match[1].decode(), _path(match[2]), version, _headers(lines)


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise BadRequest(400, "not a header")
        name, value = match[1].decode().lower(), match[2].decode("latin-1")
        if name in headers and name in _ONCE:
            raise BadRequest(400, f"two headers {name}")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if "transfer-encoding" in headers:
        raise BadRequest(501, "bodies need a Content-Length")
    return headers


def _path(target: bytes) -> str:
    try:
        path = unquote_to_bytes(target.partition(b"?")[0]).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(400, "the path isn't UTF-8") from error
    if not path.isprintable():
        raise BadRequest(400, "the path has control characters")
    return path


def _body_length(headers: Mapping[str, str], most: int) -> int:
    text = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(text):
        raise BadRequest(400, "Content-Length is no length")
    if int(text) > most:
        raise BadRequest(413, f"the body has more than {most} bytes")
    return int(text)


def _refusal(status: int, message: str) -> Response:
    return Response(f"{message}\n".encode(), status, headers={"X-Content-Type-Options": "nosniff"})
