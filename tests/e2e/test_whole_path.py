"""Tokenizer to masked text through a real server, the real compiler and a worker process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest
from servers import running

from maskwright.compiler import Compiler, Limits, Vocabulary
from maskwright.registry.config import ServerConfig
from maskwright.registry.demo.schemas import REFUND, TANGLED, TREE, DemoSchema
from maskwright.registry.sampling import Sampler
from maskwright.workers.client import RegistryClient, SourceRefused

TOKENIZER = Path(str(files("maskwright.compiler") / "data" / "demo.tokenizer.json"))


@pytest.fixture
def address(config: ServerConfig) -> Iterator[str]:
    profiles = {"default": Limits(), "tight": Limits(states=500)}
    with running(replace(config, profiles=profiles), tasks=None) as (address, _):
        yield address


def test_compile_fetch_sample_validate(address: str, connect: Callable[..., RegistryClient]) -> None:
    client = connect(address)
    tokenizer = client.register_tokenizer(TOKENIZER)
    vocabulary = Vocabulary.demo()
    assert (tokenizer.fingerprint, tokenizer.vocab_size) == (vocabulary.fingerprint, vocabulary.size)
    assert tokenizer.stop_token_ids == vocabulary.stop_token_ids
    for demo in (REFUND, TREE):
        _check(client, tokenizer.fingerprint, demo, vocabulary)
    with pytest.raises(SourceRefused) as caught:
        client.compile(TANGLED.schema, tokenizer.fingerprint, limits_profile="tight")
    assert caught.value.diagnostics[0]["detail"]["limit_name"] == "states"


def _check(client: RegistryClient, fingerprint: str, demo: DemoSchema, vocabulary: Vocabulary) -> None:
    compiled = client.compile(demo.schema, fingerprint)
    local = Compiler(vocabulary).compile_json_schema(json.dumps(demo.schema))
    assert client.fetch(compiled.artifact, "artifact") == local.to_bytes()
    artifact = client.load_artifact(compiled.artifact)
    assert artifact.pack is client.load_pack(compiled.pack)
    sampler, validator = Sampler(artifact, seed=1), jsonschema_rs.validator_for(demo.schema)
    samples = [sampler.draw(2000) for _ in range(20)]
    assert all(s.finished for s in samples)
    assert all(validator.is_valid(json.loads(s.text)) for s in samples)


def test_demo_tells_what_it_did() -> None:
    command = [sys.executable, "-m", "maskwright.registry.demo", "-n", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused    LIMIT_EXCEEDED" in done.stdout
    assert done.stdout.count("10 of 10 by jsonschema-rs") == 2
    assert "compiler imported: no" in done.stdout


def test_worker_needs_the_base_dependencies_alone() -> None:
    block = (
        "import sys\n"
        "for name in ('numba','lark','interegular','tokenizers','boto3','sqlite_utils','jsonschema_rs',"
        "'grpc_health','grpc_reflection','grpc_status','google.rpc','maskwright.compiler','maskwright.registry'):\n"
        "    sys.modules[name] = None\n"
        "import maskwright.workers, maskwright.workers.client\n"
        "maskwright.workers.client.RegistryClient('127.0.0.1:1').close()\n"
    )
    assert subprocess.run([sys.executable, "-c", block], capture_output=True).returncode == 0


def test_commands_say_which_extra_they_need(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    block = (
        "import sys\n"
        "for name in ('numba', 'lark', 'tokenizers', 'sqlite_utils', 'grpc_health'):\n"
        "    sys.modules[name] = None\n"
        "from maskwright.registry.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    compile_ = ["compile", str(tmp_path / "s.json"), "--tokenizer", str(TOKENIZER), "-o", str(tmp_path / "o")]
    for arguments, extra in ((compile_, "compiler"), (["serve", "--data", str(tmp_path)], "server")):
        done = subprocess.run([sys.executable, "-c", block, *arguments], capture_output=True, text=True)
        assert (done.returncode, f"maskwright[{extra}]" in done.stderr) == (2, True), done.stderr
