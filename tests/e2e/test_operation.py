"""Health, reflection, draining, and clients that wait for a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from servers import TOKENIZER, lasting_address, running, until

from maskwright.registry.config import ServerConfig
from maskwright.registry.server import SERVICES, Server
from maskwright.workers.client import (
    RegistryClient,
    ServiceUnavailable,
)

Connect = Callable[..., RegistryClient]


def test_health_and_reflection(server: tuple[str, Server]) -> None:
    with grpc.insecure_channel(server[0]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", *SERVICES):
            reply = stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        assert set(SERVICES) <= set(ProtoReflectionDescriptorDatabase(channel).get_services())


def test_drain_lets_calls_finish(
    config: ServerConfig, connect: Connect, compilations: Callable[[], int], gate: Path
) -> None:
    with running(replace(config, drain_seconds=600.0)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        done: list[object] = []
        thread = threading.Thread(
            target=lambda: done.append(client.compile(f"wait {gate}", fingerprint, kind="regex"))
        )
        thread.start()
        until(compilations)
        threading.Timer(0.5, gate.touch).start()
    thread.join(60)
    assert len(done) == 1
    with pytest.raises(ServiceUnavailable):
        connect(address).compile("x", fingerprint, kind="regex")


def test_client_tries_again_until_the_server_is_there(config: ServerConfig, connect: Connect) -> None:
    address = lasting_address()
    client = connect(address, attempts=20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.capabilities)
        with running(replace(config, address=address)):
            assert waiting.result(120)["compiler_version"] == "test-1"
