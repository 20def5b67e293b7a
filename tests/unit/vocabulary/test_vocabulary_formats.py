"""Files by content: tekken, tiktoken, gzip; and malformed input of every kind, one typed error each."""

from __future__ import annotations

import base64
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.vocabulary import Vocabulary

WORDS = [bytes([b]) for b in range(256)] + [b"ab", b" the", "é".encode(), b"\xe6\x97"]


def packed(data: bytes) -> bytes:
    """Gzipped, without the time: parameters of tests have to be the same in every process."""
    return gzip.compress(data, mtime=0)


def ranks(words: list[bytes]) -> bytes:
    return b"".join(base64.b64encode(w) + b" %d\n" % i for i, w in enumerate(words))


def tekken(
    words: list[bytes] = WORDS, special: int = 5, size: int | None = None, **extra: Any
) -> dict[str, Any]:
    entries = [
        {"rank": i, "token_bytes": base64.b64encode(w).decode(), "token_str": None}
        for i, w in enumerate(words)
    ]
    config = {"pattern": "", "num_vocab_tokens": len(words), "version": "v3"}
    config["default_vocab_size"] = len(words) + special if size is None else size
    config["default_num_special_tokens"] = special
    return {"config": config, "vocab": entries, **extra}


def model_file(**changes: Any) -> dict[str, Any]:
    value = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 2}, "merges": []}, "added_tokens": []}
    return {**value, "decoder": {"type": "Fuse"}, **changes}


def refuse(data: bytes | dict[str, Any] | list[Any], **options: Any) -> Any:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(CompileError) as caught:
        Vocabulary.from_bytes(raw, name="the file", **options)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in (Code.INVALID_VOCABULARY, Code.LIMIT_EXCEEDED)
    assert diagnostic.source == "the file"
    json.dumps(diagnostic.to_json(), ensure_ascii=False).encode()
    return diagnostic


# -- tiktoken and tekken ---------------------------------------------------------------------------------


def test_rank_file() -> None:
    vocabulary = Vocabulary.from_bytes(ranks(WORDS))
    assert vocabulary.kind == "tiktoken"
    assert vocabulary.tokens == tuple(WORDS)
    assert vocabulary.special_ids == frozenset() and vocabulary.stop_token_ids == ()


def test_rank_file_with_gaps_crlf_and_an_empty_token() -> None:
    vocabulary = Vocabulary.from_bytes(b"YQ== 0\r\n\r\nYg== 3\r\n= 5")
    assert vocabulary.tokens == (b"a", None, None, b"b", None, None)


def test_rank_file_with_special_tokens() -> None:
    vocabulary = Vocabulary.from_bytes(ranks(WORDS), special_tokens={"<|endoftext|>": 300, "<|x|>": 299})
    assert vocabulary.size == 301
    assert vocabulary.stop_token_ids == (300,)
    assert vocabulary.special_text(299) == "<|x|>" and vocabulary.token_bytes(300) is None
    assert vocabulary.token_bytes(270) is None and vocabulary.special_text(270) is None


def test_early_tekken() -> None:
    vocabulary = Vocabulary.from_bytes(json.dumps(tekken()).encode())
    assert vocabulary.kind == "tekken"
    assert vocabulary.tokens == (None,) * 5 + tuple(WORDS)
    assert [vocabulary.special_text(i) for i in range(5)] == ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    assert vocabulary.stop_token_ids == (2,)


