"""Deterministic automata in canonical form: `Dfa` (accepts or not) and `Classifier` (a label for every text).

Both hold the same table. The alphabet is cut into *classes*, sets of symbols that no state tells apart; a row lists a
state's (class, target) pairs; a missing pair is the dead state. Everything this package returns is minimal and trimmed
(from every state but possibly the start a label other than -1 can be reached), with classes ordered by least symbol
and states numbered breadth first. So two automata of one type are equal exactly when their languages are, and
`==` and `hash` decide that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from maskwright.compiler.regular.codepoints import Ranges

Alphabet = Literal["chars", "bytes"]
Row = tuple[tuple[int, int], ...]
Transition = tuple[int, int, int]


@dataclass(frozen=True)
class Automaton:
    """The shared table. States are 0..n_states-1, the start is 0; `labels[s]` is -1 for "no"."""

    classes: tuple[Ranges, ...]
    rows: tuple[Row, ...]
    labels: tuple[int, ...]
    alphabet: Alphabet = "chars"

    @property
    def n_states(self) -> int:
        return len(self.rows)

    @cached_property
    def transitions(self) -> tuple[tuple[Transition, ...], ...]:
        """For each state its (low, high, target), sorted, disjoint, neighbours with one target merged."""
        done: dict[Row, tuple[Transition, ...]] = {}
        for row in self.rows:
            if row not in done:
                done[row] = tuple(_spell(self.classes, row))
        return tuple(done[row] for row in self.rows)

    def step(self, state: int, symbol: int) -> int:
        """The next state on a code point or byte, -1 when dead."""
        c = self._class_of(symbol)
        for k, target in self.rows[state]:
            if k == c:
                return target
        return -1

    def label(self, text: str | bytes) -> int:
        """The label of a text, -1 when there is none. Cost: linear in the text."""
        state = 0
        for symbol in text if isinstance(text, bytes) else map(ord, text):
            state = self.step(state, symbol)
            if state < 0:
                return -1
        return self.labels[state]

    def _class_of(self, symbol: int) -> int:
        lows, owners = self._bounds
        i = bisect_right(lows, (symbol, 0x110000)) - 1
        return owners[i] if i >= 0 and lows[i][1] >= symbol else -1

    @cached_property
    def _bounds(self) -> tuple[list[tuple[int, int]], list[int]]:
        flat = sorted((low, high, c) for c, ranges in enumerate(self.classes) for low, high in ranges)
        return [(low, high) for low, high, _ in flat], [c for _, _, c in flat]

    @cached_property
    def _hash(self) -> int:
        return hash((type(self).__name__, self.alphabet, self.classes, self.rows, self.labels))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Dfa(Automaton):
    """A language: the texts whose label is 0."""

    __hash__ = Automaton.__hash__

    @cached_property
    def accepting(self) -> frozenset[int]:
        return frozenset(s for s, label in enumerate(self.labels) if label >= 0)


@dataclass(frozen=True)
class Classifier(Automaton):
    """Several languages judged at once: every text has one label, an int; -1 means "no", a dead state too."""

    __hash__ = Automaton.__hash__


def _spell(classes: Sequence[Ranges], row: Iterable[tuple[int, int]]) -> list[Transition]:
    out: list[Transition] = []
    for low, high, target in sorted((a, b, target) for c, target in row for a, b in classes[c]):
        if out and out[-1][2] == target and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, target)
        else:
            out.append((low, high, target))
    return out
