"""What the command line offers for JSON Schemas: resources and drafts."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from maskwright.registry.cli import main

TOKENIZER = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")


def test_resources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"items": {"$ref": "http://x.y/n"}, "type": "array"}))
    (tmp_path / "n.json").write_text(json.dumps({"type": "integer"}))
    arguments = ["compile", str(tmp_path / "s.json"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o.mwa")]
    assert main(arguments) == 1
    assert "UNRESOLVED_REFERENCE" in capsys.readouterr().err
    assert main([*arguments, "--resource", f"http://x.y/n={tmp_path / 'n.json'}"]) == 0
    assert main(["check", str(tmp_path / "o.mwa"), "[1]"]) == 0
    assert main(["check", str(tmp_path / "o.mwa"), '["a"]']) == 1
    assert main([*arguments, "--resource", "nonsense"]) == 2
    assert main([*arguments, "--kind", "regex", "--resource", f"http://x.y/n={tmp_path / 'n.json'}"]) == 2


def test_draft(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}))
    arguments = ["compile", str(tmp_path / "s.json"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o.mwa")]
    assert main(arguments) == 1
    assert main([*arguments, "--draft", "4"]) == 0
    assert main(["check", str(tmp_path / "o.mwa"), "3"]) == 1
