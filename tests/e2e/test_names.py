"""Names over real gRPC: publish, promote, roll back, revoke, watch; two replicas; the command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import s3_servers
from servers import TOKENIZER, running, until

from maskwright.registry.cli import main
from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server
from maskwright.workers.client import (
    ArtifactRevoked,
    CallFailed,
    CompiledSource,
    RegisteredTokenizer,
    RegistryClient,
    SourceRefused,
)

Connect = Callable[..., RegistryClient]
OTHER = b"another vocabulary " * 50


def _compile(client: RegistryClient, tokenizer: RegisteredTokenizer, source: str = "x") -> CompiledSource:
    return client.compile(source, tokenizer.fingerprint, kind="regex")


def _reason(call: Callable[[], object]) -> str:
    with pytest.raises(CallFailed) as caught:
        call()
    return caught.value.reason


@pytest.fixture
def two(config: ServerConfig, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two replicas over one store."""
    config = replace(config, store=f"file:{tmp_path / 'shared-store'}", follow_seconds=0.2)
    with running(config) as (one, _), running(replace(config, data=tmp_path / "data2")) as (other, _):
        yield one, other


# -- names --------------------------------------------------------------------------------------


def test_publish_promote_resolve_roll_back(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    first, second = (_compile(client, tokenizer, s) for s in ("a", "b"))
    assert client.publish("team/tool", [first.key], "the first") == 1
    assert client.publish("team/tool", [second.key]) == 2
    client.promote("team/tool", "prod", 1, expected=0)
    revision = client.promote("team/tool", "prod", 2, expected=1)
    assert _reason(lambda: client.promote("team/tool", "prod", 2, expected=1)) == "CHANNEL_MOVED"
    found = client.resolve("team/tool:prod", min_revision=revision)
    assert (found.artifact, found.version, found.revision) == (second.artifact, 2, revision)
    assert client.resolve("team/tool@1").artifact == first.artifact
    assert client.resolve("team/tool").version == 2
    assert client.rollback("team/tool", "prod") == 1
    assert client.resolve("team/tool", channel="prod").artifact == first.artifact
    assert [(v.version, v.channels, v.note) for v in client.versions("team/tool")] == [
        (2, (), ""),
        (1, ("prod",), "the first"),
    ]
    (summary,) = client.names("team/")
    assert (summary.name, summary.latest, summary.channels) == ("team/tool", 2, {"prod": 1})


def test_what_isnt_there(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    compiled = _compile(client, tokenizer)
    client.publish("n", [compiled.key])
    assert _reason(lambda: client.resolve("m")) == "UNKNOWN_NAME"
    assert _reason(lambda: client.resolve("n@2")) == "UNKNOWN_VERSION"
    assert _reason(lambda: client.resolve("n:prod")) == "UNKNOWN_CHANNEL"
    assert _reason(lambda: client.resolve("n", fingerprint="0" * 64)) == "NOT_IN_VERSION"
    assert _reason(lambda: client.resolve("n", min_revision=99)) == "REVISION_TOO_LARGE"
    assert _reason(lambda: client.rollback("n", "prod")) == "UNKNOWN_CHANNEL"
    assert _reason(lambda: client.publish("N", [compiled.key])) == "INVALID_REQUEST"
    assert _reason(lambda: client.publish("n", ["0" * 64])) == "UNKNOWN_ARTIFACT"
    assert _reason(lambda: next(client.watch(after=99))) == "REVISION_TOO_LARGE"
    assert _reason(lambda: client.lease(["0" * 64], 60)) == "UNKNOWN_ARTIFACT"
    assert _reason(lambda: client.lease([compiled.artifact.hash], 1)) == "INVALID_REQUEST"
    assert client.lease([compiled.artifact.hash], 60, "mine") == "mine"


def test_a_version_for_two_vocabularies(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    other = client.register_tokenizer(OTHER, "other.json")
    compiled = [_compile(client, t) for t in (tokenizer, other)]
    client.publish("n", [c.key for c in compiled])
    assert _reason(lambda: client.resolve("n")) == "NOT_IN_VERSION"
    for one in compiled:
        assert client.resolve("n", fingerprint=one.fingerprint).key == one.key


def test_revoked_everywhere(
    server: tuple[str, Server], client: RegistryClient, tokenizer: RegisteredTokenizer, connect: Connect
) -> None:
    bad, good = (_compile(client, tokenizer, s) for s in ("bad", "good"))
    for one in (good, bad):
        client.promote("n", "prod", client.publish("n", [one.key]))
    neighbour = connect(server[0])  # shares the cache, like another process of the host
    assert client.fetch(bad.artifact, "artifact")
    client.revoke(bad.artifact.hash, "lets too much through")
    with pytest.raises(ArtifactRevoked, match="lets too much through"):
        client.resolve("n:prod")
    for one in (client, neighbour, connect("127.0.0.1:9", timeout=1.0)):
        with pytest.raises(ArtifactRevoked):
            one.fetch(bad.artifact, "artifact")
    elsewhere = connect(server[0], cache="elsewhere")
    with pytest.raises(ArtifactRevoked):
        elsewhere.fetch(bad.artifact, "artifact")
    with pytest.raises(ArtifactRevoked):
        _compile(elsewhere, tokenizer, "bad")
    assert client.rollback("n", "prod") == 1
    assert client.resolve("n:prod").artifact == good.artifact
    assert [v.revoked for v in client.versions("n")] == [True, False]


def test_request_id_makes_a_change_once(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    key = _compile(client, tokenizer).key
    assert [client.publish("n", [key], request_id="r") for _ in range(3)] == [1, 1, 1]
    assert _reason(lambda: client.publish("m", [key], request_id="r")) == "REQUEST_ID_REUSED"
    assert _reason(lambda: client.promote("n", "prod", 1, request_id="a b")) == "INVALID_REQUEST"


def _is_revoked(client: RegistryClient, compiled: CompiledSource) -> bool:
    try:
        client.fetch(compiled.artifact, "artifact")
    except ArtifactRevoked:
        return True
    client.cache.path("artifact", compiled.artifact.hash).unlink()
    return False


def test_retire(
    client: RegistryClient,
    tokenizer: RegisteredTokenizer,
    server: tuple[str, Server],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for source in "abcde":
        client.publish("n", [_compile(client, tokenizer, source).key])
    client.promote("n", "prod", 4)
    client.pin("n", 3)
    revision = client.retire("n", [1, 2], request_id="r")
    assert client.retire("n", [2, 1], request_id="r") == revision
    assert [v.version for v in client.versions("n")] == [5, 4, 3]
    for used in (3, 4):
        assert _reason(lambda used=used: client.retire("n", [5, used])) == "VERSION_IN_USE"
    assert _reason(lambda: client.retire("n", [1])) == "UNKNOWN_VERSION"
    assert _reason(lambda: client.retire("m", [1])) == "UNKNOWN_NAME"
    assert _reason(lambda: client.retire("n", [])) == "INVALID_REQUEST"
    assert _reason(lambda: client.resolve("n@1")) == "UNKNOWN_VERSION"
    _, change = next(client.watch(after=revision - 1))
    assert change is not None
    assert (change.kind, change.name, change.versions) == ("retire", "default/n", (1, 2))
    assert main(["registry", "retire", "n", "5", "--server", server[0]]) == 0
    assert main(["registry", "retire", "n", "4", "--server", server[0]]) == 1
    capsys.readouterr()
    # Numbers aren't used again.
    assert client.publish("n", [_compile(client, tokenizer, "f").key]) == 6


# -- watch --------------------------------------------------------------------------------------


def test_watch_tells_what_was_and_what_comes_and_resumes(
    client: RegistryClient, tokenizer: RegisteredTokenizer, connect: Connect, server: tuple[str, Server]
) -> None:
    key = _compile(client, tokenizer).key
    client.publish("n", [key])
    client.publish("other", [key])
    stream = client.watch(names=["n"])
    assert [(r, c and c.kind) for r, c in (next(stream), next(stream))] == [(1, "publish"), (2, None)]
    waiting = threading.Timer(0.3, lambda: connect(server[0]).promote("n", "prod", 1))
    waiting.start()
    revision, change = next(stream)
    assert change is not None
    assert (revision, change.kind, change.name, change.channel, change.version) == (
        3,
        "promote",
        "default/n",
        "prod",
        1,
    )
    stream.close()
    client.revoke(_compile(client, tokenizer).artifact.hash, "why")
    again = client.watch(after=revision, names=["n"])
    _, revoked = next(again)
    assert revoked is not None
    assert (revoked.kind, revoked.reason) == ("revoke", "why")
    again.close()


def test_watches_dont_hold_up_a_drain(config: ServerConfig, connect: Connect) -> None:
    with running(replace(config, drain_seconds=600.0)) as (address, server):
        client = connect(address)
        ended = threading.Event()

        def watch() -> None:
            list(client.watch())
            ended.set()

        threading.Thread(target=watch, daemon=True).start()
        until(lambda: server.registry.watching)
    assert ended.wait(60)


# -- replicas -----------------------------------------------------------------------------------


def test_replicas_follow_each_other(two: tuple[str, str], connect: Connect) -> None:
    one, other = connect(two[0], cache="c1"), connect(two[1], cache="c2")
    tokenizer = one.register_tokenizer(TOKENIZER)
    compiled = _compile(one, tokenizer)
    stream = other.watch()
    assert next(stream) == (0, None)
    one.publish("n", [compiled.key])
    revision = one.promote("n", "prod", 1)
    told: list[int] = []
    while len(told) < 2:
        told += [change.revision for _, change in [next(stream)] if change is not None]
    assert told == [1, 2]
    stream.close()
    # Without waiting: by the revision that the other is known to have, or because it isn't known here yet.
    revision = one.promote("n", "beta", 1)
    assert other.resolve("n:beta", min_revision=revision).artifact == compiled.artifact
    one.revoke(compiled.artifact.hash, "why")
    until(lambda: _is_revoked(other, compiled))


def test_replicas_race_on_a_channel(two: tuple[str, str], connect: Connect) -> None:
    clients = [connect(address, cache=address) for address in two]
    tokenizer = clients[0].register_tokenizer(TOKENIZER)
    key = _compile(clients[0], tokenizer).key
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda n: clients[n % 2].publish("n", [key]), range(16)))
    assert sorted(versions) == list(range(1, 17))

    def promote(number: int) -> bool:
        try:
            clients[number % 2].promote("n", "prod", number + 1, expected=0)
        except CallFailed as error:
            assert error.reason == "CHANNEL_MOVED"
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(promote, range(8)))
    assert won.count(True) == 1
    for client in clients:
        assert client.resolve("n:prod", min_revision=17).version == won.index(True) + 1


def test_lost_index_and_other_machine(config: ServerConfig, connect: Connect, tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'shared-store'}"
    with running(replace(config, store=store)) as (address, _):
        client = connect(address)
        compiled = _compile(client, client.register_tokenizer(TOKENIZER))
        client.publish("n", [compiled.key])
        client.promote("n", "prod", 1)
    with running(replace(config, store=store, data=tmp_path / "new-machine")) as (address, _):
        assert connect(address).resolve("n:prod").artifact == compiled.artifact


# -- S3 -----------------------------------------------------------------------------------------


def test_two_replicas_over_a_bucket(
    config: ServerConfig, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_servers.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_servers.ministack(tmp_path) as endpoint:
        s3_servers.make_bucket(endpoint, "registry")
        location = f"s3://registry/fleet/?endpoint={endpoint}&addressing=path"
        config = replace(config, store=location, follow_seconds=0.2)
        with running(config) as (one, _), running(replace(config, data=tmp_path / "d2")) as (other, _):
            first, second = connect(one, cache="c1"), connect(other, cache="c2")
            tokenizer = first.register_tokenizer(TOKENIZER)
            with ThreadPoolExecutor(2) as pool:
                raced = list(pool.map(lambda c: _compile(c, tokenizer, "slow 0.2"), (first, second)))
            assert raced[0].artifact == raced[1].artifact
            version = first.publish("n", [raced[0].key])
            revision = second.promote("n", "prod", version)
            found = first.resolve("n:prod", min_revision=revision)
            assert second.fetch(found.artifact, "artifact") == first.fetch(found.artifact, "artifact")


# -- precompile, explain ------------------------------------------------------------------------


def test_precompile_streams_every_result(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    sources = ["a", "refuse 1", "b", "crash"]
    items = [{"source": s, "fingerprint": tokenizer.fingerprint, "kind": "regex"} for s in sources]
    done = dict(client.precompile(items))
    assert sorted(done) == [0, 1, 2, 3]
    assert isinstance(done[0], CompiledSource)
    assert isinstance(done[1], SourceRefused)
    assert done[1].diagnostics[0]["code"] == "UNSUPPORTED_KEYWORD"
    assert isinstance(done[3], CallFailed)
    assert done[3].reason == "COMPILER_CRASHED"
    assert _reason(lambda: list(client.precompile([items[0]] * 1001))) == "INVALID_REQUEST"


def test_explain_keeps_nothing(client: RegistryClient, tokenizer: RegisteredTokenizer) -> None:
    accepted, diagnostics, report = client.explain("xyz", tokenizer.fingerprint, kind="regex")
    assert (accepted, diagnostics, report) == (True, [], {"states": 3})
    accepted, diagnostics, _ = client.explain("refuse 30", tokenizer.fingerprint, kind="regex")
    assert (accepted, len(diagnostics)) == (False, 30)
    assert not client.compile("xyz", tokenizer.fingerprint, kind="regex").cached
    assert _reason(lambda: client.explain("crash", tokenizer.fingerprint, kind="regex")) == "COMPILER_CRASHED"


# -- command line -------------------------------------------------------------------------------


def test_command_line(
    server: tuple[str, Server],
    config: ServerConfig,
    client: RegistryClient,
    tokenizer: RegisteredTokenizer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    compiled = [_compile(client, tokenizer, s) for s in ("a", "b")]

    def run(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
        assert main(["registry", *arguments, "--json"]) == code, arguments
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    at, on = ["--server", server[0]], ["--data", str(config.data)]
    for number, one in enumerate(compiled, 1):
        assert run("publish", "n", one.key, "--note", "hello", *at) == [{"name": "n", "version": number}]
        run("promote", "n", "prod", str(number), *at)
    assert run("health", *at) == [{"status": "SERVING"}]
    assert run("names", *at)[0]["names"][0]["channels"] == {"prod": 2}
    assert run("resolve", "n:prod", *at)[0]["artifact"] == compiled[1].artifact.hash
    assert run("rollback", "n", "prod", *at) == [{"version": 1}]
    run("pin", "n", "2", *at)
    assert run("unpin", "n", "2", *at)[0]["pinned"] is False
    run("revoke", compiled[1].artifact.hash, "--reason", "why", *at)
    assert [v["revoked"] for v in run("versions", "n", *at)[0]["versions"]] == [True, False]
    kinds = ["publish", "promote", "publish", "promote", "rollback", "pin", "pin", "revoke"]
    assert [c["kind"] for c in run("watch", "--once", *at)] == kinds
    assert [e["kind"] for e in run("audit", *on)] == kinds
    assert run("audit", "--after", "7", *on)[0]["fields"]["reason"] == "why"
    assert run("promote", "n", "prod", "9", *at, code=1)[0]["reason"] == "UNKNOWN_VERSION"
    assert "127.0.0.1:9" in run("names", "--server", "127.0.0.1:9", code=4)[0]["error"]
    assert run("reindex", *on) == [{"rows": 3 + 8 + 5, "revision": 8}]
    planned = run("gc", "--keep-versions", "1", "--keep-days", "0", *on)[0]
    assert (planned["applied"], planned["retired"]) == (False, {})
    assert run("gc", "--grace-hours", "0", *on, code=2)
    for plain in (["names", *at], ["versions", "n", *at], ["watch", "--once", *at], ["audit", *on], ["gc", *on]):
        assert main(["registry", *plain]) == 0
        assert capsys.readouterr().out
