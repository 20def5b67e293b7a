"""Which controls answer alike to all texts of at most h bytes, and which are nearest to each other.

Most of a trie's sub-tries are low: of Llama 3's 274,521 nodes 17,000 have a text of 8 bytes or more below them. So
where two runs stand at such a node in controls that can't be told apart within its height, they have the same answers
in the whole sub-trie: states that count characters (`maxLength`), the middle states of a pattern's repeats, a
half-written key that may still be any.

Partition refinement, one step for each byte (Moore 1956, without running to the fixpoint): controls are alike for h
bytes if they have the same verdict and on each byte go to controls that are alike for h - 1 bytes, in the same frame or
by pushing symbols that are. Symbols are alike if after each verdict they go on in controls that are alike for as many
bytes: a return reads nothing. Pushes of returns are told apart by identity, as are all controls that aren't asked for.
A class is named by its first member. Signatures are compared as 128-bit sums of mixed classes, weighted by byte.

Measured: the 2,396 controls of a schema with patternProperties that take most of Llama 3's vocabulary have one token on
average in which they differ from another one; walking them takes 0.3 s instead of 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.compiler.jit import borrowing, inlined, kernel
from maskwright.compiler.tokens.kernels import mix

if TYPE_CHECKING:
    from maskwright.compiler.tokens.machine import Machine
    from maskwright.compiler.tokens.trie import Trie

Array = np.ndarray[Any, Any]
I32 = npt.NDArray[np.int32]

LEVELS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32)
"""Heights for which classes are kept; a node's height is rounded up, above the last only equal controls are alike."""
LATEST, LEADERS = 16, 48
MAX_DEPTH = 4
"""Controls one behind the other that may each be walked beside the next: their rows stand on each other, the last on
its local mask, which may stand on rows.MAX_DEPTH others. The format allows 16 in all.
"""
WORTH_IT = 2
"""A walk beside another control is chosen where it's this many times shorter than the walk of the vocabulary."""


def _prefix_weights() -> npt.NDArray[np.uint64]:
    out = np.zeros((2, 257), dtype=np.uint64)
    out[:, 1:] = np.random.default_rng(7).integers(0, 2**64, (2, 256), dtype=np.uint64)
    return np.cumsum(out, axis=1, dtype=np.uint64)


class Likeness(NamedTuple):
    """By level, the last one for identity: `controls` [levels + 1, own controls] and `symbols` [levels + 1, own
    symbols] hold the first member of each one's class, by its number in the machine. The pack's are alike if equal.
    """

    first_control: int
    first_symbol: int
    controls: I32
    symbols: I32


WEIGHTS = _prefix_weights()
"""[2, 257] sums of a random number for each byte before: what an edge adds to a signature is its move's number times
that of its bytes, however ranges are cut."""


@dataclass(frozen=True, slots=True)
class Heights:
    """`level` [nodes]: the place in LEVELS of each node's height, len(LEVELS) above. `beyond` [256, levels + 1]: nodes
    below a first byte that a walk visits if the controls after it are alike at a level.
    """

    level: npt.NDArray[np.uint8]
    beyond: I32


def measure_heights(trie: Trie) -> Heights:
    """The heights of a trie's nodes. Cost: one pass over the nodes."""
    level, beyond = _measure(trie.byte, trie.depth, trie.end, np.array(LEVELS, dtype=np.int32))
    return Heights(level, beyond)


@kernel
def _measure(byte: Array, depth: Array, end: Array, levels: Array) -> tuple[Array, Array]:
    n = len(byte)
    deepest = np.zeros(depth.max() + 2, np.int32)
    level = np.zeros(n, np.uint8)
    beyond = np.zeros((256, len(levels) + 1), np.int32)
    far = np.zeros(n, np.int32)
    for i in range(n - 1, -1, -1):
        d = depth[i]
        far[i] = max(deepest[d + 1], d)
        deepest[d + 1] = 0
        deepest[d] = max(deepest[d], far[i])
        level[i] = np.searchsorted(levels, far[i] - d)
    i = 1
    while i < n:
        for k in range(i, end[i]):
            for j in range(len(levels)):
                if far[k] - 1 <= levels[j]:
                    break
                beyond[byte[i], j] += 1
        i = end[i]
    return level, beyond


