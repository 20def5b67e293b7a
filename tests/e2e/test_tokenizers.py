"""TokenizerService: register and list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from servers import TOKENIZER, running

from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.workers.client import (
    CallFailed,
    RegisteredTokenizer,
    RegistryClient,
    SourceRefused,
)

Connect = Callable[..., RegistryClient]


def test_register_is_idempotent_and_listed(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    again = client.register_tokenizer(TOKENIZER, "demo.json")
    assert (tokenizer.created, again.created) == (True, False)
    assert replace(again, created=True) == tokenizer
    other = client.register_tokenizer(b"other", "../../etc/passwd")
    assert other.name == "passwd"
    listed = client.tokenizers()
    assert [t.fingerprint for t in listed] == sorted([tokenizer.fingerprint, other.fingerprint])


def test_list_pages(server: tuple[str, Server], client: RegistryClient) -> None:
    from maskwright.v1 import tokenizer_pb2, tokenizer_pb2_grpc

    made = sorted(client.register_tokenizer(b"t%d" % n).fingerprint for n in range(5))
    found, token = [], ""
    with grpc.insecure_channel(server[0]) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)
        while True:
            reply = stub.List(tokenizer_pb2.ListRequest(page_size=2, page_token=token))
            assert len(reply.tokenizers) <= 2
            found += [t.fingerprint for t in reply.tokenizers]
            token = reply.next_page_token
            if not token:
                break
    assert found == made


def test_companions_travel_with_a_tokenizer_json(client: RegistryClient, tmp_path: Path) -> None:
    path = tmp_path / "model" / "tokenizer.json"
    path.parent.mkdir()
    path.write_bytes(b"model")
    path.with_name("generation_config.json").write_text("{}")
    path.with_name("secrets.json").write_text("{}")
    registered = client.register_tokenizer(path)
    assert registered.stop_token_ids == (1, 2)
    assert client.compile("x", registered.fingerprint, kind="regex").artifact.size
    path.with_name("generation_config.json").unlink()
    with pytest.raises(CallFailed) as caught:
        client.register_tokenizer(path)
    assert (caught.value.code, caught.value.reason) == ("ALREADY_EXISTS", "TOKENIZER_DIFFERS")


def test_unusable_tokenizer(client: RegistryClient) -> None:
    with pytest.raises(SourceRefused) as caught:
        client.register_tokenizer(b"bad")
    assert caught.value.reason == "INVALID_TOKENIZER"
    assert caught.value.diagnostics


def test_oversized_tokenizer(config: ServerConfig, connect: Connect) -> None:
    with (
        running(replace(config, max_tokenizer_bytes=5000)) as (address, _),
        pytest.raises(CallFailed) as caught,
    ):
        connect(address).register_tokenizer(b"x" * 6000)
    assert caught.value.reason == "TOKENIZER_TOO_LARGE"


def test_upload_that_isnt_what_it_says(server: tuple[str, Server]) -> None:
    from maskwright.v1 import tokenizer_pb2 as messages
    from maskwright.v1 import tokenizer_pb2_grpc, types_pb2

    digest = types_pb2.Digest(hash="0" * 64, size_bytes=3)
    header = messages.RegisterRequest(header=messages.RegisterRequest.Header(digest=digest, name="x"))
    data = messages.RegisterRequest(data=b"abc")
    with grpc.insecure_channel(server[0]) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)
        for parts in ([header, data], [data], [], [header]):
            with pytest.raises(grpc.RpcError) as caught:
                stub.Register(iter(parts))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
