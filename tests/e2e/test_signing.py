"""Signed artifacts: kept beside them, demanded by clients that trust keys, by command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from servers import TOKENIZER, lasting_address, running

from maskwright.registry.cli import main
from maskwright.registry.config import ServerConfig, Signing
from maskwright.registry.server import Server
from maskwright.workers import Matcher
from maskwright.workers.client import (
    ArtifactRevoked,
    ArtifactUntrusted,
    AsyncRegistryClient,
    CallFailed,
    ChannelFollower,
    CompiledSource,
    DiskCache,
    KeyFileError,
    RegisteredTokenizer,
    RegistryClient,
    ServiceUnavailable,
    Signature,
    SigningKey,
    TrustedKeys,
)

Trusting = Callable[..., RegistryClient]
DEMO = Path(str(files("maskwright.compiler") / "data" / "demo.tokenizer.json"))
OURS, THEIRS = SigningKey.generate(), SigningKey.generate()


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[Trusting]:
    """Makes clients that trust keys."""
    made: list[RegistryClient] = []

    def make(address: str, *keys: SigningKey, cache: str = "trusting", timeout: float = 30.0) -> RegistryClient:
        trusted = TrustedKeys(k.public_key for k in keys)
        made.append(
            RegistryClient(
                address, cache=DiskCache(tmp_path / cache), attempts=1, timeout=timeout, trusted_keys=trusted
            )
        )
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def compiled(client: RegistryClient, tokenizer: RegisteredTokenizer) -> CompiledSource:
    return client.compile("x", tokenizer.fingerprint, kind="regex")


def _reason(call: Callable[[], object]) -> str:
    with pytest.raises(CallFailed) as caught:
        call()
    return caught.value.reason


# -- clients ------------------------------------------------------------------------------------


def test_only_what_a_trusted_key_signed_is_used(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource, trusting: Trusting
) -> None:
    worker, wanted = trusting(server[0], OURS), compiled.artifact
    with pytest.raises(ArtifactUntrusted) as caught:
        worker.fetch(wanted, "artifact")
    assert (caught.value.hash, caught.value.trusted, caught.value.wrong) == (wanted.hash, (OURS.key_id,), ())
    client.add_signature(wanted.hash, THEIRS.sign(wanted.hash))
    with pytest.raises(ArtifactUntrusted):
        worker.fetch(wanted, "artifact")
    client.add_signature(wanted.hash, OURS.sign(wanted.hash))
    assert len(worker.fetch(wanted, "artifact")) == wanted.size
    # Packs are named by the artifact's header, so they need no signature of their own.
    assert worker.fetch(compiled.pack, "pack")
    assert client.fetch(wanted, "artifact")


def test_what_is_cached_is_checked_too(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource, trusting: Trusting
) -> None:
    wanted = compiled.artifact
    client.add_signature(wanted.hash, OURS.sign(wanted.hash))
    assert trusting(server[0], OURS).fetch(wanted, "artifact")
    # With the registry down: the signature is kept beside the artifact.
    assert trusting("127.0.0.1:9", OURS, timeout=1.0).fetch(wanted, "artifact")
    with pytest.raises(ServiceUnavailable):
        trusting("127.0.0.1:9", THEIRS, timeout=1.0).fetch(wanted, "artifact")
    with pytest.raises(ArtifactUntrusted):
        trusting(server[0], THEIRS).fetch(wanted, "artifact")
    # A cache that somebody wrote into.
    cache = trusting(server[0], OURS).cache
    forged = Signature(OURS.key_id, OURS.public_key, bytes(64))
    cache.put_signatures(wanted.hash, [forged])
    with pytest.raises(ServiceUnavailable):
        trusting("127.0.0.1:9", OURS, timeout=1.0).fetch(wanted, "artifact")
    assert trusting(server[0], OURS).fetch(wanted, "artifact")
    assert cache.find_signatures(wanted.hash) == [OURS.sign(wanted.hash)]


def test_a_registry_that_lies_is_found_out(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource, trusting: Trusting
) -> None:
    """Records that an attacker put into the bucket, past the server's check."""
    wanted, put = compiled.artifact.hash, server[1].catalog.content.put_record
    other = "0" * 64
    for wrong in (
        Signature(OURS.key_id, OURS.public_key, OURS.sign(other).signature),
        Signature(OURS.key_id, THEIRS.public_key, THEIRS.sign(wanted).signature),
    ):
        server[1].catalog.content.store.delete(f"signatures/{wanted}/{OURS.key_id}")
        put("signatures", f"{wanted}/{OURS.key_id}", wrong.to_json())
        with pytest.raises(ArtifactUntrusted) as caught:
            trusting(server[0], OURS).fetch(wanted, "artifact")
        assert caught.value.wrong == (OURS.key_id,)


