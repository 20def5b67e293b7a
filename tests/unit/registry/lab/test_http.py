"""The HTTP server: by the grammar or refused, with limits on everything that a client can make long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.registry.lab.http import BadRequest, HttpLimits, HttpServer, Request, Response, parse_head

LIMITS = HttpLimits(
    head_bytes=2048, headers=8, body_bytes=1000, connections=3, head_seconds=0.3, body_seconds=0.3, idle_seconds=0.3
)
Ask = Callable[[bytes], Awaitable[bytes]]


async def echo(request: Request) -> Response:
    if request.path == "/fails":
        raise RuntimeError("a secret")
    return Response(f"{request.method} {request.path} ".encode() + request.body)


@asynccontextmanager
async def serving() -> AsyncIterator[Ask]:
    server = HttpServer(echo, LIMITS)
    port = await server.start("127.0.0.1", 0)

    async def ask(data: bytes) -> bytes:
        """All that the server says until it closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()

    try:
        yield ask
    finally:
        await server.stop()


async def test_a_request_with_a_body_is_answered() -> None:
    async with serving() as ask:
        said = await ask(b"POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n") and said.endswith(b"\r\n\r\nPOST /a b hi")


async def test_a_connection_is_kept() -> None:
    async with serving() as ask:
        one = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
        said = await ask(one + one.replace(b"GET /1", b"GET /2"))
    assert said.count(b"200 OK") == 2 and b"GET /1" in said and b"GET /2" in said


async def test_head_has_the_length_and_no_body() -> None:
    async with serving() as ask:
        said = await ask(b"HEAD /x HTTP/1.0\r\nHost: h\r\n\r\n")
    assert b"Content-Length: 8\r\n" in said and said.endswith(b"\r\n\r\n")


async def test_a_handlers_failure_tells_nothing() -> None:
    async with serving() as ask:
        said = await ask(b"GET /fails HTTP/1.0\r\nHost: h\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 500") and b"secret" not in said


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET http://h/ HTTP/1.1", 400),
        (b"GET /\x00 HTTP/1.1", 400),
        (b"GET /%00 HTTP/1.1", 400),
        (b"GET /%0d%0a HTTP/1.1", 400),
        (b"GET /%ff HTTP/1.1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400),
        (b"GET / HTTP/1.1\r\nHost : a", 400),
        (b"GET / HTTP/1.1\r\n folded: a", 400),
        (b"GET / HTTP/1.1\r\nX: a\nY: b", 400),
        (b"GET / HTTP/1.1\r\nX: a\x00", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 501),
        (b"GET / HTTP/1.1" + b"".join(b"\r\nX%d: a" % n for n in range(9)), 431),
    ],
)
def test_what_is_not_by_the_grammar_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_head(head, LIMITS.headers)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /" + b"a" * 4000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", b"408"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    ],
)
async def test_limits_end_the_connection(data: bytes, status: bytes) -> None:
    async with serving() as ask:
        said = await ask(data)
        assert said.startswith(b"HTTP/1.1 " + status) and b"Connection: close" in said
        assert b"200 OK" in await ask(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")


async def test_a_client_that_says_nothing_is_left() -> None:
    async with serving() as ask:
        assert await ask(b"GET / HT") == b""
        assert await ask(b"") == b""


async def test_more_connections_than_allowed_are_refused_and_others_go_on() -> None:
    server = HttpServer(echo, HttpLimits(connections=2))
    port = await server.start("127.0.0.1", 0)
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    await asyncio.sleep(0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert (await reader.read()).startswith(b"HTTP/1.1 503")
    held[0][1].write(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")
    assert b"200 OK" in await held[0][0].read()
    for _, one in [*held, (reader, writer)]:
        one.close()
    await server.stop()
    await server.stop()


WORDS = [b"GET", b"POST", b"/lab", b"/%2e%2e/", b"HTTP/1.1", b"Host", b"Content-Length", b"Transfer-Encoding"]
MARKS = [b"chunked", b"0", b"-1", b"%", b"?", b":", b" ", b"\r\n", b"\n", b"\r", b"\x00", b"\xff", b"a" * 40]
PIECES = st.sampled_from([*WORDS, *MARKS])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=6)), max_size=14).map(b"".join))
def test_any_head_is_read_or_refused(head: bytes) -> None:
    try:
        method, path, version, headers = parse_head(head, LIMITS.headers)
    except BadRequest as bad:
        assert 400 <= bad.status < 600 and bad.message.isprintable()
        return
    assert method.isupper() and path.startswith("/") and path.isprintable() and version in ("1.0", "1.1")
    assert "transfer-encoding" not in headers and all("\r" not in v and "\n" not in v for v in headers.values())
