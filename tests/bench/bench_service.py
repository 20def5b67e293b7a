"""The service on loopback: Fetch against a bare gRPC stream of the same bytes, cache hits, identical calls.

The bare stream sends the same chunks from memory, with no look-up and no digest, from a server process of its
own, as the registry has one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import grpc

from maskwright.v1 import registry_pb2, registry_pb2_grpc
from maskwright.workers.client import DiskCache, RegistryClient

SIZES = (24_000, 16_000_000)
CHUNK = 1 << 20
CALLERS = 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        command = [
            sys.executable,
            "-m",
            "maskwright.registry.cli",
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
        ]
        server = subprocess.Popen(
            [*command, "--data", str(data)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        bare = subprocess.Popen([sys.executable, "-m", "tests.bench.bench_service"], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            assert bare.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            _fetches(address, bare.stdout.readline().decode().strip(), data)
            _compiles(address, data)
        finally:
            for process in (server, bare):
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def _fetches(address: str, bare: str, data: Path) -> None:
    from maskwright.registry.content import ContentStore
    from maskwright.registry.store import LocalStore

    content = ContentStore(LocalStore(data / "store"))
    for size in SIZES:
        digest = content.put(hashlib.shake_128(b"x").digest(size))
        request = registry_pb2.FetchRequest()
        request.digest.hash, request.digest.size_bytes = digest.hash, size
        calls = 300 if size < CHUNK else 15
        ours, theirs = _timed((address, bare), request, calls)
        middle, high = ours[calls // 2], ours[-1 - calls // 100]
        _say(
            f"fetch {size:>11,} bytes: p50 {middle * 1e3:.2f} ms, p99 {high * 1e3:.2f} ms,"
            f" {size / middle / 1e6:,.0f} MB/s; bare stream p50 {theirs[calls // 2] * 1e3:.2f} ms;"
            f" throughput ratio {theirs[calls // 2] / middle:.2f}"
        )


def _timed(addresses: tuple[str, str], request: registry_pb2.FetchRequest, calls: int) -> list[list[float]]:
    """Sorted seconds by address; in turns, so that what else the machine does falls on both."""
    options = [("grpc.max_receive_message_length", 64 << 20)]
    with ExitStack() as stack:
        channels = [stack.enter_context(grpc.insecure_channel(a, options=options)) for a in addresses]
        stubs = [registry_pb2_grpc.RegistryServiceStub(channel) for channel in channels]
        times: list[list[float]] = [[] for _ in stubs]
        for _ in range(calls + 3):
            for stub, listed in zip(stubs, times, strict=True):
                began = time.perf_counter()
                received = sum(len(part.data) for part in stub.Fetch(request))
                listed.append(time.perf_counter() - began)
                assert received == request.digest.size_bytes
    return [sorted(listed[3:]) for listed in times]


def _compiles(address: str, data: Path) -> None:
    tokenizer = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
    with RegistryClient(address, cache=DiskCache(data / "cache")) as client:
        fingerprint = client.register_tokenizer(tokenizer).fingerprint
        schema = {"type": "object", "properties": {"a": {"enum": ["refund", "ask"]}}, "required": ["a"]}
        client.compile(schema, fingerprint)
        times = sorted(_time(lambda: client.compile(schema, fingerprint)) for _ in range(300))
        _say(f"compile, hit: p50 {times[150] * 1e3:.2f} ms, p99 {times[297] * 1e3:.2f} ms")
        began = time.perf_counter()
        with ThreadPoolExecutor(CALLERS) as pool:
            results = list(
                pool.map(lambda _: client.compile({**schema, "title": "new"}, fingerprint), range(CALLERS))
            )
        seconds = time.perf_counter() - began
        compiled = sum(not r.cached for r in results)
        _say(f"{CALLERS} identical calls at once: {compiled} compilation, {seconds:.2f} s")


def _time(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


class _Bare(registry_pb2_grpc.RegistryServiceServicer):
    async def Fetch(
        self, request: registry_pb2.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[registry_pb2.FetchResponse]:
        data = _blob(request.digest.size_bytes)
        for start in range(0, len(data), CHUNK):
            yield registry_pb2.FetchResponse(offset=start, data=data[start : start + CHUNK])


_blobs: dict[int, bytes] = {}


def _blob(size: int) -> bytes:
    return _blobs.setdefault(size, _blobs.get(size) or os.urandom(size))


async def _serve_bare() -> None:
    server = grpc.aio.server(options=[("grpc.max_send_message_length", 64 << 20)])
    registry_pb2_grpc.add_RegistryServiceServicer_to_server(_Bare(), server)
    _say(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    await server.start()
    await server.wait_for_termination()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve_bare())
