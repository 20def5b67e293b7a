"""Bitmasks on logits, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.workers import allocate_token_bitmask, apply_token_bitmask_inplace


def random_case(rng: np.random.Generator, batch: int, vocab: int, width: int, dtype: type):
    mask = allocate_token_bitmask(batch, vocab)
    legal = rng.random((batch, vocab)) < 0.3
    for b, t in zip(*np.nonzero(legal), strict=True):
        mask.view(np.uint32)[b, t // 32] |= np.uint32(1 << (t % 32))
    return rng.standard_normal((batch, width)).astype(dtype), mask, legal


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("vocab", "width"), [(1, 1), (31, 31), (33, 33), (100, 100), (100, 130), (64, 200)])
def test_masked_is_minus_infinity_and_the_rest_is_untouched(vocab: int, width: int, dtype: type) -> None:
    logits, mask, legal = random_case(np.random.default_rng(vocab), 3, vocab, width, dtype)
    expected = np.full_like(logits, -np.inf)
    expected[:, :vocab] = np.where(legal, logits[:, :vocab], -np.inf)
    single = logits[1].copy()
    apply_token_bitmask_inplace(logits, mask)
    np.testing.assert_array_equal(logits, expected)
    apply_token_bitmask_inplace(single, mask[1])
    np.testing.assert_array_equal(single, expected[1])


def test_logits_narrower_than_the_bitmask() -> None:
    logits, mask, legal = random_case(np.random.default_rng(1), 2, 100, 90, np.float32)
    expected = np.where(legal[:, :90], logits, -np.inf)
    apply_token_bitmask_inplace(logits, mask)
    np.testing.assert_array_equal(logits, expected)


def test_only_the_rows_asked_for() -> None:
    logits, mask, legal = random_case(np.random.default_rng(2), 4, 70, 80, np.float32)
    before = logits.copy()
    apply_token_bitmask_inplace(logits, mask, indices=np.array([2, 0]))
    for i in (1, 3):
        np.testing.assert_array_equal(logits[i], before[i])
    for i in (0, 2):
        np.testing.assert_array_equal(logits[i, :70], np.where(legal[i], before[i, :70], -np.inf))
        assert np.isneginf(logits[i, 70:]).all()


def test_the_vocabulary_size_cuts_the_mask() -> None:
    logits, mask = np.zeros((1, 40), np.float32), np.full((1, 2), -1, np.int32)
    apply_token_bitmask_inplace(logits, mask, vocab_size=33)
    assert (logits[0, :33] == 0).all() and np.isneginf(logits[0, 33:]).all()


def test_strided_logits_and_masks() -> None:
    logits, mask, legal = random_case(np.random.default_rng(3), 4, 64, 64, np.float32)
    wide = np.zeros((4, 128), np.float32)
    view = wide[:, ::2]
    view[:] = logits
    apply_token_bitmask_inplace(view, np.repeat(mask, 2, axis=1)[:, ::2])
    np.testing.assert_array_equal(view, np.where(legal, logits, -np.inf))
    assert (wide[:, 1::2] == 0).all()


@pytest.mark.parametrize(
    ("logits", "mask", "options", "error"),
    [
        (np.zeros((1, 40), np.int32), np.zeros((1, 2), np.int32), {}, TypeError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 2), np.uint32), {}, TypeError),
        (np.zeros((2, 40), np.float32), np.zeros((1, 2), np.int32), {}, ValueError),
        (np.zeros((1, 1, 40), np.float32), np.zeros((1, 2), np.int32), {}, ValueError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 2), np.int32), {"vocab_size": 41}, ValueError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 1), np.int32), {"vocab_size": 33}, ValueError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 2), np.int32), {"vocab_size": -1}, ValueError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 2), np.int32), {"indices": [1]}, IndexError),
        (np.zeros((1, 40), np.float32), np.zeros((1, 2), np.int32), {"indices": [-1]}, IndexError),
    ],
)
def test_what_does_not_fit_is_refused(logits, mask, options, error) -> None:
    before = logits.copy()
    with pytest.raises(error):
        apply_token_bitmask_inplace(logits, mask, **options)
    np.testing.assert_array_equal(logits, before)


def test_allocation() -> None:
    mask = allocate_token_bitmask(2, 128_256)
    assert mask.shape == (2, 4008) and mask.dtype == np.int32 and not mask.any()
    assert allocate_token_bitmask(0, 0).shape == (0, 0)
    for bad in ((-1, 5), (1, -5)):
        with pytest.raises(ValueError):
            allocate_token_bitmask(*bad)


@pytest.mark.parametrize("indices", [[0.5], [True, False], np.array([False, True]), np.array([1.0]), [[0]], ["0"]])
def test_indices_are_integers(indices: list[object]) -> None:
    """A boolean mask, taken for numbers, would leave a row without its mask."""
    logits, mask, _ = random_case(np.random.default_rng(3), 2, 70, 70, np.float32)
    before = logits.copy()
    with pytest.raises(TypeError):
        apply_token_bitmask_inplace(logits, mask, indices=indices)  # type: ignore[arg-type]
    np.testing.assert_array_equal(logits, before)
