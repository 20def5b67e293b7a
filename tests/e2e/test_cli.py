"""The command line, with the real compiler and the vocabulary that ships."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from maskwright.registry.cli import main

TOKENIZER = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ["refund", "ask"]}, "amount": {"type": "integer"}},
    "required": ["action"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("artifacts")
    (folder / "s.json").write_text(json.dumps(SCHEMA))
    output = str(folder / "s.mwa")
    assert main(["compile", str(folder / "s.json"), "--tokenizer", TOKENIZER, "-o", output]) == 0
    return output


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return code, json.loads(out)


def test_compile_writes_artifact_and_pack_once(
    artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "s.json", tmp_path / "out.mwa"
    source.write_text(json.dumps(SCHEMA))
    arguments = ["compile", str(source), "--tokenizer", TOKENIZER, "-o", str(output)]
    code, fields = _run(capsys, *arguments)
    assert code == 0
    assert output.read_bytes() == Path(artifact).read_bytes()
    (pack,) = tmp_path.glob("*.mwpack")
    assert (fields["pack"], fields["size_bytes"]) == (str(pack), output.stat().st_size)
    before = pack.stat().st_ino
    assert main(arguments) == 0
    assert pack.stat().st_ino == before
    assert {p.name for p in tmp_path.iterdir()} == {"s.json", "out.mwa", pack.name}


def test_kind_by_suffix_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "date.regex").write_text("[0-9]{4}-[0-9]{2}\n")
    (tmp_path / "s.json").write_text('{"type":"array","items":{"type":"null"}}')
    output = str(tmp_path / "o.mwa")
    compile_ = ["compile", "--tokenizer", TOKENIZER, "-o", output]
    assert main([*compile_, str(tmp_path / "date.regex")]) == 0
    assert main(["check", output, "2026-01"]) == 0
    assert main(["check", output, "2026-1"]) == 1
    assert main([*compile_, str(tmp_path / "s.json"), "--whitespace", "compact"]) == 0
    assert main(["check", output, "[null,null]"]) == 0
    assert main(["check", output, "[null, null]"]) == 1
    assert main([*compile_, str(tmp_path / "s.json"), "--whitespace", "2"]) == 0
    assert main(["check", output, json.dumps([None], indent=2)]) == 0
    capsys.readouterr()


def test_refusal_shows_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "s.json"
    source.write_text('{"properties": {"a": {"type": "nonsense"}}}')
    arguments = ["compile", str(source), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o")]
    assert main(arguments) == 1
    assert "/properties/a/type" in capsys.readouterr().err
    code, fields = _run(capsys, *arguments)
    assert code == 1
    assert fields["diagnostics"][0]["pointer"] == "/properties/a/type"
    assert not (tmp_path / "o").exists()


def test_limit_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    arguments = ["compile", str(tmp_path / "s.json"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o")]
    code, fields = _run(capsys, *arguments, "--limit", "source_bytes=10")
    assert code == 1
    assert fields["diagnostics"][0]["detail"]["limit_name"] == "source_bytes"
    assert main([*arguments, "--limit", "wishes=3"]) == 2
    assert main([*arguments, "--limit", "states=many"]) == 2


@pytest.mark.parametrize("text", ['{"action":"refund","amount":3}', '{ "action" : "ask" }'])
def test_check_accepts(artifact: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, fields = _run(capsys, "check", artifact, text)
    assert (code, fields["accepted"]) == (0, True)


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        ('{"action":"refunds"}', 17, b'"'),
        ('{"action":"ask"', 15, b"\t\n\r ,}"),
        ('{"action":"x"}', 11, b"ar"),
        ("", 0, b"{"),
        ("[]", 0, b"{"),
        ('{"action":"ask"}!', 16, b""),
    ],
)
def test_check_tells_where_it_stops(
    artifact: str, text: str, stop: int, expected: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    code, fields = _run(capsys, "check", artifact, text)
    assert (code, fields["accepted"], fields["stop_byte"]) == (1, False, stop)
    assert bytes(fields["expected_bytes"]) == expected


def test_check_tells_line_and_column(artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, fields = _run(capsys, "check", artifact, '{\n  "action": 1}')
    assert (code, fields["line"], fields["column"]) == (1, 2, 13)
    assert main(["check", artifact, '{\n  "action": 1}']) == 1
    assert "line 2, column 13" in capsys.readouterr().out


def test_check_reads_standard_input(artifact: str) -> None:
    command = [sys.executable, "-m", "maskwright.registry.cli", "check", artifact, "-"]
    assert subprocess.run(command, input=b'{"action":"ask"}\n', capture_output=True).returncode == 0
    assert subprocess.run(command, input=b'{"action":"ask"}\n\n', capture_output=True).returncode == 1
    assert subprocess.run(command, input=b"\xff\xfe", capture_output=True).returncode == 1


def test_sample_is_valid_and_repeatable(artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sample", artifact, "--tokenizer", TOKENIZER, "-n", "20", "--seed", "3"]
    code, fields = _run(capsys, *arguments)
    validator = jsonschema_rs.validator_for(SCHEMA)
    texts = [s["text"] for s in fields["samples"]]
    assert code == 0
    assert len(set(texts)) > 5
    assert all(validator.is_valid(json.loads(t)) for t in texts)
    assert _run(capsys, *arguments) == (code, fields)
    assert _run(capsys, *arguments[:-1], "4")[1] != fields


def test_sample_parts_texts_that_have_lines(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sample", artifact, "-n", "3", "--seed", "3"]
    texts = [s["text"] for s in _run(capsys, *arguments)[1]["samples"]]
    assert any("\n" in text for text in texts)
    assert main(arguments) == 0
    assert capsys.readouterr().out == "".join(f"--- {n}\n{text}\n" for n, text in enumerate(texts, 1))
    (tmp_path / "digit.regex").write_text("[0-9]")
    assert main(["compile", str(tmp_path / "digit.regex"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "d")]) == 0
    capsys.readouterr()
    assert main(["sample", str(tmp_path / "d"), "-n", "2"]) == 0
    assert re.fullmatch(r"\d\n\d\n", capsys.readouterr().out)


def test_compile_tells_what_its_own_code_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digit.regex").write_text("[0-9]")
    arguments = ["compile", str(tmp_path / "digit.regex"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "d")]
    for spent, told in ((7.5, True), (0.0, False)):
        seconds = iter((2.0, 2.0 + spent))
        monkeypatch.setattr("maskwright.compiler.jit.compiling_seconds", lambda seconds=seconds: next(seconds))
        assert main(arguments) == 0
        assert ("7.5 s of that went into the compiler's own code" in capsys.readouterr().err) == told


def test_sample_says_when_a_text_was_cut(artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, fields = _run(capsys, "sample", artifact, "-n", "2", "--max-tokens", "1")
    assert (code, [s["finished"] for s in fields["samples"]]) == (1, [False, False])


def test_inspect(artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, fields = _run(capsys, "inspect", artifact)
    assert (code, fields["header"]["kind"]) == (0, "artifact")
    assert fields["size_bytes"] == Path(artifact).stat().st_size
    assert main(["inspect", artifact]) == 0
    assert fields["header"]["vocabulary"] in capsys.readouterr().out
    (pack,) = Path(artifact).parent.glob("*.mwpack")
    assert _run(capsys, "inspect", str(pack))[1]["digest"] == pack.stem


def test_unusable_files(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(b"junk")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(Path(artifact).read_bytes()[:-1])
    alone = tmp_path / "alone.mwa"
    alone.write_bytes(Path(artifact).read_bytes())
    other = tmp_path / "other.tiktoken"
    other.write_text("\n".join(f"{_base64(bytes([n]))} {n}" for n in range(256)))
    for arguments in (
        ["inspect", str(tmp_path / "missing")],
        ["inspect", str(junk)],
        ["check", str(damaged), "x"],
        ["check", artifact, "x", "--tokenizer", str(junk)],
        ["check", artifact, "x", "--tokenizer", str(other)],
        ["compile", str(tmp_path / "missing.json"), "--tokenizer", TOKENIZER, "-o", "x"],
    ):
        code, fields = _run(capsys, *arguments)
        assert (code, next(iter(fields))) == (3, "error"), arguments
    assert main(["check", str(alone), "x", "--tokenizer", TOKENIZER]) == 1
    capsys.readouterr()


def test_usage(tmp_path: Path, artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "source").write_text("{}")
    compile_ = ["compile", str(tmp_path / "source"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o")]
    assert main(compile_) == 2
    assert "--kind" in capsys.readouterr().err
    assert main([*compile_, "--kind", "json_schema", "--whitespace", "wide"]) == 2
    assert main(["sample", artifact, "-n", "0"]) == 2
    for wrong in ([], ["nonsense"], ["compile"], ["check", artifact]):
        with pytest.raises(SystemExit) as caught:
            main(wrong)
        assert caught.value.code == 2
    capsys.readouterr()


def test_lark_is_refused_or_compiled_never_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "g.lark").write_text('start: "a" "b"*\n')
    arguments = ["compile", str(tmp_path / "g.lark"), "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o")]
    code, fields = _run(capsys, *arguments)
    assert code == 0 or fields["diagnostics"][0]["code"] == "UNSUPPORTED_GRAMMAR"


def test_help_imports_no_engine() -> None:
    command = (
        "import sys; from maskwright.registry.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
    )
    check = "sys.exit(bool({'numba', 'lark', 'grpc', 'sqlite3'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", command + check], capture_output=True).returncode == 0


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()
