"""`maskwright evaluate`: the table of a log, its faults by line, what isn't a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from maskwright.registry.cli import main
from maskwright.workers.metrics.log import LogWriter


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        writer = LogWriter(file)
        writer.define("s", {"type": "object", "required": ["x"]})
        for n in range(3):
            writer.write('{"x":1}', "stop", group="masked", schema="s", layers={"facts": n > 0}, tokens=4)
        writer.write('{"x":', "length", group="masked", schema="s", tokens=9)
        writer.write("Here you are", "stop", group="free", schema="s")
    return path


def test_a_table(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(log)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == "masked: 4 texts, 21 tokens; ended: stop 3, length 1"
    rows = [line.split() for line in lines]
    assert ["syntax", "4", "3", "1", "75.0%", "75.0%", "1"] in rows
    assert ["schema", "3", "3", "0", "100.0%", "75.0%", "0"] in rows
    assert ["facts", "3", "2", "1", "66.6%", "50.0%", "1"] in rows
    assert ["tool", "0", "0", "0", "-", "-", "0"] in rows
    assert "free: 1 texts, 0 tokens; ended: stop 1" in lines


def test_json_and_prometheus(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(log), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["groups"]["masked"]["layers"]["facts"] == {
        "passed": 2, "failed": 1, "not_judged": 1, "first_to_fail": 1,
    }  # fmt: skip
    assert main(["evaluate", str(log), "--prometheus"]) == 0
    families = list(text_string_to_metric_families(capsys.readouterr().out))
    (texts,) = [f for f in families if f.name == "maskwright_texts"]
    assert {s.labels["group"]: s.value for s in texts.samples} == {"masked": 4, "free": 1}


def test_bad_lines(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with log.open("ab") as file:
        file.write(b'{"text": "a"}\n{"text"')
    assert main(["evaluate", str(log)]) == 1
    out, err = capsys.readouterr()
    assert "masked: 4 texts" in out
    assert "MISSING_FIELD at line 8, ended: is missing" in err
    assert "NOT_JSON at line 9: " in err
    assert main(["evaluate", str(log), "--json"]) == 1
    fields = json.loads(capsys.readouterr().out)
    assert fields["faults"] == 2
    assert fields["diagnostics"][0] == {
        "severity": "error", "line": 8, "code": "MISSING_FIELD", "message": "is missing", "field": "ended",
    }  # fmt: skip


def test_no_log_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(b"\0\0\n")
    (tmp_path / "empty").touch()
    for name in ("x", "empty", "missing"):
        assert main(["evaluate", str(tmp_path / name)]) == 3
        assert name in capsys.readouterr().err
