"""Masks and matching on torch tensors, also on a device. Needs torch (`pip install 'maskwright[torch]'`).

masks.py      bitmasks on logits: torch operations, or a Triton kernel on CUDA
layout.py     artifacts as flat arrays of fixed shape (numpy; no torch), of view.py, row_table.py, bounds.py
tables.py     those arrays as tensors on a device
state.py      a batch's state as tensors
walk.py       one token for each sequence of a batch, as torch operations
kernels.py    the same and the masks as Triton kernels
matcher.py    `DeviceMatcher`: a batch of sequences whose state lives on the device

torch is imported with the first name that needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright.workers.tensors.masks import allocate_token_bitmask, apply_token_bitmask_inplace
    from maskwright.workers.tensors.matcher import DeviceMatcher
    from maskwright.workers.tensors.state import BatchState
    from maskwright.workers.tensors.tables import DeviceTables

__all__ = ["BatchState", "DeviceMatcher", "DeviceTables", "allocate_token_bitmask", "apply_token_bitmask_inplace"]

_MODULES = {
    "BatchState": "state",
    "DeviceMatcher": "matcher",
    "DeviceTables": "tables",
    "allocate_token_bitmask": "masks",
    "apply_token_bitmask_inplace": "masks",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
