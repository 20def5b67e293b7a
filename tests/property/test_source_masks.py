"""Sources to masks: random small schemas and patterns over random vocabularies, through the public API.

The oracle runs every token's bytes and searches for a completion. For patterns it knows nothing but Python's `re`;
for schemas it's the explored automaton before anything is cut or merged, whose agreement with jsonschema-rs is tested
elsewhere.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import deque
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError

from maskwright.compiler import CompileError, CompileOptions, Compiler, Limits, Vocabulary
from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, initial, may_end, step
from maskwright.compiler.grammar import build_grammar
from maskwright.compiler.schema import compile_schema
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))


def vocabulary(rng: random.Random, alphabet: bytes, pieces: list[bytes], count: int) -> Vocabulary:
    """Every byte of the alphabet, random joins of pieces, a few unused ids, a stop token."""
    tokens: list[bytes | None] = [bytes([b]) for b in alphabet]
    while len(tokens) < count:
        tokens.append(b"".join(rng.choice(pieces) for _ in range(rng.randint(1, 4))) if rng.random() < 0.95 else None)
    rng.shuffle(tokens)
    tokens.append(None)
    return Vocabulary.from_tokens(tokens, {len(tokens) - 1: "<stop>"}, [len(tokens) - 1])


def legal_tokens(matcher: Matcher, mask: np.ndarray) -> np.ndarray:
    matcher.fill_next_token_bitmask(mask, 0)
    return np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: matcher.vocab_size].astype(bool)


# -- patterns ------------------------------------------------------------------------------------------------------


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", "c", "[ab]", "[^a]", "."])
    if kind < 0.55:
        return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1)
    if kind < 0.75:
        return f"(?:{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    repeat = rng.choice(["*", "+", "?", "{2}", "{1,3}", "{0,2}"])
    return f"(?:{random_pattern(rng, depth - 1)}){repeat}"


def completions(pattern: str, longest: int) -> set[str]:
    """Every member of at most `longest` characters, and each prefix of one."""
    compiled = re.compile(pattern)
    words = ("".join(w) for n in range(longest + 1) for w in itertools.product("abc", repeat=n))
    return {w[:i] for w in words if compiled.fullmatch(w) for i in range(len(w) + 1)}


@pytest.mark.parametrize("seed", range(25))
def test_patterns(seed: int) -> None:
    rng = random.Random(seed)
    pattern = random_pattern(rng)
    vocab = vocabulary(rng, b"abc", [b"a", b"b", b"c"], 40)
    options = CompileOptions(regex_dialect="python")
    try:
        data = Compiler(vocab, options).compile_regex(pattern).to_bytes()
    except CompileError:
        assert not completions(pattern, 6)
        return
    live = completions(pattern, 9)
    matcher = Matcher(Artifact.from_bytes(data, VocabularyPack.from_bytes(vocab.pack_bytes())))
    mask = allocate_token_bitmask(1, vocab.size)
    for _ in range(6):
        matcher.reset()
        text = ""
        while len(text) <= 3:
            got = legal_tokens(matcher, mask)
            for i, token in enumerate(vocab.tokens):
                if token is not None:
                    assert got[i] == (text + token.decode() in live), (pattern, text, token)
            assert got[vocab.size - 1] == bool(re.fullmatch(pattern, text))
            choices = [i for i in np.flatnonzero(got[:-1]).tolist() if len(text) + len(vocab.tokens[i] or b"") <= 4]
            if not choices:
                break
            choice = rng.choice(choices)
            assert matcher.accept_token(choice)
            text += (vocab.tokens[choice] or b"").decode()


# -- schemas -------------------------------------------------------------------------------------------------------

ALPHABET = b'{}[]":, 0123456789-.ab\\nulltruefse'
PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b" ",
    b"0",
    b"12",
    b"-",
    b".5",
    b"a",
    b"b",
    b"true",
    b"null",
    b"\\",
    b"e",
]


def random_schema(rng: random.Random, depth: int = 2) -> dict[str, object] | bool:
    kinds = ["integer", "number", "string", "boolean", "null", "enum", "const", "any", "ref"]
    kind = rng.choice([*kinds, *(["object", "array", "anyOf"] * 2 if depth else [])])
    if kind == "enum":
        return {"enum": rng.sample([1, -20, 0.5, "a", "ab", "", None, True, [1], {"a": 2}], 3)}
    if kind == "const":
        return {"const": rng.choice(["b", 3, {"a": ["b"]}, []])}
    if kind == "any":
        return True
    if kind == "ref":
        return {"$ref": "#"}
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(2)]}
    if kind == "object":
        names = rng.sample(["a", "ab", "b"], rng.randint(1, 3))
        out: dict[str, object] = {"type": "object", "properties": {n: random_schema(rng, depth - 1) for n in names}}
        out["required"] = [n for n in names if rng.random() < 0.5]
        out["additionalProperties"] = rng.choice([False, False, True, {"type": "integer"}])
        return out
    if kind == "array":
        out = {"type": "array", "items": random_schema(rng, depth - 1)}
        if rng.random() < 0.5:
            out |= {"minItems": 1, "maxItems": rng.randint(1, 3)}
        if rng.random() < 0.3:
            out["prefixItems"] = [random_schema(rng, depth - 1)]
        return out
    bounds: dict[str, dict[str, object]] = {
        "integer": {"minimum": -3, "maximum": 120},
        "number": {"exclusiveMinimum": 0},
        "string": {"minLength": 1, "maxLength": 3},
    }
    return {"type": kind, **(bounds.get(kind, {}) if rng.random() < 0.5 else {})}


class ByteOracle:
    """The explored automaton, by configurations; `live` searches for a completion over the alphabet."""

    def __init__(self, a: ByteAutomaton) -> None:
        self.a = a
        self.live = cache(self._live)

    def _live(self, config: Configuration) -> bool:
        seen, work = {config}, deque([config])
        while work and len(seen) < 3000:
            here = work.popleft()
            if may_end(self.a, here):
                return True
            for b in ALPHABET:
                after = step(self.a, here, b)
                if after is not None and after not in seen and len(after[1]) <= len(config[1]) + 3:
                    seen.add(after)
                    work.append(after)
        return False

    def run(self, config: Configuration | None, data: bytes) -> Configuration | None:
        for b in data:
            config = step(self.a, config, b) if config is not None else None
        return config if config is not None and self.live(config) else None


@pytest.mark.parametrize("seed", range(30))
def test_schemas(seed: int) -> None:
    rng = random.Random(1000 + seed)
    schema = random_schema(rng)
    vocab = vocabulary(rng, ALPHABET, PIECES, 160)
    options = CompileOptions(whitespace=rng.choice(["compact", "flexible"]), max_whitespace=rng.choice([2, 16]))
    compiler = Compiler(vocab, options)
    try:
        data = compiler.compile_json_schema(schema).to_bytes()
    except CompileError as refused:
        assert {d.code.value for d in refused.diagnostics} <= {"UNSATISFIABLE", "INVALID_SOURCE"}, refused
        return
    oracle = ByteOracle(compile_schema(schema, options, Limits(), None, None).automaton)
    matcher = Matcher(Artifact.from_bytes(data, VocabularyPack.from_bytes(vocab.pack_bytes())))
    mask = allocate_token_bitmask(1, vocab.size)
    for _ in range(4):
        matcher.reset()
        config: Configuration | None = initial(oracle.a)
        for _ in range(8):
            assert config is not None
            got = legal_tokens(matcher, mask)
            want = [t is not None and oracle.run(config, t) is not None for t in vocab.tokens]
            assert got[:-1].tolist() == want[:-1], schema
            assert got[-1] == may_end(oracle.a, config)
            choices = np.flatnonzero(got[:-1]).tolist()
            if not choices:
                break
            choice = rng.choice(choices)
            assert matcher.accept_token(choice)
            config = oracle.run(config, vocab.tokens[choice] or b"")


# -- grammars ------------------------------------------------------------------------------------------------------

GRAMMARS = {
    "calculator": """
