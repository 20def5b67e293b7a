"""The reference sampler: its order, its cuts, its refusals, and the worked example of the design."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from toy import toy

from maskwright.workers import Artifact, DeadEnd, DeadEndCause, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.sampler import Sampler, SamplingOptions, TruncatedBeforeMask, masked_distribution

DELETE, REFUND, ASK, REST = range(4)
EXAMPLE = np.log(np.array([0.50, 0.30, 0.15, 0.05]))


def bitmask(*tokens: int, size: int = 64) -> np.ndarray:
    mask = allocate_token_bitmask(1, size)
    for t in tokens:
        mask.view(np.uint32)[0, t // 32] |= np.uint32(1 << (t % 32))
    return mask[0]


def distribution(logits: np.ndarray, *tokens: int, **options: float) -> dict[int, float]:
    found, p = masked_distribution(logits, bitmask(*tokens), SamplingOptions(**options))  # type: ignore[arg-type]
    assert found.tolist() == sorted(found.tolist()) and p.sum() == pytest.approx(1)
    return dict(zip(found.tolist(), p.tolist(), strict=True))


def test_the_worked_example() -> None:
    """delete 0.50, refund 0.30, ask 0.15; only refund and ask are legal."""
    found = distribution(EXAMPLE, REFUND, ASK)
    assert found == {REFUND: pytest.approx(0.667, abs=5e-4), ASK: pytest.approx(0.333, abs=5e-4)}
    assert found == {REFUND: pytest.approx(2 / 3), ASK: pytest.approx(1 / 3)}


def test_draws_follow_the_worked_example() -> None:
    sampler, mask = Sampler(seed=5), bitmask(REFUND, ASK)
    drawn = [sampler.draw(EXAMPLE, mask) for _ in range(4000)]
    assert set(drawn) == {REFUND, ASK}
    assert drawn.count(REFUND) / 4000 == pytest.approx(2 / 3, abs=0.03)


def test_truncating_before_the_mask_reaches_a_dead_end_and_is_refused() -> None:
    """top-p 0.5 alone keeps delete, which isn't legal: nothing is left. Masked first, top-p 0.5 keeps refund."""
    cut_first = EXAMPLE.copy()
    cut_first[[REFUND, ASK, REST]] = -np.inf
    assert distribution(EXAMPLE, DELETE, REFUND, ASK, REST, top_p=0.5) == {DELETE: 1.0}
    with pytest.raises(TruncatedBeforeMask) as refused:
        masked_distribution(cut_first, bitmask(REFUND, ASK))
    assert (refused.value.legal, refused.value.truncated) == (2, 2) and "mask first" in str(refused.value)
    assert distribution(EXAMPLE, REFUND, ASK, top_p=0.5) == {REFUND: 1.0}


def test_a_cut_that_leaves_something_is_refused_too() -> None:
    """top-k 2 before the mask keeps delete and refund, so refund would be certain instead of 2/3."""
    cut_first = EXAMPLE.copy()
    cut_first[[ASK, REST]] = -np.inf
    with pytest.raises(TruncatedBeforeMask) as refused:
        Sampler().draw(cut_first, bitmask(REFUND, ASK))
    assert (refused.value.legal, refused.value.truncated) == (2, 1)


def test_illegal_tokens_may_be_anything() -> None:
    logits = np.array([np.nan, 0.0, np.inf, -np.inf])
    assert distribution(logits, 1) == {1: 1.0}


def test_temperature() -> None:
    cold, hot = (distribution(EXAMPLE, REFUND, ASK, temperature=t) for t in (0.5, 2.0))
    assert cold[REFUND] / cold[ASK] == pytest.approx(4) and hot[REFUND] / hot[ASK] == pytest.approx(2**0.5)
    assert distribution(EXAMPLE, ASK, REST, temperature=0) == {ASK: 1.0}
    assert distribution(np.zeros(4), ASK, REFUND, temperature=0) == {REFUND: 1.0}
    assert distribution(EXAMPLE * 1e6, REFUND, ASK, temperature=1e-3)[REFUND] == 1.0


def test_top_k_counts_legal_tokens() -> None:
    assert set(distribution(EXAMPLE, REFUND, ASK, REST, top_k=2)) == {REFUND, ASK}
    assert set(distribution(EXAMPLE, REFUND, top_k=5)) == {REFUND}
    assert set(distribution(np.zeros(6), 1, 3, 5, top_k=2)) == {1, 3}


@pytest.mark.parametrize(
    ("top_p", "kept"), [(1.0, 3), (0.9, 2), (0.91, 3), (0.6, 1), (0.61, 2), (1e-9, 1), (0.9999999, 3)]
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, kept: int) -> None:
    """Masked, refund, ask and rest are 0.6, 0.3 and 0.1."""
    found = distribution(EXAMPLE, REFUND, ASK, REST, top_p=top_p)
    assert list(found) == [REFUND, ASK, REST][:kept]


def test_min_p_is_relative_to_the_most_probable_legal_token() -> None:
    assert list(distribution(EXAMPLE, REFUND, ASK, REST, min_p=0.4)) == [REFUND, ASK]
    assert list(distribution(EXAMPLE, DELETE, ASK, REST, min_p=0.4)) == [DELETE]
    assert list(distribution(np.zeros(4), REFUND, ASK, min_p=1.0)) == [REFUND, ASK]


