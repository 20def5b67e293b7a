"""Lark's lexer rules one by one: every short text over a few pieces is judged as lark judges it."""

from __future__ import annotations

import itertools

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.grammar import GrammarOptions, build_grammar

IGNORE = '\n%ignore " "'
RULES: dict[str, tuple[str, str | list[str], int]] = {
    "longest lexeme, not longest text": ("start: NAME NAME\nNAME: /a+/" + IGNORE, "a ", 6),
    "names and keywords": ('start: (NAME | "if" | "in")+\nNAME: /[a-z]+/' + IGNORE, "ifn ", 5),
    "keywords only where the parser takes them": (
        'start: "if" NAME "then" NAME\nNAME: /[a-z]+/' + IGNORE,
        ["if", "then", "a", " "],
        6,
    ),
    "keyword in either case": ('start: (NAME | "If"i | "in")+\nNAME: /[a-z]+/i' + IGNORE, ["i", "F", "n", "I", " "], 5),
    "priority before length": ('start: (A|B|C)+\nA.2: "a"\nB: "ab"\nC: "b" "c"?', "abc", 6),
    "bytes read again after an unfinished number": (
        'start: (NUMBER | DOT | E)+\nNUMBER: /[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?/\nDOT: "."\nE: "e" | "+"',
        "1.e+",
        6,
    ),
    "lazy repeats": ('start: (S|T)*\nS: /"(\\\\.|[^"\\\\])*?"/\nT: /a+?b/', 'ab"\\', 6),
    "order inside a pattern": ("start: (A|B)+\nA: /a|ab|abc/\nB: /b|c/", "abc", 6),
    "lookbehind in common's strings": ('%import common.ESCAPED_STRING\nstart: (ESCAPED_STRING | "a")*', 'a"\\', 7),
    "lookahead": ("start: (A|B|C)*\nA: /a(?=b)/\nB: /b(?!a)/\nC: /[ab]c/", "abc", 7),
    "lookahead in lookahead": ("start: (A|B)*\nA: /a(?=b(?!a))/\nB: /[ab](?!bb)/", "ab", 8),
    "ends of text and words": ("start: (A|B|NL)*\nA: /a$/\nB: /[ab]\\b/\nNL: /\\n/", "ab\n", 7),
    "no word edge": ("start: (A|B|C)*\nA: /a\\B/\nB: /b/\nC: / /", "ab ", 7),
    "starts of lines": ("start: (A|B|NL)*\nA: /(?m:^a)/\nB: /[ab]c/\nNL: /\\n/", "abc\n", 6),
    "text ends only": ("start: (A|B)*\nA: /a\\Z/\nB: /ab?(?=[^\\n])|\\n/", "ab\n", 7),
    "lookbehind over the start of a lexeme": ("start: (A|B)*\nA: /(?<=b)a/\nB: /[bc]/", "abc", 7),
    "lookbehind over ignored text": ("start: (A|B)*\nA: /(?<! )a/\nB: /b/" + IGNORE, "ab ", 7),
    "comments beside a division": (
        'start: x ("/" x)*\nx: "a"\nC: /\\/\\*(.|\\n)*?\\*\\//\n%ignore C' + IGNORE,
        "a/* ",
        7,
    ),
    "nesting": ('start: "a" start "a" | "b" start "b" | "c"', "abc", 7),
    "empty rules": ('start: a b c\na: "a"?\nb: "b"*\nc: "c"*', "abc", 6),
    "nothing at all": ('start: "a"*' + IGNORE, "a b", 4),
    "contexts that LALR merges": (
        'start: "a" x "b" | "c" x "d" | "a" y "d" | "c" y "b"\nx: X\ny: X "y"\nX: "x"',
        "abcdxy",
        5,
    ),
    "a longer lexeme that its context can't use": (
        'start: "(" a ")" | "[" ab "]"\na: A B\nab: AB\nA: "a"\nB: "b"\nAB: "ab"',
        "()[]ab",
        5,
    ),
    "ignored before it is retyped": (
        'start: (NAME | "x")+\nNAME: /[a-z]+/\nIG: /[a-z]o/\n%ignore IG' + IGNORE,
        "nox ",
        5,
    ),
    "retyped to an ignored terminal": (
        'start: (NAME | "x")+\nNAME: /[a-z]+/\nIG: "no"\n%ignore IG' + IGNORE,
        "nox ",
        5,
    ),
    "characters of several bytes": ('start: W+\nW: /\\w/ "é"? | /[^\\w\\s]/', "aé€😀 ", 4),
    "templates and counts": ('start: _sep{x, ","}\n_sep{i, s}: i (s i)*\nx: "a"~2..3 | "b"~2', "ab,", 7),
    "extend and override": (
        '%import common.INT\n%extend INT: "x"\n%import common.WORD\n%override WORD: "w"\nstart: (INT | WORD)+',
        "1xwa",
        5,
    ),
    "aliases, inline rules, maybe": ('start: [a] "b" -> one | _c\n_c: "c" ["d"]\n?a: "a" | "(" a ")"', "abcd()", 5),
    "dangling else": ('start: s\ns: "i" s ["e" s] | "x"', "iex", 7),
}


@pytest.mark.parametrize("rule", RULES)
def test_short_texts(rule: str) -> None:
    grammar, pieces, most = RULES[rule]
    lark = Lark(grammar, parser="lalr", lexer="contextual")
    automaton = build_grammar(grammar).automaton
    verdicts: set[bool] = set()
    for n in range(most + 1):
        for chosen in itertools.product(pieces, repeat=n):
            text = "".join(chosen)
            wanted = _parses(lark, text)
            verdicts.add(wanted)
            assert accepts(automaton, text.encode()) == wanted, (text, wanted)
    assert verdicts == {False, True}


def _parses(lark: Lark, text: str) -> bool:
    try:
        lark.parse(text)
    except UnexpectedInput:
        return False
    return True


UNCLOSED = 'start: x (("/" | "*") x)*\nx: "*"* "a"\nC: /\\/\\*(.|\\n)*?\\*\\//\n%ignore C\n%ignore " "'


def test_unbounded_look_ahead_is_refused_by_names() -> None:
    with pytest.raises(CompileError) as e:
        build_grammar(UNCLOSED)
    found = e.value.diagnostics[0]
    assert found.code is Code.UNSUPPORTED_GRAMMAR
    assert found.detail["terminals"] == ["SLASH", "C"]


def test_commit_loses_texts_and_lets_none_through() -> None:
    lark = Lark(UNCLOSED, parser="lalr", lexer="contextual")
    automaton = build_grammar(UNCLOSED, GrammarOptions(fallback="commit")).automaton
    lost = set()
    for n in range(7):
        for chosen in itertools.product("a/* ", repeat=n):
            text = "".join(chosen)
            ours, wanted = accepts(automaton, text.encode()), _parses(lark, text)
            assert wanted or not ours, text
            if wanted and not ours:
                lost.add(text)
    assert accepts(automaton, b"a / a /* * */ * a")
    assert "a/*a" in lost
    assert all("/*" in text for text in lost)