def test_tekken_with_its_own_special_tokens_and_fewer_ranks() -> None:
    special = [{"rank": 3, "token_str": "</s>", "is_control": True}]
    vocabulary = Vocabulary.from_bytes(json.dumps(tekken(size=7, special_tokens=special)).encode())
    assert vocabulary.tokens == (None,) * 5 + (b"\0", b"\1")
    assert vocabulary.special_text(0) == "<SPECIAL_0>" and vocabulary.stop_token_ids == (3,)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (tekken(size=3), "/config/default_vocab_size"),
        (tekken(size=9999), "/config/default_vocab_size"),
        (tekken(size=1 << 40), "/config/default_vocab_size"),
        (tekken() | {"config": []}, "/config"),
        (tekken() | {"config": {"default_vocab_size": True}}, "/config/default_num_special_tokens"),
        (tekken() | {"vocab": [7] * 300}, "/vocab/0"),
        (tekken() | {"vocab": [{"rank": 0, "token_bytes": "YQ=="}] * 300}, "/vocab/1/rank"),
        (tekken() | {"vocab": [{"rank": 0, "token_bytes": "!"}] * 300}, "/vocab/0"),
        (tekken() | {"vocab": [{"rank": 0, "token_bytes": "é"}] * 300}, "/vocab/0/token_bytes"),
        (tekken(special_tokens={}), "/special_tokens"),
        (tekken(special_tokens=[{"rank": 5, "token_str": "x"}]), "/special_tokens/0"),
        (tekken(special_tokens=[{"rank": 1, "token_str": "x"}] * 2), "/special_tokens/1"),
    ],
)
def test_malformed_tekken(value: dict[str, Any], pointer: str) -> None:
    assert refuse(value).pointer.startswith(pointer)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"YQ== 0\nYg==\n", "line 2 isn't base64"),
        (b"YQ== 0\nYg== x\n", "line 2 isn't base64"),
        (b"YQ== 0\nYg== 0\n", "line 2: rank 0 appears twice"),
        (b"YQ== 0\nY!== 1\n", "line 2: not base64"),
        (b"YQ== 0\nYQ== 99999999\n", "vocabulary_tokens"),
        (b"YQ== 0\nYQ== " + b"9" * 5000, "line 2 isn't base64"),
        (b"YQ== 0\nYQ== \xc2\xb2\n", "line 2 isn't base64"),
        (base64.b64encode(b"a" * 70000) + b" 0\n", "token_bytes"),
    ],
)
def test_malformed_ranks(data: bytes, words: str) -> None:
    assert words in str(refuse(data))


# -- recognition, gzip, JSON -----------------------------------------------------------------------------


def test_gzip_also_in_members_and_padded() -> None:
    raw = ranks(WORDS)
    plain = Vocabulary.from_bytes(raw)
    assert Vocabulary.from_bytes(packed(raw)) == plain
    two = packed(raw[:999]) + packed(raw[999:]) + b"\0" * 9
    assert Vocabulary.from_bytes(two) == plain


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\n\x0e\n\x05<unk>\x15\0", "SentencePiece"),
        (b"PK\x03\x04zip", "zip"),
        (b"\x80\x04.", "format isn't known"),
        (b"[1, 2]", "not a JSON object"),
        (b"{", "line 1 column 2"),
        (b'{"model": \xff}', "not UTF-8 at byte 10"),
        (b'{"a": ' * 100000, "nested too deeply"),
        (b'{"a": ' + b"9" * 10000 + b"}", "not JSON"),
        (b'{"hello": 1, "world": 2}', "bare vocabulary"),
        (b"{}", "neither"),
        (b'{"vocab": []}', "neither"),
        (b'{"model": {"vocab": {"\\ud800": 0}}}', "lone surrogate"),
        (b'{"model": {"type": "\\ud800"}}', "lone surrogate"),
        (packed(b"YQ== 0\n")[:-9], "ends early"),
        (packed(b"YQ== 0\n")[:-8] + b"xxxxxxxx", "damaged gzip"),
        (packed(b"YQ== 0\n") + b"more", "damaged gzip"),
        (packed(packed(b"YQ== 0\n")), "format isn't known"),
    ],
)
def test_not_a_tokenizer_file(data: bytes, words: str) -> None:
    assert words in str(refuse(data))


def test_a_gzip_bomb_is_stopped_while_it_grows() -> None:
    bomb = gzip.compress(b" " * (200 << 20), compresslevel=1)
    start = time.perf_counter()
    assert refuse(bomb).detail["limit_name"] == "vocabulary_bytes"
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (model_file(model=[]), "/model"),
        (model_file(model={"type": "GPT"}), "/model/type"),
        (model_file(model={"type": "BPE"}), "/model/vocab"),
        (model_file(model={"type": "BPE", "vocab": []}), "/model/vocab"),
        (model_file(model={"type": "BPE", "vocab": {"a/b~": "0"}}), "/model/vocab/a~1b~0"),
        (model_file(model={"type": "BPE", "vocab": {"a": -1}}), "/model/vocab/a"),
        (model_file(model={"type": "BPE", "vocab": {"a": True}}), "/model/vocab/a"),
        (model_file(model={"type": "BPE", "vocab": {"a": 0, "b": 0}}), "/model/vocab/b"),
        (model_file(model={"type": "BPE", "vocab": {"a": 1 << 40}}), "/model/vocab/a"),
        (model_file(model={"type": "Unigram", "vocab": {}}), "/model/vocab"),
        (model_file(model={"type": "Unigram", "vocab": [["a", 0], "b"]}), "/model/vocab/1"),
        (model_file(added_tokens={}), "/added_tokens"),
        (model_file(added_tokens=["x"]), "/added_tokens/0"),
        (model_file(added_tokens=[{"content": "x"}]), "/added_tokens/0/special"),
        (model_file(decoder=None), "/decoder"),
        (model_file(model={"type": "BPE", "vocab": {"a" * 70000: 0}}), "/token/0"),
    ],
)
def test_malformed_tokenizer_json(value: dict[str, Any], pointer: str) -> None:
    assert refuse(value).pointer == pointer