def test_rotation(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource, trusting: Trusting
) -> None:
    wanted = compiled.artifact
    client.add_signature(wanted.hash, OURS.sign(wanted.hash))
    both = trusting(server[0], OURS, THEIRS, cache="both")
    assert both.fetch(wanted, "artifact")
    assert _is_refused(trusting(server[0], THEIRS, cache="new"), wanted.hash)
    client.add_signature(wanted.hash, THEIRS.sign(wanted.hash))
    assert trusting(server[0], THEIRS, cache="new").fetch(wanted, "artifact")
    assert {s.key_id for s in client.signatures(wanted.hash, [OURS.key_id, THEIRS.key_id])} == {
        OURS.key_id,
        THEIRS.key_id,
    }


def test_a_server_takes_a_new_key_without_a_restart(
    config: ServerConfig, connect: Callable[..., RegistryClient], tmp_path: Path
) -> None:
    path = tmp_path / "server.pem"
    OURS.save(path)
    with running(replace(config, signing=Signing(str(path)))) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint

        def signers(source: str) -> set[str]:
            hash_ = client.compile(source, fingerprint, kind="regex").artifact.hash
            return {s.key_id for s in client.signatures(hash_, [OURS.key_id, THEIRS.key_id])}

        assert signers("a") == {OURS.key_id}
        path.write_text("no key")
        assert signers("b") == {OURS.key_id}
        THEIRS.save(tmp_path / "new.pem")
        (tmp_path / "new.pem").replace(path)
        assert signers("c") == {THEIRS.key_id}
        assert signers("a") == {OURS.key_id, THEIRS.key_id}
        assert client.capabilities()["signing_key_id"] == THEIRS.key_id


def _is_refused(client: RegistryClient, hash_: str) -> bool:
    try:
        client.fetch(hash_, "artifact")
    except ArtifactUntrusted:
        return True
    return False


async def test_async_client_demands_signatures_too(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource, tmp_path: Path
) -> None:
    cache, trusted = DiskCache(tmp_path / "async"), TrustedKeys([OURS.public_key])
    async with AsyncRegistryClient(server[0], cache=cache, timeout=20, trusted_keys=trusted) as worker:
        with pytest.raises(ArtifactUntrusted):
            await worker.fetch(compiled.artifact, "artifact")
        client.add_signature(compiled.artifact.hash, OURS.sign(compiled.artifact.hash))
        assert len(await worker.fetch(compiled.artifact, "artifact")) == compiled.artifact.size
    async with AsyncRegistryClient("127.0.0.1:9", cache=cache, timeout=1, trusted_keys=trusted) as offline:
        assert await offline.fetch(compiled.artifact, "artifact")


