"""The matcher against the byte automaton, on the toy language: masks, accepting, history, stop tokens."""

from __future__ import annotations

import random

import numpy as np
import pytest
from toy import ALPHABET, LONGEST, Toy, legal, run, start, toy

from maskwright.compiler.automaton.ir import Configuration, may_end
from maskwright.workers import Artifact, DeadEnd, DeadEndCause, Matcher, VocabularyPack, allocate_token_bitmask

EOS = 300


@pytest.fixture(scope="module")
def built() -> Toy:
    return toy()


@pytest.fixture(scope="module")
def artifact(built: Toy) -> Artifact:
    return Artifact.from_bytes(built.artifact, VocabularyPack.from_bytes(built.pack))


def mask_of(m: Matcher) -> set[int]:
    mask = allocate_token_bitmask(1, m.vocab_size)
    m.fill_next_token_bitmask(mask)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def expected(t: Toy, config: Configuration) -> set[int]:
    tokens = set(legal(t.automaton, config, list(t.vocabulary.token_bytes)))
    return tokens | ({EOS} if may_end(t.automaton, config) else set())


def walk(m: Matcher, rng: random.Random, steps: int) -> None:
    """A random run of at most `steps` text tokens."""
    for _ in range(steps):
        choice = sorted(mask_of(m) - {EOS})
        if not choice:
            break
        assert m.accept_token(rng.choice(choice))


@pytest.mark.parametrize("token", [1.5, 1.0, "1", None])
def test_what_is_no_integer_is_no_token(artifact: Artifact, token: object) -> None:
    with pytest.raises(TypeError):
        Matcher(artifact).accept_token(token)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
def test_the_mask_is_brute_force_along_random_runs(built: Toy, artifact: Artifact, seed: int) -> None:
    rng, m, config = random.Random(seed), Matcher(artifact), start(built)
    for _ in range(40):
        mask = mask_of(m)
        assert mask == expected(built, config)
        assert m.is_accepting() == may_end(built.automaton, config)
        choice = sorted(mask - {EOS})
        if not choice:
            break
        # Prefer openings, so that the stack grows beyond what contexts look into.
        token = rng.choice(choice) if rng.random() < 0.5 else max(choice, key=lambda t: _opens(built, t))
        assert m.accept_token(token)
        config = run(built.automaton, config, built.vocabulary.token_bytes[token] or b"")  # type: ignore[assignment]
        assert config is not None


def _opens(t: Toy, token: int) -> int:
    data = t.vocabulary.token_bytes[token] or b""
    return data.count(b"[") + data.count(b"(")


@pytest.mark.parametrize("seed", range(6))
def test_a_token_is_in_the_mask_exactly_when_it_is_accepted(artifact: Artifact, seed: int) -> None:
    m = Matcher(artifact)
    walk(m, random.Random(seed), 6)
    before = mask_of(m)
    for token in range(-40, m.vocab_size + 40):
        accepted = m.accept_token(token)
        assert accepted == (token in before), token
        if accepted:
            m.rollback()
        assert mask_of(m) == before


def test_tokens_may_be_numpy_integers(artifact: Artifact) -> None:
    m = Matcher(artifact)
    for kind in (np.int64, np.int32, np.uint16):
        assert m.accept_token(kind(ALPHABET.index(b"[")))


@pytest.mark.parametrize("seed", range(8))
def test_rollback_and_fork_are_identities(artifact: Artifact, seed: int) -> None:
    rng, m = random.Random(seed), Matcher(artifact)
    masks = [mask_of(m)]
    for _ in range(15):
        choice = sorted(masks[-1])
        if not choice:
            break
        assert m.accept_token(rng.choice(choice))
        masks.append(mask_of(m))
    twin = m.fork()
    for n in (1, 2, 3):
        if len(masks) > n:
            twin.rollback(n)
            del masks[len(masks) - n :]
            assert mask_of(twin) == masks[-1]
    kept = mask_of(m)
    walk(twin.fork(), rng, 3)
    assert mask_of(twin) == masks[-1]
    assert mask_of(m) == kept
    twin.rollback(len(masks) - 1)
    assert mask_of(twin) == masks[0]
    with pytest.raises(ValueError, match="there are 0"):
        twin.rollback()
    m.reset()
    assert mask_of(m) == masks[0]
    with pytest.raises(ValueError):
        m.rollback()


