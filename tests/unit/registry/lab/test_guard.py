"""Who may call: names of this host, pages of this origin, callers with a token."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from maskwright.registry.config import Authentication, LabSettings, ServerConfig
from maskwright.registry.content import ContentStore
from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.index import Index
from maskwright.registry.lab.api import Api
from maskwright.registry.lab.guard import Guard
from maskwright.registry.lab.http import Request
from maskwright.registry.lab.server import Lab
from maskwright.registry.lab.site import WORKER, Site
from maskwright.registry.names import Journal
from maskwright.registry.security.authentication import Authenticator
from maskwright.registry.security.quotas import QuotaLimits, Quotas
from maskwright.registry.security.tokens import create_token
from maskwright.registry.store.locate import open_store

JSON = {"host": "127.0.0.1:80", "content-type": "application/json"}


def guard(**settings: Any) -> Guard:
    made = Guard(**settings)
    made.port = lambda: 80
    return made


def post(headers: dict[str, str], secure: bool = False) -> Request:
    return Request("POST", "/lab/api/setup", headers, b"{}", secure)


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:80", "LOCALHOST:80", "[::1]:80", "localhost"])
def test_names_of_loopback_are_known(host: str) -> None:
    guard().check_host(post({"host": host}))


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:80", "127.0.0.1:81", "127.0.0.1.evil.example:80", "localhost:80:80"],
)
def test_rebound_names_are_not(host: str) -> None:
    with pytest.raises(RegistryError) as caught:
        guard().check_host(post({"host": host}))
    assert caught.value.reason is Reason.PERMISSION_DENIED


def test_a_service_may_have_a_name_or_any() -> None:
    guard(hosts=("Lab.example",)).check_host(post({"host": "lab.example:8443"}))
    guard(any_host=True).check_host(post({"host": "whatever:1"}))
    with pytest.raises(RegistryError):
        guard(hosts=("lab.example",)).check_host(post({"host": "other.example"}))


@pytest.mark.parametrize(
    ("more", "secure", "reason"),
    [
        ({}, False, None),
        ({"origin": "http://127.0.0.1:80"}, False, None),
        ({"origin": "https://127.0.0.1:80"}, True, None),
        ({"origin": "http://127.0.0.1:80"}, True, Reason.PERMISSION_DENIED),
        ({"origin": "http://evil.example"}, False, Reason.PERMISSION_DENIED),
        ({"origin": "null"}, False, Reason.PERMISSION_DENIED),
        ({"content-type": "text/plain"}, False, Reason.INVALID_REQUEST),
        ({"content-type": "application/x-www-form-urlencoded"}, False, Reason.INVALID_REQUEST),
    ],
)
def test_calls_are_for_this_origins_pages(more: dict[str, str], secure: bool, reason: Reason | None) -> None:
    if reason is None:
        with guard().call(post(JSON | more, secure), "read") as caller:
            assert caller.name == "anonymous"
        return
    with pytest.raises(RegistryError) as caught, guard().call(post(JSON | more, secure), "read"):
        pass
    assert caught.value.reason is reason


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    content = ContentStore(open_store(f"file:{tmp_path / 'store'}"))
    return Journal(content, Index(tmp_path / "index.sqlite"))


def test_callers_are_those_of_the_service(journal: Journal) -> None:
    token, _ = create_token(journal, "reader", ["read"], [], "test")
    behind = guard(authenticator=Authenticator(journal, True), quotas=Quotas(QuotaLimits()))
    known = post(JSON | {"authorization": f"Bearer {token}"})
    with behind.call(known, "read") as caller:
        assert caller.name == "reader"
    for request, scope, reason in (
        (post(JSON), "read", Reason.UNAUTHENTICATED),
        (post(JSON | {"authorization": "Bearer mwt_0_x"}), "read", Reason.UNAUTHENTICATED),
        (known, "compile", Reason.PERMISSION_DENIED),
    ):
        with pytest.raises(RegistryError) as caught, behind.call(request, scope, compiling=True):
            pass
        assert caught.value.reason is reason


def test_quotas_count(journal: Journal) -> None:
    limits = QuotaLimits(calls_per_second=0.1, compiles_at_once=1)
    behind = guard(authenticator=Authenticator(journal, False), quotas=Quotas(limits, now=lambda: 0.0))
    with (
        behind.call(post(JSON), "compile", compiling=True),
        pytest.raises(RegistryError) as caught,
        behind.call(post(JSON), "compile", compiling=True),
    ):
        pass
    assert caught.value.reason is Reason.QUOTA_EXCEEDED


def test_the_lab_alone_is_on_loopback_only() -> None:
    async def make(address: str) -> None:
        Lab(address)

    for address in ("0.0.0.0:7412", "192.168.1.5:7412", "example.com:80"):
        with pytest.raises(ValueError, match="tokens"):
            asyncio.run(make(address))


def test_a_configuration_that_would_expose_it_is_refused() -> None:
    outside = LabSettings("0.0.0.0:7412")
    with pytest.raises(ValueError, match="require authentication"):
        ServerConfig(lab=outside)
    with pytest.raises(ValueError, match="give tls"):
        ServerConfig(lab=outside, authentication=Authentication("required"))
    ServerConfig(lab=outside, authentication=Authentication("required"), insecure=True)
    ServerConfig(lab=LabSettings("127.0.0.1:0"))
    with pytest.raises(ValueError, match="host:port"):
        LabSettings("7412")


# -- files and calls that are there, and those that aren't -------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/lab/../server.py", "/lab/..%2f", "/etc/passwd", "/lab//etc/passwd", "/lab/vendor/", "/lab/vendor/README.md", ""],
)
def test_no_path_leads_out(path: str) -> None:
    assert Site().answer(Request("GET", path, {})).status == 404


def test_the_page_and_its_policy() -> None:
    site = Site()
    page = site.answer(Request("GET", "/lab", {}))
    policy = page.headers["Content-Security-Policy"]
    assert page.status == 200 and b"<!doctype html>" in page.body
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert b"http://" not in page.body and b"https://" not in page.body and b"<script>" not in page.body
    assert site.answer(Request("GET", "/lab", {"if-none-match": page.headers["ETag"]})).status == 304
    assert site.answer(Request("POST", "/lab", {})).status == 405
    assert site.answer(Request("GET", "/", {})).headers["Location"] == "/lab"
    worker = site.answer(Request("GET", f"/lab/{WORKER}", {}))
    assert "'unsafe-eval'" in worker.headers["Content-Security-Policy"]
    assert site.answer(Request("GET", "/lab/vendor/ajv.min.js", {})).status == 200


@pytest.mark.parametrize(
    ("path", "method", "body", "status"),
    [
        ("/lab/api/none", "POST", b"{}", 404),
        ("/lab/api/setup", "GET", b"", 405),
        ("/lab/api/setup", "POST", b"{", 400),
        ("/lab/api/setup", "POST", b"[]", 400),
        ("/lab/api/setup", "POST", b'{"x": 1}', 400),
        ("/lab/api/setup", "POST", b"\xff", 400),
        ("/lab/api/state", "POST", b"[" * 100_000, 400),
        ("/lab/api/state", "POST", b"{}", 400),
    ],
)
async def test_bad_calls_are_told(path: str, method: str, body: bytes, status: int) -> None:
    api = Api(guard(), None, None, False)  # type: ignore[arg-type]  # they are refused before anything is asked
    answer = await api.answer(Request(method, path, JSON, body))
    assert answer.status == status and json.loads(answer.body)["error"]["message"]
