"""Minimisation against the definition: Moore's refinement by full comparison of rows, on random automata."""

from __future__ import annotations

import random

import pytest

from maskwright.compiler.regular import Classifier
from maskwright.compiler.regular.minimise import canonical, merge_bottom_up, refine

CLASSES = (((97, 97),), ((98, 98),), ((99, 100),))
Rows = list[list[tuple[int, int]]]


def random_automaton(r: random.Random) -> tuple[Rows, list[int]]:
    """Mostly forward edges and loops, sometimes edges back."""
    n = r.randrange(1, 14)
    back = r.random() < 0.5
    rows: Rows = []
    for s in range(n):
        row = []
        for c in range(3):
            target = r.choice([None, s, r.randrange(s, n), r.randrange(s, n), r.randrange(n) if back else None])
            if target is not None:
                row.append((c, target))
        r.shuffle(row)
        rows.append(row)
    return rows, [r.choice([-1, -1, 0, 0, 1]) for _ in range(n)]


def count_classes(rows: Rows, labels: list[int]) -> int:
    """States of the minimal trimmed automaton: rounds of signatures over all states and a dead one."""
    dead = len(rows)
    full = [[dict(row).get(c, dead) for c in range(3)] for row in [*rows, []]]
    block: list[object] = [*labels, -1]
    for _ in range(dead + 2):
        names: dict[object, int] = {}
        block = [names.setdefault((block[s], *[block[t] for t in full[s]]), len(names)) for s in range(dead + 1)]
    reached = {0}
    work = [0]
    while work:
        for t in full[work.pop()]:
            if t not in reached:
                reached.add(t)
                work.append(t)
    return max(1, len({block[s] for s in reached} - {block[dead]}))


@pytest.mark.parametrize("seed", range(400))
def test_the_canonical_form_is_minimal_and_keeps_the_labels(seed: int) -> None:
    r = random.Random(seed)
    rows, labels = random_automaton(r)
    found = Classifier(*canonical(CLASSES, rows, labels))
    assert found.n_states == count_classes(rows, labels)
    for _ in range(50):
        word = [r.randrange(3) for _ in range(r.randrange(9))]
        state: int | None = 0
        for c in word:
            state = None if state is None else dict(rows[state]).get(c)
        assert found.label("".join("abc"[c] for c in word)) == (-1 if state is None else labels[state])


@pytest.mark.parametrize("seed", range(200))
def test_bottom_up_blocks_are_those_of_refinement(seed: int) -> None:
    rows, labels = random_automaton(random.Random(seed))
    labels = [max(x, 0) for x in labels]  # all live
    live = [True] * len(rows)
    sources: list[list[int]] = [[] for _ in rows]
    for s, row in enumerate(rows):
        for _, t in row:
            sources[t].append(s)
    quick, full = merge_bottom_up(rows, labels, live, sources), refine(rows, labels, live)
    placed = [s for s, b in enumerate(quick) if b >= 0]
    assert len({quick[s] for s in placed}) == len({full[s] for s in placed})
    assert len({(quick[s], full[s]) for s in placed}) == len({full[s] for s in placed})
