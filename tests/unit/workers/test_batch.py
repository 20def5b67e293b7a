"""Batches: what Matcher does, for many sequences, with places that are empty, skipped or failing."""

from __future__ import annotations

import random

import numpy as np
import pytest
from toy import toy

from maskwright.workers import (
    Artifact,
    BatchMatcher,
    DeadEnd,
    Matcher,
    VocabularyPack,
    WrongVocabulary,
    allocate_token_bitmask,
)

EOS, SIZE = 300, 301


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))


@pytest.mark.parametrize("seed", range(8))
def test_a_batch_is_its_matchers(artifact: Artifact, seed: int) -> None:
    rng, n = random.Random(seed), 5
    batch = BatchMatcher([artifact, Matcher(artifact, [299]), None, artifact, artifact])
    alone = [Matcher(artifact), Matcher(artifact, [299]), None, Matcher(artifact), Matcher(artifact)]
    assert len(batch) == n
    mask, single = np.full((n + 1, 11), 5, np.int32), allocate_token_bitmask(1, SIZE)
    for _ in range(25):
        rows = [n - i if rng.random() < 0.8 else None for i in range(n)]
        mask[:] = 5
        assert batch.fill_next_token_bitmask(mask, rows) == {}
        tokens: list[int | None] = []
        for matcher, row in zip(alone, rows, strict=True):
            if matcher is None or row is None:
                assert row is None or (mask[row] == 5).all()
                tokens.append(rng.choice([None, 4]) if matcher is None else None)
                continue
            matcher.fill_next_token_bitmask(single)
            assert (mask[row, :10] == single[0]).all() and mask[row, 10] == 0
            legal = np.flatnonzero(np.unpackbits(single.view(np.uint8), bitorder="little"))
            tokens.append(int(rng.choice(legal)) if rng.random() < 0.9 else rng.randrange(SIZE))
        assert (mask[0] == 5).all()
        want = [None if m is None or t is None else m.accept_token(t) for m, t in zip(alone, tokens, strict=True)]
        assert batch.accept_tokens(tokens) == want
        assert batch.is_terminated() == [m is None or m.is_terminated() for m in alone]
        assert batch.is_accepting() == [m is None or m.is_accepting() for m in alone]
        if rng.random() < 0.2:
            steps = [0 if m is None else rng.randint(0, min(2, len(m.accepted()))) for m in alone]
            batch.rollback(steps)
            for m, k in zip(alone, steps, strict=True):
                if m is not None:
                    m.rollback(k)


def test_rows_default_to_places_and_another_mask_may_be_used(artifact: Artifact) -> None:
    batch = BatchMatcher([artifact] * 3)
    first, second = allocate_token_bitmask(3, SIZE), allocate_token_bitmask(4, SIZE)
    batch.fill_next_token_bitmask(first)
    batch.fill_next_token_bitmask(second)
    assert first.any(axis=1).all() and (second[:3] == first).all() and not second[3].any()
    new = Matcher(artifact)
    assert new.accept_string("[]")
    batch[1] = new
    batch[2] = None
    assert batch[1] is new and batch[2] is None
    second[:] = 0
    batch.fill_next_token_bitmask(second)
    assert (second[0] == first[0]).all() and not (second[1] == first[1]).all() and not second[2].any()


def test_budgets_for_all_or_for_each_and_failures_by_place(artifact: Artifact) -> None:
    stuck = Matcher(artifact, [])
    assert stuck.accept_string("[]!")
    batch = BatchMatcher([artifact, artifact, stuck])
    mask = np.full((3, 10), -1, np.int32)
    failed = batch.fill_next_token_bitmask(mask, remaining=[2, 1, None])
    assert sorted(failed) == [1, 2]
    assert isinstance(failed[1], ValueError) and "1 tokens remain" in str(failed[1])
    assert isinstance(failed[2], DeadEnd)
    assert mask[0].any() and not mask[1:].any()
    assert sorted(batch.fill_next_token_bitmask(mask, remaining=100)) == [2]
    assert sorted(batch.fill_next_token_bitmask(mask, remaining=1)) == [0, 1, 2]


def test_wrong_arguments_change_nothing(artifact: Artifact) -> None:
    batch = BatchMatcher([artifact, artifact])
    mask = allocate_token_bitmask(2, SIZE)
    for rows, error in (([0], ValueError), ([0, 2], IndexError), ([-1, 0], IndexError)):
        with pytest.raises(error):
            batch.fill_next_token_bitmask(mask, rows)
    with pytest.raises(ValueError):
        batch.fill_next_token_bitmask(mask, remaining=[1])
    with pytest.raises(TypeError):
        batch.fill_next_token_bitmask(mask.astype(np.int64))
    assert not mask.any()
    with pytest.raises(ValueError):
        batch.accept_tokens([1])
    with pytest.raises(TypeError):
        batch.accept_tokens([8, 1.5])  # type: ignore[list-item]
    assert batch.accept_tokens(np.array([8, 8])) == [False, False]  # type: ignore[arg-type]
    assert batch.accept_tokens([6, 6]) == [True, True]
    with pytest.raises(ValueError):
        batch.rollback([1, 2])
    with pytest.raises(ValueError):
        batch.rollback([1])
    batch.rollback(1)
    assert batch[0] is not None and batch[0].accepted() == ()


def test_one_vocabulary(artifact: Artifact) -> None:
    other = Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))
    other.pack.fingerprint = "another"
    with pytest.raises(WrongVocabulary):
        BatchMatcher([artifact, other])
    batch = BatchMatcher([None, artifact])
    with pytest.raises(WrongVocabulary):
        batch[0] = other
    assert batch[0] is None


def test_numbers_of_any_kind(artifact: Artifact) -> None:
    batch, mask = BatchMatcher([artifact, None, artifact]), allocate_token_bitmask(3, SIZE)
    wanted = allocate_token_bitmask(3, SIZE)
    assert batch.fill_next_token_bitmask(wanted, remaining=40) == {}
    assert batch.fill_next_token_bitmask(mask, np.arange(3), np.int64(40)) == {}  # type: ignore[arg-type]
    assert (mask == wanted).all()
    first = int(np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little"))[0])
    assert batch.accept_tokens(np.full(3, first)) == [True, None, True]  # type: ignore[arg-type]
    batch.rollback(np.int64(1))  # type: ignore[arg-type]
    assert batch[0] is not None and batch[0].accepted() == ()


def test_rows_that_are_none_or_shared_are_refused(artifact: Artifact) -> None:
    batch, mask = BatchMatcher([artifact, artifact]), allocate_token_bitmask(3, SIZE)
    for rows, error in (([0, 1.0], TypeError), ([0, "1"], TypeError), ([True, 0], TypeError), ([2, 2], ValueError)):
        with pytest.raises(error):
            batch.fill_next_token_bitmask(mask, rows)  # type: ignore[arg-type]
    for steps in (1.0, [0, 0.5]):
        with pytest.raises(TypeError):
            batch.rollback(steps)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="place"):
        BatchMatcher(["artifact"])  # type: ignore[list-item]
    assert not mask.any()