def test_rollback_beyond_the_start_changes_nothing(artifact: Artifact) -> None:
    m = Matcher(artifact)
    assert m.accept_string("[a,")
    before = mask_of(m)
    with pytest.raises(ValueError, match="there are 1"):
        m.rollback(2)
    with pytest.raises(ValueError):
        m.rollback(-1)
    m.rollback(0)
    assert mask_of(m) == before


@pytest.mark.parametrize(
    ("text", "accepted", "complete"),
    [
        ("", True, False),
        ("[]", True, True),
        ("[]!", True, True),
        ("[]!!", False, False),
        ("[abd,d]", True, True),
        ("[(()()):ab,[[]]]", True, True),
        ("[(()):ad", True, False),
        ("[(()):ad,", False, False),
        ("[(()):ada,", True, False),
        ("[a,]", False, False),
        ("x", False, False),
        ("[ä", False, False),
    ],
)
def test_strings(artifact: Artifact, text: str, accepted: bool, complete: bool) -> None:
    m = Matcher(artifact)
    before = mask_of(m)
    assert m.accept_string(text) == accepted
    if not accepted:
        assert mask_of(m) == before
    else:
        assert m.is_accepting() == complete
        m.rollback()
        assert mask_of(m) == before
    assert m.accept_string(text.encode()) == accepted


def test_a_string_in_pieces_is_the_string(built: Toy, artifact: Artifact) -> None:
    rng, text = random.Random(3), "[(()(())):abc,[[a],[]],bd]"
    whole = Matcher(artifact)
    assert whole.accept_string(text)
    m, at = Matcher(artifact), 0
    while at < len(text):
        n = rng.randint(1, LONGEST)
        assert m.accept_string(text[at : at + n])
        at += n
    assert mask_of(m) == mask_of(whole) == {ALPHABET.index(b"!"), EOS}


def test_stop_tokens_end_the_text(artifact: Artifact) -> None:
    m = Matcher(artifact)
    assert not m.accept_token(EOS)
    assert m.accept_string("[]")
    assert m.is_accepting() and not m.is_terminated()
    assert m.accept_token(EOS)
    assert m.is_terminated() and m.is_accepting()
    assert mask_of(m) == {EOS}
    assert m.expected_bytes() == b""
    assert not m.accept_string("!") and not m.accept_string("") and not m.accept_token(ALPHABET.index(b"!"))
    assert m.accept_token(EOS) and m.accept_token(EOS)
    m.rollback(2)
    assert m.is_terminated()
    m.rollback()
    assert not m.is_terminated() and mask_of(m) == {ALPHABET.index(b"!"), EOS}


def test_several_stop_tokens_and_one_that_is_text(artifact: Artifact) -> None:
    opening, bang = ALPHABET.index(b"["), ALPHABET.index(b"!")
    m = Matcher(artifact, stop_token_ids=[opening, bang, 299])
    # "[" would be the only single byte; as a stop token it's legal only where the text is complete.
    assert opening not in mask_of(m) and not m.accept_token(opening)
    assert m.accept_string("[]")
    assert mask_of(m) == {opening, bang, 299}
    assert m.accept_token(bang) and m.is_terminated()
    assert mask_of(m) == {opening, bang, 299}


def test_stop_tokens_must_be_in_the_vocabulary(artifact: Artifact) -> None:
    for bad in (-1, 301):
        with pytest.raises(ValueError, match="below 301"):
            Matcher(artifact, stop_token_ids=[bad])
    assert Matcher(artifact).stop_token_ids == (EOS,)


