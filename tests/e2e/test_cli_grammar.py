"""Grammars and tools from the command line, and in requests."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from maskwright.registry.cli import main
from maskwright.registry.compiling.tasks import Compiled, CompileJob, compile_source
from maskwright.registry.service.messages import KINDS, options_of
from maskwright.workers.client.messages import compile_request

TOKENIZER = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                                       "additionalProperties": False}}]  # fmt: skip
CALL = '<tool_call>\n{"name": "f", "arguments": {"n": 1}}\n</tool_call>'


def run(tmp_path: Path, name: str, source: str, *arguments: str) -> str:
    (tmp_path / name).write_text(source)
    output = str(tmp_path / "o.mwa")
    assert main(["compile", str(tmp_path / name), "--tokenizer", TOKENIZER, "-o", output, *arguments]) == 0
    return output


def test_gbnf(tmp_path: Path) -> None:
    grammar = 'root ::= "a" tail\ntail ::= [0-9]+\n'
    for output in (run(tmp_path, "g.gbnf", grammar), run(tmp_path, "g.txt", grammar, "--gbnf")):
        assert main(["check", output, "a12"]) == 0
        assert main(["check", output, "a"]) == 1
    output = run(tmp_path, "g.gbnf", grammar, "--grammar-start", "tail")
    assert main(["check", output, "12"]) == 0


def test_tools(tmp_path: Path) -> None:
    output = run(tmp_path, "t.tools.json", json.dumps(TOOLS))
    assert main(["check", output, f"well {CALL} and {CALL}"]) == 0
    assert main(["check", output, CALL.replace("1", "true")]) == 1
    output = run(tmp_path, "t.json", json.dumps(TOOLS), "--tools", "--tool-choice", "required", "--no-parallel")
    assert main(["check", output, CALL]) == 0
    assert main(["check", output, f"well {CALL}"]) == 1
    output = run(tmp_path, "t.json", json.dumps(TOOLS), "--tools", "--format", "openai", "--reasoning", "<t>", "</t>")
    assert main(["check", output, '<t>hm</t>[{"name": "f", "arguments": {"n": 1}}]']) == 0


def test_refusals_have_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"name": "f", "parameters": {"type": "strin"}}]))
    arguments = ["compile", str(tmp_path / "t.json"), "--tools", "--tokenizer", TOKENIZER, "-o", str(tmp_path / "o")]
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["diagnostics"][0]["pointer"] == "/0/parameters/type"


def test_requests_carry_the_new_kinds_and_options() -> None:
    options = {"grammar_start": "tail", "grammar_fallback": "commit", "grammar_strict": True}
    for kind in ("gbnf", "tools", "lark"):
        message = compile_request(TOOLS if kind == "tools" else "x", "0" * 64, kind=kind, options=options)
        chosen = options_of(message.options)
        assert KINDS[message.kind] == kind
        assert (chosen.grammar_start, chosen.grammar_fallback, chosen.grammar_strict) == ("tail", "commit", True)


def test_the_service_compiles_them() -> None:
    from maskwright.compiler import CompileOptions, Limits, Vocabulary

    fingerprint = Vocabulary.from_file(TOKENIZER).fingerprint
    made = set()
    for kind, source in (("gbnf", 'root ::= "a"'), ("tools", json.dumps(TOOLS)), ("lark", 'start: "a"')):
        job = CompileJob(kind, source, CompileOptions(), Limits(), fingerprint, TOKENIZER, "")
        result = compile_source(job)
        assert isinstance(result, Compiled), result
        made.add(result.artifact)
    assert len(made) == 3
