"""Special tokens as symbols: in masks and accepted as tokens, never as their spelling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maskwright.compiler import CompileError, Compiler, CompileResult, Vocabulary
from maskwright.compiler.diagnostics import Code
from maskwright.workers import Artifact, ArtifactError, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.specials import spell_special

TEXT = [bytes([b]) for b in range(256)] + [b"ab", b"a<", b'{"', b"\xff\xf8", b'"\xff', b"call", b"\n{"]
NAMES = ["<|end|>", "<|call|>", "<|x|>", "<|y|>", "<think>", "</think>"]
IDS = {name: len(TEXT) + i for i, name in enumerate(NAMES)}
END = IDS["<|end|>"]
SIZE = len(TEXT) + len(NAMES)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokens = [*TEXT, *(None for _ in NAMES)]
    return Vocabulary.from_tokens(tokens, {i: name for name, i in IDS.items()}, [END])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))


def load(vocabulary: Vocabulary, result: CompileResult) -> Artifact:
    return Artifact.from_bytes(result.to_bytes(), VocabularyPack.from_bytes(vocabulary.pack_bytes()))


def legal(m: Matcher) -> set[int]:
    mask = allocate_token_bitmask(1, SIZE)
    m.fill_next_token_bitmask(mask, 0)
    return {t for t in range(SIZE) if int(mask[0, t >> 5]) >> (t & 31) & 1}


def run(m: Matcher, *steps: str | int) -> bool:
    """Texts by their single bytes, tokens by id; every step is in its mask exactly when it's accepted."""
    for step in steps:
        for token in step.encode() if isinstance(step, str) else [step]:
            held = token in legal(m)
            assert m.accept_token(token) == held, (step, token)
            if not held:
                return False
    return True


def accepts(artifact: Artifact, *steps: str | int) -> bool:
    m = Matcher(artifact)
    return run(m, *steps) and m.is_accepting()


X, Y, CALL = IDS["<|x|>"], IDS["<|y|>"], IDS["<|call|>"]

GRAMMAR = """
start: (word | <|x|> word | pair)* <|y|>?
pair: "(" <|x|> <|y|> ")"
word: WORD
WORD: /[a-zé]+/
%ignore " "
"""


def test_a_symbol_in_a_grammar(vocabulary: Vocabulary) -> None:
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark(GRAMMAR))
    assert artifact.has_specials
    assert accepts(artifact, "ab", X, "c é ", X, " d", Y)
    assert accepts(artifact, "(", X, Y, ")a")
    assert accepts(artifact, Y)
    assert not run(Matcher(artifact), X, Y)
    assert not run(Matcher(artifact), "<|x|>")
    assert not run(Matcher(artifact), "ab", Y, "a")
    m = Matcher(artifact)
    assert run(m, "(") and legal(m) == {ord(" "), X}
    assert run(m, X) and legal(m) == {ord(" "), Y}


def test_a_symbol_is_never_text(vocabulary: Vocabulary) -> None:
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark(GRAMMAR))
    m = Matcher(artifact)
    assert not legal(m) & set(range(0x80, 0xC3)) and not legal(m) & set(range(0xF0, 256))
    assert not m.accept_string(spell_special(X))
    assert not m.accept_string(b"ab" + spell_special(Y)[:3])
    assert m.accept_string("ab") and max(m.expected_bytes()) < 0xF8
    assert TEXT.index(b"\xff\xf8") not in legal(m)
    m = Matcher(artifact)
    assert run(m, "(") and m.find_jump_forward_bytes() == b""


def test_rollback_and_fork_over_a_symbol(vocabulary: Vocabulary) -> None:
    m = Matcher(load(vocabulary, Compiler(vocabulary).compile_lark(GRAMMAR)))
    before = legal(m)
    assert run(m, X, "ab")
    other = m.fork()
    assert run(other, Y) and other.is_accepting()
    m.rollback(3)
    assert legal(m) == before


