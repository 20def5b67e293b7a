"""One artifact, with the vocabulary that ships; a gate over a fresh store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gate_samples import SCHEMA, Make

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.workers import Artifact, VocabularyPack
from maskwright.workers.gate import CommitGate, SqliteStore


@pytest.fixture(scope="session")
def make() -> Make:
    """Compiles a source; a dict is a schema, a string a pattern."""
    vocabulary = Vocabulary.demo()
    pack = VocabularyPack.from_bytes(vocabulary.pack_bytes())

    def compile_(source: dict[str, Any] | str, **options: Any) -> Artifact:
        compiler = Compiler(vocabulary, CompileOptions(**options))
        result = compiler.compile_regex(source) if isinstance(source, str) else compiler.compile_json_schema(source)
        return Artifact.from_bytes(result.to_bytes(), pack)

    return compile_


@pytest.fixture(scope="session")
def artifact(make: Make) -> Artifact:
    return make(SCHEMA, residual="allow")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "calls.sqlite")
    yield made
    made.close()


@pytest.fixture
def gate(artifact: Artifact, store: SqliteStore) -> CommitGate:
    return CommitGate(artifact, SCHEMA, [], store)
