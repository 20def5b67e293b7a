"""Drafts: windows and trees of tokens, and how many of them are acceptable."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_matcher import mask_of, walk
from toy import ALPHABET, toy

from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

EOS, SIZE = 300, 301


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))


def byte(char: str) -> int:
    return ALPHABET.index(char.encode())


def row(mask: np.ndarray, i: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask[i].view(np.uint8), bitorder="little")).tolist())


def state(m: Matcher) -> tuple[set[int], tuple[int | bytes, ...], bool]:
    return mask_of(m), m.accepted(), m.is_terminated()


@pytest.mark.parametrize("seed", range(20))
def test_validate_counts_what_accepting_would_take(artifact: Artifact, seed: int) -> None:
    rng, m = random.Random(seed), Matcher(artifact)
    walk(m, rng, rng.randrange(5))
    draft = m.fork()
    walk(draft, rng, 5)
    tokens = [t for t in draft.accepted()[len(m.accepted()) :] if isinstance(t, int)]
    tokens += [rng.randrange(-2, SIZE + 2) for _ in range(3)]
    before, by_hand, want = state(m), m.fork(), 0
    for token in tokens:
        if not by_hand.accept_token(token):
            break
        want += 1
    assert m.validate_tokens(tokens) == want
    assert m.validate_tokens(np.array(tokens)) == want
    assert m.validate_tokens([]) == 0
    assert state(m) == before
    with pytest.raises(TypeError):
        m.validate_tokens([*tokens[:want], "x"])  # type: ignore[list-item]
    assert state(m) == before


@pytest.mark.parametrize("seed", range(20))
def test_a_window_is_fill_and_accept_in_turn(artifact: Artifact, seed: int) -> None:
    rng, m = random.Random(seed), Matcher(artifact)
    walk(m, rng, 3)
    draft = m.fork()
    walk(draft, rng, 4)
    tokens = [t for t in draft.accepted()[len(m.accepted()) :] if isinstance(t, int)]
    good, tokens = len(tokens), [*tokens, 299, byte("[")]  # 299 is special: never legal
    before = state(m)
    mask = np.full((len(tokens) + 3, 12), 7, np.int32)
    assert m.fill_draft_bitmask(mask, tokens, 1) == good
    assert state(m) == before
    assert (mask[0] == 7).all() and (mask[-1] == 7).all()
    by_hand = m.fork()
    for i in range(good + 1):
        assert row(mask, 1 + i) == mask_of(by_hand)
        assert i == good or by_hand.accept_token(tokens[i])
    for i in range(good + 1, len(tokens) + 1):
        assert row(mask, 1 + i) == set(range(SIZE))


def test_a_window_across_the_end_of_the_text(artifact: Artifact) -> None:
    m = Matcher(artifact, [EOS, 299])
    tokens = [byte("["), byte("]"), EOS, 299, byte("!"), EOS]
    mask = allocate_token_bitmask(len(tokens) + 1, SIZE)
    assert m.validate_tokens(tokens) == 4
    assert m.fill_draft_bitmask(mask, tokens) == 4
    assert row(mask, 2) == {byte("!"), EOS, 299}
    assert row(mask, 3) == row(mask, 4) == {EOS, 299}
    assert not m.is_terminated()
    for token in tokens[:4]:
        assert m.accept_token(token)
    m.rollback(2)
    assert not m.is_terminated() and mask_of(m) == {byte("!"), EOS, 299}


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_is_a_window_along_each_branch(artifact: Artifact, seed: int) -> None:
    rng, m = random.Random(seed), Matcher(artifact)
    walk(m, rng, 2)
    parents, tokens, forks = list[int](), list[int](), dict[int, Matcher | None]()
    for node in range(14):
        parent = rng.randrange(-1, node)
        fork = (m if parent < 0 else forks[parent]) and (m if parent < 0 else forks[parent]).fork()  # type: ignore[union-attr]
        token = rng.choice(sorted(mask_of(fork))) if fork and rng.random() < 0.8 else rng.randrange(SIZE)
        forks[node] = fork if fork and fork.accept_token(token) else None
        parents.append(parent)
        tokens.append(token)
    mask = allocate_token_bitmask(15, SIZE)
    before = state(m)
    assert m.fill_draft_tree_bitmask(mask, tokens, parents) == [forks[n] is not None for n in range(14)]
    assert state(m) == before
    assert row(mask, 0) == mask_of(m)
    for node, fork in forks.items():
        assert row(mask, node + 1) == (mask_of(fork) if fork else set(range(SIZE)))


def test_what_is_no_tree_or_does_not_fit_is_refused_before_anything_is_written(artifact: Artifact) -> None:
    m, mask = Matcher(artifact), allocate_token_bitmask(3, SIZE)
    for parents in ([-1], [0, -1], [-2, 0], [-1, 1]):
        with pytest.raises(ValueError):
            m.fill_draft_tree_bitmask(mask, [1, 2], parents)
    for index in (1, -1, 3):
        with pytest.raises(IndexError):
            m.fill_draft_bitmask(mask, [1, 2], index)
    assert not mask.any()
    assert m.fill_draft_bitmask(mask, [], 2) == 0


def test_drafts_keep_budgets(artifact: Artifact) -> None:
    """A bound of 2: "[]" and the stop token. With three tokens "[" is in time, a second one isn't."""
    m, mask = Matcher(artifact), allocate_token_bitmask(4, SIZE)
    need = m.min_tokens_to_finish()
    draft = [byte("["), byte("["), byte("]")]
    assert m.validate_tokens(draft) == 3
    assert need == 2
    assert m.validate_tokens(draft, remaining=3) == 1
    assert m.validate_tokens(draft, remaining=10) == 3
    assert m.fill_draft_bitmask(mask, draft, remaining=3) == 1
    by_hand, single = m.fork(), allocate_token_bitmask(1, SIZE)
    assert by_hand.accept_token(draft[0])
    by_hand.fill_next_token_bitmask(single, 0, 2)
    assert row(mask, 1) == row(single, 0)
    assert row(mask, 2) == set(range(SIZE))
    with pytest.raises(ValueError, match="remain"):
        m.validate_tokens(draft, remaining=need - 1)
    with pytest.raises(ValueError, match="remain"):
        m.fill_draft_bitmask(mask, draft, remaining=need - 1)