def test_a_follower_doesnt_take_what_isnt_signed(
    config: ServerConfig, connect: Callable[..., RegistryClient], trusting: Trusting, tmp_path: Path
) -> None:
    key = tmp_path / "server.pem"
    OURS.save(key)
    config = replace(config, follow_seconds=0.1, address=lasting_address())
    with running(replace(config, signing=Signing(str(key))), tasks=None) as (address, _):
        client = connect(address)
        assert client.capabilities()["signing_key_id"] == OURS.key_id
        fingerprint = client.register_tokenizer(DEMO).fingerprint
        signed = client.compile("old", fingerprint, kind="regex")
        client.promote("tool", "prod", client.publish("tool", [signed.key]))
    with running(config, tasks=None) as (address, _):
        client = connect(address, attempts=10)
        bare = client.compile("new", fingerprint, kind="regex")
        client.publish("tool", [bare.key])
        worker = trusting(address, OURS)
        with ChannelFollower(worker, "tool", "prod") as channel:
            assert Matcher(channel.current.artifact).accept_string(b"old")
            client.promote("tool", "prod", 2)
            with pytest.raises(ArtifactUntrusted):
                worker.load_artifact(client.resolve("tool:prod").artifact)
            assert channel.current.version == 1


# -- the registry -------------------------------------------------------------------------------


def test_what_the_registry_keeps(
    server: tuple[str, Server], client: RegistryClient, compiled: CompiledSource
) -> None:
    wanted = compiled.artifact.hash
    good = OURS.sign(wanted)
    for wrong in (
        replace(good, signature=bytes(64)),
        replace(good, signature=b""),
        replace(good, public_key=THEIRS.public_key),
        replace(good, public_key=b"short"),
        replace(good, key_id=THEIRS.key_id),
        OURS.sign("0" * 64),
    ):
        assert _reason(lambda wrong=wrong: client.add_signature(wanted, wrong)) == "INVALID_SIGNATURE"
    assert _reason(lambda: client.add_signature(wanted, replace(good, key_id="x"))) == "INVALID_REQUEST"
    assert _reason(lambda: client.add_signature("x", good)) == "INVALID_REQUEST"
    assert _reason(lambda: client.add_signature("0" * 64, OURS.sign("0" * 64))) == "UNKNOWN_ARTIFACT"
    assert _reason(lambda: client.signatures(wanted, ["../x"])) == "INVALID_REQUEST"
    assert client.signatures(wanted, [OURS.key_id]) == []
    client.add_signature(wanted, good)
    client.add_signature(wanted, good)
    assert client.signatures(wanted, [THEIRS.key_id, OURS.key_id, OURS.key_id]) == [good]
    client.revoke(wanted, "why")
    with pytest.raises(ArtifactRevoked):
        client.add_signature(wanted, THEIRS.sign(wanted))


def test_a_server_with_a_key_signs_what_it_compiles_and_what_it_finds(
    config: ServerConfig, connect: Callable[..., RegistryClient], tmp_path: Path
) -> None:
    with running(config) as (address, _):
        client = connect(address)
        fingerprint = client.register_tokenizer(TOKENIZER).fingerprint
        before = client.compile("before", fingerprint, kind="regex")
        assert client.signatures(before.artifact.hash, [OURS.key_id]) == []
    OURS.save(tmp_path / "key.pem")
    with running(replace(config, signing=Signing(str(tmp_path / "key.pem")))) as (address, _):
        client = connect(address)
        new = client.compile("new", fingerprint, kind="regex")
        checked = client.compile("checked", fingerprint, kind="regex", validate_only=True)
        assert client.compile("before", fingerprint, kind="regex").cached
        for one in (new, before):
            assert client.signatures(one.artifact.hash, [OURS.key_id]) == [OURS.sign(one.artifact.hash)]
        assert client.signatures(checked.artifact.hash, [OURS.key_id]) == []


