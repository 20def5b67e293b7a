"""From a position automaton to a `Dfa` over characters: the subset construction.

Without lookarounds a state is a set of positions, an int. Steps are bit-parallel (as in Navarro and Raffinot, "Flexible pattern
matching in strings", 2002): follow edges from a position to the next one are a shift, follow sets of many positions are
one test each, the rest are looked up by bit. A state from which every continuation matches is one state, `EVERYTHING`.

With lookarounds a thread carries the *obligations* that it has taken on: lookaheads still to be decided, each a
set of threads of its own that must (or must not) come to an end. A configuration is a set of (obligations, positions), with
what a smaller set of obligations makes needless taken out. Lookbehinds run alongside from the start of the text, as
configurations of the state; a thread asks them as it passes. Lookarounds nest, so configurations do, to a bounded depth, and
the construction ends because there are finitely many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from maskwright.compiler.regex.conditions import END, START
from maskwright.compiler.regex.positions import NO_DEMANDS, Bits, Demands, PositionAutomaton
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, intersect, partition, subtract, unite
from maskwright.compiler.regular.dfa import Dfa
from maskwright.compiler.regular.minimise import make_dfa
from maskwright.compiler.regular.subset import explore

MAX_SET_BYTES = 256 << 20
"""Memory of the states' position sets."""
EVERYTHING: Bits = -1
WIDE = 8
"""Follow sets of more positions than this are kept as one test."""
FEW = 6
"""Up to this many targets are sorted into classes one by one."""


def determinise(automaton: PositionAutomaton, budget: Budget) -> Dfa:
    """The minimal automaton of machine 0. Raises LimitExceeded by `budget` and for `MAX_SET_BYTES`."""
    table = _Table(automaton)
    if len(automaton.machines) == 1:
        return _Plain(table, budget).dfa()
    return _Looking(table, budget).dfa()


class _Table:
    """Symbol classes, and edges sorted by how they're stepped."""

    def __init__(self, automaton: PositionAutomaton) -> None:
        self.automaton = automaton
        edges = automaton.edges
        self.useful = (1 << len(automaton.sets)) - 1
        if not automaton.all_useful:
            self.useful = _useful(automaton)
            edges = [(a & self.useful, d, b & self.useful) for a, d, b in edges]
            edges = [e for e in edges if e[0] and e[2]]
        self.follow = _Follow((a, b) for a, d, b in edges if d == NO_DEMANDS)
        self.demanding = _group((a, d, b) for a, d, b in edges if d != NO_DEMANDS)
        self.classes: list[Ranges] = []
        self.masks: list[Bits] = []
        self.classes_of: list[tuple[int, ...]] = [()] * len(automaton.sets)
        self._cut()
        tails = [m.tail & self.useful for m in automaton.machines if m.tail]
        self.all_tails = sum(tails)
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

    def swallowed(self, bits: Bits, c: int) -> bool:
        """After class c: whether a machine has reached its tail in every way there is."""
        return bool(bits & self.all_tails) and any(t and t & bits == t for t in self.tails[c])

    def rest(self) -> Ranges:
        return subtract(SCALARS, unite(*self.classes))


class _Follow:
    """Unions of follow sets: `of(positions)`."""

    def __init__(self, edges: Iterable[tuple[Bits, Bits]]) -> None:
        merged: dict[Bits, Bits] = {}
        self.shift = 0
        self.wide: list[tuple[Bits, Bits]] = []
        self.single: dict[int, Bits] = {}
        for a, b in edges:
            if a << 1 == b and a & (a - 1) == 0:
                self.shift |= a
            else:
                merged[b] = merged.get(b, 0) | a
        for b, a in merged.items():
            below = b >> 1
            if below & (below - 1) == 0 and a & below:
                self.shift |= below
                a &= ~below
            if a.bit_count() > WIDE:
                self.wide.append((a, b))
            else:
                for p in _positions_of(a):
                    self.single[p] = self.single.get(p, 0) | b
        self.singles = sum(1 << p for p in self.single)

    def of(self, bits: Bits) -> Bits:
        out = (bits & self.shift) << 1
        rest = bits & self.singles
        while rest:
            low = rest & -rest
            out |= self.single[low.bit_length() - 1]
            rest ^= low
        for a, b in self.wide:
            if bits & a:
                out |= b
        return out


class _Plain:
    """States are sets of positions."""

    def __init__(self, table: _Table, budget: Budget) -> None:
        self.table, self.budget = table, budget
        self.bytes = 0

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
        self.charge(bits)
        table = self.table
        following = table.follow.of(bits)
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

    def charge(self, bits: Bits) -> None:
        self.bytes += bits.bit_length() >> 3
        if self.bytes > MAX_SET_BYTES:
            raise self.budget.exceeded("compile_memory", MAX_SET_BYTES, self.bytes)


