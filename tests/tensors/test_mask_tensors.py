"""Bitmasks on torch tensors against the numpy form, as operations and as a Triton kernel under the interpreter."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed (make test-adapters)")

from maskwright.workers import allocate_token_bitmask, apply_token_bitmask_inplace, tensors  # noqa: E402
from maskwright.workers.tensors import masks as tensor_masks  # noqa: E402

os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are defined: before their module is imported
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.fixture(params=["operations", "kernel"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which form masks tensors in the CPU's memory."""
    if request.param == "kernel":
        pytest.importorskip("triton", reason="Triton isn't installed")
        monkeypatch.setattr(tensor_masks, "uses_kernel", lambda logits: logits.stride(1) == 1)
    return str(request.param)


def random_case(seed: int, batch: int, vocab: int, width: int):
    rng = np.random.default_rng(seed)
    mask = rng.integers(-(1 << 31), 1 << 31, (batch, (vocab + 31) // 32), dtype=np.int64).astype(np.int32)
    return rng.standard_normal((batch, width)).astype(np.float32), mask


def expected(logits: np.ndarray, mask: np.ndarray, dtype, **options):
    apply_token_bitmask_inplace(logits, mask, **options)
    return torch.from_numpy(logits).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("vocab", "width"), [(1, 1), (33, 33), (100, 90), (100, 130), (64, 200), (5000, 9001)])
def test_equals_the_numpy_form(form: str, vocab: int, width: int, dtype) -> None:
    logits, mask = random_case(vocab, 3, vocab, width)
    ours = torch.from_numpy(logits.copy()).to(dtype)
    single = ours[1].clone()
    want = expected(logits, mask, dtype)
    apply_token_bitmask_inplace(ours, torch.from_numpy(mask))
    assert torch.equal(ours, want)
    apply_token_bitmask_inplace(single, mask[1])
    assert torch.equal(single, want[1])


@pytest.mark.parametrize("as_tensor", [False, True])
def test_only_the_rows_asked_for(form: str, as_tensor: bool) -> None:
    logits, mask = random_case(2, 5, 70, 80)
    ours, want = torch.from_numpy(logits.copy()), torch.from_numpy(logits.copy())
    rows = [4, 1, 4]
    full = expected(logits, mask, torch.float32)
    want[[1, 4]] = full[[1, 4]]
    apply_token_bitmask_inplace(
        ours, torch.from_numpy(mask), indices=torch.tensor(rows, dtype=torch.int32) if as_tensor else rows
    )
    assert torch.equal(ours, want)
    apply_token_bitmask_inplace(ours, torch.from_numpy(mask), indices=[])
    assert torch.equal(ours, want)


def test_the_vocabulary_size_cuts_the_mask(form: str) -> None:
    logits = torch.zeros((1, 40))
    apply_token_bitmask_inplace(logits, torch.full((1, 2), -1, dtype=torch.int32), vocab_size=33)
    assert (logits[0, :33] == 0).all() and torch.isneginf(logits[0, 33:]).all()


def test_strided_logits_and_masks(form: str) -> None:
    logits, mask = random_case(3, 4, 64, 64)
    wide = torch.zeros((4, 128))
    view = wide[:, ::2]
    view.copy_(torch.from_numpy(logits))
    want = expected(logits, mask, torch.float32)
    apply_token_bitmask_inplace(view, torch.from_numpy(np.repeat(mask, 2, axis=1))[:, ::2])
    assert torch.equal(view, want) and (wide[:, 1::2] == 0).all()
    rows = torch.zeros((8, 64))[::2]
    apply_token_bitmask_inplace(rows, torch.from_numpy(np.repeat(mask, 2, axis=0))[::2])
    assert torch.equal(torch.isneginf(rows), torch.isneginf(want))


@pytest.mark.parametrize(
    ("logits", "mask", "options", "error"),
    [
        (torch.zeros((1, 40), dtype=torch.int32), torch.zeros((1, 2), dtype=torch.int32), {}, TypeError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int64), {}, TypeError),
        (torch.zeros((1, 40)), [[0, 0]], {}, TypeError),
        (torch.zeros((2, 40)), torch.zeros((1, 2), dtype=torch.int32), {}, ValueError),
        (torch.zeros((1, 1, 40)), torch.zeros((1, 2), dtype=torch.int32), {}, ValueError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32, device="meta"), {}, ValueError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"vocab_size": 41}, ValueError),
        (torch.zeros((1, 40)), torch.zeros((1, 1), dtype=torch.int32), {"vocab_size": 33}, ValueError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"vocab_size": -1}, ValueError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": [1]}, IndexError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": torch.tensor([-1])}, IndexError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": [0.5]}, TypeError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": torch.tensor([0.5])}, TypeError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": torch.tensor([True])}, TypeError),
        (torch.zeros((1, 40)), torch.zeros((1, 2), dtype=torch.int32), {"indices": torch.tensor([[0]])}, TypeError),
    ],
)
def test_what_does_not_fit_is_refused(logits, mask, options, error) -> None:
    before = logits.clone()
    with pytest.raises(error):
        apply_token_bitmask_inplace(logits, mask, **options)
    assert torch.equal(logits, before)


def test_the_kernel_leaves_out_rows_that_do_not_exist() -> None:
    pytest.importorskip("triton", reason="Triton isn't installed")
    from maskwright.workers.tensors.kernels import mask_logits

    logits, mask = torch.zeros((2, 40)), torch.zeros((2, 2), dtype=torch.int32)
    mask_logits(logits, mask, 40, torch.tensor([-1, 2, 1 << 40]), None)
    assert (logits == 0).all()
    mask_logits(logits, mask, 40, torch.tensor([1, 7]), torch.tensor([0, 1]))
    assert (logits[0] == 0).all() and torch.isneginf(logits[1]).all()


def test_allocation() -> None:
    mask = tensors.allocate_token_bitmask(2, 128_256)
    assert mask.shape == (2, 4008) and mask.dtype == torch.int32 and not mask.any()
    assert tensors.allocate_token_bitmask(0, 0).shape == (0, 0)
    assert tensors.allocate_token_bitmask(1, 33, device="meta").device.type == "meta"
    for bad in ((-1, 5), (1, -5)):
        with pytest.raises(ValueError):
            tensors.allocate_token_bitmask(*bad)


def test_a_matcher_fills_tensors() -> None:
    from samples import toy_artifact

    from maskwright.workers import Matcher

    matcher = Matcher(toy_artifact())
    mine, theirs = tensors.allocate_token_bitmask(2, 400), allocate_token_bitmask(2, 400)
    mine[:] = -1
    for row in (0, 1):
        matcher.fill_next_token_bitmask(mine, row)
        matcher.fill_next_token_bitmask(theirs, row)
    np.testing.assert_array_equal(mine.numpy(), theirs)
    for bad in (mine.t(), mine[:, ::2], mine.to(torch.int64), mine.to("meta"), mine[:, :5]):
        with pytest.raises((TypeError, ValueError)):
            matcher.fill_next_token_bitmask(bad)


def test_numpy_logits_take_a_tensor_mask_and_no_list() -> None:
    logits, mask = random_case(4, 2, 64, 64)
    want, ours = logits.copy(), logits.copy()
    apply_token_bitmask_inplace(want, mask)
    apply_token_bitmask_inplace(ours, torch.from_numpy(mask))
    np.testing.assert_array_equal(ours, want)
    with pytest.raises(TypeError):
        apply_token_bitmask_inplace([[0.0]], mask)