def classify(m: Machine, members: I32, symbols: I32, first_symbol: int) -> Likeness:
    """Classes of `members`, own controls, and of `symbols`, own symbols. Cost: some nanoseconds for each edge of a
    member and byte of the highest level, or until no class is split any more."""
    n_controls, n_symbols = len(m.verdict), len(m.return_start) - 1
    first = m.first_control
    if not len(members):
        nothing = np.zeros((len(LEVELS) + 1, 0), dtype=np.int32)
        return Likeness(n_controls, n_symbols, nothing, nothing)
    controls = np.tile(np.arange(first, n_controls, dtype=np.int32), (len(LEVELS) + 1, 1))
    alike = np.tile(np.arange(first_symbol, n_symbols, dtype=np.int32), (len(LEVELS) + 1, 1))
    most = max(len(members), len(symbols))
    _refine(
        m, members, *_edges_of(m.own_moves[members - first]), symbols, first_symbol, np.array(LEVELS, dtype=np.int32),
        WEIGHTS, np.empty((2, most), dtype=np.uint64), np.empty(1 << (2 * most).bit_length(), dtype=np.int32),
        np.arange(n_controls, dtype=np.int32), np.arange(n_symbols, dtype=np.int32), controls, alike,
    )  # fmt: skip
    return Likeness(first, first_symbol, controls, alike)


def _edges_of(moves: I32) -> tuple[I32, I32, I32, I32]:
    """Dense moves [controls, 256] as edges: the first of each control [controls + 1], low, high and move of each."""
    change = np.ones(moves.shape, dtype=np.bool_)
    change[:, 1:] = moves[:, 1:] != moves[:, :-1]
    at = np.flatnonzero(change).astype(np.int32)
    high = np.append(at[1:], np.int32(moves.size)) - 1
    kept = moves.ravel()[at] != -1
    at, high = at[kept], high[kept]
    start = np.searchsorted(at, np.arange(len(moves) + 1, dtype=np.int64) * 256).astype(np.int32)
    return start, at & 255, (high & 255).astype(np.int32), moves.ravel()[at]


@borrowing
def _name_classes(members: Array, signature: Array, table: Array, names: Array) -> int:
    """Sets `names` of each member to the first one of the same signature; the number of classes."""
    mask = len(table) - 1
    table[:] = -1
    classes = 0
    for i in range(len(members)):
        at = np.int64(signature[0, i] & np.uint64(mask))
        while table[at] >= 0:
            j = table[at]
            if signature[0, j] == signature[0, i] and signature[1, j] == signature[1, i]:
                break
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = i
            classes += 1
        names[members[i]] = members[table[at]]
    return classes


@inlined
def _keep(names: Array, first: int, out: Array) -> None:
    for i in range(len(out)):
        out[i] = names[first + i]


@borrowing
def _refine(
    m: Machine,
    members: Array,
    edge_start: Array,
    edge_low: Array,
    edge_high: Array,
    edge_move: Array,
    symbols: Array,
    first_symbol: int,
    levels: Array,
    weights: Array,
    signature: Array,
    table: Array,
    control_class: Array,
    symbol_class: Array,
    controls: Array,
    alike: Array,
) -> None:
    """Fills `controls` and `alike` but for their last rows. `control_class` and `symbol_class` begin as identity."""
    before, level = 0, 0
    for i in range(len(members)):
        control_class[members[i]] = members[0]
    for i in range(len(symbols)):
        symbol_class[symbols[i]] = symbols[0]
    for h in range(1, levels[len(levels) - 1] + 1):
        while level < len(levels) and levels[level] < h:
            _keep(control_class, m.first_control, controls[level])
            _keep(symbol_class, first_symbol, alike[level])
            level += 1
        for i in range(len(members)):
            low, high = mix(m.verdict[members[i]] + 1, 0)
            for e in range(edge_start[i], edge_start[i + 1]):
                move = edge_move[e]
                to_low, to_high = mix(control_class[move] if move >= 0 and h > 1 else 0, 1)
                if move < 0 and h > 1:
                    a = -2 - move
                    to_low, to_high = mix(control_class[m.action_target[a]], 2)
                    for k in range(m.action_start[a], m.action_start[a + 1]):
                        pushed_low, pushed_high = mix(symbol_class[m.action_push[k]], 3 + k - m.action_start[a])
                        to_low += pushed_low
                        to_high += pushed_high
                low += to_low * (weights[0, edge_high[e] + 1] - weights[0, edge_low[e]])
                high += to_high * (weights[1, edge_high[e] + 1] - weights[1, edge_low[e]])
            signature[0, i], signature[1, i] = low, high
        classes = _name_classes(members, signature, table, control_class)
        if classes == before:
            break
        before = classes
        for i in range(len(symbols)):
            start, stop = m.return_start[symbols[i]], m.return_start[symbols[i] + 1]
            low, high = mix(stop - start, 0)
            for k in range(start, stop):
                move = m.return_move[k]
                to_low, to_high = mix(
                    control_class[move] if move >= 0 else -1 - move, 2 * (k - start) + (move >= 0) + 1
                )
                low += to_low
                high += to_high
            signature[0, i], signature[1, i] = low, high
        _name_classes(symbols, signature, table, symbol_class)
    while level < len(levels):
        _keep(control_class, m.first_control, controls[level])
        _keep(symbol_class, first_symbol, alike[level])
        level += 1


