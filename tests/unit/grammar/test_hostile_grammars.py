"""Grammars that are meant to hurt end in bounded time with a diagnostic, or compile."""

from __future__ import annotations

import time

import pytest

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.grammar import build_gbnf, build_grammar
from maskwright.compiler.options import Limits

LIMITS = Limits(states=20_000, compile_seconds=5.0)
HOSTILE = {
    "deep rule": "start: " + "(" * 3_000 + '"a"' + ")" * 3_000,
    "deep pattern": "start: A\nA: /" + "(" * 3_000 + "a" + ")" * 3_000 + "/",
    "deep alternation": "start: A\nA: /" + "(a|" * 400 + "b" + ")" * 400 + "/",
    "nested lookaheads": "start: A\nA: /a" + "(?=a" * 60 + ")" * 60 + "/",
    "subset blow-up": "start: A B\nA: /(a|b)*a(a|b){15}/\nB: /c/",
    "order blow-up": "start: A B\nA: /((a|b)*?a(a|b){12})+/\nB: /c/",
    "large count in a pattern": "start: A\nA: /(a{0,300}b{0,300}){0,300}/",
    "large count in a rule": 'start: "a"~1..3000',
    "lookbehind of many characters": "start: (A|B)+\nA: /(?<=a{40}b{40})c/\nB: /[abc]/",
    "look-ahead without end": "start: (A|B)+\nA: /a(?=.*c)/\nB: /[abc]/",
    "rule that never ends": 'start: "a" start',
    "rules in a circle": "start: a\na: b\nb: a",
    "unit cycle": 'start: a\na: a | "x"',
    "hidden left recursion": 'start: a\na: b a "x" | "y"\nb: ',
    "no terminals": "start:",
    "all characters": "start: A+\nA: /./s\n%ignore /\\s/",
    "many rules": "\n".join(["start: r0", *(f'r{i}: "x{i}" r{i + 1} | "y{i}"' for i in range(400)), 'r400: "z"']),
    "many keywords": "start: (NAME | "
    + " | ".join(f'"word{i}"' for i in range(400))
    + ")+\nNAME: /[a-z0-9]+/\n%ignore / +/",
    "nul and surrogates": "start: A\nA: /\\x00[\\ud800-\\udfff]?/",
    "not text at all": "\x00\x01\x02",
    "empty": "",
    "fraction of %json": 'start: %json {"a": [',
    "deep %json": "start: %json " + '{"items":' * 500 + "{}" + "}" * 500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bounded(name: str) -> None:
    begin = time.monotonic()
    try:
        build_grammar(HOSTILE[name] + "\n", limits=LIMITS)
    except CompileError as e:
        assert e.diagnostics
        assert all(d.message for d in e.diagnostics)
    assert time.monotonic() - begin < 25


GBNF = {
    "subset blow-up": 'root ::= ("a" | "b")* "a" ("a" | "b"){16}',
    "doubling": "\n".join(["root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40)), 'r40 ::= "x"']),
    "wide recursion": "root ::= " + " | ".join(f'"{i}" root "x{i}"' for i in range(200)),
    "many empties": 'root ::= a{50}\na ::= b*\nb ::= (a)? "x"? ',
    "not text at all": "\x00\x01",
}


@pytest.mark.parametrize("name", GBNF)
def test_gbnf_bounded(name: str) -> None:
    begin = time.monotonic()
    try:
        build_gbnf(GBNF[name], limits=LIMITS)
    except CompileError as e:
        assert e.diagnostics
    assert time.monotonic() - begin < 25
