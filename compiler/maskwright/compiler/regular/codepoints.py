"""Sets of code points as sorted tuples of disjoint, non-adjacent inclusive ranges.

The alphabet of text is the Unicode scalar values, 0..0x10FFFF without the surrogates; that of bytes is 0..255. A set
is always in normal form, so equal sets are equal tuples. Every operation is linear in the number of ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

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
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(one) and j < len(two):
        low, high = max(one[i][0], two[j][0]), min(one[i][1], two[j][1])
        if low <= high:
            out.append((low, high))
        if one[i][1] < two[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


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

    Returns (cell, indices of the sets that hold it), ordered by least code point. Sweeps the boundaries once.
    """
    events: list[tuple[int, int, int]] = []
    for i, s in enumerate(sets):
        for low, high in s:
            events.append((low, 1, i))
            events.append((high + 1, 0, i))
    events.sort()
    cells: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    active: set[int] = set()
    key: tuple[int, ...] = ()
    at = 0
    for code, opens, i in events:
        if code > at:
            if active:
                key = key or tuple(sorted(active))
                cells.setdefault(key, []).append((at, code - 1))
            at = code
        if opens:
            active.add(i)
        else:
            active.discard(i)
        key = ()
    return [(normalise(ranges), k) for k, ranges in cells.items()]
