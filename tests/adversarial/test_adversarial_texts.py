"""Whole texts under adversarial logits: always on, with small schemas and the vocabulary that ships.

`tests/bench/bench_adversarial.py` does the same over real schemas and tokenizers.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from adversaries import WANTS, Adversaries, Written, plans, write

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

SOURCES: dict[str, Any] = {
    "any": True,
    "unicode and escapes": {"type": "string", "minLength": 2, "maxLength": 5},
    "pattern over escapes": {"type": "string", "pattern": "^[\\\\\"/é\\u2028-]{1,4}$"},
    "names that need escapes": {
        "type": "object",
        "properties": {'"': {"const": "\\"}, "é/~": {"const": "\t"}},
        "required": ['"'],
        "additionalProperties": False,
    },
    "deep nesting": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}},
    "empty arrays": {"type": "array", "items": False},
    "empty or pairs": {
        "type": "array", "maxItems": 3, "items": {"type": "array", "prefixItems": [{}, {}], "maxItems": 2},
    },
    "long enum": {"enum": [f"value {n} of {n * n}" for n in range(400)] + [1, 1.5, None, [], {"a": [1]}]},
    "one of": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}]},
    "not": {"type": "object", "not": {"required": ["a"]}, "properties": {"a": {}, "b": {"not": {"type": "string"}}}},
    "dates": {"type": "array", "items": {"format": "date", "type": "string"}, "minItems": 1, "maxItems": 2},
    "counted": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"maximum": 7}},
    "contains": {"type": "array", "contains": {"const": "x"}, "minContains": 2, "maxItems": 4},
}  # fmt: skip


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.demo()


@pytest.fixture(scope="module")
def adversaries(vocabulary: Vocabulary) -> Adversaries:
    return Adversaries(VocabularyPack.from_bytes(vocabulary.pack_bytes()), seed=5)


def _artifact(vocabulary: Vocabulary, pack: VocabularyPack, schema: Any, **options: Any) -> Artifact:
    compiler = Compiler(vocabulary, CompileOptions(**options))
    return Artifact.from_bytes(compiler.compile_json_schema(schema).to_bytes(), pack)


def _check(schema: Any, artifact: Artifact, written: Written) -> None:
    assert written.ended, written
    assert len(written.tokens) <= written.free + written.allowed
    value = json.loads(written.text.decode())
    assert jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value), written.text
    matcher = Matcher(artifact)
    assert matcher.accept_string(written.text)
    assert matcher.is_accepting()


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("whitespace", ["flexible", "compact"])
def test_every_text_ends_parses_and_validates(
    vocabulary: Vocabulary, adversaries: Adversaries, name: str, whitespace: str
) -> None:
    schema = SOURCES[name]
    artifact = _artifact(vocabulary, adversaries.pack, schema, whitespace=whitespace)
    for adversary, free, slack in plans(2 * len(WANTS), seed=len(name)):
        _check(schema, artifact, write(artifact, adversaries, adversary, free, slack))


@pytest.mark.parametrize("cut", [1, 3, 7, 20])
def test_a_cut_stream_is_a_prefix_that_no_gate_takes(
    vocabulary: Vocabulary, adversaries: Adversaries, cut: int
) -> None:
    """Whatever a run has written when it's cut, tokens go on from there, and it isn't accepted before its end."""
    schema = SOURCES["names that need escapes"]
    artifact = _artifact(vocabulary, adversaries.pack, schema, whitespace="compact")
    for adversary in WANTS:
        whole = write(artifact, adversaries, adversary, 0, 4)
        matcher, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size)
        for token in whole.tokens[: min(cut, len(whole.tokens) - 2)]:
            assert not matcher.is_accepting()
            matcher.fill_next_token_bitmask(mask)
            assert mask.view("u4")[0, token >> 5] >> (token & 31) & 1
            assert matcher.accept_token(token)


def test_several_stop_tokens_and_one_that_is_text(vocabulary: Vocabulary, adversaries: Adversaries) -> None:
    """A stop token that is text is never text: the run can't spell with it, and may end with it."""
    pack = adversaries.pack
    quote = next(t for t in range(pack.vocab_size) if pack.token_bytes(t) == b'"')
    comma = next(t for t in range(pack.vocab_size) if pack.token_bytes(t) == b",")
    artifact = _artifact(vocabulary, pack, {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 4})
    stops = (*pack.stop_token_ids, comma, quote)
    choose = Adversaries(pack, seed=9)
    mask = allocate_token_bitmask(1, artifact.vocab_size)
    for name in choose.preferences:
        matcher, text, last = Matcher(artifact, stops), b"", -1
        for remaining in range(int(matcher.min_tokens_to_finish()) + 6, 0, -1):
            matcher.fill_next_token_bitmask(mask, 0, remaining=remaining)
            legal = {t for t in stops if mask.view("u4")[0, t >> 5] >> (t & 31) & 1}
            assert legal in (set(), set(stops))
            logits = choose.logits(name)
            logits[[not mask.view("u4")[0, t >> 5] >> (t & 31) & 1 for t in range(len(logits))]] = float("-inf")
            last = int(logits.argmax())
            assert matcher.accept_token(last)
            if matcher.is_terminated():
                break
            assert last not in stops
            text += pack.token_bytes(last) or b""
        assert matcher.is_terminated()
        assert last in stops
        assert len(json.loads(text)) <= 4


def test_artifacts_of_one_pack_have_budgets_of_their_own(vocabulary: Vocabulary, adversaries: Adversaries) -> None:
    """Their own symbols have the same numbers; what one's cost must not be taken for another's."""
    nested = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
    first = _artifact(vocabulary, adversaries.pack, SOURCES["any"])
    for name in ("opening", "endless", "crossing"):
        _check(True, first, write(first, adversaries, name, 4, 60))
    second = _artifact(vocabulary, adversaries.pack, nested)
    for slack in (0, 7, 30, 60):
        _check(nested, second, write(second, adversaries, "opening", 20, slack))
