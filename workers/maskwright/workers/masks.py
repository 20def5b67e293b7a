"""Bitmasks over tokens, and putting them on logits.

A bitmask is int32 [batch, words]: bit t % 32 of word t // 32 of a row is set when token t is legal. Names and
layout follow xgrammar's, so that an engine's code can use either. Arrays are numpy's here; torch tensors are
handed to `tensors/masks.py`, which is imported when the first one is seen.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]


def allocate_token_bitmask(batch: int, vocab_size: int) -> I32:
    """An empty bitmask: int32 zeros [batch, ceil(vocab_size / 32)]. Raises ValueError for negative sizes."""
    if batch < 0 or vocab_size < 0:
        raise ValueError(f"batch {batch} and vocab_size {vocab_size} must not be negative")
    return np.zeros((batch, (vocab_size + 31) // 32), np.int32)


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor. Doesn't import torch: a program that has tensors has done so."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | npt.NDArray[Any] | None = None,
) -> None:
    """Sets the logits of tokens that aren't in the mask to minus infinity.

    logits: float16, float32 or float64, [batch, width] or [width], writable; or a torch tensor, also bfloat16 and
    on a device (see `tensors/masks.py`). bitmask: int32 [batch, words] or [words]. Row i of one goes with row i of
    the other; `indices` restricts the work to those rows, others stay as they are. Columns from `vocab_size` on
    (default: from 32 * words on) are always masked, so logits may be wider than the vocabulary. Raises TypeError for
    other dtypes and for indices that aren't integers, ValueError for shapes that don't fit, IndexError for indices.
    Cost: linear in the logits touched.
    """
    if is_tensor(logits):
        from maskwright.workers.tensors import masks as tensor_masks

        tensor_masks.apply_token_bitmask_inplace(logits, bitmask, vocab_size=vocab_size, indices=indices)
        return
    if is_tensor(bitmask):
        bitmask = bitmask.numpy()
    if not isinstance(logits, np.ndarray) or not isinstance(bitmask, np.ndarray):
        raise TypeError(f"logits are {type(logits).__name__}, bitmask {type(bitmask).__name__}; expected arrays")
    if logits.dtype.kind != "f" or bitmask.dtype != np.int32:
        raise TypeError(
            f"logits are {logits.dtype} and bitmask {bitmask.dtype}; expected a float type and int32"
        )
    if logits.ndim not in (1, 2) or bitmask.ndim not in (1, 2):
        raise ValueError(f"logits have {logits.ndim} dimensions, bitmask {bitmask.ndim}; expected one or two")
    rows, masks = np.atleast_2d(logits), np.atleast_2d(bitmask)
    if len(rows) != len(masks):
        raise ValueError(f"{len(rows)} rows of logits, {len(masks)} of the bitmask")
    columns = min(rows.shape[1], 32 * masks.shape[1])
    if vocab_size is not None:
        if not 0 <= vocab_size <= min(rows.shape[1], 32 * masks.shape[1]):
            raise ValueError(f"vocab_size {vocab_size} is beyond {columns} columns")
        columns = vocab_size
    chosen = range(len(rows)) if indices is None else row_numbers(indices, len(rows))
    for i in chosen:
        bits = np.unpackbits(np.ascontiguousarray(masks[i]).view(np.uint8), bitorder="little")
        np.copyto(rows[i, :columns], -np.inf, where=bits[:columns] == 0)
        rows[i, columns:] = -np.inf


def row_numbers(indices: Iterable[Any], n: int) -> list[int]:
    """Indices of `n` rows. Raises IndexError, TypeError for what isn't an integer."""
    chosen = integers(indices)
    for i in chosen:
        if not 0 <= i < n:
            raise IndexError(f"row {i} of {n}")
    return chosen


def integers(values: Iterable[Any]) -> list[int]:
    """Integers of any kind as Python's. Raises TypeError for others: a float would be cut, and true and false are a
    mask, where numbers are asked for.
    """
    given = values.tolist() if is_tensor(values) else values  # type: ignore[attr-defined]
    found = []
    for value in given:
        if isinstance(value, bool | np.bool_):
            raise TypeError(f"{value} is no integer")
        found.append(operator.index(value))
    return found


def bitmask_rows(mask: Any, words: int) -> list[memoryview]:
    """The rows of a bitmask, a numpy array or a torch tensor in the CPU's memory, as writable views of unsigned
    words. Raises TypeError or ValueError when it can't be written to as one.
    """
    if is_tensor(mask) and mask.device.type == "cpu":
        if not mask.is_contiguous():
            raise ValueError("the bitmask must be contiguous")
        mask = mask.detach().numpy()
    if not isinstance(mask, np.ndarray) or mask.dtype != np.int32:
        raise TypeError(
            f"the bitmask must be an int32 array, not {getattr(mask, 'dtype', type(mask).__name__)}"
        )
    if mask.ndim not in (1, 2) or mask.shape[-1] < words:
        raise ValueError(f"the bitmask has shape {mask.shape}; expected [batch, {words}]")
    if not mask.flags.c_contiguous or not mask.flags.writeable or not mask.dtype.isnative:
        raise ValueError("the bitmask must be C-contiguous, writable and in native byte order")
    if not mask.size:
        return []
    width, view = mask.shape[-1], mask.data.cast("B").cast("I")
    return [view[i : i + width] for i in range(0, len(view), width)]