def test_no_token_at_all() -> None:
    assert "no token" in str(refuse(model_file(model={"type": "BPE", "vocab": {}})))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("model", "added_tokens", "decoder", "post_processor")


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)), st.sampled_from(KEYS))
def test_any_json_is_read_or_refused(parts: dict[str, Any], kept: str) -> None:
    value = model_file(**{k: v for k, v in parts.items() if k != kept})
    try:
        assert Vocabulary.from_bytes(json.dumps(value).encode()).size > 0
    except CompileError as e:
        assert e.diagnostics[0].code in (Code.INVALID_VOCABULARY, Code.LIMIT_EXCEEDED)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(FILES))
    raw = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3)) if raw else 0):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert Vocabulary.from_bytes(bytes(raw)).size > 0
    except CompileError as e:
        assert e.diagnostics[0].code in (Code.INVALID_VOCABULARY, Code.LIMIT_EXCEEDED)


FILES = [
    ranks(WORDS[:20]),
    json.dumps(tekken(WORDS[:8])).encode(),
    json.dumps(model_file()).encode(),
    packed(json.dumps(model_file()).encode()),
]


# -- from_file -------------------------------------------------------------------------------------------


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(ranks(WORDS))
    vocabulary = Vocabulary.from_file(path, stop_token_ids=[3, 1, 3])
    assert vocabulary.stop_token_ids == (1, 3) and vocabulary.name == "any.name"
    assert Vocabulary.from_file(str(path)) == vocabulary


@pytest.mark.parametrize("name", ["absent.json", ".", "x\0y"])
def test_from_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(CompileError) as caught:
        Vocabulary.from_file(tmp_path / name)
    assert caught.value.diagnostics[0].code is Code.INVALID_VOCABULARY
    assert caught.value.diagnostics[0].source == str(tmp_path / name)


def write(folder: Path, **files: Any) -> Path:
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder / "tokenizer.json"


SPECIAL = [{"id": 1, "content": "<end>", "special": True}]


def test_files_beside_a_tokenizer_json(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        tokenizer=model_file(added_tokens=SPECIAL),
        generation_config={"eos_token_id": [0, 2]},
        tokenizer_config={"eos_token": {"content": "<end>"}},
        config={"text_config": {"vocab_size": 64}},
    )
    end = 3 - 1  # the next free id after two model tokens
    vocabulary = Vocabulary.from_file(path)
    assert vocabulary.special_text(end) == "<end>"
    assert vocabulary.stop_token_ids == (0, end)
    assert (vocabulary.size, vocabulary.logits_width) == (3, 64)
    assert Vocabulary.from_file(path, stop_token_ids=[0]).stop_token_ids == (0,)
    path.rename(tmp_path / "other.json")
    alone = Vocabulary.from_file(tmp_path / "other.json")
    assert alone.stop_token_ids == () and alone.logits_width == 3
    assert alone == vocabulary


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("generation_config", {"eos_token_id": 77}, "77 isn't in the vocabulary"),
        ("generation_config", {"eos_token_id": ["0"]}, "isn't in the vocabulary"),
        ("tokenizer_config", {"eos_token": "<none>"}, "isn't a special token"),
        ("config", [], "not a JSON object"),
    ],
)
def test_files_of_another_model_beside_it(tmp_path: Path, name: str, value: Any, words: str) -> None:
    path = write(tmp_path, tokenizer=model_file(), **{name: value})
    with pytest.raises(CompileError, match=words) as caught:
        Vocabulary.from_file(path)
    assert caught.value.diagnostics[0].source == str(tmp_path / f"{name}.json")
