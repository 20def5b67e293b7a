"""What bounds a machine's loops when they can't depend on data: chained returns, and the stack's height."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

MAX_CHAIN = 64
"""Chained returns that are taken for a cycle."""


def longest_chain(moves: I64, node: I64, return_node: I64, return_target: I64, n_nodes: int) -> int | None:
    """The most returns that one byte can set off, None when there may be more than `MAX_CHAIN`.

    moves: [controls, classes], a return where below -1 and odd. node: [controls, classes] number of the (frame,
    verdict) returned with, where it's a return. return_node, return_target: for each symbol's return the (frame,
    verdict) that it answers and the control it leads to, -1 for none. What no symbol answers meets an empty stack and
    pops nothing. The chain of a node is one more than the longest
    of a control that it may lead to: iterated until nothing changes, whatever symbol is on the stack.
    """
    fewest = np.zeros((n_nodes, moves.shape[1]), np.int64)
    fewest[return_node] = 1
    led = return_target >= 0
    pairs = np.unique(np.stack([return_node[led], return_target[led]]), axis=1)
    source, target = pairs
    onward = (moves[target] < -1) & (moves[target] & 1 == 1)
    goes_to, classes = node[target], np.arange(moves.shape[1])
    chain = fewest
    for _ in range(MAX_CHAIN):
        longer = fewest.copy()
        np.maximum.at(longer, source, 1 + np.where(onward, chain[goes_to, classes], 0))
        if (longer == chain).all():
            return int(chain.max(initial=0))
        chain = longer
    return None


def longest_stack(first: I64, counts: I64, pushes: I64) -> int | None:
    """The most symbols that a run from context 0 can stack, None when there's no bound.

    Context q's symbols lead to the contexts `pushes[first[q] : first[q] + counts[q]]` - 1 (0: nowhere): the longest
    path, found by taking away level after level what nothing leads to any more.
    """
    n = len(first)
    source = np.repeat(np.arange(n), counts)
    target = pushes[np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(len(source))] - 1
    source, target = np.unique(np.stack([source, target])[:, target >= 0], axis=1)
    live = _reached(source, target, n)
    kept = live[source]
    source, target = source[kept], target[kept]
    missing = np.bincount(target, minlength=n)
    done, height = np.zeros(n, bool), 0
    level = np.flatnonzero(live & (missing == 0))
    while len(level):
        done[level] = True
        leaves = np.isin(source, level)
        np.subtract.at(missing, target[leaves], 1)
        source, target = source[~leaves], target[~leaves]
        level = np.flatnonzero(live & ~done & (missing == 0))
        height += bool(len(level))
    return height if done[live].all() else None


def _reached(source: I64, target: I64, n: int) -> npt.NDArray[np.bool_]:
    live = np.zeros(n, bool)
    live[0] = True
    while True:
        before = int(live.sum())
        live[target[live[source]]] = True
        if int(live.sum()) == before:
            return live
