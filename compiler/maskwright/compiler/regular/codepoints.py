"""Sets of code points as sorted tuples of disjoint, non-adjacent inclusive ranges.

The alphabet of text is the Unicode scalar values, 0..0x10FFFF without the surrogates; that of bytes is 0..255. A
set is always in normal form, so equal sets are equal tuples. Every operation is linear in the number of ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]

MAX = 0x10FFFF
SCALARS: Ranges = ((0, 0xD7FF), (0xE000, MAX))
BYTES: Ranges = ((0, 255),)
EMPTY: Ranges = ()


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of arbitrary ranges, in normal form."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            if high > out[-1][1]:
                out[-1] = (out[-1][0], high)
        elif low <= high:
            out.append((low, high))
    return tuple(out)


def of_chars(text: Iterable[str]) -> Ranges:
    """The characters of a text as a set."""
    return normalise((ord(c), ord(c)) for c in text)


def unite(*sets: Ranges) -> Ranges:
    return normalise(r for s in sets for r in s)


def intersect(one: Ranges, two: Ranges) -> Ranges:
    """Cost: linear in the shorter set and the result, with a logarithm of the longer."""
    if len(one) > len(two):
        one, two = two, one
    out: list[tuple[int, int]] = []
    for low, high in one:
        i = bisect_right(two, (low, MAX))
        if i and two[i - 1][1] >= low:
            i -= 1
        j = bisect_right(two, (high, MAX), i)
        if i < j:
            first = len(out)
            out += two[i:j]
            out[first] = (max(low, out[first][0]), out[first][1])
            out[-1] = (out[-1][0], min(high, out[-1][1]))
    return tuple(out)


@lru_cache(maxsize=256)
def complement(ranges: Ranges, alphabet: Ranges = SCALARS) -> Ranges:
    """What `alphabet` has and `ranges` has not."""
    gaps: list[tuple[int, int]] = []
    low = 0
    for a, b in ranges:
        if a > low:
            gaps.append((low, a - 1))
        low = b + 1
    if low <= MAX:
        gaps.append((low, MAX))
    return intersect(tuple(gaps), alphabet)


def subtract(one: Ranges, two: Ranges) -> Ranges:
    return intersect(one, complement(two, ((0, MAX),))) if two else one


def contains(ranges: Ranges, code: int) -> bool:
    i = bisect_right(ranges, (code, MAX)) - 1
    return i >= 0 and ranges[i][0] <= code <= ranges[i][1]


def size(ranges: Ranges) -> int:
    """How many code points."""
    return sum(high - low + 1 for low, high in ranges)


def partition(sets: Sequence[Ranges]) -> list[tuple[Ranges, tuple[int, ...]]]:
    """The coarsest partition of the union that every set is a union of cells of.

    Returns (cell, indices of the sets that hold it), ordered by least code point. Sweeps the boundaries once; the
    last results are kept, as patterns share their big sets.
    """
    return list(_partition(tuple(sets)))


@lru_cache(maxsize=256)
def _partition(sets: tuple[Ranges, ...]) -> tuple[tuple[Ranges, tuple[int, ...]], ...]:
    events: list[tuple[int, int]] = []
    for i, s in enumerate(sets):
        bit = 1 << i
        for low, high in s:
            events.append((low, bit))
            events.append((high + 1, bit))
    events.sort()
    cells: dict[int, list[tuple[int, int]]] = {}
    active = at = 0
    for code, bit in events:
        if code > at:
            if active:
                found = cells.get(active)
                if found is None:
                    found = cells[active] = []
                found.append((at, code - 1))
            at = code
        active ^= bit
    return tuple((tuple(ranges), _bits(owners)) for owners, ranges in cells.items())


def _bits(mask: int) -> tuple[int, ...]:
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return tuple(out)