def test_nothing_is_written_for_what_is_no_draft(artifact: Artifact) -> None:
    m, mask = Matcher(artifact), allocate_token_bitmask(4, SIZE)
    for tokens, parents in (([byte("["), 1.5], [-1, 0]), ([byte("["), 1], [-1, 0.0]), ([True], [-1]), ([None], [-1])):
        with pytest.raises(TypeError):
            m.fill_draft_tree_bitmask(mask, tokens, parents)  # type: ignore[arg-type]
    assert not mask.any() and m.accepted() == ()


def test_stop_tokens_behind_the_end_cost_nothing(artifact: Artifact) -> None:
    """Counting and masks agree on them, whatever remains."""
    m, mask = Matcher(artifact), allocate_token_bitmask(4, SIZE)
    assert m.accept_string("[]")
    for remaining in (1, 2, 5, None):
        assert m.validate_tokens([EOS] * 3, remaining) == 3
        assert m.fill_draft_bitmask(mask, [EOS] * 3, 0, remaining) == 3


def test_without_stop_tokens_a_budget_ends_with_the_text(artifact: Artifact) -> None:
    m, mask = Matcher(artifact, ()), allocate_token_bitmask(3, SIZE)
    assert m.accept_string("[]") and m.min_tokens_to_finish() == 0
    assert m.validate_tokens([byte("!")], 0) == 0 and m.validate_tokens([byte("!")], 1) == 1
    assert m.fill_draft_tree_bitmask(mask, [byte("a")], [-1], 0, 1) == [False]
