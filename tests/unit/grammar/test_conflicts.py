"""Conflicts and collisions as diagnostics: rules, look-ahead and an example text."""

from __future__ import annotations

import pytest

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.grammar import GrammarOptions, build_grammar

ELSE = 'start: s\ns: "if" s | "if" s "else" s | "x"\n%ignore " "\n'


def test_reduce_reduce_names_rules_look_ahead_and_example() -> None:
    with pytest.raises(CompileError) as e:
        build_grammar('start: "(" x ")" | "(" y ")" "!"\nx: N\ny: N\nN: /[0-9]+/\n')
    (d,) = e.value.diagnostics
    assert d.detail["conflict"] == "reduce/reduce"
    assert d.detail["terminal"] == "RPAR"
    assert d.detail["rules"] == ["<x : N>", "<y : N>"]
    assert d.detail["example"] == ["(", "0"]
    assert d.hint is not None


def test_priorities_decide_reduce_reduce() -> None:
    build_grammar("start: x | y\nx.2: N\ny: N\nN: /[0-9]+/\n")


def test_shift_reduce_is_a_note_and_in_strict_mode_a_refusal() -> None:
    (note,) = build_grammar(ELSE).notes
    assert note.severity == "note"
    assert note.detail["conflict"] == "shift/reduce"
    assert note.detail["terminal"] == "ELSE"
    assert note.detail["example"] == ["if", "x"]
    with pytest.raises(CompileError) as e:
        build_grammar(ELSE, GrammarOptions(strict=True))
    assert e.value.diagnostics[0].severity == "error"


def test_colliding_terminals() -> None:
    grammar = "start: (A | B)+\nA: /[a-m]+/\nB: /[k-z]+/\n"
    (note,) = build_grammar(grammar).notes
    assert note.detail["terminals"] == ["A", "B"]
    assert note.detail["example"] in {"k", "l", "m"}
    with pytest.raises(CompileError):
        build_grammar(grammar, GrammarOptions(strict=True))


def test_terminals_apart_by_priority_or_text_are_not_noted() -> None:
    assert build_grammar("start: (A | B)+\nA.2: /[a-m]+/\nB: /[k-z]+/\n").notes == ()
    assert build_grammar("start: (A | B)+\nA: /[a-m]+/\nB: /[n-z]+/\n").notes == ()