def test_the_order_of_the_steps() -> None:
    """Each step sees what the one before left: the composition by hand, over many options."""
    rng = np.random.default_rng(3)
    logits = rng.standard_normal(40)
    legal = [t for t in range(40) if t % 3]
    for t, k, p, m in itertools.product((0.7, 1.3), (0, 5, 12), (1.0, 0.8, 0.3), (0.0, 0.2)):
        w = {i: np.exp(logits[i] / t) for i in legal}
        ranked = sorted(w, key=lambda i: -w[i])[: k or None]
        total, kept, mass = sum(w[i] for i in ranked), [], 0.0
        for i in ranked:
            if mass < p:
                kept.append(i)
                mass += w[i] / total
        kept = [i for i in kept if w[i] >= m * w[ranked[0]]]
        want = {i: w[i] / sum(w[j] for j in kept) for i in kept}
        assert distribution(logits, *legal, temperature=t, top_k=k, top_p=p, min_p=m) == pytest.approx(want)


def test_seeds() -> None:
    logits, mask = np.zeros(64), bitmask(*range(64))
    a, b, c = (Sampler(seed=s) for s in (1, 1, 2))
    first = [a.draw(logits, mask) for _ in range(50)]
    assert first == [b.draw(logits, mask) for _ in range(50)]
    assert first != [c.draw(logits, mask) for _ in range(50)]


def test_half_precision_and_narrow_logits() -> None:
    assert distribution(EXAMPLE.astype(np.float16), REFUND, ASK)[REFUND] == pytest.approx(2 / 3, abs=1e-3)
    assert distribution(EXAMPLE, REFUND, 50) == {REFUND: 1.0}


@pytest.mark.parametrize(
    ("logits", "mask"),
    [
        (EXAMPLE, bitmask()),
        (EXAMPLE, bitmask(50)),
        (EXAMPLE[None], bitmask(1)),
        (EXAMPLE, bitmask(1)[None]),
        (np.array([np.nan, 0.0]), bitmask(0, 1)),
        (np.array([np.inf, 0.0]), bitmask(0, 1)),
    ],
)
def test_what_has_no_distribution_is_refused(logits: np.ndarray, mask: np.ndarray) -> None:
    with pytest.raises(ValueError):
        masked_distribution(logits, mask)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.1},
        {"top_p": float("nan")},
        {"min_p": -0.1},
        {"min_p": 1.1},
    ],
)
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        SamplingOptions(**options)  # type: ignore[arg-type]


# -- with a matcher ------------------------------------------------------------------------------------------------


@pytest.fixture
def matcher() -> Matcher:
    return Matcher(Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack)))


def test_a_run_ends_with_a_stop_token(matcher: Matcher) -> None:
    rng, sampler = np.random.default_rng(0), Sampler(SamplingOptions(temperature=0.8, top_p=0.9), seed=4)
    tokens = []
    for _ in range(200):
        tokens.append(sampler.next_token(rng.standard_normal(matcher.vocab_size + 9), matcher))
        if matcher.is_terminated():
            break
    again = Matcher(matcher.artifact)
    assert all(again.accept_token(t) for t in tokens) and matcher.accepted() == tuple(tokens)


def test_outside_truncation_is_a_dead_end(matcher: Matcher) -> None:
    logits = np.full(matcher.vocab_size, -np.inf)
    logits[0] = 0.0  # a letter, where only a bracket may come
    with pytest.raises(DeadEnd) as ended:
        Sampler().next_token(logits, matcher)
    assert ended.value.cause == DeadEndCause.OUTSIDE_TRUNCATION and ended.value.artifact == matcher.artifact.digest
    assert matcher.accepted() == ()


def test_partial_truncation_is_refused_and_changes_nothing(matcher: Matcher) -> None:
    mask = allocate_token_bitmask(1, matcher.vocab_size)
    matcher.fill_next_token_bitmask(mask)
    legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    logits = np.zeros(matcher.vocab_size)
    logits[legal[0]] = -np.inf
    with pytest.raises(TruncatedBeforeMask):
        Sampler().next_token(logits, matcher)
    assert matcher.accepted() == ()


def test_logits_of_another_vocabulary_are_a_dead_end(matcher: Matcher) -> None:
    with pytest.raises(DeadEnd) as ended:
        Sampler().next_token(np.zeros(2), matcher)
    assert ended.value.cause == DeadEndCause.VOCABULARY_MISMATCH


def test_temperatures_near_zero_are_the_limit() -> None:
    logits = np.array([1.5, -1e300, 1.5, 1.25])
    for temperature in (1e-3, 1e-200, 5e-324):
        assert distribution(logits, 0, 1, 2, 3, temperature=temperature) == {0: 0.5, 1: 0, 2: 0.5, 3: pytest.approx(0)}


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint8, bool])
def test_other_bitmasks_are_refused(dtype: type) -> None:
    with pytest.raises(TypeError, match="bitmask"):
        masked_distribution(EXAMPLE, bitmask(REFUND, ASK).astype(dtype))


def test_other_logits_and_options_are_refused() -> None:
    for logits in (EXAMPLE.astype(complex), EXAMPLE > 0, EXAMPLE.tolist()):
        with pytest.raises(TypeError, match="logits"):
            masked_distribution(logits, bitmask(REFUND, ASK))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SamplingOptions(top_k=2.5)  # type: ignore[arg-type]
