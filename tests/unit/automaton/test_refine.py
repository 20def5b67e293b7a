"""Partition refinement against the plain definition: split until the members of every block look alike."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from maskwright.compiler.automaton.graph import NO_RANGE, Graph
from maskwright.compiler.automaton.refine import refine
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits

Edges = list[list[tuple[int, int, int]]]


def graph(kinds: list[int], edges: Edges) -> Graph:
    flat = np.array([e for es in edges for e in es], dtype=np.int64).reshape(-1, 3)
    start = np.cumsum([0, *map(len, edges)])
    return Graph(np.array(kinds, dtype=np.int64), start, *(np.ascontiguousarray(c) for c in flat.T))


def by_definition(kinds: list[int], edges: Edges) -> list[int]:
    """Bytes one by one, every node in every round."""

    def leads(node: int, block: list[int]) -> tuple[object, ...]:
        out: dict[object, int] = {}
        for low, high, target in edges[node]:
            look = block[target] if target >= 0 else target
            places: list[object] = [("place", low)] if high == NO_RANGE else [*range(low, high + 1)]
            out |= dict.fromkeys(places, look)
        return tuple(sorted(out.items(), key=repr))

    block = [0] * len(kinds)
    while True:
        looks = [(kinds[n], block[n], leads(n, block)) for n in range(len(kinds))]
        names = {look: i for i, look in enumerate(dict.fromkeys(looks))}
        if len(names) == len(set(block)):
            return block
        block = [names[look] for look in looks]


def same_partition(a: list[int], b: list[int]) -> bool:
    return len(set(a)) == len(set(b)) == len(set(zip(a, b, strict=True)))


def random_graph(rng: random.Random) -> tuple[list[int], Edges]:
    n = rng.randint(1, 30)
    edges: Edges = []
    for _ in range(n):
        cuts = sorted(rng.sample(range(13), rng.choice((0, 2, 2, 3, 4))))
        targets = [rng.choice((rng.randrange(n), rng.randrange(n), -5, -6)) for _ in cuts]
        ranges = [(low, high - 1, t) for (low, high), t in zip(pairwise(cuts), targets, strict=False)]
        places = [(k, NO_RANGE, t) for k, t in enumerate(targets)]
        edges.append(ranges if rng.random() < 0.7 else places)
    return [rng.choice((0, 0, 0, 1)) for _ in range(n)], edges


def test_random_graphs() -> None:
    rng = random.Random(5)
    merged = 0
    for _ in range(400):
        kinds, edges = random_graph(rng)
        found = refine(graph(kinds, edges), Limits())
        assert same_partition(found, by_definition(kinds, edges)), (kinds, edges)
        merged += len(set(found)) < len(found)
    assert merged > 100


def test_neighbouring_ranges_into_one_block_are_one() -> None:
    edges: Edges = [[(0, 4, 2), (5, 9, 3)], [(0, 9, 2)], [], [], [(0, 4, 2), (6, 9, 3)]]
    block = refine(graph([0, 0, 0, 0, 0], edges), Limits())
    assert block[0] == block[1] != block[4]
    assert block[2] == block[3]


def test_a_long_chain_and_its_copy() -> None:
    """Each round tells one more node of the chain apart, and looks at few others."""
    n = 20_000
    edges: Edges = [[(0, 0, i + 1)] for i in range(n - 1)] + [[]]
    edges += [[(0, 0, n + i + 1)] for i in range(n - 1)] + [[]]
    block = refine(graph([0] * (2 * n), edges), Limits())
    assert block[:n] == block[n:]
    assert len(set(block)) == n


def test_nothing() -> None:
    assert refine(graph([], []), Limits()) == []


def test_the_time_limit_holds() -> None:
    with pytest.raises(LimitExceeded) as refused:
        refine(graph([0, 1], [[], []]), Limits(), deadline=now() - 1)
    assert refused.value.limit_name == "compile_seconds"
