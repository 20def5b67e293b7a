"""Small tokenizers of every kind, trained here, against the tokenizers library's own decoding."""

from __future__ import annotations

import json
from typing import Any

import pytest
from vocabulary_texts import decoded, spelled, texts

from maskwright.compiler.vocabulary import Vocabulary

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import (  # noqa: E402
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SAMPLES = [*texts(900, seed=3), "the quick brown fox jumps over the lazy dog. " * 30]
SPECIAL = ["<unk>", "<s>", "</s>"]


def byte_level() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SAMPLES, trainer)
    tokenizer.add_tokens(["<tag>", "日本語", AddedToken("fox é", normalized=False)])
    tokenizer.add_special_tokens(["<|im_end|>"])
    return tokenizer


def byte_fallback() -> Any:
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator(SAMPLES[1::2], trainers.BpeTrainer(vocab_size=500, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    words = [*SPECIAL, *(f"<0x{b:02X}>" for b in range(256))]
    words += [w for w in model["vocab"] if w not in words]
    merges = [tuple(m) for m in model["merges"]]
    vocab = {w: i for i, w in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = trained.normalizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def unigram() -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        SAMPLES[1::3],
        trainers.UnigramTrainer(
            vocab_size=900, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tokenizer


def word_piece() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        SAMPLES, trainers.WordPieceTrainer(vocab_size=900, special_tokens=names, show_progress=False)
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


MAKERS = {
    "byte_level_bpe": (byte_level, {"<|endoftext|>", "<|im_end|>"}),
    "byte_fallback_bpe": (byte_fallback, {"</s>"}),
    "unigram": (unigram, {"</s>"}),
    "wordpiece": (word_piece, {"[SEP]"}),
}


@pytest.fixture(scope="module", params=MAKERS)
def trained(request: pytest.FixtureRequest) -> tuple[str, Vocabulary, Any]:
    tokenizer = MAKERS[request.param][0]()
    return request.param, Vocabulary.from_bytes(tokenizer.to_str().encode()), tokenizer


def test_kind_and_stop_tokens(trained: tuple[str, Vocabulary, Any]) -> None:
    kind, vocabulary, tokenizer = trained
    assert vocabulary.kind == kind
    assert vocabulary.size == tokenizer.get_vocab_size()
    assert {vocabulary.special_text(i) for i in vocabulary.stop_token_ids} == MAKERS[kind][1]


def test_texts_decode_to_the_joined_bytes(trained: tuple[str, Vocabulary, Any]) -> None:
    """After a first token, which a decoder may spell in its own way."""
    kind, vocabulary, tokenizer = trained
    before = tokenizer.encode("fox", add_special_tokens=False).ids
    start = decoded(tokenizer, before)
    for text in texts(600, seed=11):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if kind in ("unigram", "wordpiece"):
            # a special token is decoded like text there; by its own name is how a caller gets it here
            ids = [i for i in ids if i not in vocabulary.special_ids]
        assert start + spelled(vocabulary, ids) == decoded(tokenizer, [*before, *ids]), text


def test_added_tokens_that_are_not_special_are_text() -> None:
    tokenizer = byte_level()
    vocabulary = Vocabulary.from_bytes(tokenizer.to_str().encode())
    tag, japanese, fox = (tokenizer.token_to_id(t) for t in ("<tag>", "日本語", "fox é"))
    assert vocabulary.token_bytes(tag) == b"<tag>"
    assert vocabulary.token_bytes(japanese) == "日本語".encode()
    # a space isn't in the byte-level alphabet, so this one is taken as it stands
    assert vocabulary.token_bytes(fox) == "fox é".encode()
    assert vocabulary.special_ids == {0, tokenizer.token_to_id("<|im_end|>")}


def added(i: int, content: str, special: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": i, "content": content, "special": special, **flags}


@pytest.mark.parametrize(
    "entries",
    [
        [added(10, "é!"), added(7, "日本"), added(1, "b"), added(30, "Ġx", True), added(31, "")],
        [added(32, "q"), added(33, "q", True), added(34, "r")],
        [added(2, "zz"), added(9, "yy", True), added(12, "c"), added(13, "zz")],
        [added(0, "a", True), added(3, "x")],
        [],
    ],
)
@pytest.mark.parametrize("ids", [(0, 1, 2, 3), (0, 1, 2, 9), (5, 1, 2, 7)])
def test_ids_are_those_that_the_library_gives(entries: list[dict[str, Any]], ids: tuple[int, ...]) -> None:
    value = json.loads(Tokenizer(models.BPE({}, [])).to_str())
    value["model"]["vocab"] = dict(zip("abcé", ids, strict=True))
    value["decoder"] = json.loads(decoders.Fuse().__getstate__())
    value["added_tokens"] = entries
    text = json.dumps(value)
    tokenizer, vocabulary = Tokenizer.from_str(text), Vocabulary.from_bytes(text.encode())
    for i in range(vocabulary.size + 3):
        name = tokenizer.id_to_token(i)
        kept = tokenizer.decode([i], skip_special_tokens=True)
        assert vocabulary.special_text(i) == (name if name is not None and not kept else None), i
        assert vocabulary.token_bytes(i) == (kept.encode() or None), i
    assert tokenizer.id_to_token(vocabulary.size - 1) is not None
