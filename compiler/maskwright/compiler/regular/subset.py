"""Forward exploration of a deterministic transition function over symbol classes.

The keys are any hashable descriptions of states (tuples for products, frozensets for subsets); each is numbered
once, in the order found. This is the loop of the subset and product constructions (Rabin and Scott, 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from maskwright.compiler.regular.budget import CHECK_EVERY, Budget

K = TypeVar("K", bound=Hashable)


def explore(
    start: K, successors: Callable[[K], Iterable[tuple[int, K]]], budget: Budget
) -> tuple[list[K], list[list[tuple[int, int]]]]:
    """The keys reachable from `start` and their rows of (class, number). Raises LimitExceeded."""
    numbers: dict[K, int] = {start: 0}
    keys = [start]
    rows: list[list[tuple[int, int]]] = []
    for key in keys:
        row = []
        for c, target in successors(key):
            n = numbers.get(target)
            if n is None:
                n = numbers[target] = len(keys)
                keys.append(target)
            row.append((c, n))
        rows.append(row)
        budget.check_states(len(keys))
        if not len(rows) % CHECK_EVERY:
            budget.check_time()
    return keys, rows
