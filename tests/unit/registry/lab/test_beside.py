"""The lab beside a service: its address, its callers, over real sockets."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwright.registry.compiling import PoolLimits
from maskwright.registry.config import Authentication, LabSettings, ServerConfig
from maskwright.registry.lab.server import Lab
from maskwright.registry.security.tokens import create_token
from maskwright.registry.server import Server


def ask(page: str, name: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{page}/api/{name}", body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
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
