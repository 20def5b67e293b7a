"""The table itself: its invariants, identity and fingerprint; and the vocabulary that the package ships."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabulary_texts import decoded, spelled, texts

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.vocabulary import Vocabulary
from maskwright.workers.fingerprint import vocabulary_fingerprint


def test_from_tokens() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"a", None, b"", b"c"], special={1: "<e>", 6: "<f>"}, stop_token_ids=[6, 1]
    )
    assert vocabulary.tokens == (b"a", None, None, b"c", None, None, None)
    assert vocabulary.size == vocabulary.logits_width == 7
    assert vocabulary.special_ids == {1, 6} and vocabulary.stop_token_ids == (1, 6)
    assert [vocabulary.special_text(i) for i in (0, 1, 5, 6)] == [None, "<e>", None, "<f>"]
    assert [vocabulary.token_bytes(i) for i in (-1, 0, 1, 7)] == [None, b"a", None, None]
    assert Vocabulary.from_tokens([b"a", b"b"], special=[1]).tokens == (b"a", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "no token"),
        ((["a"],), "str, not bytes"),
        (([b"a"], [-1]), "special token"),
        (([b"a"], [1 << 40]), "special token"),
        (([b"a"], {0: "\ud800"}), "Unicode"),
        (([b"a"], (), [1]), "stop token 1 isn't in the vocabulary"),
        (([b"a"], (), [True]), "stop token"),
    ],
)
def test_bad_arguments(arguments: tuple, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        Vocabulary.from_tokens(*arguments)


def test_immutable_and_equal_by_fingerprint() -> None:
    one, two = Vocabulary.from_tokens([b"a", b"b"]), Vocabulary.from_tokens([b"a", b"b"], (), [1])
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one != Vocabulary.from_tokens([b"a", b"c"]) and one != "x"
    with pytest.raises(FrozenInstanceError):
        one.name = "other"  # type: ignore[misc]


TABLES = st.tuples(
    st.lists(st.none() | st.binary(max_size=2), max_size=5),
    st.dictionaries(st.integers(0, 5), st.text(max_size=2), max_size=3),
)


def canonical(tokens: list[bytes | None], special: dict[int, str]) -> list[object]:
    size = max(len(tokens), max(special, default=-1) + 1)
    filled = [*tokens, *[None] * (size - len(tokens))]
    return [special.get(i, t or None) for i, t in enumerate(filled)]


@settings(max_examples=500, deadline=None)
@given(TABLES, TABLES)
def test_equal_fingerprints_exactly_for_equal_tables(a: tuple, b: tuple) -> None:
    same = canonical(*a) == canonical(*b)
    assert (vocabulary_fingerprint(*a) == vocabulary_fingerprint(*b)) == same


def test_each_difference_counts() -> None:
    tokens = [b"a", b"bc", None, b"d"]
    tables = [
        (tokens, {2: "x"}),
        ([b"a", b"bd", None, b"d"], {2: "x"}),
        ([b"ab", b"c", None, b"d"], {2: "x"}),
        ([b"bc", b"a", None, b"d"], {2: "x"}),
        ([*tokens, None], {2: "x"}),
        (tokens, {2: "y"}),
        (tokens, {2: ""}),
        (tokens, {}),
        ([b"a", b"bc", b"x", b"d"], {}),
        (tokens, {2: "x", 3: "d"}),
    ]
    assert len({vocabulary_fingerprint(*table) for table in tables}) == len(tables)


def test_fingerprint_is_stable() -> None:
    """The encoding is part of every artifact: a change of this value makes all of them unusable."""
    found = vocabulary_fingerprint([b"a", None, "é".encode()], {1: "<e>", 4: ""})
    assert found == "e24e2aae29d352f216d8991eadc8b49e633aaed479bb5c1ab8a5395192c83084"


def test_fingerprint_rejects_bad_specials_and_is_fast() -> None:
    with pytest.raises(ValueError, match="negative"):
        vocabulary_fingerprint([b"a"], {-1: "x"})
    tokens = [i.to_bytes(5, "little") for i in range(256_000)]
    start = time.perf_counter()
    vocabulary_fingerprint(tokens, {3: "x"})
    assert time.perf_counter() - start < 2, "measured 0.05 s; the bound allows for a busy machine"


# -- the shipped vocabulary ------------------------------------------------------------------------------


def test_demo_shape() -> None:
    demo = Vocabulary.demo()
    assert (demo.kind, demo.size, demo.name) == ("byte_level_bpe", 4096, "demo.tokenizer.json")
    names = {i: demo.special_text(i) for i in demo.special_ids}
    assert names == {0: "<|begin|>", 1: "<|end|>", 2: "<|pad|>"}
    assert demo.stop_token_ids == (1,)
    assert {t for t in demo.tokens if t and len(t) == 1} == {bytes([b]) for b in range(256)}
    assert all(demo.token_bytes(i) for i in range(3, 4096))


def test_demo_round_trips() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    data = (resources.files("maskwright.compiler") / "data" / "demo.tokenizer.json").read_bytes()
    tokenizer, demo = tokenizers.Tokenizer.from_str(data.decode()), Vocabulary.demo()
    for text in texts(1000):
        ids = tokenizer.encode(text).ids
        assert spelled(demo, ids) == text.encode() == decoded(tokenizer, ids)


def test_demo_is_what_training_gives() -> None:
    pytest.importorskip("tokenizers")
    from maskwright.compiler.vocabulary.train import train

    data = (resources.files("maskwright.compiler") / "data" / "demo.tokenizer.json").read_bytes()
    assert train().encode() == data