# -- keys and the command line --------------------------------------------------------------------


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    public = OURS.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SigningKey.load(path).sign("0" * 64) == OURS.sign("0" * 64)
    with pytest.raises(FileExistsError):
        THEIRS.save(path)
    several = tmp_path / "several.pub"
    several.write_bytes(public.read_bytes() + THEIRS.save(tmp_path / "other.pem").read_bytes())
    assert TrustedKeys.load(several).ids == sorted([OURS.key_id, THEIRS.key_id])
    (tmp_path / "folder").mkdir()
    public.rename(tmp_path / "folder" / "ours.pub")
    assert TrustedKeys.load(tmp_path / "folder").ids == [OURS.key_id]
    assert OURS.key_id in repr(OURS)
    for wrong in (b"", b"no key", path.read_bytes()):
        (tmp_path / "wrong.pub").write_bytes(wrong)
        with pytest.raises(KeyFileError):
            TrustedKeys.load(tmp_path / "wrong.pub")
    (tmp_path / "wrong.pub").write_bytes(b"no key")
    for wrong in (several, tmp_path / "wrong.pub"):
        with pytest.raises(KeyFileError):
            SigningKey.load(wrong)


def test_trusted_keys_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASKWRIGHT_TRUSTED_KEYS", raising=False)
    assert TrustedKeys.from_environment() is None
    one, other = OURS.save(tmp_path / "a.pem"), THEIRS.save(tmp_path / "b.pem")
    monkeypatch.setenv("MASKWRIGHT_TRUSTED_KEYS", f"{one}:{other}")
    found = TrustedKeys.from_environment()
    assert found is not None
    assert found.ids == sorted([OURS.key_id, THEIRS.key_id])
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("MASKWRIGHT_TRUSTED_KEYS", str(tmp_path / "empty"))
    with pytest.raises(KeyFileError):
        RegistryClient("127.0.0.1:9")


def test_command_line(
    server: tuple[str, Server],
    client: RegistryClient,
    compiled: CompiledSource,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    key, wrong = str(tmp_path / "key.pem"), str(tmp_path / "other.pem")
    for path in (key, wrong):
        assert main(["signing", "keygen", path]) == 0
    assert main(["signing", "keygen", key]) == 3
    artifact = tmp_path / "a.mwa"
    artifact.write_bytes(client.fetch(compiled.artifact, "artifact"))
    client.promote("n", "prod", client.publish("n", [compiled.key]))
    for target in ([str(artifact)], ["n:prod", "--server", server[0]], [compiled.artifact.hash, "--server", server[0]]):
        verify = ["signing", "verify", *target, "--trusted"]
        assert main(["signing", "sign", "--key", key, *target]) == 0
        assert main([*verify, f"{key}.pub"]) == 0
        assert main([*verify, f"{wrong}.pub"]) == 1
        assert main([*verify, f"{wrong}.pub", "--trusted", f"{key}.pub"]) == 0
    capsys.readouterr()
    assert main(["signing", "verify", "n@1", "--server", server[0], "--trusted", f"{key}.pub", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signed"] == {compiled.artifact.hash: SigningKey.load(key).key_id}
    artifact.write_bytes(b"other bytes")
    assert main(["signing", "verify", str(artifact), "--trusted", f"{key}.pub"]) == 1
    assert main(["signing", "sign", "--key", f"{key}.pub", str(artifact)]) == 3
    assert main(["signing", "sign", "n@9", "--key", key, "--server", server[0]]) == 2


def test_precompile_signs_before_it_promotes(
    config: ServerConfig, connect: Callable[..., RegistryClient], tmp_path: Path
) -> None:
    (tmp_path / "maskwright.toml").write_text(
        f'[tokenizers]\nmine = "{DEMO}"\n[artifacts.tool]\nsource = "tool.json"\n'
    )
    (tmp_path / "tool.json").write_text('{"enum": ["a", "b"]}')
    OURS.save(tmp_path / "key.pem")
    manifest, key = str(tmp_path / "maskwright.toml"), str(tmp_path / "key.pem")
    with running(config, tasks=None) as (address, _):
        publish = ["--server", address, "--publish", "--promote", "prod"]
        assert main(["precompile", manifest, *publish, "--sign", key]) == 0
        client = connect(address)
        hash_ = client.resolve("tool:prod").artifact.hash
        assert client.signatures(hash_, [OURS.key_id]) == [OURS.sign(hash_)]
    assert main(["precompile", manifest, "--output", str(tmp_path), "--sign", key]) == 2
