"""A proxy before an S3 service that fails on demand, over the wire.

Once, for the next requests, in order (`faults`):
    500, 503         an error          refuse   the connection ends      hang      no answer until the client leaves
    truncate         half a body       corrupt  a flipped byte comes     lost      done, but the answer never arrives
    corrupt_upload   a flipped byte goes up    pass    nothing

For every request (`mode`):
    ignore           conditions are accepted and ignored
    unknown          conditions get 501
    no_swap          every If-Match gets 412
    careless         uploads are taken without their checksums, and get an etag that isn't their MD5
    late             If-None-Match is looked at too early, so that racing writers may all win
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CONDITIONS = ("if-match", "if-none-match")
CHECKSUMS = ("content-md5", "x-amz-checksum-sha256", "x-amz-sdk-checksum-algorithm")


class FaultyProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream)
        self.faults: list[str] = []
        self.mode = ""
        self.requests: list[str] = []
        self.leaving = threading.Event()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that left are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.faults.pop(0) if self.server.faults else "pass"
        self.server.requests.append(f"{self.command} {fault}")
        if fault in ("500", "503"):
            return self._answer(int(fault), b"<Error><Code>SlowDown</Code></Error>", {})
        if fault == "refuse":
            return None
        if fault == "hang":
            self.server.leaving.wait(30)
            return None
        if fault == "corrupt_upload" and body:
            body = body[:-1] + bytes([body[-1] ^ 1])
        refused = self._judge_conditions()
        if refused:
            return self._answer(refused, f"<Error><Code>E{refused}</Code></Error>".encode(), {})
        status, headers, data = self._forward(body)
        if fault == "lost":
            return None
        if fault == "corrupt" and data:
            data = data[:-1] + bytes([data[-1] ^ 1])
        return self._answer(status, data, headers, truncate=fault == "truncate")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def _judge_conditions(self) -> int:
        mode = self.server.mode
        conditions = [name for name in CONDITIONS if name in self.headers]
        if self.command != "PUT" or not conditions:
            return 0
        if mode == "unknown":
            return 501
        if mode == "no_swap" and "if-match" in self.headers:
            return 412
        if mode == "late" and "if-none-match" in self.headers:
            connection = http.client.HTTPConnection(self.server.upstream.netloc)
            connection.request("HEAD", self.path)
            if connection.getresponse().status == 200:
                return 412
            time.sleep(0.2)
        if mode in ("ignore", "late"):
            for name in conditions:
                del self.headers[name]
        return 0

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "expect")}
        if self.server.mode == "careless":
            headers = {k: v for k, v in headers.items() if k.lower() not in CHECKSUMS}
        connection = http.client.HTTPConnection(self.server.upstream.netloc, timeout=30)
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def _answer(self, status: int, data: bytes, headers: dict[str, str], truncate: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = headers.get("content-length", headers.get("Content-Length", "0"))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if truncate else data)


@contextmanager
def faulty_proxy(upstream: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(upstream)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.leaving.set()
        proxy.shutdown()
        proxy.server_close()
