"""`%json` and `%regex` in a grammar: values are read where a terminal may stand, and the grammar goes on after them."""

from __future__ import annotations

import itertools
import re

import pytest

from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.ir import ByteAutomaton, accepts, initial, may_end, step, verify
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.grammar import build_grammar
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import library_frames

CALLS = r"""
start: call (";" call)*
call: NAME "(" [value ("," value)*] ")" | NAME "=" value
value: %json {
  "type": ["object", "integer", "array"],
  "properties": {"a": {"type": "string"}, "b": {"$ref": "#"}},
  "items": {"type": "integer"},
  "additionalProperties": false
}
NAME: /[a-z]+/
%ignore " "
// %json { in a comment } and "%json {" in a string stay
"""


@pytest.fixture(scope="module")
def library() -> ByteAutomaton:
    return minimise(specialise(explore_library(library_frames(16))))


@pytest.mark.parametrize("with_library", [False, True])
def test_json_values(with_library: bool, library: ByteAutomaton) -> None:
    a = build_grammar(CALLS, library=library if with_library else None).automaton
    assert [f for f in verify(a) if "goes on" not in f] == []
    accept = ['f({"a":"x"}, 12,[1, 2])', "x = -3;g( )", 'x={"b":{"b":{}}} ; y=0', "f(1 )"]
    reject = ["f(", 'f({"a":1})', "f(1.5)", "x=1 2", "x=01", "f([1,])", '{"a":"x"}']
    for text in accept:
        assert accepts(a, text.encode()), text
    for text in reject:
        assert not accepts(a, text.encode()), text


def test_every_prefix_of_a_member_can_go_on(library: ByteAutomaton) -> None:
    a = build_grammar(CALLS, library=library, compile_options=CompileOptions(whitespace="compact")).automaton
    config = initial(a)
    ends = []
    for i, byte in enumerate(b'f({"a":"x"},[1]);y=12'):
        following = step(a, config, byte)
        assert following is not None
        config = following
        if may_end(a, config):
            ends.append(i)
    assert ends == [15, 19, 20]


def test_an_embedded_pattern_is_a_terminal() -> None:
    grammar = 'start: (code | "-")+\ncode: %regex {"pattern": "[ab]+c?(?!c)", "dialect": "python"}\n'
    a = build_grammar(grammar).automaton
    whole = re.compile("([ab]+c?|-)+")
    for n in range(6):
        for chosen in itertools.product("abc-", repeat=n):
            text = "".join(chosen)
            assert accepts(a, text.encode()) == bool(whole.fullmatch(text)), text


def test_two_equal_values_are_one() -> None:
    grammar = 'start: "a" %json {"type": "null"} | "b" %json {"type":"null"} "!"\n'
    a = build_grammar(grammar).automaton
    assert accepts(a, b"anull")
    assert accepts(a, b"bnull!")
    assert not accepts(a, b"bnull")
    assert [f.name for f in a.frames].count("null") == 1


def test_values_before_a_lexeme_ends() -> None:
    a = build_grammar('start: (NAME v)+\nNAME: /[a-z]+/\nv: %json {"type": "array", "maxItems": 0}\n').automaton
    assert accepts(a, b"ab[]c[]")
    assert not accepts(a, b"ab[]c")


@pytest.mark.parametrize(
    ("grammar", "code", "word"),
    [
        ('start: "[" | %json {"type": "array"}\n', Code.UNSUPPORTED_GRAMMAR, "may both begin with byte '['"),
        (
            'start: %json {"type": "array"} "a" | %json {"items": {}} "b"\n',
            Code.UNSUPPORTED_GRAMMAR,
            "may both begin",
        ),
        ('start: %json {"type": "arra"}\n', Code.INVALID_SOURCE, ""),
        ("start: %json {\n", Code.INVALID_SOURCE, "isn't JSON"),
        ('start: %regex {"pattern": "a*"}\n', Code.INVALID_SOURCE, "empty"),
        ('start: %regex {"pat": "a"}\n', Code.INVALID_SOURCE, "pattern"),
        ("start: <|x|>\n", Code.UNSUPPORTED_GRAMMAR, "<|x|>"),
    ],
)
def test_refusals_have_a_place(grammar: str, code: Code, word: str) -> None:
    with pytest.raises(CompileError) as e:
        build_grammar(grammar)
    d = e.value.diagnostics[0]
    assert d.code is code
    assert word in d.message
    assert d.span is not None
    assert d.span[0] >= grammar.index(" ")
