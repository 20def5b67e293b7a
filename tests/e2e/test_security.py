"""TLS, tokens, scopes, namespaces and quotas, over real connections."""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from certificates import Authority
from servers import TOKENIZER, running, until

from maskwright.registry.cli import main
from maskwright.registry.config import Authentication, CertificateRule, LabSettings, QuotaLimits, ServerConfig, TlsFiles
from maskwright.registry.security.tokens import create_token, remove_token
from maskwright.registry.server import SERVICES, Server
from maskwright.registry.service.calls import SCOPES
from maskwright.v1 import compiler_pb2, compiler_pb2_grpc, registry_pb2, tokenizer_pb2
from maskwright.workers.client import CallFailed, Credentials, DiskCache, RegistryClient, ServiceUnavailable
from maskwright.workers.client.messages import compile_request

REQUIRED = Authentication("required")


@pytest.fixture
def reach(tmp_path: Path) -> Callable[..., RegistryClient]:
    def make(address: str, attempts: int = 1, **fields: object) -> RegistryClient:
        credentials = Credentials(**fields)  # type: ignore[arg-type]
        cache = DiskCache(tmp_path / "cache")
        return RegistryClient(address, cache=cache, attempts=attempts, timeout=20, credentials=credentials)

    return make


Reach = Callable[..., RegistryClient]


