"""Decoders, step by step and in sequences, against the tokenizers library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.vocabulary import Vocabulary
from maskwright.compiler.vocabulary.decoders import byte_level_alphabet

tokenizers = pytest.importorskip("tokenizers")

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
WORDS = "a b ▁ ▁▁ ▁a a▁b ab ba é ég Ġ Ġa ##a ##▁ . ' n't 's x 日本 !?"
PIECES = WORDS.split()
PIECES += [f"<0x{byte}>" for byte in ("0A", "61", "E2", "96", "81", "20", "C3", "A9", "+A", "4a", "ZZ", "é")]
PIECES += [" ", "  a", "a  ", " .", " ' ", "do not", " do not", "a b"]
ANCHOR = "Q"


def replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def strip(content: str, start: int, stop: int) -> dict[str, Any]:
    return {"type": "Strip", "content": content, "start": start, "stop": stop}


def metaspace(scheme: str) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}


def word_piece(cleanup: bool, prefix: str = "##") -> dict[str, Any]:
    return {"type": "WordPiece", "prefix": prefix, "cleanup": cleanup}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(steps)}


def file(pieces: list[str], decoder: Any) -> str:
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "merges": []}
    model["vocab"] = {piece: i for i, piece in enumerate(pieces)}
    return json.dumps({"version": "1.0", "added_tokens": [], "decoder": decoder, "model": model})


def joined(vocabulary: Vocabulary, ids: list[int]) -> bytes:
    return b"".join(vocabulary.token_bytes(i) or b"" for i in ids)


STEPS = st.one_of(
    st.just(BYTE_LEVEL),
    st.just(FALLBACK),
    st.just(FUSE),
    st.sampled_from(["always", "first", "never"]).map(metaspace),
    st.builds(
        replace,
        st.sampled_from(["▁", " ", "a", "ab", "é", "##", "Ġ"]),
        st.sampled_from(["", " ", "xy", "é", "▁"]),
    ),
    st.builds(strip, st.sampled_from([" ", "a", "é"]), st.integers(0, 2), st.just(0)),
    st.builds(word_piece, st.booleans(), st.sampled_from(["##", "", "a"])),
)
COMMON = st.sampled_from(
    [
        BYTE_LEVEL,
        sequence(replace("▁", " "), FALLBACK, FUSE, strip(" ", 1, 0)),
        sequence(replace("▁", " "), FALLBACK, FUSE),
        metaspace("always"),
        metaspace("never"),
        word_piece(True),
        word_piece(False),
        sequence(FUSE, replace("▁", " ")),
        sequence(sequence(replace("▁", " ")), sequence(FALLBACK, sequence(FUSE))),
    ]
)
DECODERS = st.one_of(COMMON, STEPS, st.lists(STEPS, max_size=4).map(lambda steps: sequence(*steps)))


@settings(max_examples=400, deadline=None)
@given(DECODERS, st.lists(st.integers(0, len(PIECES) - 1), max_size=8))
def test_what_is_read_is_what_is_decoded(decoder: dict[str, Any], picked: list[int]) -> None:
    """decode(Q, tokens) = decode(Q) + the tokens' bytes: the first token aside, all are exact."""
    text = file([ANCHOR, *PIECES], decoder)
    try:
        vocabulary = Vocabulary.from_bytes(text.encode())
    except CompileError as e:
        assert e.diagnostics[0].code is Code.INVALID_VOCABULARY
        assume(False)
    tokenizer = tokenizers.Tokenizer.from_str(text)
    ids = [i + 1 for i in picked]
    expected = tokenizer.decode([0, *ids], skip_special_tokens=False).encode()
    found = tokenizer.decode([0], skip_special_tokens=False).encode() + joined(vocabulary, ids)
    try:
        printable = found.decode()
    except UnicodeDecodeError:
        assume(False)
    assume("▁" not in printable or not vocabulary.warnings)
    assert found == expected


@pytest.mark.parametrize(
    ("decoder", "pieces", "expected"),
    [
        (BYTE_LEVEL, ["Ġa", "Ċ", "é", "日", "é日"], [b" a", b"\n", b"\xe9", "日".encode(), "é日".encode()]),
        (sequence(FALLBACK, FUSE), ["<0x0A>", "<0xff>", "<0x0AB>", "x"], [b"\n", b"\xff", b"<0x0AB>", b"x"]),
        (metaspace("always"), ["▁a", "a▁b", "▁"], [b" a", b"a b", b" "]),
        (word_piece(True), ["a", "##b", ".", "'s", "##.", "####"], [b" a", b"b", b".", b"'s", b".", b"##"]),
        (word_piece(False), ["a", "##b", "."], [b" a", b"b", b" ."]),
        (strip("_", 1, 1), ["__a__", "_", "a", "__"], [b"_a_", None, b"a", None]),
        (sequence(replace("ab", ""), FUSE), ["ab", "aab"], [None, b"a"]),
    ],
)
def test_spellings(decoder: dict[str, Any], pieces: list[str], expected: list[bytes | None]) -> None:
    assert Vocabulary.from_bytes(file(pieces, decoder).encode()).tokens == tuple(expected)


