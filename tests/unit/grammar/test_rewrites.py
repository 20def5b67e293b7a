"""What the page on conflicts (grammar/CONFLICTS.md) says is refused is refused, and its rewritten forms compile."""

from __future__ import annotations

import pytest

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.grammar import GrammarOptions, build_grammar

COMMENTS = 'start: (NAME | {slash} | "*")+\nNAME: /[a-z]+/\n{rest}\n%ignore COMMENT\n%ignore " "\n'
COMMENT = r"COMMENT: /\/\*(.|\n)*?\*\//"

REFUSED = [
    ('start: a ";" | b ";"\na: NAME\nb: NAME\nNAME: /[a-z]+/', False, "can't tell <a : NAME> and <b : NAME> apart"),
    ('start: a "x" | b "x"\na: "p"?\nb: "q"?', False, "can't tell <a : > and <b : > apart"),
    ('start: s\ns: "if" e s ["else" s] | "x"\ne: "e"', True, "could end <s : IF e s>"),
    ('start: e\ne: e "+" e | e "*" e | NUM\nNUM: /[0-9]+/', True, "the parser could end"),
    (COMMENTS.format(slash='"/"', rest=COMMENT), False, "after SLASH the lexer may have to look ahead without bound"),
]
GOOD = [
    'start: name ";"\nname: NAME\nNAME: /[a-z]+/',
    'start: a "x" | b "x" | "x"\na: "p"\nb: "q"',
    'start: s\ns: o | c\nc: "if" e c "else" c | "x"\no: "if" e s | "if" e c "else" o\ne: "e"',
    'start: e\ne: t | e "+" t\nt: NUM | t "*" NUM\nNUM: /[0-9]+/',
    'start: item ("," item)* [","]\nitem: "a"',
    'start: (item ",")* item?\nitem: "a"',
    COMMENTS.format(slash='"/"', rest=r"COMMENT: /\/\*([^*]|\*[^\/])*(\*\/)?/"),
    COMMENTS.format(slash="SLASH", rest="SLASH: /\\/(?!\\*)/\n" + COMMENT),
]


@pytest.mark.parametrize(("grammar", "strict", "text"), REFUSED)
def test_refused(grammar: str, strict: bool, text: str) -> None:
    with pytest.raises(CompileError, match=r".") as refused:
        build_grammar(grammar, GrammarOptions(strict=strict))
    assert any(text in d.message for d in refused.value.diagnostics)


@pytest.mark.parametrize("grammar", GOOD)
def test_rewritten(grammar: str) -> None:
    assert build_grammar(grammar, GrammarOptions(strict=True)).notes == ()


def test_committing_is_a_subset() -> None:
    build_grammar(REFUSED[-1][0], GrammarOptions(fallback="commit"))
