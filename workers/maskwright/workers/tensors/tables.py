"""Artifacts' tables on a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from maskwright.workers.artifact import Artifact
from maskwright.workers.tensors.layout import lay_out

MAX_BYTES = 2 << 30
_TENSORS = (
    "class_of", "moves", "action_start", "action_push", "action_target", "return_start", "returns", "push_offset",
    "pushes", "row_offset", "entries", "rows", "is_stop", "token_start", "token_bytes", "starts",
)  # fmt: skip


class DeviceTables:
    """The tables of one or more artifacts of a pack as tensors, shared by any number of `DeviceMatcher`s.

    artifacts: their digests, in the order of the numbers that `DeviceMatcher.reset` takes. vocab_size: the highest
    token id + 1. device, nbytes: where the tensors are and what they take. longest, chain, most_pushes, height: the
    bounds of `layout.Layout`. The tensors are named and coded as there.

    Construction expands every mask row that a run can meet: about 50 µs and 16 KB for each distinct one at 128,000
    tokens, then one copy to the device. Rows that don't depend on the source are expanded again for each object.
    """

    class_of: torch.Tensor
    moves: torch.Tensor
    action_start: torch.Tensor
    action_push: torch.Tensor
    action_target: torch.Tensor
    return_start: torch.Tensor
    returns: torch.Tensor
    push_offset: torch.Tensor
    pushes: torch.Tensor
    row_offset: torch.Tensor
    entries: torch.Tensor
    rows: torch.Tensor
    is_stop: torch.Tensor
    token_start: torch.Tensor
    token_bytes: torch.Tensor
    starts: torch.Tensor

    def __init__(
        self,
        artifacts: Artifact | Sequence[Artifact],
        device: str | torch.device = "cuda",
        *,
        stop_token_ids: Iterable[int] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`stop_token_ids`: default the vocabulary's own. Raises TablesRefused for an artifact that can't be held in
        `max_bytes` or whose contexts are lazy, WrongVocabulary when packs differ, ValueError for no artifact and
        stop tokens outside the vocabulary.
        """
        found = [artifacts] if isinstance(artifacts, Artifact) else list(artifacts)
        layout = lay_out(found, stop_token_ids, max_bytes)
        self.artifacts = tuple(artifact.digest for artifact in found)
        self.vocab_size, self.nbytes = layout.vocab_size, layout.nbytes
        self.longest, self.chain = layout.longest, layout.chain
        self.most_pushes, self.height = layout.most_pushes, layout.height
        for name in _TENSORS:
            setattr(self, name, torch.from_numpy(getattr(layout, name)).to(device))
        self.device = self.moves.device

    def __repr__(self) -> str:
        size = f"{len(self.artifacts)} artifacts, {len(self.rows)} rows, {self.nbytes} bytes"
        return f"DeviceTables({size}, {self.device})"