@inlined
def alike_controls(likeness: Likeness, level: int, c: int, d: int) -> bool:
    if c == d:
        return True
    first = likeness.first_control
    return c >= first and d >= first and likeness.controls[level, c - first] == likeness.controls[level, d - first]


@inlined
def alike_symbols(likeness: Likeness, level: int, s: int, t: int) -> bool:
    if s == t:
        return True
    first = likeness.first_symbol
    return s >= first and t >= first and likeness.symbols[level, s - first] == likeness.symbols[level, t - first]


@borrowing
def _alike_moves(m: Machine, likeness: Likeness, level: int, x: int, y: int) -> bool:
    """Of two moves that aren't -1."""
    if x >= 0 or y >= 0:
        return x >= 0 and y >= 0 and alike_controls(likeness, level, x, y)
    a, b = -2 - x, -2 - y
    start, other = m.action_start[a], m.action_start[b]
    n = m.action_start[a + 1] - start
    if n != m.action_start[b + 1] - other:
        return False
    for k in range(n):
        if not alike_symbols(likeness, level, m.action_push[start + k], m.action_push[other + k]):
            return False
    return alike_controls(likeness, level, m.action_target[a], m.action_target[b])


@borrowing
def _estimate(m: Machine, likeness: Likeness, beyond: Array, c: int, d: int, most: int) -> int:
    """About how many nodes a walk of `c` beside `d` visits, at most `most`."""
    nodes = 0
    for b in range(256):
        x, y = m.own_moves[c - m.first_control, b], m.own_moves[d - m.first_control, b]
        if x == y:
            continue
        level = 0
        if x != -1 and y != -1:
            level = len(LEVELS) - 1
            while level > 0 and not _alike_moves(m, likeness, level, x, y):
                level -= 1
        nodes += 1 + beyond[b, level]
        if nodes >= most:
            return most
    return nodes


@borrowing
def _choose(
    m: Machine, likeness: Likeness, beyond: Array, wanted: Array, depth: Array, kept: Array, base: Array
) -> None:
    """Sets `base` of each wanted control to the place of an earlier one, -1 where none is near. `depth` [wanted] and
    `kept` [2, most] are scratch."""
    latest, leaders = 0, 0
    for i in range(len(wanted)):
        alone = 0
        for b in range(256):
            if m.own_moves[wanted[i] - m.first_control, b] != -1:
                alone += 1 + beyond[b, 0]
        least = alone // WORTH_IT
        base[i], depth[i] = -1, 0
        have = min(latest, LATEST)
        for j in range(have + leaders):
            k = kept[0, (latest - 1 - j) % LATEST] if j < have else kept[1, j - have]
            nodes = _estimate(m, likeness, beyond, wanted[i], wanted[k], least)
            if nodes < least:
                least, base[i], depth[i] = nodes, k, depth[k] + 1
        if base[i] < 0 and leaders < LEADERS:
            kept[1, leaders] = i
            leaders += 1
        elif depth[i] < MAX_DEPTH:
            kept[0, latest % LATEST] = i
            latest += 1


def choose_bases(m: Machine, likeness: Likeness, heights: Heights, wanted: I32) -> I32:
    """[wanted] the place among the wanted controls, which are one frame's, of the one to walk each beside; -1: none."""
    base = np.empty(len(wanted), dtype=np.int32)
    kept = np.empty((2, max(LATEST, LEADERS)), dtype=np.int32)
    _choose(m, likeness, heights.beyond, wanted, np.empty(len(wanted), dtype=np.int32), kept, base)
    return base


def dense_controls(m: Machine, heights: Heights, least: int) -> I32:
    """Own controls whose walk of the vocabulary may visit `least` nodes, ascending."""
    nodes = (m.own_moves != -1) @ heights.beyond[:, 0]
    out: I32 = (np.flatnonzero(nodes >= least) + m.first_control).astype(np.int32)
    return out
