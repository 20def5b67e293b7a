"""GBNF against a matcher that tries everything: every short text is judged alike."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from maskwright.compiler.automaton.ir import accepts, verify
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.grammar.gbnf import build_gbnf
from maskwright.compiler.grammar.gbnf_reader import Chars, Choice, Node, Ref, Repeat, Rules, Sequence, read_gbnf
from maskwright.compiler.regular.codepoints import contains

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (
             string ":" ws value
             ("," ws string ":" ws value)*
           )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# optional space
ws ::= | " " | "\n" [ \t]{0,20}
"""


class Oracle:
    """Where a node that begins at a place may end, by trying everything; rules mustn't be left-recursive."""

    def __init__(self, rules: Rules, text: str) -> None:
        self.rules, self.text = rules, text
        self.known: dict[tuple[str, int], frozenset[int]] = {}

    def ends(self, node: Node, at: int) -> frozenset[int]:
        if isinstance(node, Chars):
            fits = at < len(self.text) and contains(node.ranges, ord(self.text[at]))
            return frozenset({at + 1}) if fits else frozenset()
        if isinstance(node, Sequence):
            return self.follow({at}, list(node.items))
        if isinstance(node, Choice):
            return frozenset(e for b in node.branches for e in self.ends(b, at))
        if isinstance(node, Repeat):
            return self.repeat(node, at)
        assert isinstance(node, Ref)
        key = (node.name, at)
        if key not in self.known:
            self.known[key] = self.ends(self.rules.bodies[node.name], at)
        return self.known[key]

    def follow(self, places: set[int], items: list[Node]) -> frozenset[int]:
        for item in items:
            places = {e for at in places for e in self.ends(item, at)}
        return frozenset(places)

    def repeat(self, node: Repeat, at: int) -> frozenset[int]:
        places = set(self.follow({at}, [node.item] * node.low))
        found, count = set(places), node.low
        while places and (node.high is None or count < node.high):
            places = {e for p in places for e in self.ends(node.item, p)} - found
            found |= places
            count += 1
        return frozenset(found)


def matches(rules: Rules, text: str) -> bool:
    return len(text) in Oracle(rules, text).ends(rules.bodies["root"], 0)


