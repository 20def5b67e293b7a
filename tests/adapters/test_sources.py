"""Which artifact belongs to a request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from engine_artifacts import CHOICES, FLAT_TEXT, GBNF, LARK, PATTERN, GreedyTokenizer, fields, stop, write_folder
from samples import FLAT, compiled

from maskwright.compiler import CompileOptions, Compiler, Vocabulary, source_digest
from maskwright.workers import Artifact, ArtifactError, DeadEnd, Matcher, WrongVocabulary, allocate_token_bitmask
from maskwright.workers.adapters import plugins, sources
from maskwright.workers.adapters.endings import fill_or_end
from maskwright.workers.adapters.sources import (
    ArtifactNotFound,
    FolderSource,
    RegistrySource,
    check_tokenizer,
    choice_pattern,
    environment_source,
    grammar_kind,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("artifacts"))


def test_a_folder_finds_by_source_digest_and_name(folder: Path) -> None:
    source = FolderSource(folder)
    flat = source.find("json_schema", FLAT_TEXT)
    assert flat.digest == compiled()["flat"].digest
    assert source.find("json_schema", json.dumps(FLAT, indent=3)) is flat, "spaces don't matter"
    assert source.find("artifact", "flat") is flat and source.find("artifact", flat.digest) is flat
    for kind, text in (("regex", PATTERN), ("lark", LARK), ("gbnf", GBNF)):
        assert source.find(kind, text).header["source"]["kind"] in (kind, "lark")
    for kind, text in (("json_schema", "{}"), ("regex", LARK), ("artifact", "other"), ("json_schema", "{nonsense")):
        with pytest.raises(ArtifactNotFound) as missing:
            source.find(kind, text)
        assert missing.value.kind == kind and str(folder) in str(missing.value)


def test_a_folder_with_two_artifacts_of_a_source_is_refused(folder: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary.demo()
    compact = Compiler(vocabulary, CompileOptions(whitespace="compact")).compile_json_schema(FLAT)
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "compact.mwa").write_bytes(compact.to_bytes())
    with pytest.raises(ValueError, match="are both for json_schema"):
        FolderSource(tmp_path)
    (tmp_path / "compact.mwa").write_bytes(b"no artifact")
    with pytest.raises(ArtifactError):
        FolderSource(tmp_path)


def test_threads_share_one_artifact(folder: Path) -> None:
    source, found = FolderSource(folder), set[int]()
    threads = [threading.Thread(target=lambda: found.add(id(source.find("regex", PATTERN)))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 1


class Client:
    """A registry's client as far as a source needs it."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def compile(self, source: str, fingerprint: str, *, kind: str, options: object) -> object:
        self.calls.append(("compile", source_digest(kind, source), fingerprint, kind, options))
        return fields(artifact="from compile")

    def resolve(self, name: str, *, fingerprint: str) -> object:
        self.calls.append(("resolve", name, fingerprint))
        return fields(artifact="from resolve")

    def load_artifact(self, digest: object) -> Artifact:
        self.calls.append(("load", digest))
        return compiled()["digits"]


def test_a_registry_is_asked_once_for_a_source_and_each_time_for_a_name() -> None:
    client = Client()
    source = RegistrySource(client, "f" * 64, options={"whitespace": "compact"}, kept=1)
    first = [("compile", source_digest("regex", PATTERN), "f" * 64, "regex", {"whitespace": "compact"})]
    first.append(("load", "from compile"))
    for _ in range(2):
        assert source.find("regex", PATTERN) is compiled()["digits"]
    assert client.calls == first
    for _ in range(2):
        source.find("artifact", "tool:prod")
    assert client.calls[2:] == [("resolve", "tool:prod", "f" * 64), ("load", "from resolve")] * 2
    source.find("artifact", "a" * 64)
    assert client.calls[-1] == ("load", "a" * 64)
    source.find("regex", PATTERN)
    assert client.calls[-2:] == first, "one is kept in memory"


def test_the_environment_names_a_source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment_source({}) is None
    assert isinstance(environment_source({"MASKWRIGHT_ARTIFACTS": str(folder)}), FolderSource)
    with pytest.raises(ValueError, match="MASKWRIGHT_VOCABULARY"):
        environment_source({"MASKWRIGHT_REGISTRY": "127.0.0.1:1"})
    both = {"MASKWRIGHT_REGISTRY": "127.0.0.1:1", "MASKWRIGHT_VOCABULARY": "f" * 64}
    assert isinstance(environment_source(both), RegistrySource)
    monkeypatch.setattr(sources.os, "environ", {})
    plugins.vllm()
    plugins.sglang()


def test_what_engines_load_is_light() -> None:
    code = (
        "import sys, maskwright.workers.adapters.plugins as p; p.vllm(); p.sglang(); "
        "heavy = ('torch', 'transformers', 'vllm', 'sglang', 'grpc', 'numba', 'lark'); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MASKWRIGHT_")}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean)
    assert out.stdout.strip() == "[]"


def test_another_tokenizer_is_refused() -> None:
    pack = compiled()["flat"].pack
    check_tokenizer(GreedyTokenizer(), pack)
    with pytest.raises(WrongVocabulary):
        check_tokenizer(GreedyTokenizer(wrong=True), pack)


@pytest.mark.parametrize("choices", [CHOICES, ["a\nb", "\u2028", "é", "😀", "\\d", "^$", ""], ["\x00\x7f"]])
def test_a_choice_is_a_pattern_of_its_texts_alone(choices: list[str]) -> None:
    vocabulary = Vocabulary.demo()
    artifact = Artifact.from_bytes(
        Compiler(vocabulary).compile_regex(choice_pattern(choices)).to_bytes(), compiled()["flat"].pack
    )
    for text in [*choices, "other", choices[0] + "x"]:
        matcher = Matcher(artifact)
        assert (matcher.accept_string(text) and matcher.is_accepting()) == (text in choices)


@pytest.mark.parametrize("choices", [[], [1], ["a", None]])
def test_what_is_no_choice(choices: list[object]) -> None:
    with pytest.raises(ValueError):
        choice_pattern(choices)  # type: ignore[arg-type]


def test_grammar_notations() -> None:
    assert grammar_kind(GBNF) == "gbnf" and grammar_kind(LARK) == "lark"


def test_where_no_token_is_legal_stop_tokens_end_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """Every digit is a stop token here, so that none is legal."""
    artifact = compiled()["digits"]
    digits = [t for t in range(artifact.vocab_size) if re.fullmatch(rb"\d+", artifact.pack.token_bytes(t) or b"")]
    stops = [*digits, stop()]
    mask = allocate_token_bitmask(2, artifact.vocab_size + 64)
    mask[:] = -1
    matcher = Matcher(artifact, stops)
    assert isinstance(fill_or_end(matcher, mask, 1), DeadEnd)
    held = np.flatnonzero(np.unpackbits(mask[1].view(np.uint8), bitorder="little")).tolist()
    assert held == sorted(stops) and (mask[0] == -1).all()
    assert not matcher.accept_token(stop()) and "request ended" in caplog.text
    assert fill_or_end(Matcher(artifact), mask, 0) is None