start: sum
sum: product | sum "+" product
product: atom | product "*" atom
atom: NUMBER | "(" sum ")"
NUMBER: /[0-9]+/
%ignore " "
""",
    "keywords": """
start: "if" NAME "then" NAME ["else" NAME]
NAME: /[a-z]+/
%ignore " "
""",
    "lists": """
start: item*
item: NAME "=" value ";"
value: NAME | "[" [value ("," value)*] "]"
NAME: /[ab]+/
""",
}
GRAMMARS |= {
    # What follows an embedded value isn't JSON, so the pack's frames must know more than JSON's own continuations.
    "embedded string": """
start: "x" value ";" | "x" value "then"
value: %json {"type": "string", "maxLength": 3}
""",
    "embedded number": """
start: "x" value ";" | "x" value "then"
value: %json {"type": ["integer", "boolean"]}
""",
    "embedded array": """
start: "x" value ";" | "x" value "then"
value: %json {"type": "array", "items": {"type": ["string", "integer"]}}
""",
}
GRAMMAR_BYTES = b'0123456789+*() ifthenlsabyxru=[];,"-'
GRAMMAR_PIECES = [
    b'"',
    b'";',
    b"true",
    b"x",
    b"if",
    b"then",
    b"else",
    b" ",
    b"a",
    b"b",
    b"1",
    b"23",
    b"+",
    b"*",
    b"(",
    b")",
    b"=",
    b"[",
    b"]",
    b",",
    b";",
]


@pytest.mark.parametrize("form", ["complete", "merged", "lazy"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form != "complete":
        monkeypatch.setattr(build, "MANY_RESTS", 0)  # rests are always merged
        monkeypatch.setattr(build, "RESTS_A_RETURN", 0)
    if form == "lazy":
        monkeypatch.setattr(build, "COMPLETE_CONTEXTS", 1)
    rng = random.Random(name)
    vocab = vocabulary(rng, GRAMMAR_BYTES, GRAMMAR_PIECES, 200)
    data = Compiler(vocab).compile_lark(GRAMMARS[name]).to_bytes()
    oracle = build_grammar(GRAMMARS[name]).automaton
    parser = None if "%json" in GRAMMARS[name] else Lark(GRAMMARS[name], parser="lalr", lexer="contextual")
    artifact = Artifact.from_bytes(data, VocabularyPack.from_bytes(vocab.pack_bytes()))
    if "%json" not in GRAMMARS[name]:  # an embedded value may call the pack's frames, and then it's complete
        assert (artifact.lazy is not None) == (form == "lazy")
    matcher = Matcher(artifact)
    mask = allocate_token_bitmask(1, vocab.size)
    for _ in range(12):
        matcher.reset()
        config: Configuration | None = initial(oracle)
        text = b""
        for _ in range(10):
            assert config is not None
            got = legal_tokens(matcher, mask)
            for i, token in enumerate(vocab.tokens[:-1]):
                after: Configuration | None = config if token is not None else None
                for b in token or b"":
                    after = step(oracle, after, b) if after is not None else None
                assert got[i] == (after is not None), (text, token)
            assert got[vocab.size - 1] == may_end(oracle, config)
            assert parser is None or got[vocab.size - 1] == parses(parser, text.decode())
            choices = np.flatnonzero(got[:-1]).tolist()
            if not choices:
                break
            choice = rng.choice(choices)
            assert matcher.accept_token(choice)
            for b in vocab.tokens[choice] or b"":
                config = step(oracle, config, b) if config is not None else None
            text += vocab.tokens[choice] or b""


def parses(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True
