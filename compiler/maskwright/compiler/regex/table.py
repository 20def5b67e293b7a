"""A position automaton made ready for stepping: symbol classes, and follow edges sorted by how they're stepped.

Steps are bit-parallel (as in Navarro and Raffinot, "Flexible pattern matching in strings", 2002): follow edges from
a position to the next one are a shift, follow sets of many positions are one test each, the rest are looked up by
bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maskwright.compiler.regex.positions import NO_DEMANDS, Bits, Demands, PositionAutomaton
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, partition, subtract, unite

EVERYTHING: Bits = -1
"""Instead of a set of positions: whatever follows, it's a match."""
WIDE = 8
"""Follow sets of more positions than this are kept as one test."""
FEW = 6
MAX_SET_BYTES = 128 << 20
"""Memory of the states' position sets."""


class Memory:
    """Counts what position sets take, and stops at `MAX_SET_BYTES`."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.bytes = budget, 0

    def charge(self, bits: Bits) -> None:
        """Raises LimitExceeded (`set_bytes`)."""
        self.bytes += 64 + (bits.bit_length() >> 3)
        if self.bytes > MAX_SET_BYTES:
            raise self.budget.exceeded("set_bytes", MAX_SET_BYTES, self.bytes)


class Table:
    """Symbol classes, and edges sorted by how they're stepped."""

    def __init__(self, automaton: PositionAutomaton) -> None:
        self.automaton = automaton
        edges = automaton.edges
        self.useful = (1 << len(automaton.sets)) - 1
        if not automaton.all_useful:
            self.useful = _useful(automaton)
            edges = [(a & self.useful, d, b & self.useful) for a, d, b in edges]
            edges = [e for e in edges if e[0] and e[2]]
        self.follow = Follow((a, b) for a, d, b in edges if d == NO_DEMANDS)
        self.demanding = _group((a, d, b) for a, d, b in edges if d != NO_DEMANDS)
        self.classes: list[Ranges] = []
        self.masks: list[Bits] = []
        self.classes_of: list[tuple[int, ...]] = [()] * len(automaton.sets)
        self._cut()
        tails = [m.tail & self.useful for m in automaton.machines if m.tail]
        self.all_tails = sum(tails)
        self.prunings = [_Pruning(width, n, bases) for (width, n), bases in automaton.copies.items()]
        self.tails = [[t & mask for t in tails] for mask in self.masks]
        """For each class: what of each tail reads it."""

    def _cut(self) -> None:
        by_set: dict[Ranges, Bits] = {}
        for p in _positions_of(self.useful):
            ranges = self.automaton.sets[p]
            by_set[ranges] = by_set.get(ranges, 0) | 1 << p
        sets = list(by_set)
        of_set: list[list[int]] = [[] for _ in sets]
        for c, (ranges, owners) in enumerate(partition(sets)):
            self.classes.append(ranges)
            mask = 0
            for i in owners:
                mask |= by_set[sets[i]]
                of_set[i].append(c)
            self.masks.append(mask)
        found = {ranges: tuple(of_set[i]) for i, ranges in enumerate(sets)}
        for p, ranges in enumerate(self.automaton.sets):
            self.classes_of[p] = found.get(ranges, ())

    def following(self, bits: Bits) -> Bits:
        """Where edges without demands lead, less what's needless."""
        return self.prune(self.follow.of(bits))

    def prune(self, bits: Bits) -> Bits:
        """Without positions in a later copy of a repeated part where the same position of an earlier one is there."""
        if bits & (bits - 1):
            for pruning in self.prunings:
                bits = pruning.apply(bits)
        return bits

    def swallowed(self, bits: Bits, c: int) -> bool:
        """After class c: whether a machine has reached its tail in every way there is."""
        return bool(bits & self.all_tails) and any(t and t & bits == t for t in self.tails[c])

    def rest(self) -> Ranges:
        return subtract(SCALARS, unite(*self.classes))


