"""Deterministic automata in canonical form: `Dfa` (accepts or not) and `Classifier` (a label for every text).

Automata over characters hold a table: the alphabet is cut into *classes*, sets of symbols that no state tells
apart, and a row lists a state's (class, target) pairs. Automata over bytes hold `transitions`, ranges of bytes.
Either form is made from the other when asked for. A symbol without a transition leads to the dead state, which
isn't stored.

Everything this package returns is minimal and trimmed (from every state but possibly the start a label other than
-1 can be reached), with classes ordered by least symbol, ranges merged, and states numbered breadth first. So two
automata of one type are equal exactly when their languages are, and `==` and `hash` decide that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

from maskwright.compiler.regular.codepoints import Ranges, partition

Alphabet = Literal["chars", "bytes"]
Row = tuple[tuple[int, int], ...]
Transition = tuple[int, int, int]
Transitions = tuple[tuple[Transition, ...], ...]


class Automaton:
    """The shared form, immutable. States are 0..n_states-1, the start is 0; `labels[s]` is -1 for "no"."""

    labels: tuple[int, ...]
    alphabet: Alphabet

    def __init__(
        self,
        classes: tuple[Ranges, ...],
        rows: tuple[Row, ...],
        labels: tuple[int, ...],
        alphabet: Alphabet = "chars",
    ) -> None:
        """From a canonical table, unchecked: use `make_dfa` and its like for any other."""
        self.labels, self.alphabet = labels, alphabet
        if alphabet == "chars":
            self.__dict__["classes"], self.__dict__["rows"] = classes, rows
        else:
            self.__dict__["transitions"] = _spell_rows(classes, rows)

    @classmethod
    def from_byte_ranges(cls, transitions: Transitions, labels: tuple[int, ...]) -> Automaton:
        """An automaton over bytes from canonical ranges, unchecked."""
        made = cls.__new__(cls)
        made.labels, made.alphabet = labels, "bytes"
        made.__dict__["transitions"] = transitions
        return made

    @property
    def n_states(self) -> int:
        return len(self.labels)

    @cached_property
    def transitions(self) -> Transitions:
        """For each state its (low, high, target), sorted, disjoint, neighbours with one target merged."""
        return _spell_rows(self.classes, self.rows)

    @cached_property
    def classes(self) -> tuple[Ranges, ...]:
        """The symbol classes, ordered by least symbol; symbols that lead nowhere are in none."""
        return self._table[0]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """For each state its (class, target) pairs, ordered by class."""
        return self._table[1]

    @cached_property
    def _table(self) -> tuple[tuple[Ranges, ...], tuple[Row, ...]]:
        return cut_ranges(self.transitions)

    def step(self, state: int, symbol: int) -> int:
        """The next state on a code point or byte, -1 when dead."""
        if self.alphabet == "bytes":
            for low, high, target in self.transitions[state]:
                if low <= symbol <= high:
                    return target
            return -1
        return self._targets[state].get(self._class_of(symbol), -1)

    def label(self, text: str | bytes) -> int:
        """The label of a text, -1 when there is none. Cost: linear in the text."""
        state = 0
        for symbol in text if isinstance(text, bytes) else map(ord, text):
            state = self.step(state, symbol)
            if state < 0:
                return -1
        return self.labels[state]

    def _class_of(self, symbol: int) -> int:
        bounds, owners = self._bounds
        i = bisect_right(bounds, (symbol, 0x110000)) - 1
        return owners[i] if i >= 0 and bounds[i][1] >= symbol else -1

    @cached_property
    def _bounds(self) -> tuple[list[tuple[int, int]], list[int]]:
        flat = sorted((low, high, c) for c, ranges in enumerate(self.classes) for low, high in ranges)
        return [(low, high) for low, high, _ in flat], [c for _, _, c in flat]

    @cached_property
    def _targets(self) -> list[dict[int, int]]:
        return [dict(row) for row in self.rows]

    def _key(self) -> tuple[object, ...]:
        if self.alphabet == "bytes":
            return (self.labels, self.transitions)
        return (self.labels, self.rows, self.classes)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Automaton)
        return self is other or (self.alphabet == other.alphabet and self._key() == other._key())

    @cached_property
    def _hash(self) -> int:
        return hash((type(self).__name__, self.alphabet, self._key()))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.n_states} states over {self.alphabet}>"


class Dfa(Automaton):
    """A language: the texts whose label is 0."""

    @cached_property
    def accepting(self) -> frozenset[int]:
        return frozenset(s for s, label in enumerate(self.labels) if label >= 0)


class Classifier(Automaton):
    """Several languages judged at once: every text has one label, an int; -1 means "no", a dead state too."""


def cut_ranges(
    transitions: Sequence[Iterable[Transition]],
) -> tuple[tuple[Ranges, ...], tuple[Row, ...]]:
    """Classes and rows for disjoint ranges: the coarsest classes, ordered by least symbol."""
    by_target: list[dict[int, list[tuple[int, int]]]] = []
    for row in transitions:
        found: dict[int, list[tuple[int, int]]] = {}
        for low, high, target in row:
            found.setdefault(target, []).append((low, high))
        by_target.append(found)
    sets = list({tuple(r): None for found in by_target for r in found.values()})
    index = {ranges: i for i, ranges in enumerate(sets)}
    cells_of: list[list[int]] = [[] for _ in sets]
    cells = sorted(partition(sets))
    for c, (_, owners) in enumerate(cells):
        for i in owners:
            cells_of[i].append(c)
    rows = (sorted((c, t) for t, r in found.items() for c in cells_of[index[tuple(r)]]) for found in by_target)
    return tuple(ranges for ranges, _ in cells), tuple(tuple(row) for row in rows)


def _spell_rows(classes: Sequence[Ranges], rows: Sequence[Row]) -> Transitions:
    done: dict[Row, tuple[Transition, ...]] = {}
    for row in rows:
        if row not in done:
            done[row] = tuple(_spell(classes, row))
    return tuple(done[row] for row in rows)


def _spell(classes: Sequence[Ranges], row: Iterable[tuple[int, int]]) -> list[Transition]:
    out: list[Transition] = []
    for low, high, target in sorted((a, b, target) for c, target in row for a, b in classes[c]):
        if out and out[-1][2] == target and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, target)
        else:
            out.append((low, high, target))
    return out
