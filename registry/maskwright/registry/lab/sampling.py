"""Drawing for the page: the runtime's reference sampler (`workers.sampler`: mask, temperature, top-k, top-p,
renormalise, draw), with one number a position.

The number depends on the seed and the position alone, so with and without a mask a step is decided by the same one,
and undoing a step and drawing again comes to the same token.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.workers.sampler import SamplingOptions, masked_distribution

F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
NEVER = -1e4
"""The logit of what a table never says: finite, as the sampler wants it, and nothing once it's a probability."""


@dataclass(frozen=True)
class Settings:
    options: SamplingOptions = field(default_factory=SamplingOptions)
    seed: int = 1

    @property
    def neutral(self) -> bool:
        """Whether every legal token is drawn with its own probability."""
        return self.options == SamplingOptions()


def softmax(logits: F64) -> F64:
    """Probabilities, [n]; nothing for nothing."""
    weights: F64 = np.exp(logits - logits.max(initial=-np.inf)) if len(logits) else logits
    out: F64 = weights / weights.sum() if len(logits) else weights
    return out


def drawable(logits: F64, bitmask: I32, settings: Settings) -> F64:
    """The probabilities that tokens are drawn by, [width]; all 0 where the mask is empty."""
    out = np.zeros(len(logits))
    if bitmask.any():
        tokens, probabilities = masked_distribution(logits, bitmask, settings.options)
        out[tokens] = probabilities
    return out


def everything(width: int) -> I32:
    """The mask that masks nothing, [words]."""
    bits = np.zeros(-(-width // 32) * 32, np.uint8)
    bits[:width] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def draw(probabilities: F64, settings: Settings, position: int) -> int | None:
    """The token of this position; None where none can be drawn."""
    reached = np.cumsum(probabilities)
    if not len(reached) or not reached[-1]:
        return None
    number = np.random.default_rng((settings.seed, position)).random() * reached[-1]
    return int(np.searchsorted(reached, number, side="right"))
