"""`maskwright explain`, and what `compile` shares with it: bounds, limits, files that can't be written."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from maskwright.registry.cli import main

TOKENIZER = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
    "additionalProperties": False,
    "x-remark": True,
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SCHEMA, indent=1))
    return path


def test_tree_treatment_and_bounds(schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(schema)]) == 0
    out = capsys.readouterr().out
    assert "unbounded" in out
    assert "annotation /x-remark" in out
    assert "properties/tags" in out
    assert "note IGNORED_KEYWORD at /x-remark" in out
    bounds = ["--default-max-length", "20", "--default-max-items", "4"]
    assert main(["explain", str(schema), *bounds, "--by", "states"]) == 0
    assert "bounded by default_max_length, default_max_items" in capsys.readouterr().out


def test_json_and_picture(schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "costs.svg"
    assert main(["explain", str(schema), "--json", "--svg", str(picture), "--tokenizer", TOKENIZER]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accepted"]
    assert found["tree"]["total"]["bytes"] == found["report"]["artifact_bytes"]
    assert found["report"]["peak_bytes"] >= 0
    assert picture.read_text().startswith("<svg")
    assert main(["explain", str(schema), "--svg", str(tmp_path / "no" / "x.svg")]) == 3
    assert "no/x.svg" in capsys.readouterr().err


def test_every_fault_of_a_refused_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{\n "properties": {\n  "a": {"maxItems": 1e12},\n  "b": {"$ref": "#/no"}\n }\n}')
    assert main(["explain", str(path)]) == 1
    err = capsys.readouterr().err
    assert '  3 |   "a": {"maxItems": 1e12},\n    |         ^^^^^^^^^^^^^^^^\n  hint:' in err
    assert '  4 |   "b": {"$ref": "#/no"}\n' in err
    assert "\x1b" not in err
    assert main(["explain", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["accepted"], len(found["diagnostics"])) == (False, 2)


def test_named_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"enum": list(range(3_000))}))
    assert main(["explain", str(path), "--limits", "strict"]) == 1
    assert "enum_values is 2000" in capsys.readouterr().err
    assert main(["explain", str(path), "--limits", "strict", "--limit", "enum_values=10"]) == 1
    assert "enum_values is 10," in capsys.readouterr().err
    for wrong in ("enum_values=0", "enum_values=x", "no_such=1"):
        assert main(["explain", str(path), "--limit", wrong]) == 2
    with pytest.raises(SystemExit):
        main(["explain", str(path), "--limits", "lax"])


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(
    schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "missing" / "x.mwa"
    assert main(["compile", str(schema), "--tokenizer", TOKENIZER, "-o", str(output)]) == 3
    assert capsys.readouterr().err == f"maskwright: {output}: there's no folder {output.parent}\n"
    (tmp_path / "folder").mkdir()
    assert main(["compile", str(schema), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "folder")]) == 3
    assert capsys.readouterr().err.endswith(f"maskwright: {tmp_path / 'folder'}: Is a directory\n")