def test_sets_of_symbols(vocabulary: Vocabulary) -> None:
    low = IDS["<|call|>"]
    grammar = f'start: "a" <[{low}-{low + 1},{low + 3}]> "b"'
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark(grammar))
    m = Matcher(artifact)
    assert run(m, "a") and legal(m) == {low, low + 1, low + 3}
    assert accepts(artifact, "a", low + 3, "b")


def test_a_symbol_after_a_json_value(vocabulary: Vocabulary) -> None:
    grammar = 'start: <|call|> %json {"type": ["string", "integer", "object"]} <|x|>'
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark(grammar))
    for value in ("12", '"a"', '{"a": [1]}'):
        assert accepts(artifact, CALL, value, X), value
    m = Matcher(artifact)
    assert run(m, CALL, '"a')
    assert TEXT.index(b'"\xff') not in legal(m)
    assert not run(Matcher(artifact), CALL, "-", X)


def test_a_stop_token_that_is_a_symbol(vocabulary: Vocabulary) -> None:
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark('start: ("a" <|end|>)+ "b"?'))
    m = Matcher(artifact)
    assert run(m, "a") and END in legal(m) and m.accept_token(END) and not m.is_terminated()
    assert m.accept_token(END) and m.is_terminated()
    assert legal(m) == {END}


@pytest.mark.parametrize(
    ("grammar", "code", "text"),
    [
        ("start: <|z|>", Code.UNSUPPORTED_GRAMMAR, "no special token <|z|>"),
        ("start: <[3]>", Code.UNSUPPORTED_GRAMMAR, "no special token in 3"),
        ("start: <[3-1]>", Code.INVALID_SOURCE, "isn't a list"),
        ("start: <[a]>", Code.INVALID_SOURCE, "isn't a list"),
        ("start: T\nT: /a/ <|x|>", Code.UNSUPPORTED_GRAMMAR, "holds a special token"),
    ],
)
def test_refusals(vocabulary: Vocabulary, grammar: str, code: Code, text: str) -> None:
    with pytest.raises(CompileError) as refused:
        Compiler(vocabulary).compile_lark(grammar)
    (d,) = refused.value.diagnostics
    assert d.code is code and text in d.message


def test_without_symbols_nothing_changes(vocabulary: Vocabulary) -> None:
    artifact = load(vocabulary, Compiler(vocabulary).compile_lark('start: "<|x|>"'))
    assert not artifact.has_specials
    assert accepts(artifact, "<|x|>") and not run(Matcher(artifact), X)


def test_rows_without_the_feature_hold_text_only(vocabulary: Vocabulary) -> None:
    data = bytearray(Compiler(vocabulary).compile_lark("start: <|x|>").to_bytes())
    data[16] = 0  # the required feature bit; the trailer is made anew
    import hashlib

    data[-32:] = hashlib.sha256(data[:-32]).digest()
    with pytest.raises(ArtifactError, match="isn't text or a symbol"):
        Artifact.from_bytes(bytes(data), VocabularyPack.from_bytes(vocabulary.pack_bytes()))


FORMAT = {
    "trigger": "<|call|>",
    "open": "<|call|>",
    "before": '{"name": "',
    "middle": '", "arguments": ',
    "after": "}",
    "close": "<|x|>",
}
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                                       "additionalProperties": False}}]  # fmt: skip


def test_a_trigger_that_is_a_special_token(vocabulary: Vocabulary) -> None:
    document = {"tools": TOOLS, "format": FORMAT, "reasoning": ["<think>", "</think>"]}
    artifact = load(vocabulary, Compiler(vocabulary).compile_tools(json.dumps(document)))
    think, done = IDS["<think>"], IDS["</think>"]
    call = [CALL, '{"name": "f", "arguments": {"n": 12}}', X]
    assert accepts(artifact, think, "a < b ä", done, "hello ", *call, "and ", *call)
    assert accepts(artifact, think, done)
    assert not run(Matcher(artifact), "<think>")
    m = Matcher(artifact)
    assert run(m, think, "a</think") and ord(">") not in legal(m)
    m = Matcher(artifact)
    assert run(m, think, done, "a<|call|") and ord(">") not in legal(m) and CALL in legal(m)
    assert run(m, " ", CALL) and legal(m) == {ord("{"), TEXT.index(b'{"')}
