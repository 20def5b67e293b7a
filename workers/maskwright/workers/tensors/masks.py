"""Bitmasks on logits that are torch tensors.

Two forms that do the same. On CUDA a Triton kernel stores minus infinity where a bit is clear and reads no
logits. Elsewhere, or where Triton isn't installed or columns aren't adjacent in memory, torch operations unpack
the bits to one byte each. Nothing is copied to or from the host, but for `indices` given as a list.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from maskwright.workers.masks import row_numbers

try:
    import torch
except ImportError as error:  # pragma: no cover
    raise ImportError("tensors need torch: pip install 'maskwright[torch]'") from error


def allocate_token_bitmask(
    batch: int, vocab_size: int, *, device: str | torch.device = "cpu", pin_memory: bool = False
) -> torch.Tensor:
    """An empty bitmask: int32 zeros [batch, ceil(vocab_size / 32)]. `Matcher.fill_next_token_bitmask` takes one in
    the CPU's memory. A row that nobody fills masks everything. Raises ValueError for negative sizes.
    """
    if batch < 0 or vocab_size < 0:
        raise ValueError(f"batch {batch} and vocab_size {vocab_size} must not be negative")
    shape = (batch, (vocab_size + 31) // 32)
    return torch.zeros(shape, dtype=torch.int32, device=device, pin_memory=pin_memory)


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | torch.Tensor | None = None,
) -> None:
    """Sets the logits of tokens that aren't in the mask to minus infinity.

    logits: a float type (float32, float16, bfloat16, …), [batch, width] or [width]. bitmask: int32 [batch, words] or
    [words], a tensor on the same device or a numpy array. Row i of one goes with row i of the other; `indices`
    (a sequence, or an integer tensor) restricts the work to those rows. Columns from `vocab_size` on
    (default: from 32 * words on) are always masked. Raises TypeError for other dtypes, ValueError for shapes and
    devices that don't fit, IndexError for indices; those in a tensor on a device can't be looked at without waiting for
    it, so rows that don't exist are left out there.
    """
    masks = torch.from_numpy(bitmask) if isinstance(bitmask, np.ndarray) else bitmask
    _check(logits, masks)
    rows, masks = (torch.atleast_2d(x) for x in (logits, masks))
    if len(rows) != len(masks):
        raise ValueError(f"{len(rows)} rows of logits, {len(masks)} of the bitmask")
    columns = min(rows.shape[1], 32 * masks.shape[1])
    if vocab_size is not None:
        if not 0 <= vocab_size <= columns:
            raise ValueError(f"vocab_size {vocab_size} is beyond {columns} columns")
        columns = vocab_size
    chosen = None if indices is None else _index(indices, len(rows), rows.device)
    if uses_kernel(rows) and masks.stride(1) == 1:
        from maskwright.workers.tensors.kernels import mask_logits

        mask_logits(rows, masks, columns, chosen, chosen)
    else:
        mask_by_operations(rows, masks, columns, chosen)


def _check(logits: Any, masks: Any) -> None:
    if not isinstance(logits, torch.Tensor) or not isinstance(masks, torch.Tensor):
        raise TypeError(f"logits are {type(logits).__name__}, bitmask {type(masks).__name__}; expected tensors")
    if not logits.is_floating_point() or masks.dtype != torch.int32:
        raise TypeError(f"logits are {logits.dtype} and bitmask {masks.dtype}; expected a float type and int32")
    if logits.dim() not in (1, 2) or masks.dim() not in (1, 2):
        raise ValueError(f"logits have {logits.dim()} dimensions, bitmask {masks.dim()}; expected one or two")
    if logits.device != masks.device:
        raise ValueError(f"logits are on {logits.device}, bitmask on {masks.device}")


def _index(indices: Sequence[int] | torch.Tensor, n: int, device: torch.device) -> torch.Tensor:
    if isinstance(indices, torch.Tensor) and indices.device.type != "cpu":
        if indices.dim() != 1 or indices.is_floating_point() or indices.dtype == torch.bool:
            raise TypeError(f"indices are {indices.dtype} in {indices.dim()} dimensions; expected integers in one")
        return indices.to(device)
    return torch.tensor(row_numbers(indices, n), dtype=torch.int64).to(device, non_blocking=True)


@cache
def has_triton() -> bool:
    """Whether Triton can be imported."""
    return importlib.util.find_spec("triton") is not None


def uses_kernel(logits: torch.Tensor) -> bool:
    """Whether the Triton kernel masks these logits, [rows, width]."""
    return bool(logits.is_cuda) and logits.stride(1) == 1 and has_triton()


def mask_by_operations(
    logits: torch.Tensor, masks: torch.Tensor, columns: int, chosen: torch.Tensor | None
) -> None:
    """The form in torch operations. logits [rows, width], masks int32 [rows, words], chosen [n] rows or None."""
    if chosen is None:
        logits[:, :columns].masked_fill_(illegal(masks, columns), -torch.inf)
        logits[:, columns:].fill_(-torch.inf)
        return
    part = logits.index_select(0, chosen)
    mask_by_operations(part, masks.index_select(0, chosen), columns, None)
    logits.index_copy_(0, chosen, part)


def illegal(masks: torch.Tensor, columns: int) -> torch.Tensor:
    """The clear bits of masks, int32 [rows, words], as bool [rows, columns]."""
    packed = masks.contiguous().view(torch.uint8).unsqueeze(-1)
    bit = torch.arange(8, dtype=torch.uint8, device=masks.device)
    return ((packed >> bit) & 1).view(len(masks), 32 * masks.shape[1])[:, :columns] == 0
