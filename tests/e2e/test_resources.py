"""Schemas that the caller supplies for references, from the client to the compiler and in the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from servers import running

from maskwright.registry.cli import main
from maskwright.registry.config import ServerConfig
from maskwright.workers import Matcher
from maskwright.workers.client import CallFailed, RegistryClient, SourceRefused

DEMO = Path(str(files("maskwright.compiler") / "data" / "demo.tokenizer.json"))
MONEY = "https://example.com/money.json"
SCHEMA = {"$ref": MONEY}


@pytest.fixture
def real(config: ServerConfig) -> Iterator[str]:
    with running(config, tasks=None) as (address, _):
        yield address


def test_resources(real: str, connect: Callable[..., RegistryClient]) -> None:
    client = connect(real)
    fingerprint = client.register_tokenizer(DEMO).fingerprint
    with pytest.raises(SourceRefused):
        client.compile(SCHEMA, fingerprint)
    euro = client.compile(SCHEMA, fingerprint, resources={MONEY: {"const": "euro"}})
    yen = client.compile(SCHEMA, fingerprint, resources={MONEY: '{ "const": "yen" }'})
    assert client.compile(SCHEMA, fingerprint, resources={MONEY: '{"const":"yen"}'}).key == yen.key != euro.key
    assert Matcher(client.load_artifact(euro.artifact)).accept_string(b'"euro"')
    assert Matcher(client.load_artifact(yen.artifact)).accept_string(b'"yen"')
    assert client.explain(SCHEMA, fingerprint, resources={MONEY: True})[0]
    assert not client.explain(SCHEMA, fingerprint)[0]
    with pytest.raises(CallFailed) as caught:
        client.compile("a", fingerprint, kind="regex", resources={MONEY: True})
    assert (caught.value.reason, caught.value.metadata) == ("INVALID_REQUEST", {"field": "resources"})


def test_resources_of_a_manifest(real: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "maskwright.toml"

    def written(more: str = "") -> str:
        manifest.write_text(
            f'[tokenizers]\nmine = "{DEMO}"\n[resources]\n"{MONEY}" = "money.json"\n'
            f'[artifacts.price]\nsource = "price.json"\n{more}[artifacts.word]\nsource = "word.regex"\n'
        )
        return str(manifest)

    (tmp_path / "price.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "money.json").write_text('{"const": 1}')
    (tmp_path / "word.regex").write_text("a+\n")
    assert main(["precompile", written(), "--server", real]) == 0
    assert main(["precompile", written(), "--check"]) == 0
    (tmp_path / "money.json").write_text('{"const": 2}')
    assert main(["precompile", written(), "--check"]) == 1
    assert main(["precompile", written(), "--output", str(tmp_path / "out")]) == 0
    assert main(["precompile", written("resources = []\n"), "--output", str(tmp_path / "out")]) == 1
    capsys.readouterr()
    for wrong in ('resources = ["urn:x"]\n', "resources = 3\n"):
        assert main(["precompile", written(wrong), "--check"]) == 3
        assert "artifacts.price.resources" in capsys.readouterr().err
    (tmp_path / "money.json").unlink()
    assert main(["precompile", written(), "--check"]) == 3
    assert f"resources.{MONEY}" in capsys.readouterr().err
