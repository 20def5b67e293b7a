"""A batch of sequences whose state lives on the device.

`Matcher` follows one sequence on the host: each step waits for the sampled token, looks a row up, copies it to the
device. Here tokens stay where they were sampled. `step(tokens, logits)` advances all sequences and masks their logits
with two kernel launches on CUDA, without a copy to or from the host, a synchronisation or a shape that depends on data,
so it can be captured in a CUDA graph. What it does is what `Matcher` does: the same tokens are legal, an illegal one
changes nothing, a stop token ends the sequence.

Two forms of the step: Triton kernels (the default on CUDA), where each sequence's walk is a loop in one program, and
torch operations (any device; on CUDA of fixed length, hundreds of launches: for machines without Triton). They're
tested against each other and against `Matcher`.

A sequence fails when its stack would grow beyond `capacity`, or when a mask holds a token that the automaton doesn't
take (a wrong artifact). It stays failed, its mask holds stop tokens alone so that an engine ends it, and its text must
not be used: `failures()` names it.

Not here: rollback (`state.clone()` before, `state.copy_()` after), budgets, jump-forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from maskwright.workers.errors import TablesRefused
from maskwright.workers.masks import row_numbers
from maskwright.workers.tensors import walk
from maskwright.workers.tensors.masks import has_triton, mask_by_operations, uses_kernel
from maskwright.workers.tensors.row_table import FREE_ROW
from maskwright.workers.tensors.state import FREE, INCONSISTENT, OVERFLOW, RUNNING, TERMINATED, BatchState
from maskwright.workers.tensors.tables import DeviceTables

DEFAULT_CAPACITY = 256


class DeviceMatcher:
    """Follows `batch` sequences at once; at first all follow artifact 0 of the tables.

    state: the tensors; they change in place and are never replaced. capacity: symbols that a stack holds; default the
    most that the artifacts can need, 256 where there's no such bound or it's higher. kernels: "triton" or "torch";
    default triton on CUDA where it's installed. fixed: whether loops of the torch form have a fixed length; default on
    any device but the CPU. One object belongs to one stream.

    Raises TablesRefused("returns") for a fixed length where returns may chain without bound, ValueError for sizes that
    aren't positive.
    """

    def __init__(
        self,
        tables: DeviceTables,
        batch: int,
        *,
        capacity: int | None = None,
        kernels: str | None = None,
        fixed: bool | None = None,
    ) -> None:
        if capacity is None:
            capacity = min(DEFAULT_CAPACITY if tables.height is None else tables.height, DEFAULT_CAPACITY)
        if batch < 1 or capacity < 0:
            raise ValueError(f"batch {batch} must be positive, capacity {capacity} not negative")
        if kernels not in (None, "triton", "torch"):
            raise ValueError(f"kernels {kernels!r} is neither 'triton' nor 'torch'")
        self.tables, self.batch, self.capacity = tables, batch, capacity
        self.kernels = kernels or ("triton" if tables.device.type == "cuda" and has_triton() else "torch")
        fixed = tables.device.type != "cpu" if fixed is None else fixed
        self._rounds: int | None = None
        if fixed and self.kernels == "torch":
            if tables.chain is None:
                raise TablesRefused("returns", None, None, tables.artifacts[0])
            self._rounds = (tables.longest + 1) * (tables.chain + 1)
        self.state = BatchState.allocate(batch, capacity, tables.device)
        self.accepted = torch.zeros(batch, dtype=torch.bool, device=tables.device)
        self.reset()

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """`accept(tokens)`, then `apply(logits)`: the sampled tokens go in, the next step's logits come out masked."""
        accepted = self.accept(tokens)
        self.apply(logits)
        return accepted

    def accept(self, tokens: torch.Tensor) -> torch.Tensor:
        """Goes on by one token each: [batch] int32 or int64, on the device. Returns `accepted`, bool [batch], which the
        next call overwrites: False where the token wasn't legal, and there nothing has changed; so -1 leaves a sequence
        as it is. Raises TypeError, ValueError for another tensor.
        """
        if not isinstance(tokens, torch.Tensor) or tokens.dtype not in (torch.int32, torch.int64):
            found = getattr(tokens, "dtype", type(tokens).__name__)
            raise TypeError(f"tokens are {found}; expected a tensor of int32 or int64")
        if tokens.shape != (self.batch,) or tokens.device != self.tables.device:
            raise ValueError(
                f"tokens are {tuple(tokens.shape)} on {tokens.device}; expected ({self.batch},) on {self.tables.device}"
            )
        if self.kernels == "triton":
            from maskwright.workers.tensors.kernels import accept_tokens

            accept_tokens(self.tables, self.state, tokens.contiguous(), self.accepted)
        else:
            self.accepted.copy_(walk.accept(self.tables, self.state, tokens, rounds=self._rounds))
        return self.accepted

    def apply(self, logits: torch.Tensor) -> None:
        """Masks logits, a float type, [batch, width], on the device. Columns beyond the vocabulary are always masked.
        Raises TypeError, ValueError for another tensor.
        """
        if not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
            found = getattr(logits, "dtype", type(logits).__name__)
            raise TypeError(f"logits are {found}; expected a tensor of a float type")
        if logits.dim() != 2 or len(logits) != self.batch or logits.device != self.tables.device:
            raise ValueError(f"logits are {tuple(logits.shape)} on {logits.device}; expected {self.batch} rows")
        columns = min(logits.shape[1], self.tables.vocab_size)
        if self.kernels == "triton" and (uses_kernel(logits) or logits.stride(1) == 1):
            from maskwright.workers.tensors.kernels import mask_logits

            mask_logits(logits, self.tables.rows, columns, None, self.state.entry, shift=1)
        else:
            row = self.state.entry >> 1
            mask_by_operations(logits, self.tables.rows.index_select(0, row), columns, None)

    def fill_next_token_bitmask(self, bitmask: torch.Tensor) -> None:
        """Writes the masks into int32 [batch, words] on the device, for whoever applies them. Raises ValueError."""
        words = self.tables.rows.shape[1]
        if bitmask.dtype != torch.int32 or bitmask.dim() != 2 or bitmask.shape[0] != self.batch:
            raise ValueError(f"the bitmask is {bitmask.dtype} {tuple(bitmask.shape)}; expected int32 ({self.batch}, …)")
        if bitmask.shape[1] < words:
            raise ValueError(f"the bitmask has {bitmask.shape[1]} words; expected {words}")
        bitmask[:, :words] = self.tables.rows.index_select(0, self.state.entry >> 1)
        bitmask[:, words:] = 0

    # -- sequences -----------------------------------------------------------------------------------------------

    def reset(self, rows: Sequence[int] | torch.Tensor | None = None, artifact: int | None = 0) -> None:
        """Starts sequences anew (default all), on one of the tables' artifacts, or on none: then every token of the
        vocabulary is legal, and stop tokens are like others. Raises IndexError for rows and artifacts that don't exist.
        Lists of rows are copied to the device: not for a captured graph.
        """
        if artifact is not None and not 0 <= artifact < len(self.tables.artifacts):
            raise IndexError(f"artifact {artifact} of {len(self.tables.artifacts)}")
        chosen: Any = slice(None)
        if rows is not None and not isinstance(rows, torch.Tensor):
            numbers = torch.tensor(row_numbers(rows, self.batch), dtype=torch.int64)
            rows = numbers.to(self.tables.device, non_blocking=True)
        if rows is not None:
            chosen = rows
        state, start = self.state, self.tables.starts[artifact or 0]
        state.control[chosen], state.context[chosen], state.height[chosen] = start[0], start[1], 0
        state.entry[chosen] = start[2] if artifact is not None else 2 * FREE_ROW
        state.status[chosen] = RUNNING if artifact is not None else FREE

    def is_accepting(self) -> torch.Tensor:
        """Where the text so far is complete, or a stop token has been accepted: bool [batch]."""
        return (self.state.entry & 1) == 1

    def is_terminated(self) -> torch.Tensor:
        """Where a stop token has been accepted: bool [batch]."""
        return self.state.status == TERMINATED

    def has_failed(self) -> torch.Tensor:
        """Where the sequence can't be followed any more: bool [batch]."""
        return self.state.status >= OVERFLOW

    def failures(self) -> dict[int, str]:
        """The failed sequences: "overflow" (the stack is full; a higher capacity would follow it) or "inconsistent"
        (the artifact is wrong). Waits for the device.
        """
        reasons = {OVERFLOW: "overflow", INCONSISTENT: "inconsistent"}
        return {i: reasons[s] for i, s in enumerate(self.state.status.tolist()) if s in reasons}
