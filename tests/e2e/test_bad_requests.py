"""Requests that can't be served, and what they're told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest
from servers import running

from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.v1 import compiler_pb2, compiler_pb2_grpc
from maskwright.workers.client import (
    CallFailed,
    RegisteredTokenizer,
    RegistryClient,
)

Connect = Callable[..., RegistryClient]


@pytest.mark.parametrize(
    ("changes", "code", "reason", "metadata"),
    [
        ({"fingerprint": "0" * 64}, "NOT_FOUND", "UNKNOWN_TOKENIZER", {"fingerprint": "0" * 64}),
        (
            {"fingerprint": "../../x"},
            "INVALID_ARGUMENT",
            "INVALID_REQUEST",
            {"field": "tokenizer_fingerprint"},
        ),
        ({"fingerprint": ""}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "tokenizer_fingerprint"}),
        ({"limits_profile": "no"}, "NOT_FOUND", "UNKNOWN_PROFILE", {"profile": "no"}),
        ({"request_id": "a b"}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "request_id"}),
        ({"options": {"max_nesting": 0}}, "INVALID_ARGUMENT", "INVALID_REQUEST", {"field": "options"}),
    ],
)
def test_bad_fields(
    client: RegistryClient,
    tokenizer: RegisteredTokenizer,
    changes: dict[str, object],
    code: str,
    reason: str,
    metadata: dict[str, str],
) -> None:
    with pytest.raises(CallFailed) as caught:
        client.compile("x", **{"fingerprint": tokenizer.fingerprint, "kind": "regex", **changes})  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.reason, caught.value.metadata) == (code, reason, metadata)


def test_unknown_enum_values_are_refused(server: tuple[str, Server], tokenizer: RegisteredTokenizer) -> None:
    with grpc.insecure_channel(server[0]) as channel:
        stub = compiler_pb2_grpc.CompilerServiceStub(channel)
        request = compiler_pb2.CompileRequest(source="x", tokenizer_fingerprint=tokenizer.fingerprint)
        for kind in (0, 99):
            request.kind = kind
            with pytest.raises(grpc.RpcError) as caught:
                stub.Compile(request)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_too_large_a_message_is_refused(config: ServerConfig, connect: Connect) -> None:
    with running(replace(config, max_message_bytes=100_000)) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(b"short").fingerprint
        with pytest.raises(CallFailed) as caught:
            client.compile("x" * 200_000, fingerprint, kind="regex")
        assert caught.value.code == "RESOURCE_EXHAUSTED"
