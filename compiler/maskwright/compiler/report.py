"""What a compilation tells about its artifact: sizes, costs, and what became of each keyword."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from maskwright.compiler.diagnostics import Diagnostic


@dataclass(frozen=True)
class Report:
    """Counts are of the artifact's own part unless they say otherwise; `seconds` is wall time by pass.

    states, frames, symbols: of the byte automaton, minimised.
    contexts: (frame, stack class) pairs; pairs: (control, context) pairs with a mask.
    masks: distinct mask rows that aren't the pack's; largest_mask, mean_mask: legal tokens in them.
    artifact_bytes: the serialized length; source_bytes: of the source text.
    treatment: (pointer, keyword, "enforced" | "annotation" | "residual") for each keyword of a schema.
    notes: diagnostics of severity warning and note.
    """

    kind: str
    states: int
    frames: int
    symbols: int
    contexts: int
    pairs: int
    masks: int
    largest_mask: int
    mean_mask: float
    artifact_bytes: int
    source_bytes: int
    seconds: dict[str, float]
    treatment: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Diagnostic, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        out = asdict(self)
        out["notes"] = [d.to_json() for d in self.notes]
        out["treatment"] = [list(t) for t in self.treatment]
        return out
