"""What an adapter does where no token is legal, in an engine that serves others besides.

A DeadEnd is never retried, and a text that ran into one is never complete. In an engine's scheduler the exception
would end every request, so the failing one is ended instead: it's logged, its mask holds its stop tokens alone, and the
engine draws one. The matcher doesn't accept it, so the request still counts as failed, and its text doesn't pass a
commit gate.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from maskwright.workers.errors import DeadEnd
from maskwright.workers.matcher import Matcher

log = logging.getLogger("maskwright.adapters")


def fill_or_end(matcher: Matcher, mask: Any, row: int) -> DeadEnd | None:
    """Fills row `row` of a bitmask in the CPU's memory; where no token is legal, with stop tokens, and returns the
    failure. Raises it when there's no stop token either.
    """
    try:
        matcher.fill_next_token_bitmask(mask, row)
    except DeadEnd as failure:
        if not matcher.stop_token_ids:
            raise
        log.error("request ended: %s", failure)
        fill_stops(matcher.stop_token_ids, mask, row)
        return failure
    return None


def fill_stops(stop_token_ids: Iterable[int], mask: Any, row: int) -> None:
    """Lets row `row` of a bitmask, numpy or a tensor in the CPU's memory, hold these tokens alone."""
    words = (mask if isinstance(mask, np.ndarray) else mask.numpy())[row].view(np.uint32)
    words[:] = 0
    for token in stop_token_ids:
        words[token >> 5] |= np.uint32(1 << (token & 31))
