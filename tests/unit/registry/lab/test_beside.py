"""The lab beside a service: its address, its callers, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwright.registry.compiling import PoolLimits
from maskwright.registry.config import Authentication, LabSettings, ServerConfig
from maskwright.registry.lab.server import Lab
from maskwright.registry.security.tokens import create_token
from maskwright.registry.server import Server
from maskwright.workers.client import RegistryClient


def ask(page: str, name: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{page}/api/{name}", body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def config(tmp_path: Path) -> Iterator[ServerConfig]:
    yield ServerConfig(
        address="127.0.0.1:0",
        data=tmp_path / "data",
        pool=PoolLimits(children=1, warm=False),
        authentication=Authentication("required"),
        lab=LabSettings("127.0.0.1:0"),
        drain_seconds=0.0,
    )


async def test_its_calls_need_the_services_tokens(config: ServerConfig) -> None:
    server = Server(config)
    await server.start()
    try:
        page = server.lab_page
        token, _ = create_token(server.journal, "person", ["read"], [], "test")
        bearer = {"Authorization": f"Bearer {token}"}

        async def asked(name: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, dict[str, Any]]:
            return await asyncio.to_thread(ask, page, name, headers, body)

        with await asyncio.to_thread(urllib.request.urlopen, page, timeout=30) as answer:
            assert answer.status == 200  # the page itself is for everyone
        assert (await asked("setup", {}))[0] == 401
        assert (await asked("setup", {"Authorization": "Bearer x"}))[0] == 401
        assert (await asked("compile", bearer, b'{"kind":"regex","source":"a"}'))[0] == 403
        assert (await asked("setup", {**bearer, "Host": "rebound.example"}))[0] == 403
        assert (await asked("setup", {**bearer, "Origin": "https://evil.example"}))[0] == 403
        unknown = json.dumps({"artifact": "0" * 64}).encode()
        status, told = await asked("state", bearer, unknown)
        assert status == 404 and told["error"]["reason"] == "UNKNOWN_ARTIFACT"
    finally:
        await server.stop()


async def test_a_taken_address_is_told(config: ServerConfig) -> None:
    first = Lab("127.0.0.1:0")
    page = await first.start()
    try:
        second = Lab(page.removeprefix("http://").removesuffix("/lab"))
        with pytest.raises(OSError):
            await second.start()
        await second.stop()
    finally:
        await first.stop()
        await first.stop()


async def test_registered_vocabularies_can_be_chosen(config: ServerConfig, tmp_path: Path) -> None:
    """A rank file of bytes and two words; it has no stop token, so a complete text simply has no next token."""
    words = [*(bytes([b]) for b in range(256)), b"yes", b"no"]
    ranks = tmp_path / "words.tiktoken"
    ranks.write_text("".join(f"{base64.b64encode(w).decode()} {n}\n" for n, w in enumerate(words)))
    server = Server(replace(config, authentication=Authentication("open")))
    address = await server.start()
    try:

        async def asked(name: str, **fields: Any) -> dict[str, Any]:
            status, told = await asyncio.to_thread(ask, server.lab_page, name, {}, json.dumps(fields).encode())
            assert status == 200, told
            return told

        def register() -> str:
            with RegistryClient(address) as client:
                return client.register_tokenizer(ranks).fingerprint

        fingerprint = await asyncio.to_thread(register)
        assert fingerprint in [t["fingerprint"] for t in (await asked("setup"))["tokenizers"]]
        made = await asked("compile", kind="regex", source="yes|no", tokenizer=fingerprint)
        artifact = made["artifact"]
        assert made["tokenizer"] == fingerprint
        first = await asked("state", artifact=artifact, budget=9)
        assert first["figures"]["legal"] == 4 and first["figures"]["completions"] == "2"
        ended = await asked("state", artifact=artifact, tokens=[256], budget=9)
        assert ended["taken"] == 1 and ended["figures"]["may_end"]
        assert ended["figures"]["legal"] == 0 and not any(r["state"] == "legal" for r in ended["rows"])
        run = await asked("run", artifact=artifact, steps=9, settings={"seed": 4})
        assert run["text"] in ("yes", "no") and run["why"] == "stuck"
        judged = await asked("judge", artifact=artifact, text="yes")
        assert [layer["verdict"] for layer in judged["layers"]] == ["yes"]
        refused = await asked("compile", kind="regex", source="(", tokenizer=fingerprint)
        assert refused["refused"] and refused["diagnostics"][0]["span"] == [0, 1]
    finally:
        await server.stop()


def test_the_command_serves_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "maskwright.registry.cli", "lab", "--json", "--listen"]
    process = subprocess.Popen([*command, "127.0.0.1:0"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        page = json.loads(process.stdout.readline())["page"]
        with urllib.request.urlopen(page, timeout=60) as answer:
            assert b"Maskwright lab" in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    refused = subprocess.run([*command, "0.0.0.0:0"], capture_output=True, timeout=120, check=False)
    assert refused.returncode == 2 and "tokens" in json.loads(refused.stdout)["error"]
