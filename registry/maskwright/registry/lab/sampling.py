"""From logits to a token: mask, temperature, top-k, top-p, renormalise, draw; in this order.

The mask comes first. Cutting to the k likeliest before it could cut every legal token away, and leave nothing to draw.
A draw is by the inverse of the distribution function, in order of token ids, at a number that depends on the seed and
the position alone: with and without a mask a step is decided by the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """temperature: above 0; 1 leaves probabilities as they are. top_k: 0 for all. top_p: 1 for all."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    @property
    def neutral(self) -> bool:
        """Whether every legal token is drawn with its own probability."""
        return self.temperature == 1.0 and not self.top_k and self.top_p == 1.0


def softmax(logits: F64) -> F64:
    """Probabilities; all zero where every logit is minus infinity."""
    top = logits.max(initial=-np.inf)
    if not np.isfinite(top):
        return np.zeros_like(logits)
    weights = np.exp(logits - top)
    out: F64 = weights / weights.sum()
    return out


def drawable(logits: F64, settings: Settings) -> F64:
    """The probabilities that a token is drawn by, from masked logits."""
    probabilities = softmax(logits / settings.temperature)
    order = np.argsort(-probabilities, kind="stable")
    kept = len(order)
    if settings.top_k:
        kept = min(kept, settings.top_k)
    if settings.top_p < 1.0:
        # The smallest set of the likeliest whose probabilities, among the kept, add up to top_p.
        mass = np.cumsum(probabilities[order[:kept]])
        kept = min(kept, int(np.searchsorted(mass, settings.top_p * mass[-1], side="left")) + 1)
    out = np.zeros_like(probabilities)
    out[order[:kept]] = probabilities[order[:kept]]
    total = out.sum()
    scaled: F64 = out / total if total else out
    return scaled


def draw(probabilities: F64, settings: Settings, position: int) -> int | None:
    """The token of this position; None where none can be drawn."""
    reached = np.cumsum(probabilities)
    if not len(reached) or not reached[-1]:
        return None
    number = np.random.default_rng((settings.seed, position)).random() * reached[-1]
    return int(np.searchsorted(reached, number, side="right"))
