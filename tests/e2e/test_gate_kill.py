"""The commit gate with real processes: races for a key, and SIGKILL at every named step and at random moments.

`MASKWRIGHT_KILLS` is the number of random rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers.gate import STEPS

ROUNDS = int(os.environ.get("MASKWRIGHT_KILLS", "8"))
SCHEMA = '{"type":"object","properties":{"action":{"const":"ask"}},"required":["action"]}'
SCRIPT = Path(__file__).parent / "gate_kills.py"


@pytest.fixture(scope="module")
def files() -> tuple[bytes, str, bytes]:
    vocabulary = Vocabulary.demo()
    compiler = Compiler(vocabulary)
    return compiler.compile_json_schema(SCHEMA).to_bytes(), compiler.prepared.digest, vocabulary.pack_bytes()


@pytest.fixture
def folder(files: tuple[bytes, str, bytes], tmp_path: Path) -> Path:
    artifact, digest, pack = files
    (tmp_path / "schema.json").write_text(SCHEMA)
    (tmp_path / "a.mwa").write_bytes(artifact)
    (tmp_path / f"{digest}.mwpack").write_bytes(pack)
    return tmp_path


def _run(*arguments: object) -> Any:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_at_every_named_step(folder: Path) -> None:
    found = {f["point"]: f for f in _run("points", folder)}
    assert set(found) == {*STEPS, "before effect", "after effect"}
    claimed, done = STEPS.index("claimed"), STEPS.index("finished")
    for point, f in found.items():
        assert f["killed"], point
        first, second = f["after"]
        place = STEPS.index(point) if point in STEPS else claimed
        assert len(f["effects"]) <= 1, point
        if place < claimed:
            # Nothing was on disk: it runs now.
            assert (f["left"], first["outcome"], second["outcome"]) == ([], "committed", "duplicate"), point
        elif place < done:
            # It began, and its end isn't on disk: never again by itself.
            assert first["outcome"] == second["outcome"] == "in doubt", point
            assert not first["running"]
            assert f["effects"] == f["left"]
            assert len(f["left"]) == (point not in ("claimed", "before effect")), point
        else:
            assert first == second
            assert (first["outcome"], first["result"]) == ("duplicate", f["left"][0])


def test_processes_race_for_keys(folder: Path) -> None:
    found = _run("race", folder)
    assert found["ended"] == [0] * 6
    assert len(found["effects"]) == 12
    for key, results in found["effects"].items():
        assert len(results) == 1
        seen = [(outcome, result) for at, outcome, result in found["outcomes"] if at == key]
        assert sorted(seen) == [("committed", results[0]), *[("duplicate", results[0])] * 5]


def test_killed_at_random(folder: Path) -> None:
    """Whoever settles by what happened gets every action done exactly once."""
    found = _run("random", folder, ROUNDS)
    assert len(found["effects"]) == found["keys"]
    for key, results in found["effects"].items():
        assert len(results) == 1, key
        told = {result for at, outcome, result in found["outcomes"] if at == key and outcome != "in doubt"}
        assert told == {results[0]}, key
        committed = [at for at, outcome, _ in found["outcomes"] if at == key and outcome == "committed"]
        assert len(committed) <= 1, key