def _failure(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(CallFailed) as caught:
        call()
    return caught.value.code, caught.value.reason


def _token(server: Server, *scopes: str, namespaces: tuple[str, ...] = (), seconds: float | None = None) -> str:
    return create_token(server.journal, "ann", scopes, namespaces, "test", seconds)[0]


# -- tokens -------------------------------------------------------------------------------------


def test_every_method_has_a_scope() -> None:
    services = [
        m.DESCRIPTOR.services_by_name[n.rpartition(".")[2]]
        for m, n in zip((compiler_pb2, registry_pb2, tokenizer_pb2), SERVICES, strict=True)
    ]
    methods = {f"/{s.full_name}/{m.name}" for s in services for m in s.methods}
    assert methods == set(SCOPES)


def test_without_a_valid_token_nothing_is_told(config: ServerConfig, reach: Reach) -> None:
    with running(replace(config, authentication=REQUIRED)) as (address, server):
        good = _token(server, "read")
        id_ = good.split("_")[1]
        over = _token(server, "read", seconds=-1)
        for token in ("", "x", good[:-1], good[:-1] + ("A" if good[-1] != "A" else "B"), over, f"mwt_{id_}_{'A' * 43}"):
            assert _failure(reach(address, token=token).capabilities) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
        assert reach(address, token=good).capabilities()["names"]
        remove_token(server.journal, id_, "test")
        assert _failure(reach(address, token=good).capabilities)[0] == "UNAUTHENTICATED"


def test_what_cant_be_parsed_is_a_request_like_others(
    config: ServerConfig, reach: Reach, caplog: pytest.LogCaptureFixture
) -> None:
    """Of any method: who calls is asked first, the answer has a reason, and the log no stack trace."""
    with running(replace(config, authentication=REQUIRED)) as (address, server):
        bearer = (("authorization", f"Bearer {_token(server, *set(SCOPES.values()))}"),)
        with grpc.insecure_channel(address) as channel:

            def answer(method: str, metadata: tuple[tuple[str, str], ...]) -> str:
                uploads = method.endswith("/Register")
                call = (channel.stream_stream if uploads else channel.unary_stream)(method)
                sent = iter([b"\xff\xff"]) if uploads else b"\xff\xff"
                with pytest.raises(grpc.RpcError) as caught:
                    list(call(sent, metadata=metadata, timeout=30))
                return str(caught.value.code().name)

            assert {answer(method, ()) for method in SCOPES} == {"UNAUTHENTICATED"}
            assert {answer(method, bearer) for method in SCOPES} == {"INVALID_ARGUMENT"}
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


def test_a_token_that_is_sent_must_be_valid(server: tuple[str, Server], reach: Reach) -> None:
    assert _failure(reach(server[0], token="old").capabilities)[0] == "UNAUTHENTICATED"
    assert reach(server[0]).capabilities()


def test_scopes_and_namespaces(config: ServerConfig, reach: Reach) -> None:
    with running(replace(config, authentication=REQUIRED)) as (address, server):
        everything = reach(address, token=_token(server, "read", "compile", "publish", "admin"))
        fingerprint = everything.register_tokenizer(TOKENIZER).fingerprint
        compiled = everything.compile("x", fingerprint, kind="regex")
        everything.publish("blue/n", [compiled.key])
        reader = reach(address, token=_token(server, "read"))
        assert reader.resolve("blue/n").artifact == compiled.artifact
        assert _failure(lambda: reader.compile("y", fingerprint, kind="regex")) == (
            "PERMISSION_DENIED",
            "PERMISSION_DENIED",
        )
        assert _failure(lambda: reader.publish("blue/n", [compiled.key]))[0] == "PERMISSION_DENIED"
        assert _failure(lambda: reader.register_tokenizer(b"other"))[0] == "PERMISSION_DENIED"
        red = reach(address, token=_token(server, "read", "publish", namespaces=("red", "red-*")))
        assert red.publish("red-2/n", [compiled.key]) == 1
        assert _failure(lambda: red.publish("blue/n", [compiled.key]))[0] == "PERMISSION_DENIED"
        assert _failure(lambda: red.resolve("blue/n"))[0] == "PERMISSION_DENIED"
        assert _failure(lambda: red.versions("blue/n"))[0] == "PERMISSION_DENIED"
        assert _failure(lambda: red.revoke(compiled.artifact.hash, "x"))[0] == "PERMISSION_DENIED"
        assert [n.name for n in red.names()] == ["red-2/n"]
        stream = red.watch()
        seen = []
        for _, change in stream:
            if change is None:
                break
            seen.append((change.name, change.by))
        assert seen == [("red-2/n", "ann")]


def test_tokens_are_hashed_at_rest_and_in_no_log(
    config: ServerConfig, reach: Reach, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with running(replace(config, authentication=REQUIRED)) as (address, server):
        token = _token(server, "read", "compile")
        client = reach(address, token=token)
        client.register_tokenizer(TOKENIZER)
        _failure(lambda: client.publish("n", ["0" * 64]))
        _failure(reach(address, token=token + "x").capabilities)
        assert token not in repr(Credentials(token=token))
    secret = token.split("_", 2)[2].encode()
    files = [p for p in config.data.rglob("*") if p.is_file()]
    assert files
    assert not [p for p in files if secret in p.read_bytes()]
    assert token not in caplog.text
    assert "RegistryService/Publish by ann: PERMISSION_DENIED" in caplog.text


def test_tokens_by_command_line(config: ServerConfig, reach: Reach, capsys: pytest.CaptureFixture[str]) -> None:
    on = ["--data", str(config.data), "--json"]
    create = ["registry", "token-create", "bot", "--scope", "read", "--namespace", "red", "--expires-days", "1", *on]
    assert main(create) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["registry", "token-create", "bot", "--scope", "everything", *on]) == 2
    capsys.readouterr()
    with running(replace(config, authentication=REQUIRED, follow_seconds=0.1)) as (address, _):
        client = reach(address, token=made["token"])
        assert client.capabilities()
        main(["registry", "token-list", *on])
        (listed,) = json.loads(capsys.readouterr().out)["tokens"]
        assert (listed["caller"], listed["scopes"], listed["id"]) == ("bot", ["read"], made["id"])
        assert "token_hash" not in listed
        assert main(["registry", "token-remove", made["id"], *on]) == 0
        until(lambda: _code(client.capabilities) == "UNAUTHENTICATED")
    assert main(["registry", "token-remove", made["id"], *on]) == 2


def test_a_token_isnt_sent_in_the_clear() -> None:
    with pytest.raises(ValueError, match="without TLS"):
        RegistryClient("registry.example:7411", credentials=Credentials(token="t"))


@pytest.mark.parametrize("days", ["-1", "0", "nan", "inf"])
def test_tokens_end_at_a_time_to_come(config: ServerConfig, capsys: pytest.CaptureFixture[str], days: str) -> None:
    on = ["--data", str(config.data)]
    with pytest.raises(SystemExit) as caught:
        main(["registry", "token-create", "bot", "--scope", "read", "--expires-days", days, *on])
    assert caught.value.code == 2
    assert "--expires-days" in capsys.readouterr().err
    assert main(["registry", "token-create", "bot", "--scope", "read", "--expires-days", "0.5", *on]) == 0
    capsys.readouterr()
    assert main(["registry", "token-list", *on]) == 0
    assert " until 20" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["audit", "token-list", "reindex", "gc"])
