"""Files of every released format version load, and mean what they meant."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from maskwright.workers import Artifact, VocabularyPack
from tests.compat.make import CASES, main, observe

VERSIONS = sorted(p.parent for p in Path(__file__).parent.glob("*/expected.json"))


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda p: p.name)
def test_released_files_load_and_mean_what_they_meant(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    assert {p.name for p in folder.iterdir()} == {*expected, "expected.json"}
    pack = VocabularyPack.load(folder / "vocabulary.mwpack")
    for name, known in expected.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == known["sha256"]
        if "texts" in known:
            artifact = Artifact.load(folder / name, pack)
            assert [observe(artifact, t["text"]) for t in known["texts"]] == known["texts"]


def test_the_files_of_this_version_hold_every_feature() -> None:
    assert "1.0" in [p.name for p in VERSIONS]
    expected = json.loads((VERSIONS[-1] / "expected.json").read_text())
    features = {known.get("required_features", 0) for known in expected.values()}
    assert features >= {0, 1} and any(f & 2 for f in features)
    assert any(t["may_end"] for t in expected["schema.mwa"]["texts"])


def test_the_maker_still_works(tmp_path: Path) -> None:
    folder = main(tmp_path / "now")
    assert {p.stem for p in folder.glob("*.mwa")} == {*CASES, "lazy"}
    with pytest.raises(FileExistsError):
        main(folder)