def test_no_stop_token_at_all(artifact: Artifact) -> None:
    m = Matcher(artifact, stop_token_ids=[])
    assert m.accept_string("[]!")
    with pytest.raises(DeadEnd, match="no stop token to end it") as caught:
        mask_of(m)
    assert caught.value.cause is DeadEndCause.UNSUPPORTED
    assert not m.accept_token(EOS)


def test_where_names_the_frame_and_what_may_follow(artifact: Artifact) -> None:
    m = Matcher(artifact)
    assert (m.where().frame, m.where().pointer, m.where().expected) == ("root", "", b"[")
    assert m.accept_string("[")
    assert (m.where().frame, m.where().pointer, m.where().expected) == ("list", "/items", b"([]abcd")
    assert m.accept_string("(")
    assert (m.where().frame, m.where().expected) == ("tree", b"()")
    assert m.accept_string("):ad")
    assert (m.where().frame, m.where().expected, m.where().may_end) == ("word", b"abcd", False)
    assert m.accept_string("a]")
    assert (m.where().frame, m.where().expected, m.where().may_end) == ("root", b"!", True)


def test_long_nesting_needs_no_recursion(artifact: Artifact) -> None:
    m = Matcher(artifact)
    for _ in range(30_000):
        assert m.accept_token(ALPHABET.index(b"["))
    assert m.accept_string("]" * 30_000) and m.is_accepting()
    del m


def test_fill_writes_only_its_row_and_clears_what_is_beyond(artifact: Artifact) -> None:
    m = Matcher(artifact)
    mask = np.full((3, 12), -1, np.int32)
    m.fill_next_token_bitmask(mask, 1)
    assert (mask[0] == -1).all() and (mask[2] == -1).all()
    assert (mask[1, 10:] == 0).all()
    assert np.flatnonzero(np.unpackbits(mask[1].view(np.uint8), bitorder="little")).tolist() == sorted(mask_of(m))
    m.fill_next_token_bitmask(mask, -1)
    assert (mask[2] == mask[1]).all()
    flat = np.zeros(10, np.int32)
    m.fill_next_token_bitmask(flat)
    assert (flat == mask[1, :10]).all()


def test_fill_refuses_what_is_not_a_bitmask(artifact: Artifact) -> None:
    m = Matcher(artifact)
    good = allocate_token_bitmask(2, m.vocab_size)
    frozen = good.copy()
    frozen.flags.writeable = False
    for bad, error in [
        (good.astype(np.int64), TypeError),
        (good.tolist(), TypeError),
        (good[:, :9], ValueError),
        (np.zeros((2, 20), np.int32)[:, ::2], ValueError),
        (frozen, ValueError),
        (np.zeros((1, 2, 10), np.int32), ValueError),
    ]:
        with pytest.raises(error):
            m.fill_next_token_bitmask(bad)
    for index in (2, -3):
        with pytest.raises(IndexError):
            m.fill_next_token_bitmask(good, index)
    with pytest.raises(IndexError):
        m.fill_next_token_bitmask(allocate_token_bitmask(0, m.vocab_size))


@pytest.mark.parametrize("stops", [[1.5], ["3"], [None], [True]])
def test_stop_tokens_are_integers(artifact: Artifact, stops: list[object]) -> None:
    with pytest.raises(TypeError):
        Matcher(artifact, stops)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [1, [ord("[")], None, 1.5])
def test_a_text_is_text_or_bytes(artifact: Artifact, text: object) -> None:
    """A number isn't as many zero bytes, a list of tokens no text."""
    m = Matcher(artifact)
    with pytest.raises(TypeError):
        m.accept_string(text)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Matcher.restore(artifact, text)  # type: ignore[arg-type]
    assert m.accepted() == () and m.accept_string(bytearray(b"[")) and m.accept_string(memoryview(b"]"))
