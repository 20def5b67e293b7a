"""Adversaries with awkward vocabularies: single bytes, tokens across many syntactic units, holes and padding, a stop
token that's a symbol of the grammar.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from adversaries import Adversaries, plans, write

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers import (
    Artifact,
    Matcher,
    VocabularyPack,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)

BYTES: list[bytes | None] = [bytes((b,)) for b in range(256)]
CROSSING = [
    b'{"', b'":', b'","', b'":{"', b'"},{"', b'"}]', b"]]", b"]]]", b"]]]]}", b"},{", b"}}}", b"[[[[", b'[{"', b'"],"',
    b'":[', b'":[]', b"{}", b"[]", b'[{}]', b'{"a":', b'"a":1,"b":', b",null,", b"true,false", b'\\"', b'\\\\"',
    b'\\u00', b'\\ud83d\\ude00', "é".encode(), "😀".encode()[:2], b' \n\t "', b"0,0,0", b"1e9", b"-0.0", b"12345678",
]  # fmt: skip
SCHEMAS: dict[str, Any] = {
    "any": True,
    "members": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
        "required": ["b"],
        "additionalProperties": {"type": "string", "maxLength": 3},
    },
    "pairs": {"type": "array", "items": {"type": "object", "maxProperties": 1}, "minItems": 1, "maxItems": 3},
    "escapes": {"type": "string", "pattern": '^("|\\\\|é|😀){1,3}$'},
}


def _padded() -> tuple[list[bytes | None], dict[int, str]]:
    """Every second id unused, and special ones far beyond."""
    tokens: list[bytes | None] = []
    for token in [*BYTES, *CROSSING]:
        tokens += [token, None]
    return tokens, {1000: "<end>", 1003: "<turn>", 1500: "<pad>"}


VOCABULARIES: dict[str, tuple[list[bytes | None], dict[int, str]]] = {
    "bytes": (BYTES, {256: "<end>"}),
    "crossing": ([*BYTES, *CROSSING], {400: "<end>"}),
    "padded": _padded(),
}


@pytest.fixture(scope="module", params=VOCABULARIES)
def compiler(request: pytest.FixtureRequest) -> Compiler:
    tokens, special = VOCABULARIES[request.param]
    return Compiler(Vocabulary.from_tokens(tokens, special, [i for i in special if special[i] != "<pad>"]))


@pytest.fixture(scope="module")
def adversaries(compiler: Compiler) -> Adversaries:
    return Adversaries(VocabularyPack.from_bytes(compiler.vocabulary.pack_bytes()), seed=3)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_text_ends_parses_and_validates(compiler: Compiler, adversaries: Adversaries, name: str) -> None:
    schema = SCHEMAS[name]
    artifact = Artifact.from_bytes(compiler.compile_json_schema(json.dumps(schema)).to_bytes(), adversaries.pack)
    validator = jsonschema_rs.validator_for(schema)
    for adversary, free, slack in plans(36, seed=2):
        written = write(artifact, adversaries, adversary, free, slack)
        assert written.ended
        assert validator.is_valid(json.loads(written.text.decode())), written.text
        assert written.tokens[-1] in adversaries.pack.stop_token_ids
        assert all(adversaries.pack.token_bytes(t) for t in written.tokens[:-1])


def test_logits_wider_than_the_vocabulary(compiler: Compiler, adversaries: Adversaries) -> None:
    """An engine pads its logits; what lies beyond, and ids without a token, are never chosen however good they look."""
    artifact = Artifact.from_bytes(compiler.compile_json_schema("true").to_bytes(), adversaries.pack)
    matcher, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size + 70)
    unused = [t for t in range(artifact.vocab_size) if artifact.pack.token_bytes(t) is None]
    for remaining in range(int(matcher.min_tokens_to_finish()) + 12, 0, -1):
        logits = np.random.default_rng(remaining).standard_normal((1, artifact.vocab_size + 70)).astype(np.float32)
        logits[0, artifact.vocab_size :] = 1e9
        logits[0, unused] += 50
        matcher.fill_next_token_bitmask(mask, 0, remaining=remaining)
        apply_token_bitmask_inplace(logits, mask, vocab_size=artifact.vocab_size)
        token = int(logits[0].argmax())
        assert token < artifact.vocab_size
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            break
    assert matcher.is_terminated()
    json.loads(matcher.text())


def test_a_stop_token_that_is_a_symbol_of_the_grammar() -> None:
    """As a symbol it's legal where the grammar has it, as a stop token where the text may end; never mixed up."""
    vocabulary = Vocabulary.from_tokens(BYTES, {256: "<|turn|>", 257: "<|end|>"}, [256, 257])
    pack = VocabularyPack.from_bytes(vocabulary.pack_bytes())
    grammar = 'start: "a" <|turn|> "b" | "c"'
    artifact = Artifact.from_bytes(Compiler(vocabulary).compile_lark(grammar).to_bytes(), pack)
    mask = allocate_token_bitmask(1, artifact.vocab_size)

    def legal(matcher: Matcher) -> set[int]:
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8)[0], bitorder="little")
        return set(np.flatnonzero(bits).tolist())

    matcher = Matcher(artifact)
    assert legal(matcher) == {ord("a"), ord("c")}
    assert matcher.accept_token(ord("a"))
    assert legal(matcher) == {256}
    assert matcher.accept_token(256)
    assert not matcher.is_terminated()
    assert legal(matcher) == {ord("b")}
    assert matcher.accept_token(ord("b"))
    assert legal(matcher) == {256, 257}
    assert matcher.accept_token(256)
    assert matcher.is_terminated()
