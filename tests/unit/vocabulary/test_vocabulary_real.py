"""Token bytes of real tokenizers equal what the tokenizers library decodes; skips without the files."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest
from vocabulary_texts import decoded, spelled, texts

from maskwright.compiler.vocabulary import Vocabulary

tokenizers = pytest.importorskip("tokenizers")
FILES = {
    "llama3_1": ("byte_level_bpe", 128256, {"<|end_of_text|>", "<|eot_id|>"}),
    "qwen3": ("byte_level_bpe", 151669, {"<|endoftext|>", "<|im_end|>"}),
    "llama2": ("byte_fallback_bpe", 32000, {"</s>"}),
}


@pytest.fixture(scope="module", params=FILES)
def pair(request: pytest.FixtureRequest, shared: Path) -> tuple[str, Vocabulary, Any]:
    path = shared / "tokenizers" / f"{request.param}.tokenizer.json.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} isn't here")
    tokenizer = tokenizers.Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode())
    return request.param, Vocabulary.from_file(path), tokenizer


def test_decoding_is_the_concatenation_of_token_bytes(pair: tuple[str, Vocabulary, Any]) -> None:
    _, vocabulary, tokenizer = pair
    samples = list(texts(3000))
    for text, encoding in zip(
        samples, tokenizer.encode_batch(samples, add_special_tokens=False), strict=True
    ):
        joined, expected = spelled(vocabulary, encoding.ids), decoded(tokenizer, encoding.ids)
        if vocabulary.dummy_prefix and joined.startswith(b" "):
            joined = joined[1:]
        assert joined == expected, text


def test_every_token_inside_a_text(pair: tuple[str, Vocabulary, Any]) -> None:
    """Each token alone, after another one: this reaches tokens that no sample text uses."""
    _, vocabulary, tokenizer = pair
    before = tokenizer.encode("x", add_special_tokens=False).ids
    start = decoded(tokenizer, before).decode()
    for i in range(0, vocabulary.size, 3):
        token = vocabulary.token_bytes(i)
        if token is not None:
            text = tokenizer.decode([*before, i], skip_special_tokens=False)
            assert text == start + token.decode(errors="replace"), i


def test_shape(pair: tuple[str, Vocabulary, Any]) -> None:
    name, vocabulary, tokenizer = pair
    kind, size, stops = FILES[name]
    assert (vocabulary.kind, vocabulary.size) == (kind, size)
    assert size == tokenizer.get_vocab_size()
    assert {vocabulary.special_text(i) for i in vocabulary.stop_token_ids} == stops
    special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    assert vocabulary.special_ids == special
    assert {t for t in vocabulary.tokens if t and len(t) == 1} >= {bytes([b]) for b in range(128)}


def test_reading_takes_about_a_second(pair: tuple[str, Vocabulary, Any], shared: Path) -> None:
    start = time.perf_counter()
    vocabulary = Vocabulary.from_file(shared / "tokenizers" / f"{pair[0]}.tokenizer.json.gz")
    assert vocabulary.fingerprint
    assert time.perf_counter() - start < 8, "measured 0.6 s; the bound allows for a busy machine"
