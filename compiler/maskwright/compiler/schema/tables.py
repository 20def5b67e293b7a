"""Frames without calls as tables: tabulate a lazily described byte DFA, minimise it, wrap it as a frame.

Minimisation is Moore's partition refinement over (label, row) signatures. The tables here are small (numbers,
finite string sets), so its n log n in practice matters more than Hopcroft's bound in the worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.automaton.explore import Call, Stay
from maskwright.compiler.diagnostics import LimitExceeded

Row = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Table:
    """`rows[s]` are (low, high, target) ranges in order; `labels[s]` is None where a text can't end. Start is
    0."""

    rows: tuple[Row, ...]
    labels: tuple[Hashable | None, ...]


class TableFrame:
    """A table as a frame; the verdict of a state is its label."""

    def __init__(self, name: str, table: Table, pointer: str = "") -> None:
        self.name, self.pointer, self.table = name, pointer, table

    def start(self) -> int:
        return 0

    def transitions(self, state: int) -> Iterable[Stay | Call]:
        return [Stay(low, high, target) for low, high, target in self.table.rows[state]]

    def verdict(self, state: int) -> Hashable | None:
        return self.table.labels[state]

    def resume(self, continuation: Any, verdict: Any) -> None:
        raise TypeError("a table calls nothing")


def tabulate(
    start: Hashable,
    step: Callable[[Any], Iterable[tuple[int, int, Hashable]]],
    label: Callable[[Any], Hashable | None],
    limit: int = 200_000,
    pointer: str = "",
) -> Table:
    """The minimal trimmed table of the DFA that `step` and `label` describe.

    `step(state)` yields disjoint (low, high, state) ranges. Raises LimitExceeded when more than `limit`
    states appear.
    """
    numbers: dict[Hashable, int] = {start: 0}
    states = [start]
    rows: list[list[tuple[int, int, int]]] = []
    labels: list[Hashable | None] = []
    for state in states:
        row = []
        for low, high, target in step(state):
            n = numbers.setdefault(target, len(states))
            if n == len(states):
                if n >= limit:
                    raise LimitExceeded("states", limit, n + 1, "tabulate", pointer=pointer)
                states.append(target)
            row.append((low, high, n))
        rows.append(sorted(row))
        labels.append(label(state))
    return minimise(rows, labels)


def minimise(rows: list[list[tuple[int, int, int]]], labels: list[Hashable | None]) -> Table:
    """Merges equivalent states and drops those from which no label is reached; numbered breadth first from
    0."""
    live = _live(rows, labels)
    trimmed = [[r for r in row if live[r[2]]] for row in rows]
    names: dict[Hashable, int] = {}
    block = [names.setdefault(label, len(names)) for label in labels]
    while True:
        signatures: dict[Hashable, int] = {}
        refined = [
            signatures.setdefault((block[s], _merged(trimmed[s], block)), len(signatures)) for s in range(len(rows))
        ]
        if len(signatures) == len(names):
            break
        names, block = signatures, refined
    return _renumber(trimmed, labels, block)


def _merged(row: list[tuple[int, int, int]], block: list[int]) -> Row:
    out: list[tuple[int, int, int]] = []
    for low, high, target in row:
        b = block[target]
        if out and out[-1][2] == b and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, b)
        else:
            out.append((low, high, b))
    return tuple(out)


def _live(rows: list[list[tuple[int, int, int]]], labels: list[Hashable | None]) -> list[bool]:
    before: list[list[int]] = [[] for _ in rows]
    for s, row in enumerate(rows):
        for _, _, t in row:
            before[t].append(s)
    live = [label is not None for label in labels]
    work = [s for s, yes in enumerate(live) if yes]
    while work:
        for s in before[work.pop()]:
            if not live[s]:
                live[s] = True
                work.append(s)
    return live


def _renumber(rows: list[list[tuple[int, int, int]]], labels: list[Hashable | None], block: list[int]) -> Table:
    example: dict[int, int] = {}
    for s, b in enumerate(block):
        example.setdefault(b, s)
    numbers, order = {block[0]: 0}, [block[0]]
    out: list[Row] = []
    for b in order:
        row = []
        for low, high, target in _merged(rows[example[b]], block):
            n = numbers.setdefault(target, len(order))
            if n == len(order):
                order.append(target)
            row.append((low, high, n))
        out.append(tuple(row))
    return Table(tuple(out), tuple(labels[example[b]] for b in order))