class _Pruning:
    """Optional copies of one width and number, in all places at once.

    In x{n,m}, after n copies, what's left to match from some place in a copy is part of what's left from the same place
    in an earlier copy. So a set of positions keeps the earliest only, and `a.{0,100}b` doesn't explode in a search.
    """

    def __init__(self, width: int, count: int, bases: list[int]) -> None:
        self.steps: list[tuple[int, Bits]] = []
        """Shifts by 1, 1, 2, 4, … copies and the positions that have so many copies before them."""
        distance = [1]
        while sum(distance) < count - 1:
            distance.append(sum(distance))
        for d in distance:
            self.steps.append((d * width, sum(_block(base + d * width, (count - d) * width) for base in bases)))
        self.all = sum(_block(base, count * width) for base in bases)

    def apply(self, bits: Bits) -> Bits:
        """Cost: as many shifts as the number of copies has digits."""
        inside = bits & self.all
        if not inside & (inside - 1):
            return bits
        shift, mask = self.steps[0]
        later = (inside << shift) & mask
        for shift, mask in self.steps:
            later |= (later << shift) & mask
        return bits & ~later


def _block(start: int, size: int) -> Bits:
    return ((1 << size) - 1) << start


class Follow:
    """Unions of follow sets: `of(positions)`."""

    def __init__(self, edges: Iterable[tuple[Bits, Bits]]) -> None:
        merged: dict[Bits, Bits] = {}
        steps: list[int] = []
        self.runs = self.exits = 0
        self.wide: list[tuple[Bits, Bits]] = []
        self.single: dict[int, Bits] = {}
        for a, b in edges:
            # Counting bits makes no new integers; these are long, and there's one such edge for each position.
            if b.bit_length() == a.bit_length() + 1 and a.bit_count() == 1 == b.bit_count():
                steps.append(a.bit_length() - 1)
            else:
                merged[b] = merged.get(b, 0) | a
        self.shift = _bits_of(steps)
        for b, a in merged.items():
            below = b >> 1
            if below & (below - 1) == 0 and a & below:
                self.shift |= below
                a &= ~below
            if a.bit_count() > WIDE:
                self.add_wide(a, b)
            else:
                for p in _positions_of(a):
                    self.single[p] = self.single.get(p, 0) | b
        self.singles = sum(1 << p for p in self.single)

    def add_wide(self, a: Bits, b: Bits) -> None:
        """A run of positions that leads to the position after it is told by the carry of an addition."""
        run = a // (a & -a)
        if b & (b - 1) == 0 and run & (run + 1) == 0 and a + (a & -a) == b and not (a | b) & (self.runs | self.exits):
            self.runs |= a
            self.exits |= b
        else:
            self.wide.append((a, b))

    def of(self, bits: Bits) -> Bits:
        out = (bits & self.shift) << 1
        if self.runs:
            out |= ((bits & self.runs) + self.runs) & self.exits
        rest = bits & self.singles
        while rest:
            low = rest & -rest
            out |= self.single[low.bit_length() - 1]
            rest ^= low
        for a, b in self.wide:
            if bits & a:
                out |= b
        return out


def _useful(automaton: PositionAutomaton) -> Bits:
    """Positions from which some machine's end can be reached, demands aside."""
    useful = 0
    for ends in automaton.ends:
        for found in ends.values():
            for bits, _ in found:
                useful |= bits
    grown = True
    while grown:
        grown = False
        for a, _, b in reversed(automaton.edges):
            if b & useful and a & ~useful:
                useful |= a
                grown = True
    return useful


def _group(
    edges: Iterable[tuple[Bits, Demands, Bits]],
) -> list[tuple[Demands, list[tuple[Bits, Bits]]]]:
    by_demand: dict[Demands, list[tuple[Bits, Bits]]] = {}
    for a, demands, b in edges:
        by_demand.setdefault(demands, []).append((a, b))
    return list(by_demand.items())


def _bits_of(positions: Iterable[int]) -> Bits:
    """Cost: linear, which adding them one by one isn't."""
    data = bytearray()
    for p in positions:
        if p >> 3 >= len(data):
            data.extend(bytes((p >> 3) + 1))
        data[p >> 3] |= 1 << (p & 7)
    return int.from_bytes(data, "little")


def _positions_of(bits: Bits) -> Iterator[int]:
    if bits.bit_count() > FEW:
        yield from (p for p, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")
        return
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
