"""What is read of lark's private structures, pinned: a lark release that changes it fails here first."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from maskwright.compiler.automaton.ir import show
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.grammar import build_grammar
from maskwright.compiler.grammar.lark_tables import END, Lexer, Reduce, Shift, read_tables

GRAMMAR = 'start: "(" start ")" | NAME "if" | "in"i\nNAME.2: /[a-z]+/\nWS: /[ ]+/\n%ignore WS\n'


def test_the_version_is_the_one_that_was_read() -> None:
    assert version("lark") == "1.3.1"


def test_tables() -> None:
    t = read_tables(GRAMMAR)
    assert t.n_states == 8
    assert t.ignored == {"WS"}
    assert {n: x.regexp for n, x in t.terminals.items()} == {
        "IF": "if",
        "IN": "(?i:in)",
        "LPAR": "\\(",
        "NAME": "[a-z]+",
        "RPAR": "\\)",
        "WS": "[ ]+",
    }
    start = t.actions[0]
    assert list(start) == ["IN", "LPAR", "NAME"]
    assert all(isinstance(a, Shift) for a in start.values())
    assert t.lexers[t.lexer_of[0]] == Lexer(("NAME", "WS", "IN", "LPAR"), ())
    assert t.gotos[0] == {"start": t.end_state}
    after_in = t.actions[start["IN"].state]  # type: ignore[union-attr]
    assert {k: (a.origin, a.size) for k, a in after_in.items() if isinstance(a, Reduce)} == {
        END: ("start", 1),
        "RPAR": ("start", 1),
    }


def test_keywords_are_embedded_in_names() -> None:
    t = read_tables('start: (NAME | "if")*\nNAME: /[a-z]+/\n')
    assert t.lexers[t.lexer_of[0]] == Lexer(("NAME",), (("NAME", ("IF",)),))


@pytest.mark.parametrize(
    ("grammar", "code", "word"),
    [
        ("start: a\n", Code.INVALID_SOURCE, "a"),
        ("start: (\n", Code.INVALID_SOURCE, "line"),
        ("start: A\nA: /a*/\n", Code.INVALID_SOURCE, "A can match nothing"),
        ("start: A\nA: /(/\n", Code.INVALID_SOURCE, ""),
        ("%declare A\nstart: A\n", Code.UNSUPPORTED_GRAMMAR, "A is declared"),
        ("%import .secret.A\nstart: A\n", Code.UNSUPPORTED_GRAMMAR, "secret"),
        ("%import elsewhere (A)\nstart: A\n", Code.UNSUPPORTED_GRAMMAR, "elsewhere"),
        ("start: a | b\na: A\nb: A\nA: /a/\n", Code.UNSUPPORTED_GRAMMAR, "can't tell <a : A> and <b : A> apart"),
        ("start: A A\nA: /a+/\n", Code.UNSATISFIABLE, "no text"),
        ("start: x x\nx: A\nA: /a+/\n", Code.UNSATISFIABLE, "no text"),
        ("start: B r\nr: C D\nB: /b/\nC: /[ac]+/\nD: /c/\n", Code.UNSATISFIABLE, "no text"),
        ("start: A\nA: /(a)\\1/\n", Code.UNSUPPORTED_PATTERN, "terminal A"),
        ("other: A\nA: /a/\n", Code.INVALID_SOURCE, "start"),
    ],
)
def test_refusals(grammar: str, code: Code, word: str) -> None:
    with pytest.raises(CompileError) as e:
        build_grammar(grammar)
    assert e.value.diagnostics[0].code is code, e.value
    assert word in e.value.diagnostics[0].message


def test_a_relative_import_of_a_bundled_grammar_reads_no_file() -> None:
    t = read_tables("%import .common.INT\nstart: INT\n")
    assert list(t.terminals) == ["INT"]


def test_deep_nesting_is_a_diagnostic() -> None:
    with pytest.raises(CompileError):
        build_grammar("start: " + "(" * 20_000 + '"a"' + ")" * 20_000 + "\n")


def test_the_same_grammar_gives_the_same_automaton_under_any_hash_seed() -> None:
    code = (
        "from maskwright.compiler.grammar import build_grammar;from maskwright.compiler.automaton.ir import show;"
        f"import hashlib;print(hashlib.sha256(show(build_grammar({GRAMMAR!r}).automaton).encode()).hexdigest())"
    )
    seen = set()
    for seed in ("1", "2", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert len(seen) == 1


def test_bytes_that_no_token_spells_are_left_out() -> None:
    grammar = 'start: ("a" | "b")+\n'
    spellable = sum(1 << b for b in b"a")
    found = build_grammar(grammar, spellable=spellable)
    assert "'b'" not in show(found.automaton)
    assert found.notes[0].detail == {"bytes": [98]}
    with pytest.raises(CompileError) as e:
        build_grammar('start: "b"\n', spellable=spellable)
    assert e.value.diagnostics[0].code is Code.VOCABULARY_INCOMPLETE