# -- lookarounds ----------------------------------------------------------------------------------------------------

Obligation = tuple[bool, "Configuration"]
"""(negative, threads): some thread must come to an end; negative: none may."""
Obligations = frozenset[Obligation]
Configuration = frozenset[tuple[Obligations, Bits]]
Behinds = tuple[Configuration, ...]
"""The lookbehinds' configurations at a point."""

FREE: Obligations = frozenset()
DONE: Configuration = frozenset({(FREE, EVERYTHING)})
DEAD: Configuration = frozenset()
State = tuple[Configuration, Behinds]
MAX_THREADS = 20_000
"""Obligation sets in one configuration."""


class _Looking:
    """States are (the pattern's configuration, the lookbehinds' configurations)."""

    def __init__(self, table: _Table, budget: Budget) -> None:
        self.table, self.budget = table, budget
        automaton = table.automaton
        self.machines = automaton.machines
        self.behind = [i for i, m in enumerate(self.machines) if i and not m.ahead]
        self.behind_index = {m: i for i, m in enumerate(self.behind)}
        self.ends = [self._merge_ends(e) for e in automaton.ends]
        cells = automaton.cells
        self.in_cell = [0] * cells.count
        for p, cell in enumerate(automaton.cell_of):
            self.in_cell[cell] |= 1 << p
        self.cells_of_class = [
            [i for i, s in enumerate(cells.sets) if intersect(s, ranges)] for ranges in table.classes
        ]
        self.memo: dict[tuple[Configuration, Behinds], dict[int, Configuration]] = {}
        self.at_end: dict[tuple[Configuration, Behinds], bool] = {}

    @staticmethod
    def _merge_ends(ends: dict[int, list[tuple[Bits, Demands]]]) -> dict[int, list[tuple[Bits, Demands]]]:
        out = {}
        for after, found in ends.items():
            merged: dict[Demands, Bits] = {}
            for bits, demands in found:
                merged[demands] = merged.get(demands, 0) | bits
            out[after] = [(bits, demands) for demands, bits in merged.items()]
        return out

    def dfa(self) -> Dfa:
        table = self.table
        starts = [self.one(m.starts[START]) for m in self.machines]
        start = (starts[0], tuple(starts[m] for m in self.behind))
        keys, rows = explore(start, self.successors, self.budget)
        labels = [0 if self.accepts(config, behinds) else -1 for config, behinds in keys]
        return make_dfa(table.classes, rows, labels, budget=self.budget)

    @staticmethod
    def one(bits: Bits) -> Configuration:
        return frozenset({(FREE, bits)})

    def successors(self, state: State) -> Iterator[tuple[int, State]]:
        config, behinds = state
        if config == DONE:
            yield from ((c, state) for c in range(len(self.table.classes)))
            return
        for c, following in self.steps(config, behinds).items():
            if following == DONE:
                yield c, (DONE, ())
            else:
                yield c, (following, self.step_behinds(c, behinds))

    def step_behinds(self, c: int, behinds: Behinds) -> Behinds:
        """Go on with each lookbehind and begin it anew at the point reached."""
        out = []
        for m, config in zip(self.behind, behinds, strict=True):
            found: dict[Obligations, Bits] = dict(self.steps(config, behinds).get(c, DEAD))
            for cell in self.cells_of_class[c]:
                found[FREE] = found.get(FREE, 0) | self.machines[m].starts[cell]
            out.append(self.normal(found))
        return tuple(out)

    def steps(self, config: Configuration, behinds: Behinds) -> dict[int, Configuration]:
        """What a configuration becomes, by class; a class that kills it is missing. Not for `DONE`, which stays."""
        key = (config, behinds)
        known = self.memo.get(key)
        if known is None:
            known = self.memo[key] = self._steps(config, behinds)
        return known

    def _steps(self, config: Configuration, behinds: Behinds) -> dict[int, Configuration]:
        found: list[dict[Obligations, Bits]] = [{} for _ in self.table.classes]
        for obligations, bits in config:
            for extra, following in self.moves(bits, behinds):
                everything = following == EVERYTHING
                for c, mask in enumerate(self.table.masks):
                    to = EVERYTHING if everything else following & mask
                    if to:
                        self.enter(found[c], obligations | extra, to, c, behinds)
        out = {}
        for c, threads in enumerate(found):
            if threads:
                if len(threads) > MAX_THREADS:
                    raise self.budget.exceeded("lookaround_threads", MAX_THREADS, len(threads))
                out[c] = self.normal(threads)
        return out

    def enter(self, threads: dict[Obligations, Bits], before: Obligations, to: Bits, c: int, behinds: Behinds) -> None:
        """Add positions reached by class c to the threads, under what's left of their obligations."""
        after = self.discharge(before, c, behinds) if before else before
        if after is not None:
            if to != EVERYTHING and self.table.swallowed(to, c):
                to = EVERYTHING
            old = threads.get(after, 0)
            threads[after] = EVERYTHING if EVERYTHING in (old, to) else old | to

    def moves(self, bits: Bits, behinds: Behinds) -> Iterator[tuple[Obligations, Bits]]:
        """Where positions go, with the obligations that passing takes on; nothing is stepped yet."""
        if bits == EVERYTHING:
            yield FREE, EVERYTHING
            return
        yield FREE, self.table.follow.of(bits)
        for demands, edges in self.table.demanding:
            to = 0
            for a, b in edges:
                if bits & a:
                    to |= b
            if to:
                for extra in self.ask(demands, behinds):
                    yield extra, to

    def ask(self, demands: Demands, behinds: Behinds) -> list[Obligations]:
        """The ways to meet all demands at a point, each as obligations on what follows."""
        choices: list[list[Obligations]] = []
        for d in demands:
            machine = self.machines[d.look]
            if machine.ahead:
                choices.append([frozenset({(d.negative, self.one(machine.starts[d.before]))})])
                continue
            ways = self.look_back(d.look, d.before, d.after, behinds)
            if not d.negative:
                choices.append(ways)
            elif FREE in ways:
                return []
            else:
                choices.append([frozenset((True, frozenset({(way, EVERYTHING)})) for way in ways)])
        return [frozenset().union(*chosen) for chosen in product(*choices)]

    def look_back(self, look: int, before: int, after: int, behinds: Behinds) -> list[Obligations]:
        """The ways in which a lookbehind may have come to its end at a point."""
        ways: set[Obligations] = set()
        inside = self.in_cell[before]
        for obligations, bits in behinds[self.behind_index[look]]:
            for end, demands in self.ends[look].get(after, ()):
                if bits & end & inside:
                    ways.update(obligations | extra for extra in self.ask(demands, behinds))
        return [w for w in ways if not any(other < w for other in ways)]

    def discharge(self, obligations: Obligations, c: int, behinds: Behinds) -> Obligations | None:
        """The obligations after class c, less those met; None when one has failed or two contradict each other."""
        out = []
        wanted = []
        unwanted = []
        for obligation in obligations:
            negative, config = obligation
            after = DONE if config == DONE else self.steps(config, behinds).get(c, DEAD)
            if after == (DONE if negative else DEAD):
                return None
            if after != (DEAD if negative else DONE):
                out.append(obligation if after is config else (negative, after))
                (unwanted if negative else wanted).append(after)
        if wanted and unwanted and not set(wanted).isdisjoint(unwanted):
            return None
        return frozenset(out)

    def normal(self, found: dict[Obligations, Bits]) -> Configuration:
        """Without positions that need fewer obligations elsewhere; `DONE` when one has ended with none."""
        if found.get(FREE) == EVERYTHING:
            return DONE
        out: list[tuple[Obligations, Bits]] = []
        for obligations, bits in sorted(found.items(), key=lambda item: len(item[0])):
            for fewer, more in out:
                if bits and fewer <= obligations:
                    bits = 0 if more == EVERYTHING else bits if bits == EVERYTHING else bits & ~more
            if bits:
                out.append((obligations, bits))
        return frozenset(out)

    # -- the end of the text -------------------------------------------------------------------------------------

    def accepts(self, config: Configuration, behinds: Behinds) -> bool:
        """Whether some thread may end here."""
        key = (config, behinds)
        known = self.at_end.get(key)
        if known is None:
            known = self.at_end[key] = any(self.thread_ends(o, bits, behinds) for o, bits in config)
        return known

    def thread_ends(self, obligations: Obligations, bits: Bits, behinds: Behinds) -> bool:
        if not self.met(obligations, behinds):
            return False
        if bits == EVERYTHING:
            return True
        for ends in self.ends:
            for end, demands in ends.get(END, ()):
                if bits & end and any(self.met(way, behinds) for way in self.ask(demands, behinds)):
                    return True
        return False

    def met(self, obligations: Obligations, behinds: Behinds) -> bool:
        return all(self.accepts(config, behinds) is not negative for negative, config in obligations)


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


def _positions_of(bits: Bits) -> Iterator[int]:
    if bits.bit_count() > FEW:
        yield from (p for p, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")
        return
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
