"""The coarsest congruence of a graph whose edges carry byte ranges, compiled by numba.

Partition refinement: nodes are together until they look different, and what a node looks like is its kind and, in
order, its ranges with the blocks that they lead to (neighbouring ranges into one block are one). Only nodes whose
successors changed block are looked at again, and the part of a block that wasn't looked at, or else the largest, keeps
the block's number, as in Hopcroft, "An n log n algorithm for minimizing states in a finite automaton" (1971). Blocks
are intervals of one array whose fronts hold the nodes being looked at, as in Valmari and Lehtinen, "Efficient
minimization of DFAs with partial transition functions" (2008).

Looks are compared as written, hashes only find them, so the result doesn't depend on luck.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.graph import I64, Array, Graph, find_sources
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import out_of_time
from maskwright.compiler.jit import inlined, kernel
from maskwright.compiler.options import Limits

STEPS = 1 << 20
"""Edges looked at between two looks at the clock."""


class Partition(NamedTuple):
    """Block b is element[first[b]:first[b] + size[b]]; place[element[i]] = i. Of each block, `looked` is how many of
    its members are being looked at, `groups` the first group of these, -1 for none."""

    block: I64
    element: I64
    place: I64
    first: I64
    size: I64
    looked: I64
    groups: I64


class Groups(NamedTuple):
    """Nodes of one block that look the same: words[begin:end]. `after` is the next group of the block, -1 for none;
    `goes` where its nodes go, `slot` its place in the table."""

    block: I64
    size: I64
    begin: I64
    end: I64
    after: I64
    goes: I64
    slot: I64


class Space(NamedTuple):
    """Room to work in. `words` has the looks one after the other, `table` the groups by their looks (open addressing,
    all -1 between rounds), `group` each node's, `touched` the blocks that have dirty nodes, `moved` the nodes that
    change block; `dirty` are those to be looked at, and `queued` (false between rounds) whether a node is."""

    words: I64
    table: I64
    group: I64
    touched: I64
    moved: I64
    dirty: I64
    queued: npt.NDArray[np.bool_]


def refine(graph: Graph, limits: Limits, deadline: float | None = None) -> list[int]:
    """The block of each node: equal exactly for nodes that can't be told apart by kind, by any path.

    Raises LimitExceeded for `compile_seconds` when `deadline`, a `deadline.now` value, passes. Cost: each edge is
    looked at as often as the logarithm of the number of nodes, at most; mostly two or three times.
    """
    n = len(graph.kind)
    if not n:
        return []
    source_start, source = find_sources(graph)
    p = Partition(
        block=np.zeros(n, np.int64),
        element=np.arange(n),
        place=np.arange(n),
        first=np.zeros(n, np.int64),
        size=np.full(n, n),
        looked=np.zeros(n, np.int64),
        groups=np.full(n, -1),
    )
    groups = Groups(*np.empty((len(Groups._fields), n), np.int64))
    space = Space(
        words=np.empty(2 * len(graph.low) + n, np.int64),
        table=np.full(1 << (2 * n).bit_length(), -1),
        group=np.empty(n, np.int64),
        touched=np.empty(n, np.int64),
        moved=np.empty(n, np.int64),
        dirty=np.arange(n),
        queued=np.zeros(n, np.bool_),
    )
    blocks, n_dirty = 1, n
    while n_dirty:
        if deadline is not None and now() > deadline:
            raise out_of_time(limits.compile_seconds, deadline, "minimise")
        blocks, n_dirty = _rounds(graph, source_start, source, p, groups, space, blocks, n_dirty, STEPS)
    return p.block.tolist()  # type: ignore[no-any-return]


@kernel
def _rounds(
    graph: Graph,
    source_start: Array,
    source: Array,
    p: Partition,
    groups: Groups,
    space: Space,
    blocks: int,
    n_dirty: int,
    steps: int,
) -> tuple[int, int]:
    """Rounds until nothing changes or `steps` edges have been looked at; the number of blocks, and of nodes to look at
    next. In each the dirty nodes are grouped by block and look, and all groups of a block but one become blocks."""
    while n_dirty and steps > 0:
        n_touched = _bring_forward(p, space, n_dirty)
        n_groups, top = 0, 0
        for k in range(n_dirty + n_touched):
            if k < n_dirty:
                x = space.dirty[k]
            else:
                # One member stands for those of its block that aren't looked at: they look as before, all alike.
                b = space.touched[k - n_dirty]
                if p.looked[b] == p.size[b]:
                    continue
                x = p.element[p.first[b] + p.looked[b]]
            b = p.block[x]
            end = _write_look(graph, p.block, x, space.words, top)
            slot = _find_slot(space.table, groups, space.words, top, end, b)
            g = space.table[slot]
            if g < 0:
                g = n_groups
                space.table[slot], groups.slot[g] = g, slot
                groups.block[g], groups.size[g], groups.begin[g], groups.end[g] = b, 0, top, end
                groups.after[g], p.groups[b] = p.groups[b], g
                n_groups += 1
                top = end
            space.group[x] = g
            groups.size[g] += 1 if k < n_dirty else len(graph.kind)
            steps -= graph.start[x + 1] - graph.start[x] + 1
        for g in range(n_groups):
            space.table[groups.slot[g]] = -1
        n_moved = 0
        for k in range(n_touched):
            blocks, n_moved = _split(p, space.touched[k], groups, space, blocks, n_moved)
        n_dirty = _queue(source_start, source, space, n_moved)
    return blocks, n_dirty


@inlined
def _bring_forward(p: Partition, space: Space, n_dirty: int) -> int:
    """Brings the dirty members of each block to its front; the number of blocks that have some."""
    n_touched = 0
    for k in range(n_dirty):
        x = space.dirty[k]
        b = p.block[x]
        if p.looked[b] == 0:
            space.touched[n_touched] = b
            n_touched += 1
        i, j = p.place[x], p.first[b] + p.looked[b]
        y = p.element[j]
        p.element[i], p.place[y] = y, i
        p.element[j], p.place[x] = x, j
        p.looked[b] += 1
    return n_touched


@inlined
def _write_look(graph: Graph, block: Array, x: int, words: Array, top: int) -> int:
    """Writes what node x looks like to words[top:]; the end."""
    end = top + 1
    words[top] = graph.kind[x]
    for e in range(graph.start[x], graph.start[x + 1]):
        low, high, target = graph.low[e], graph.high[e], graph.target[e]
        look = block[target] if target >= 0 else target
        # A range is low << 16 | high + 1; one that goes on where the last ended, and leads there too, is part of it.
        if high >= 0 and end > top + 1 and words[end - 1] == look and (words[end - 2] & 0xFFFF) == low:
            words[end - 2] += high + 1 - low
        else:
            words[end], words[end + 1] = low << 16 | (high + 1), look
            end += 2
    return end


@inlined
def _find_slot(table: Array, groups: Groups, words: Array, begin: int, end: int, b: int) -> int:
    """The slot of the group of block b that looks like words[begin:end], or the free one where it belongs."""
    h = b
    for w in range(begin, end):
        h = (h ^ words[w]) * 0x9E3779B97F4A7C1
        h ^= (h >> 29) & 0x7FFFFFFFF
    slot = h & (len(table) - 1)
    while table[slot] >= 0:
        g = table[slot]
        same = begin
        if groups.block[g] == b and groups.end[g] - groups.begin[g] == end - begin:
            shift = groups.begin[g] - begin
            while same < end and words[same + shift] == words[same]:
                same += 1
        if same == end:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@inlined
def _split(p: Partition, b: int, groups: Groups, space: Space, blocks: int, n_moved: int) -> tuple[int, int]:
    """Makes blocks of all groups of block b but the largest, at its front; the numbers of blocks and moved nodes
    then. Nothing of b is being looked at any more."""
    looked, head = p.looked[b], p.groups[b]
    p.looked[b], p.groups[b] = 0, -1
    stays, g = head, groups.after[head]
    while g >= 0:
        if groups.size[g] > groups.size[stays]:
            stays = g
        g = groups.after[g]
    begin = p.first[b]
    at, g = begin, head
    while g >= 0:
        if g != stays:
            groups.goes[g], groups.block[g] = at, blocks
            p.first[blocks], p.size[blocks] = at, groups.size[g]
            at += groups.size[g]
            blocks += 1
        g = groups.after[g]
    if at == begin:
        return blocks, n_moved
    groups.goes[stays], p.first[b] = at, at
    p.size[b] -= at - begin
    # Behind what has moved so far there's room for all that were looked at, and there they wait for their places.
    for i in range(looked):
        space.moved[n_moved + i] = p.element[begin + i]
    for i in range(n_moved, n_moved + looked):
        x = space.moved[i]
        g = space.group[x]
        p.element[groups.goes[g]], p.place[x] = x, groups.goes[g]
        groups.goes[g] += 1
        if g != stays:
            p.block[x] = groups.block[g]
            space.moved[n_moved] = x
            n_moved += 1
    return blocks, n_moved


@inlined
def _queue(source_start: Array, source: Array, space: Space, n_moved: int) -> int:
    """Makes dirty, once each, the nodes with an edge to one that has moved; their number."""
    n_dirty = 0
    for k in range(n_moved):
        x = space.moved[k]
        for i in range(source_start[x], source_start[x + 1]):
            if not space.queued[source[i]]:
                space.queued[source[i]] = True
                space.dirty[n_dirty] = source[i]
                n_dirty += 1
    for k in range(n_dirty):
        space.queued[space.dirty[k]] = False
    return n_dirty
