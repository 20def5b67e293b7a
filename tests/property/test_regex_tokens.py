"""Patterns through tokens: compiled for the demo vocabulary, texts cut into random tokens, every one asked for in the
mask; against `re` and `regress`, as whole texts and inside JSON strings with random escapes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from regex_patterns import Judge, likely_texts, oracle

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.compiler.regex import Dialect, compile_pattern
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

ECMA262 = r"""
abc
a|b|cd|
(?:ab|a)(?:bc|c)
(x+x+)+y
a{2,4}b{0,2}c{3}
[^a-y]+
[^]{2}
.*
^(?:GET|POST|PUT) \/[a-z\d\/]*$
^[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$
^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$
^#(?:[\da-fA-F]{3}){1,2}$
^(?=.*[a-z])(?=.*\d)[a-z\d]{4,}$
(?!.*ab)[abc]+
a(?=b)[ab]c
[ab]+(?<=ab)
(?<!a)b|ab+(?<!bbb)
\bfoo\b|\Bo\B
(?:\b\w+\b ?)+
(?:(?=a)[ab]|b(?!a))*
^a|b$
a$|b
a^b|c
(?m:^a$\n?)+
(?i:straße|σ)+
(?i:K)\w
\p{Lu}\p{Ll}*
\p{Script=Greek}+
[\p{L}-]{3}
\P{L}{2}
[àéî]{1,3}
😀|\u{1F601}|\ud83d\ude02
[\u{1F600}-\u{1F64F}]{1,2}
\x41\u0042\cJ\0?
\s\S
[\s\S]{3}
"[^"]*"
\\["\\\/bfnrt]
(?:"|\\|\/){1,4}
[\x00-\x1f]*z
\u00e9\u0301?
(?<year>\d{2})-\d
(a?){12}a{12}
""".strip("\n").split("\n")
PYTHON = r"""
(?i)ısi
(?x) a  b # c
a$
a\Z
\Aa.c\Z
(?s:.)b
(?a:\w)\w
[]a]{2}
[^]a]
a{,2}b
a{b
a*+b
(?>ab|a)c
\N{GREEK SMALL LETTER ALPHA}+
\U0001F600?\101
\d+\s\D
(?<=\w\w)b|\w{2}b
(?P<x>a)|(?:b)??c
(?-i:a)[\-b]
\Bb|a\Bb?
(?im-s:^a.$)
""".strip("\n").split("\n")
CASES: list[tuple[Dialect, str]] = [("ecma262", p) for p in ECMA262] + [("python", p) for p in PYTHON]
LONGEST = 30
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Tokens:
    """The demo vocabulary, its compilers, and ways to cut a text into its tokens."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary.demo()
        self.compilers: dict[Dialect, Compiler] = {
            "ecma262": Compiler(self.vocabulary),
            "python": Compiler(self.vocabulary, CompileOptions(regex_dialect="python")),
        }
        self.pack = VocabularyPack.from_bytes(self.vocabulary.pack_bytes())
        self.ids = {data: i for i, data in enumerate(self.vocabulary.tokens) if data}
        self.longest = max(map(len, self.ids))
        self.mask = allocate_token_bitmask(1, self.vocabulary.size)

    def cut(self, data: bytes, r: random.Random) -> Iterator[int]:
        """Ids of tokens that spell the bytes: any that fit, longer ones rather than shorter."""
        at = 0
        while at < len(data):
            fits = [n for n in range(1, self.longest + 1) if data[at : at + n] in self.ids and at + n <= len(data)]
            n = r.choice(fits[len(fits) // 2 :])
            yield self.ids[data[at : at + n]]
            at += n

    def accepts(self, artifact: Artifact, data: bytes, r: random.Random) -> bool:
        """Decodes the text token by token; a token must be in the mask exactly when the matcher takes it."""
        matcher = Matcher(artifact)
        for token in self.cut(data, r):
            legal = self.is_legal(matcher, token)
            assert matcher.accept_token(token) == legal
            if not legal:
                return False
        (stop,) = self.vocabulary.stop_token_ids
        assert self.is_legal(matcher, stop) == matcher.is_accepting()
        return matcher.is_accepting()

    def is_legal(self, matcher: Matcher, token: int) -> bool:
        matcher.fill_next_token_bitmask(self.mask, 0)
        bits = np.unpackbits(self.mask[0].view(np.uint8), bitorder="little")
        return bool(bits[token])


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens()


def judged_texts(dialect: Dialect, pattern: str, mode: str, r: random.Random) -> Iterator[tuple[str, bool]]:
    judges = oracle(pattern, dialect)
    assert judges is not None, pattern
    judge: Judge = judges[mode]
    dfa = compile_pattern(pattern, dialect, mode=mode)  # type: ignore[arg-type]
    for text in likely_texts(dfa, r, LONGEST):
        yield text, judge(text)


def spelled(text: str, r: random.Random) -> bytes:
    """A JSON string of the text, each character raw or escaped in any of the ways there are."""
    out = []
    for c in text:
        units = c.encode("utf-16-be")
        ways = ["".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))]
        ways.append(ways[0].upper().replace("\\U", "\\u"))
        ways += [SHORT[c]] if c in SHORT else []
        ways += [c] * 3 if c not in '"\\' and c >= " " else []
        out.append(r.choice(ways))
    return f'"{"".join(out)}"'.encode()


@pytest.mark.parametrize(("dialect", "pattern"), CASES)
def test_whole_texts(tokens: Tokens, dialect: Dialect, pattern: str) -> None:
    r = random.Random(pattern)
    artifact = Artifact.from_bytes(tokens.compilers[dialect].compile_regex(pattern).to_bytes(), tokens.pack)
    verdicts = set()
    for text, expected in judged_texts(dialect, pattern, "full", r):
        assert tokens.accepts(artifact, text.encode(), r) == expected, text
        verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.parametrize(("dialect", "pattern"), CASES)
def test_inside_json_strings(tokens: Tokens, dialect: Dialect, pattern: str) -> None:
    r = random.Random(pattern)
    result = tokens.compilers[dialect].compile_json_schema({"type": "string", "pattern": pattern})
    artifact = Artifact.from_bytes(result.to_bytes(), tokens.pack)
    for text, expected in judged_texts(dialect, pattern, "search", r):
        assert tokens.accepts(artifact, spelled(text, r), r) == expected, text


SPELLINGS = [
    ('^"$', [rb'"\""', rb'"\u0022"'], [b'"""', rb'"\\""', rb'"\u0023"']),
    (r"^\\$", [rb'"\\"', rb'"\u005c"', rb'"\u005C"'], [rb'"\"', rb'"\\\\"']),
    ("^é$", ['"é"'.encode(), rb'"\u00e9"', rb'"\u00E9"'], [rb'"e\u0301"', rb'"\u00e8"', b'"\xe9"']),
    ("^😀$", ['"😀"'.encode(), rb'"\ud83d\ude00"'], [rb'"\ud83d"', rb'"\ude00\ud83d"', rb'"\ud83d\ude01"']),
    (r"^\n$", [rb'"\n"', rb'"\u000a"'], [b'"\n"', rb'"\\n"']),
    (r"^.\/?$", [rb'"a\/"', rb'"a/"', rb'"\u0061\u002f"', rb'"\\"'], [rb'"\n"', rb'"\/\/\/"', rb'"ab"']),
    ("^u0022$", [b'"u0022"', rb'"\u0075\u0030022"'], [rb'"\u0022"', rb'"\\u0022"']),
]


@pytest.mark.parametrize(("pattern", "members", "others"), SPELLINGS)
def test_escapes_are_judged_decoded(tokens: Tokens, pattern: str, members: list[bytes], others: list[bytes]) -> None:
    result = tokens.compilers["ecma262"].compile_json_schema({"type": "string", "pattern": pattern})
    artifact, r = Artifact.from_bytes(result.to_bytes(), tokens.pack), random.Random(1)
    assert [tokens.accepts(artifact, m, r) for m in members] == [True] * len(members)
    assert [tokens.accepts(artifact, m, r) for m in others] == [False] * len(others)
