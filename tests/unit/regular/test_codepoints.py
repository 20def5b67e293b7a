"""Sets of code points against Python sets."""

from __future__ import annotations

import random

import pytest

from maskwright.compiler.regular.codepoints import (
    SCALARS,
    Ranges,
    complement,
    contains,
    intersect,
    normalise,
    of_chars,
    partition,
    size,
    subtract,
    unite,
)


def codes(ranges: Ranges) -> set[int]:
    return {c for low, high in ranges for c in range(low, high + 1)}


def random_ranges(r: random.Random) -> Ranges:
    return normalise((low, low + r.randrange(5)) for low in (r.randrange(40) for _ in range(r.randrange(6))))


@pytest.mark.parametrize("seed", range(300))
def test_operations(seed: int) -> None:
    r = random.Random(seed)
    a, b, c = (random_ranges(r) for _ in range(3))
    assert codes(intersect(a, b)) == codes(a) & codes(b)
    assert codes(subtract(a, b)) == codes(a) - codes(b)
    assert codes(unite(a, b, c)) == codes(a) | codes(b) | codes(c)
    assert codes(complement(a, ((0, 50),))) == set(range(51)) - codes(a)
    for found in (intersect(a, b), subtract(a, b), unite(a, b)):
        assert found == normalise(found)
    assert size(a) == len(codes(a))
    assert all(contains(a, x) == (x in codes(a)) for x in range(50))
    cells = partition([a, b, c])
    assert sum(size(cell) for cell, _ in cells) == len(codes(a) | codes(b) | codes(c))
    for cell, owners in cells:
        for i, s in enumerate((a, b, c)):
            assert codes(cell) <= codes(s) if i in owners else not codes(cell) & codes(s)


def test_scalar_values_have_no_surrogates() -> None:
    assert size(SCALARS) == 0x110000 - 0x800
    assert complement(of_chars("a"))[0] == (0, 96)
    assert not contains(SCALARS, 0xD800)
