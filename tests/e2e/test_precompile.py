"""Manifests: compiled here and by a server, published, locked, checked; workers that run from the lock."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from servers import running

from maskwright.registry.cli import main
from maskwright.registry.config import ServerConfig
from maskwright.registry.precompile import ManifestError, load_manifest
from maskwright.workers import Matcher
from maskwright.workers.client import LockError, RegistryClient, read_lock

TOKENIZER = Path(str(files("maskwright.compiler") / "data" / "demo.tokenizer.json"))
MANIFEST = """
[tokenizers]
demo = "demo.tokenizer.json"

[options]
whitespace = "compact"

[artifacts.refund]
source = "refund.json"

[artifacts."dates/day"]
source = "day.regex"
options = { max_nesting = 3 }
"""
Call = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "app"
    place.mkdir()
    shutil.copy(TOKENIZER, place / "demo.tokenizer.json")
    (place / "refund.json").write_text('{"enum": ["refund", "ask"]}')
    (place / "day.regex").write_text("[0-9]{4}-[0-9]{2}\n")
    (place / "maskwright.toml").write_text(MANIFEST)
    return place


@pytest.fixture
def address(config: ServerConfig) -> Iterator[str]:
    with running(config, tasks=None) as (address, _):
        yield address


@pytest.fixture
def call(folder: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = main(["precompile", str(folder / "maskwright.toml"), *arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_here_and_by_a_server_alike(folder: Path, call: Call, address: str, tmp_path: Path) -> None:
    assert call("--output", str(tmp_path / "out"))[0] == 0
    here = read_lock(folder / "maskwright.lock")
    assert [(a.name, a.version, a.kind) for a in here.artifacts] == [
        ("dates/day", 0, "regex"),
        ("default/refund", 0, "json_schema"),
    ]
    for artifact in here.artifacts:
        assert (tmp_path / "out" / f"{artifact.artifact}.mwa").stat().st_size == artifact.artifact_size
        assert (tmp_path / "out" / f"{artifact.pack}.mwpack").stat().st_size == artifact.pack_size
    assert call("--server", address)[0] == 0
    assert read_lock(folder / "maskwright.lock") == here
    assert call("--check") == (0, {"stale": []})
    assert call("--check", "--server", address)[0] == 0


def test_publish_promote_and_run_from_the_lock(
    folder: Path, call: Call, address: str, connect: Callable[..., RegistryClient]
) -> None:
    publish = ["--server", address, "--publish", "--promote", "prod"]
    assert [r["version"] for r in call(*publish)[1]["artifacts"]] == [1, 1]
    assert {r["cached"] for r in call(*publish)[1]["artifacts"]} == {True}
    (folder / "day.regex").write_text("[0-9]{4}\n")
    assert [r["version"] for r in call(*publish)[1]["artifacts"]] == [1, 2]
    client = connect(address, cache="worker")
    assert {n.name: n.channels for n in client.names()} == {"dates/day": {"prod": 2}, "default/refund": {"prod": 1}}
    lock = read_lock(folder / "maskwright.lock")
    assert len(client.warm(lock)) == 2
    nowhere = connect("127.0.0.1:9", cache="worker", timeout=1.0)
    artifact = nowhere.load_artifact(lock.find("refund").artifact)
    assert Matcher(artifact).accept_string(b'"refund"')
    with pytest.raises(LockError, match="nothing for"):
        lock.find("other")
    # Compiled again without publishing: a version stands for as long as its name holds the same.
    assert call("--server", address)[0] == 0 and read_lock(folder / "maskwright.lock") == lock
    (folder / "day.regex").write_text("[0-9]{5}\n")
    assert call("--server", address)[0] == 0
    versions = {a.name: a.version for a in read_lock(folder / "maskwright.lock").artifacts}
    assert versions == {"dates/day": 0, "default/refund": 1}


def test_refused_sources_fail_with_their_diagnostics(folder: Path, call: Call, address: str, tmp_path: Path) -> None:
    (folder / "refund.json").write_text('{"properties": {"a": {"type": "nonsense"}}}')
    for where in (["--output", str(tmp_path / "out")], ["--server", address, "--publish"]):
        code, fields = call(*where)
        assert (code, fields["lock"]) == (1, None)
        refused = next(r for r in fields["artifacts"] if r["name"] == "default/refund")
        assert refused["diagnostics"][0]["pointer"] == "/properties/a/type"
    assert not (folder / "maskwright.lock").exists()
    assert main(["registry", "names", "--server", address]) == 0


def test_what_makes_a_lock_stale(folder: Path, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call("--output", str(tmp_path / "out"))
    manifest = folder / "maskwright.toml"

    def stale(path: Path, text: str) -> list[str]:
        before = path.read_text()
        path.write_text(text)
        try:
            code, fields = call("--check")
        finally:
            path.write_text(before)
        assert code == (1 if fields["stale"] else 0)
        return list(fields["stale"])

    assert stale(folder / "refund.json", '{ "enum": ["refund",   "ask"] }') == []
    assert stale(folder / "refund.json", '{"enum": ["ask", "refund"]}') == ["default/refund for demo: source changed"]
    assert stale(manifest, MANIFEST.replace("compact", "flexible")) == [
        "default/refund for demo: options changed",
        "dates/day for demo: options changed",
    ]
    assert stale(manifest, MANIFEST.replace("refund]", "refund2]")) == [
        "default/refund2 for demo: not in the lock",
        "default/refund for demo: not in the manifest any more",
    ]
    assert len(stale(folder / "demo.tokenizer.json", TOKENIZER.read_text() + " ")) == 2
    lock = folder / "maskwright.lock"
    changed = lock.read_text().replace('"compiler_version": "', '"compiler_version": "0')
    lock.write_text(changed)
    assert call("--check")[0] == 0
    assert call("--check", "--output", str(tmp_path / "out"))[0] == 1
    lock.write_text("{}")
    assert call("--check")[0] == 3


def test_a_revoked_artifact_makes_a_lock_stale(
    folder: Path, call: Call, address: str, connect: Callable[..., RegistryClient]
) -> None:
    call("--server", address)
    lock = read_lock(folder / "maskwright.lock")
    connect(address).revoke(lock.find("refund").artifact, "why")
    code, fields = call("--check", "--server", address)
    assert code == 1
    assert "revoked" in fields["stale"][0]
    assert call("--check")[0] == 0


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("[options]", "[optoins]"), "optoins"),
        (('"refund.json"', '"missing.json"'), "artifacts.refund.source"),
        (('source = "refund.json"', "source = 3"), "artifacts.refund.source"),
        (('"compact"', '"wide"'), "artifacts.refund.options"),
        (("max_nesting", "max_nestling"), "artifacts.dates/day.options.max_nestling"),
        (("[artifacts.refund]", "[artifacts.Refund]"), "artifacts.Refund"),
        (("demo.tokenizer.json", "none.json"), "tokenizers.demo"),
        (('source = "refund.json"', 'source = "refund.json"\ntokenizers = ["x"]'), "artifacts.refund.tokenizers"),
        (('source = "refund.json"', 'source = "refund.json"\nkind = "x"'), "artifacts.refund.kind"),
    ],
)
def test_faults_of_a_manifest(folder: Path, change: tuple[str, str], place: str) -> None:
    path = folder / "maskwright.toml"
    path.write_text(MANIFEST.replace(*change))
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    assert place in {p for p, _ in caught.value.faults}


def test_all_faults_at_once_and_usage(folder: Path, call: Call) -> None:
    path = folder / "maskwright.toml"
    path.write_text(MANIFEST.replace("refund.json", "a.json").replace("day.regex", "b.regex"))
    code, fields = call("--check")
    assert code == 3
    assert "a.json" in fields["error"]
    assert "b.regex" in fields["error"]
    path.write_text(MANIFEST)
    assert call()[0] == 2
    assert call("--output", "x", "--publish")[0] == 2
    assert call("--check")[0] == 3
    assert call("--server", "127.0.0.1:9")[0] == 4


def test_unusable_tokenizer(folder: Path, call: Call, config: ServerConfig, tmp_path: Path) -> None:
    (folder / "demo.tokenizer.json").write_text("{}")
    code, fields = call("--output", str(tmp_path / "out"))
    assert code == 3
    assert fields["diagnostics"]
    assert replace(config, drain_seconds=1).drain_seconds == 1
