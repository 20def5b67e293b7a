"""From a position automaton to a `Dfa` over characters: the subset construction.

Without lookarounds a state is a set of positions, an int with a bit for each. A state from which every continuation
matches is one state, `EVERYTHING`, whatever led there. With lookarounds see `lookaround.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.compiler.regex.conditions import END, START
from maskwright.compiler.regex.lookaround import Lookarounds
from maskwright.compiler.regex.positions import Bits, PositionAutomaton
from maskwright.compiler.regex.table import EVERYTHING, FEW, Memory, Table
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.dfa import Dfa
from maskwright.compiler.regular.minimise import make_dfa
from maskwright.compiler.regular.subset import explore


def determinise(automaton: PositionAutomaton, budget: Budget) -> Dfa:
    """The minimal automaton of machine 0. Raises LimitExceeded by `budget` and for the memory of its states."""
    table = Table(automaton)
    if len(automaton.machines) == 1:
        return _Plain(table, budget).dfa()
    return Lookarounds(table, budget).dfa()


class _Plain:
    """States are sets of positions."""

    def __init__(self, table: Table, budget: Budget) -> None:
        self.table, self.budget = table, budget
        self.memory = Memory(budget)

    def dfa(self) -> Dfa:
        automaton = self.table.automaton
        start = automaton.machines[0].starts[START] & self.table.useful
        ends = 0
        for bits, _ in automaton.ends[0].get(END, ()):
            ends |= bits
        classes = list(self.table.classes)
        rest = self.table.rest() if self.table.all_tails else ()
        if rest:
            classes.append(rest)
        self.everywhere = [(c, EVERYTHING) for c in range(len(classes))]
        keys, rows = explore(start, self.successors, self.budget)
        labels = [0 if k == EVERYTHING or k & ends else -1 for k in keys]
        return make_dfa(classes, rows, labels, budget=self.budget)

    def successors(self, bits: Bits) -> Iterable[tuple[int, Bits]]:
        if bits == EVERYTHING:
            return self.everywhere
        self.memory.charge(bits)
        table = self.table
        following = table.following(bits)
        if following.bit_count() <= FEW:
            found: dict[int, Bits] = {}
            rest = following
            while rest:
                low = rest & -rest
                for c in table.classes_of[low.bit_length() - 1]:
                    found[c] = found.get(c, 0) | low
                rest ^= low
            out = list(found.items())
        else:
            out = [(c, hit) for c, mask in enumerate(table.masks) if (hit := following & mask)]
        if following & table.all_tails:
            out = [(c, EVERYTHING if table.swallowed(hit, c) else hit) for c, hit in out]
        return out
