"""String languages over characters, with one state per character state.

Encoding every JSON escape at every state takes about six byte states for each character state. Here a
character that isn't one plain byte is a called frame that reads it whole, in any spelling, and returns the
class it's in; the classes are those that the language tells apart. So escapes cost one frame for the whole
language.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from maskwright.compiler.automaton.explore import Call, Frame, Ranges, Stay
from maskwright.compiler.regular import Budget, Classifier, classifier_from_transitions, to_bytes
from maskwright.compiler.schema.strings import PLAIN, QUOTE
from maskwright.compiler.schema.tables import Table, TableFrame


class WideFrame:
    """A string judged by a classifier over characters. States: "quote", the classifier's, ("end",
    verdict)."""

    def __init__(self, classes: Classifier, verdicts: list[tuple[bool, ...]], budget: Budget, pointer: str) -> None:
        self.name, self.pointer = "string", pointer
        self.classes, self.verdicts = classes, verdicts
        self.character: Frame = TableFrame("character", class_table(classes.classes, budget))
        self.targets = [dict(row) for row in classes.rows]
        self.plain = sorted(
            (max(low, a), min(high, b), c)
            for c, ranges in enumerate(classes.classes)
            for low, high in ranges
            for a, b in PLAIN
            if max(low, a) <= min(high, b)
        )

    def start(self) -> str:
        return "quote"

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        if state == "quote":
            return [Stay(QUOTE, QUOTE, 0)]
        return list(self._inside(state)) if isinstance(state, int) else []

    def _inside(self, state: int) -> Iterator[Stay | Call]:
        targets, label = self.targets[state], self.classes.labels[state]
        begin, end, into = 0, -1, -1  # classes with one target are read as one range
        for low, high, c in self.plain:
            target = targets.get(c, -1)
            if target == into and low == end + 1:
                end = high
                continue
            if into >= 0:
                yield Stay(begin, end, into)
            begin, end, into = low, high, target
        if into >= 0:
            yield Stay(begin, end, into)
        if label >= 0:
            yield Stay(QUOTE, QUOTE, ("end", self.verdicts[label]))
        if targets:
            yield Call(self.character, state)

    def verdict(self, state: Any) -> Hashable | None:
        return state[1] if isinstance(state, tuple) else None

    def resume(self, continuation: int, verdict: int) -> int | None:
        return self.targets[continuation].get(verdict)


def class_table(classes: tuple[Ranges, ...], budget: Budget) -> Table:
    """One character that takes more than one byte, in any spelling; the label is its class. Kept for partitions
    met before: formats come again in every schema."""
    found = _tables.get(classes)
    if found is None:
        found = _class_table(classes, budget)
        while len(_tables) >= MAX_TABLES:
            _tables.pop(next(iter(_tables)), None)
        _tables[classes] = found
    return found


MAX_TABLES = 128
_tables: dict[tuple[Ranges, ...], Table] = {}


def _class_table(classes: tuple[Ranges, ...], budget: Budget) -> Table:
    moves = [(low, high, c + 1) for c, ranges in enumerate(classes) for low, high in ranges]
    n = len(classes)
    single = classifier_from_transitions([sorted(moves), *([[]] * n)], [-1, *range(n)], "chars", budget)
    body = to_bytes(single, "json", budget)
    plain = {b for a, z in PLAIN for b in range(a, z + 1)}
    start = tuple((a, b, t) for a, b, t in body.transitions[0] if a not in plain)
    return Table((start, *body.transitions[1:]), tuple(label if label >= 0 else None for label in body.labels))