@pytest.mark.parametrize(
    ("decoder", "tokens", "name"),
    [
        ({"type": "CTC", "pad_token": "_", "word_delimiter_token": "|", "cleanup": False}, ["a", "a"], "CTC"),
        ({"type": "BPEDecoder", "suffix": "</w>"}, ["a</w>", "b"], "BPEDecoder"),
        (sequence(FALLBACK, {**metaspace("never"), "replacement": "é"}), ["<0xC3>", "<0xA9>"], "Metaspace"),
        (sequence(FALLBACK, FUSE, replace("é", "e")), ["<0xC3>", "<0xA9>"], "Replace"),
        (sequence(FALLBACK, word_piece(False)), ["<0x61>", "<0x62>"], "WordPiece"),
        (sequence(FALLBACK, strip("a", 1, 0)), ["x", "<0x62>", "<0x61>"], "Strip"),
        (sequence(FUSE, replace("ab", "c")), ["a", "b"], "Replace"),
        (sequence(FUSE, word_piece(True)), ["a ", "."], "WordPiece"),
        (sequence(FUSE, FALLBACK), ["<0x", "0A>"], "ByteFallback"),
        (sequence(FUSE, BYTE_LEVEL), ["Ġ", "日"], "ByteLevel"),
        (sequence(FUSE, strip("a", 0, 1)), ["a", "b"], "Strip"),
    ],
)
def test_refused_by_name_and_rightly(decoder: dict[str, Any], tokens: list[str], name: str) -> None:
    pieces = [ANCHOR, *dict.fromkeys([*tokens, *PIECES])]
    text = file(pieces, decoder)
    with pytest.raises(CompileError) as caught:
        Vocabulary.from_bytes(text.encode(), name="x.json")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code is Code.INVALID_VOCABULARY and diagnostic.source == "x.json"
    assert diagnostic.detail["decoder"] == name and name in diagnostic.message
    assert diagnostic.pointer is not None and diagnostic.pointer.startswith("/decoder")
    # the library's own decoding of these tokens isn't a concatenation, at the start of a text or inside
    tokenizer = tokenizers.Tokenizer.from_str(text)
    ids = [pieces.index(t) for t in tokens]
    start, inside = (
        tokenizer.decode([*before, *ids]) != "".join(tokenizer.decode([i]) for i in [*before, *ids])
        for before in ([], [0])
    )
    assert start or inside


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (None, "no decoder"),
        ({"type": "Rot13"}, "'Rot13' isn't known"),
        ({"kind": "Fuse"}, "not an object with a type"),
        ([], "not an object with a type"),
        ({"type": "Sequence", "decoders": {}}, "not an array"),
        ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}, "isn't interpreted"),
        ({"type": "Replace", "pattern": {"String": ""}, "content": "x"}, "empty pattern"),
        ({"type": "Replace", "pattern": "a", "content": ""}, "isn't a dict"),
        ({"type": "Replace", "pattern": {"String": 1}, "content": ""}, "not a String"),
        ({"type": "Replace", "pattern": {"String": "a"}, "content": "\ud800"}, "surrogate"),
        ({"type": "Replace", "pattern": {"String": "\ud800"}, "content": ""}, "surrogate"),
        ({"type": "Strip", "content": "ab", "start": 1, "stop": 0}, "one character"),
        ({"type": "Strip", "content": "a", "start": True, "stop": 0}, "isn't a int"),
        ({"type": "Metaspace", "replacement": "▁▁"}, "one character"),
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "often"}, "prepend_scheme"),
        ({"type": "WordPiece", "prefix": None, "cleanup": True}, "prefix"),
        (sequence(*[FUSE] * 65), "decoder_steps"),
        (sequence(*[replace("a", "a" * 5000)] * 60), "reached"),
    ],
)
def test_malformed_decoders(decoder: Any, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        Vocabulary.from_bytes(file(["a", "aaaa"], decoder).encode())


def test_nesting_is_bounded() -> None:
    decoder: dict[str, Any] = FUSE
    for _ in range(9):
        decoder = sequence(decoder)
    with pytest.raises(CompileError, match="decoder_nesting"):
        Vocabulary.from_bytes(file(["a"], decoder).encode())


@pytest.mark.parametrize("step", [metaspace("never"), replace("▁", " ")])
@pytest.mark.parametrize("fused", [[], [FUSE]])
def test_a_space_mark_after_byte_fallback_is_read_with_a_warning(
    step: dict[str, Any], fused: list[Any]
) -> None:
    mark = ["<0xE2>", "<0x96>", "<0x81>"]
    text = file([ANCHOR, "▁a", *mark], sequence(FALLBACK, *fused, step))
    vocabulary = Vocabulary.from_bytes(text.encode(), name="x.json")
    assert vocabulary.tokens[1:] == (b" a", b"\xe2", b"\x96", b"\x81")
    (warning,) = vocabulary.warnings
    assert (warning.severity, warning.source, warning.detail["decoder"]) == (
        "warning",
        "x.json",
        step["type"],
    )
    # what it warns of
    assert tokenizers.Tokenizer.from_str(text).decode([0, 2, 3, 4]) == ANCHOR + " "
    # without all three bytes there's nothing to warn of
    fewer = file([ANCHOR, "▁a", *mark[:2]], sequence(FALLBACK, *fused, step))
    assert Vocabulary.from_bytes(fewer.encode()).warnings == ()


def test_alphabet_is_the_librarys() -> None:
    alphabet = byte_level_alphabet()
    assert sorted(alphabet) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(alphabet.values()) == list(range(256))