def test_upkeep_makes_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    missing = tmp_path / "misspelt"
    assert main(["registry", command, "--data", str(missing)]) == 3
    assert str(missing) in capsys.readouterr().err
    assert not missing.exists()


# -- TLS ----------------------------------------------------------------------------------------


def test_tls(config: ServerConfig, reach: Reach, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    files = TlsFiles(*authority.issue("server"))
    with running(replace(config, tls=files)) as (address, _):
        assert reach(address, tls=True, authority=str(authority.certificate)).capabilities()
        stranger = Authority(tmp_path / "other")
        for wrong in ({}, {"tls": True, "authority": str(stranger.certificate)}):
            with pytest.raises(ServiceUnavailable):
                reach(address, **wrong).capabilities()


def test_mutual_tls_names_the_caller(config: ServerConfig, reach: Reach, tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "tls"), Authority(tmp_path / "other")
    files = TlsFiles(*authority.issue("server"), str(authority.certificate), require_client=True)
    rules = (
        CertificateRule("worker-*", ("read",)),
        CertificateRule("deploy.example", ("read", "compile", "publish"), ("red",)),
    )
    secured = replace(config, tls=files, authentication=Authentication("required", rules))
    with running(secured) as (address, server):

        def client(certificate: str, key: str) -> RegistryClient:
            given = {"certificate": certificate, "key": key, "authority": str(authority.certificate)}
            return reach(address, tls=True, **given)

        worker, deployer = client(*authority.issue("worker-7")), client(*authority.issue("deploy.example"))
        fingerprint = deployer.register_tokenizer(TOKENIZER).fingerprint
        key = deployer.compile("x", fingerprint, kind="regex").key
        assert deployer.publish("red/n", [key]) == 1
        assert worker.resolve("red/n").key == key
        assert _failure(lambda: worker.publish("red/n", [key]))[0] == "PERMISSION_DENIED"
        assert _failure(lambda: deployer.publish("blue/n", [key]))[0] == "PERMISSION_DENIED"
        assert server.journal.entries(0)[0].by == "deploy.example"
        assert _failure(client(*authority.issue("unknown")).capabilities)[0] == "UNAUTHENTICATED"
        nameless = reach(address, tls=True, authority=str(authority.certificate))
        for wrong in (nameless, client(*stranger.issue("worker-7"))):
            with pytest.raises(ServiceUnavailable):
                wrong.capabilities()


def test_rotated_certificates_are_taken_without_a_restart(config: ServerConfig, reach: Reach, tmp_path: Path) -> None:
    authority, later = Authority(tmp_path / "tls"), Authority(tmp_path / "later")
    certificate, key = authority.issue("server")
    with running(replace(config, tls=TlsFiles(certificate, key))) as (address, _):
        old = reach(address, tls=True, authority=str(authority.certificate))
        assert old.capabilities()
        new_certificate, new_key = later.issue("server")
        # Halfway: the pair doesn't fit, so the old one stays.
        Path(certificate).write_bytes(Path(new_certificate).read_bytes())
        assert reach(address, tls=True, authority=str(authority.certificate)).capabilities()
        Path(key).write_bytes(Path(new_key).read_bytes())
        assert reach(address, tls=True, authority=str(later.certificate)).capabilities()
        with pytest.raises(ServiceUnavailable):
            reach(address, tls=True, authority=str(authority.certificate)).capabilities()
        assert old.capabilities()  # a connection that's open goes on


def _page(url: str, authority: Authority, client: tuple[str, str] | None = None) -> int:
    """The status of a page over a connection of its own."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if client is not None:
        context.load_cert_chain(*client)
    with urllib.request.urlopen(url, context=context, timeout=60) as answer:
        return int(answer.status)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])  # with and without a server name in the handshake
def test_the_labs_page_takes_rotated_certificates(config: ServerConfig, tmp_path: Path, host: str) -> None:
    authority, later = Authority(tmp_path / "tls"), Authority(tmp_path / "later")
    certificate, key = authority.issue("server")
    with_lab = replace(config, tls=TlsFiles(certificate, key), lab=LabSettings("127.0.0.1:0"))
    with running(with_lab) as (_, server):
        page = server.lab_page.replace("127.0.0.1", host)
        trusts = ssl.create_default_context(cafile=str(authority.certificate))
        kept = http.client.HTTPSConnection(page.split("/")[2], context=trusts, timeout=60)
        kept.request("GET", "/lab")
        assert kept.getresponse().read()
        new_certificate, new_key = later.issue("server")
        Path(certificate).write_bytes(Path(new_certificate).read_bytes())
        assert _page(page, authority) == 200  # halfway
        Path(key).unlink()
        assert _page(page, authority) == 200
        Path(key).write_bytes(Path(new_key).read_bytes())
        assert _page(page, later) == 200
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            _page(page, authority)
        kept.request("GET", "/lab")
        assert kept.getresponse().read()  # a connection that's open goes on
        kept.close()


def test_a_clients_authority_is_rotated_too(config: ServerConfig, reach: Reach, tmp_path: Path) -> None:
    """For gRPC and the page: whose authority was taken away is refused at the next handshake, resumed or not."""
    server_authority = Authority(tmp_path / "tls")
    before, after = Authority(tmp_path / "before"), Authority(tmp_path / "after")
    believed = tmp_path / "believed.pem"
    believed.write_bytes(before.certificate.read_bytes())
    files = TlsFiles(*server_authority.issue("server"), str(believed), require_client=True)
    old, new = before.issue("worker"), after.issue("worker")
    with running(replace(config, tls=files, lab=LabSettings("127.0.0.1:0"))) as (address, server):

        def call(pair: tuple[str, str]) -> object:
            given = {"certificate": pair[0], "key": pair[1], "authority": str(server_authority.certificate)}
            return reach(address, tls=True, **given).capabilities()

        assert call(old)
        assert _page(server.lab_page, server_authority, old) == 200
        refused = (urllib.error.URLError, ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)
        with pytest.raises(refused):
            _page(server.lab_page, server_authority, new)
        believed.write_text("no certificate")
        assert call(old)
        assert _page(server.lab_page, server_authority, old) == 200
        believed.write_bytes(after.certificate.read_bytes())
        assert call(new)
        assert _page(server.lab_page, server_authority, new) == 200
        with pytest.raises(ServiceUnavailable):
            call(old)
        with pytest.raises(refused):
            _page(server.lab_page, server_authority, old)


def test_a_client_takes_rotated_files(config: ServerConfig, reach: Reach, tmp_path: Path) -> None:
    """Its certificate, the authorities it believes and its token, in the same client."""
    authority, believed = Authority(tmp_path / "tls"), tmp_path / "believed.pem"
    certificate, key = authority.issue("server")
    believed.write_bytes(authority.certificate.read_bytes())
    files = TlsFiles(certificate, key, str(believed), require_client=True)
    with running(replace(config, tls=files, authentication=REQUIRED)) as (address, server):
        token = tmp_path / "token"
        token.write_text(_token(server, "read"))
        pair = authority.issue("worker")
        named = {"certificate": pair[0], "key": pair[1], "authority": str(believed), "token_file": str(token)}
        client = reach(address, tls=True, **named)
        assert client.capabilities()
        token.write_text("no\ntoken")
        assert client.capabilities()
        token.write_text("mw_unknown_0")
        assert _failure(client.capabilities)[0] == "UNAUTHENTICATED"
        token.write_text(_token(server, "read"))
        assert client.capabilities()
        later = Authority(tmp_path / "later")
        authorities = [a.certificate.read_bytes() for a in (authority, later)]
        believed.write_bytes(b"".join(authorities))
        for name, place in (("server", (certificate, key)), ("worker", pair)):
            for source, target in zip(later.issue(name), place, strict=True):
                Path(source).replace(target)
                assert client.capabilities()  # halfway, too
        believed.write_bytes(authorities[1])
        assert client.capabilities()
        assert len(client._retired) == 3  # both authorities, the worker's pair, one authority
        with pytest.raises(ServiceUnavailable):
            reach(address, tls=True, authority=str(authority.certificate)).capabilities()
        client.close()


def test_certificates_that_cant_be_used_stop_the_start(config: ServerConfig, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, _ = authority.issue("one")
    _, key = authority.issue("two")
    for files in (TlsFiles(certificate, key), TlsFiles(certificate, str(tmp_path / "none"))):
        with pytest.raises(OSError), running(replace(config, tls=files)):
            pass


def test_what_is_wrong_with_a_clients_files_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("one")
    _, other = authority.issue("two")
    missing = str(tmp_path / "none.pem")
    for given, named in (
        ({"authority": missing}, missing),
        ({"authority": key}, key),
        ({"certificate": certificate, "key": missing}, missing),
        ({"certificate": certificate, "key": other}, f"{certificate} and {other}: key values mismatch"),
        ({"certificate": certificate}, "need each other"),
    ):
        with pytest.raises((OSError, ValueError)) as caught:
            RegistryClient("127.0.0.1:9", credentials=Credentials(tls=True, **given))
        assert named in str(caught.value)


# -- quotas -------------------------------------------------------------------------------------


def test_quotas_are_each_callers_own(config: ServerConfig, reach: Reach) -> None:
    limits = QuotaLimits(calls_per_second=0.001, compiles_at_once=1)
    with running(replace(config, quotas=limits)) as (address, server):
        greedy = reach(address, token=_token(server, "read"))
        codes = [_code(greedy.capabilities) for _ in range(4)]
        assert codes == ["OK", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"]
        other, _ = create_token(server.journal, "ben", ["read"], [], "test")
        assert _code(reach(address, token=other).capabilities) == "OK"
        with pytest.raises(CallFailed) as caught:
            greedy.capabilities()
        assert (caught.value.reason, caught.value.metadata["quota"]) == ("QUOTA_EXCEEDED", "calls_per_second")
        assert caught.value.retry_after


def test_fetched_bytes_are_counted(config: ServerConfig, reach: Reach) -> None:
    with running(replace(config, quotas=QuotaLimits(fetch_bytes_per_second=1.0))) as (address, server):
        digests = [server.catalog.content.put(bytes([n]) * 8000) for n in range(2)]
        client = reach(address)
        assert client.fetch(digests[0].hash)
        assert _failure(lambda: client.fetch(digests[1].hash)) == ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")


def test_compiles_at_once(config: ServerConfig, reach: Reach, compilations: Callable[[], int], gate: Path) -> None:
    with running(replace(config, quotas=QuotaLimits(compiles_at_once=1))) as (address, server):
        client = reach(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        known = client.compile("known", fingerprint, kind="regex")
        slow = f"wait {gate}"
        with ThreadPoolExecutor(1) as pool, grpc.insecure_channel(address) as channel:
            request = compile_request(slow, fingerprint, kind="regex")
            first = compiler_pb2_grpc.CompilerServiceStub(channel).Compile.future(request)
            until(compilations)
            joined = pool.submit(client.compile, slow, fingerprint, kind="regex")
            until(lambda: server.flow.callers() == 2)
            assert client.compile("known", fingerprint, kind="regex") == replace(known, cached=True)
            for other in (client.compile, client.explain):
                assert _failure(lambda o=other: o("y", fingerprint, kind="regex"))[1] == "QUOTA_EXCEEDED"
            first.cancel()  # who began it has gone; it's still theirs
            until(lambda: server.flow.callers() == 1)
            assert _failure(lambda: client.compile("y", fingerprint, kind="regex"))[1] == "QUOTA_EXCEEDED"
            gate.touch()
            assert joined.result().artifact.size
        assert client.compile("y", fingerprint, kind="regex").key


def test_a_compilation_that_was_given_up_isnt_counted(config: ServerConfig, reach: Reach, gate: Path) -> None:
    with running(replace(config, quotas=QuotaLimits(compiles_at_once=1))) as (address, server):
        client = reach(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        with grpc.insecure_channel(address) as channel:
            request = compile_request(f"wait {gate}", fingerprint, kind="regex")
            given_up = compiler_pb2_grpc.CompilerServiceStub(channel).Compile.future(request)
            until(lambda: server.flow.callers() == 1)
            given_up.cancel()
            until(lambda: server.flow.callers() == 0)
        until(lambda: _code(lambda: client.compile("y", fingerprint, kind="regex")) == "OK")


def _code(call: Callable[[], object]) -> str:
    try:
        call()
    except CallFailed as error:
        return error.code
    return grpc.StatusCode.OK.name
