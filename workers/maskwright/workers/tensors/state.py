"""The state of a batch of sequences as tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

RUNNING, TERMINATED, FREE, OVERFLOW, INCONSISTENT = 0, 1, 2, 3, 4
"""Statuses. FREE: without an artifact. From OVERFLOW on the sequence has failed."""


@dataclass
class BatchState:
    """int32 tensors over B sequences; each changes in place.

    control, context, entry (2 * row + may_end), status, height: [B]. stack: [B, capacity + 1, 2] of (symbol, context of
    the caller); the last slot takes what isn't pushed.
    """

    control: torch.Tensor
    context: torch.Tensor
    entry: torch.Tensor
    status: torch.Tensor
    height: torch.Tensor
    stack: torch.Tensor

    @classmethod
    def allocate(cls, batch: int, capacity: int, device: torch.device) -> BatchState:
        """All zero."""

        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        stack = zeros(batch, capacity + 1, 2)
        return cls(zeros(batch), zeros(batch), zeros(batch), zeros(batch), zeros(batch), stack)

    def copy_(self, other: BatchState) -> None:
        """Takes over another state of the same shape. No synchronisation."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def clone(self) -> BatchState:
        """A copy."""
        return BatchState(*(getattr(self, field.name).clone() for field in fields(self)))

    def select_(self, rows: torch.Tensor) -> None:
        """Sequence i becomes what sequence rows[i] was (beam search). rows: [B] integers on the device."""
        for field in fields(self):
            tensor = getattr(self, field.name)
            tensor.copy_(tensor.index_select(0, rows))