GRAMMARS = {
    "texts and sets": ('root ::= ("ab" | [^a] "c"?)+', "abc", 5),
    "counts": ('root ::= "a"{2,3} "b"{2} "c"{1,} | "c"{0,2}', "abc", 7),
    "nesting": ('root ::= "(" root ")" | "[" root? "]" | "x"', "()[]x", 6),
    "alternatives told apart late": (
        'root ::= a "!" | b "?"\na ::= "(" a? ")"\nb ::= "(" b? ")" | "x"',
        "()x!?",
        6,
    ),
    "white space after a value": (
        'root ::= list\nlist ::= "[" ws (item ("," ws item)*)? "]" ws\nitem ::= list | "a" ws\nws ::= " "*',
        "[a], ",
        6,
    ),
    "right recursion": ('root ::= item root | "."\nitem ::= "a" | "(" root ")"', "a().", 6),
    "arithmetic": ('root ::= term ([-+] term)*\nterm ::= [0-9] | "(" root ")"', "1+()", 7),
    "empty rules": ('root ::= a* "c"\na ::= "a" | b\nb ::= "b" | "<" a* ">"\n', "abc<>", 6),
    "characters of several bytes": ('root ::= [à-ÿ€]+ | "😀" root', "éa€😀", 4),
    "names and comments": (
        '# one\nroot ::= r-1 # two\n  | r_2\nr-1 ::= "a"\n\nr_2 ::=\n  "b" |\n  "\\x63"\n',
        "abc",
        2,
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_short_texts(name: str) -> None:
    text, pieces, most = GRAMMARS[name]
    rules, a = read_gbnf(text), build_gbnf(text)
    assert verify(a) == []
    verdicts = set()
    for n in range(most + 1):
        for chosen in itertools.product(pieces, repeat=n):
            candidate = "".join(chosen)
            wanted = matches(rules, candidate)
            verdicts.add(wanted)
            assert accepts(a, candidate.encode()) == wanted, (candidate, wanted)
    assert verdicts == {False, True}


def test_json_with_mutations() -> None:
    rules, a = read_gbnf(JSON), build_gbnf(JSON)
    rng = random.Random(5)
    member = '{"a": [1, -2.5e3, {}, []], "b": {"c": "x\\"\\u00e9é"}, "": null}'
    assert matches(rules, member)
    assert accepts(a, member.encode())
    agree = 0
    for _ in range(400):
        i = rng.randrange(len(member) + 1)
        text = member[:i] + rng.choice([*'{}[],:" 0e', ""]) + member[i + rng.randrange(2) :]
        assert accepts(a, text.encode()) == matches(rules, text), text
        agree += matches(rules, text)
    assert agree > 20
    assert json.loads(member)


@pytest.mark.parametrize(
    ("grammar", "code", "word"),
    [
        ('root ::= "a', Code.INVALID_SOURCE, "isn't closed"),
        ("root ::= [a", Code.INVALID_SOURCE, "isn't closed"),
        ("root ::= (a", Code.INVALID_SOURCE, "isn't closed"),
        ('root "a"', Code.INVALID_SOURCE, "::="),
        ("root ::= a", Code.INVALID_SOURCE, "'a' isn't defined"),
        ('root ::= "a"\nroot ::= "b"', Code.INVALID_SOURCE, "twice"),
        ('start ::= "a"', Code.INVALID_SOURCE, "'root' isn't defined"),
        ('root ::= "\\q"', Code.INVALID_SOURCE, "no meaning"),
        ('root ::= "a"{3,2}', Code.INVALID_SOURCE, "count"),
        ("root ::= *", Code.INVALID_SOURCE, "name"),
        ("root ::= <think>", Code.UNSUPPORTED_GRAMMAR, "token"),
        ('root ::= (= "a") "a"', Code.UNSUPPORTED_GRAMMAR, "look-ahead"),
        ('root ::= TagDispatch(("a", b))', Code.UNSUPPORTED_GRAMMAR, "TagDispatch"),
        ('root ::= root "a" | "b"', Code.UNSUPPORTED_GRAMMAR, "left-recursive"),
        ('root ::= a "x"\na ::= b? a "y" | "z"\nb ::= "b"', Code.UNSUPPORTED_GRAMMAR, "left-recursive"),
        ('root ::= "(" root ")" | "(" "x"', Code.UNSUPPORTED_GRAMMAR, ""),
        ('root ::= a ";" | "x"+ " (" "y"\na ::= "x" " " b\nb ::= "(" b ")" | "y"', Code.UNSUPPORTED_GRAMMAR, ""),
        (
            'root ::= a | b\na ::= "x" c "!"\nb ::= "x" "(" "y"\nc ::= d "?"\nd ::= "(" c ")" | "y"',
            Code.UNSUPPORTED_GRAMMAR,
            "something else",
        ),
        ('root ::= a "x"\na ::= "(" a ")" "x"* "y"? | "z"', Code.UNSUPPORTED_GRAMMAR, ""),
        ('root ::= "(" a "x"* ")"\na ::= "[" a "]" | "[" "]" ("x" a)?', Code.UNSUPPORTED_GRAMMAR, ""),
        ('root ::= "(" root', Code.UNSATISFIABLE, ""),
        ("root ::= " + "(" * 5_000 + '"a"' + ")" * 5_000, Code.INVALID_SOURCE, "deeper"),
        ('root ::= "a"{9999} "b"{9999} ("c"{9999}){9999}', Code.LIMIT_EXCEEDED, "positions"),
    ],
)
def test_refusals(grammar: str, code: Code, word: str) -> None:
    try:
        a = build_gbnf(grammar)
    except CompileError as e:
        assert e.diagnostics[0].code is code, e
        assert word in e.diagnostics[0].message
    else:
        rules = read_gbnf(grammar)
        assert word == "", "only these may be taken, if they're taken right"
        for n in range(8):
            for chosen in itertools.product("()[]xyz", repeat=n if n < 6 else 0):
                text = "".join(chosen)
                assert accepts(a, text.encode()) == matches(rules, text), text
