"""Numbers as text: `float` takes "nan" and "inf" too, which are no durations and pass comparisons with limits."""

from __future__ import annotations

import math


def finite(text: str) -> float:
    """Raises ValueError, which argparse tells of."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def positive(text: str) -> float:
    """Raises ValueError."""
    value = finite(text)
    if value <= 0:
        raise ValueError(text)
    return value
