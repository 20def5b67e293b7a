"""Random requests of every method, by the wire contract's descriptors: whatever they hold is answered with a reason.

Values are drawn from what exists in the registry, what nearly does, and the edges of each type, so that many requests
get far. INTERNAL, UNKNOWN or a stack trace in the log is a fault.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message_factory import GetMessageClass
from servers import TOKENIZER

from maskwright.registry.server import Server
from maskwright.v1 import compiler_pb2, registry_pb2, tokenizer_pb2
from maskwright.workers.client import RegistryClient

REQUESTS = 400
METHODS = [
    method
    for module in (compiler_pb2, registry_pb2, tokenizer_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
WORDS = ("", "n", "default/n", "red/*", "prod", "a" * 200, "..", "../x", "a/b/c", "\0", "é", "0" * 64, "0" * 63 + "g")
SOURCES = ("true", "{", '{"$ref":"http://x/y"}', "x", "[]", "refuse 3", "strict", "tokenizer.json", "-1")
MOST = {Field.TYPE_INT64: 2**63 - 1, Field.TYPE_UINT32: 2**32 - 1, Field.TYPE_INT32: 2**31 - 1}


class _Requests:
    """Messages by descriptor. `known`: what the registry holds."""

    def __init__(self, seed: int, known: tuple[str, ...]) -> None:
        self._random, self._words = random.Random(seed), (*WORDS, *SOURCES, *known, *known)

    def method(self) -> Any:
        return self._random.choice(METHODS)

    def message(self, descriptor: Any, depth: int = 0) -> Any:
        message = GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if self._random.random() < 0.3 or depth > 4:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                getattr(message, field.name)[self._random.choice(self._words)] = self._random.choice(SOURCES)
            elif hasattr(getattr(message, field.name), "extend"):
                many = (self._value(field, depth) for _ in range(self._random.randrange(4)))
                getattr(message, field.name).extend(many)
            elif field.message_type is not None:
                getattr(message, field.name).CopyFrom(self._value(field, depth))
            else:
                setattr(message, field.name, self._value(field, depth))
        return message

    def _value(self, field: Any, depth: int) -> Any:
        if field.message_type is not None:
            return self.message(field.message_type, depth + 1)
        if field.type == Field.TYPE_STRING:
            return self._random.choice(self._words)
        if field.type == Field.TYPE_BYTES:
            return self._random.randbytes(self._random.randrange(80))
        if field.type == Field.TYPE_BOOL:
            return self._random.random() < 0.5
        if field.type == Field.TYPE_ENUM:
            return self._random.choice([*(v.number for v in field.enum_type.values), 99])
        lowest = 0 if field.type == Field.TYPE_UINT32 else -MOST[field.type] - 1
        return self._random.choice((0, 1, 2, 60, 1000, MOST[field.type], lowest, max(lowest, -1)))


def _send(channel: grpc.Channel, method: Any, messages: list[Any]) -> str:
    path, uploads = f"/{method.containing_service.full_name}/{method.name}", method.name == "Register"
    kind: Callable[..., Any] = channel.stream_stream if uploads else channel.unary_stream
    call = kind(path, lambda message: message.SerializeToString(), GetMessageClass(method.output_type).FromString)
    replies = call(iter(messages) if uploads else messages[0], timeout=0.05 if method.name == "Watch" else 60)
    try:
        for _ in replies:
            pass
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("seed", range(3))
def test_every_request_is_answered_with_a_reason(
    server: tuple[str, Server], client: RegistryClient, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
    compiled = [client.compile(s, fingerprint, kind="regex") for s in ("a", "b")]
    client.promote("n", "prod", client.publish("n", [compiled[0].key]))
    known = (fingerprint, *(c.key for c in compiled), *(c.artifact.hash for c in compiled))
    requests, codes = _Requests(seed, known), set[str]()
    with grpc.insecure_channel(server[0]) as channel:
        for _ in range(REQUESTS):
            method = requests.method()
            messages = [requests.message(method.input_type) for _ in range(2)]
            code = _send(channel, method, messages)
            assert code not in ("INTERNAL", "UNKNOWN", "DATA_LOSS", "UNIMPLEMENTED"), (method.name, messages)
            codes.add(code)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
    assert codes >= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}
