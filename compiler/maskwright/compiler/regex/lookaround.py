"""The subset construction with lookarounds.

A thread is a position with the *obligations* that it has taken on: lookaheads still to be decided, each a set of
threads of its own that must (or must not) come to an end. A configuration is a set of (obligations, positions),
with what a smaller set of obligations makes needless taken out. Lookbehinds run alongside from the start of the
text, as configurations that are part of the state; a thread asks them as it passes. It's the determinisation of an
alternating automaton (Chandra, Kozen and Stockmeyer, "Alternation", 1981), with negation by what must not come to
an end.

Lookarounds nest, so configurations do, to a bounded depth; there are finitely many, so the construction ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from maskwright.compiler.regex.conditions import END, START
from maskwright.compiler.regex.positions import Bits, Demands
from maskwright.compiler.regex.table import EVERYTHING, Memory, Table
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.codepoints import intersect
from maskwright.compiler.regular.dfa import Dfa
from maskwright.compiler.regular.minimise import make_dfa
from maskwright.compiler.regular.subset import explore

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


class Lookarounds:
    """States are (the pattern's configuration, the lookbehinds' configurations)."""

    def __init__(self, table: Table, budget: Budget) -> None:
        self.table, self.budget = table, budget
        self.memory = Memory(budget)
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
        self.discharged: dict[tuple[Obligations, Behinds], list[Obligations | None]] = {}
        self.free: list[Obligations | None] = [FREE] * len(table.classes)
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
        self.budget.check_time()
        found: list[dict[Obligations, Bits]] = [{} for _ in self.table.classes]
        for obligations, bits in config:
            for extra, following in self.moves(bits, behinds):
                everything = following == EVERYTHING
                before = obligations | extra
                left = self.discharge(before, behinds) if before else self.free
                for c, mask in enumerate(self.table.masks):
                    to = EVERYTHING if everything else following & mask
                    if to:
                        self.enter(found[c], left[c], to, c)
        out = {}
        for c, threads in enumerate(found):
            if threads:
                if len(threads) > MAX_THREADS:
                    raise self.budget.exceeded("lookaround_threads", MAX_THREADS, len(threads))
                out[c] = self.normal(threads)
        return out

    def enter(self, threads: dict[Obligations, Bits], after: Obligations | None, to: Bits, c: int) -> None:
        """Add positions reached by class c to the threads, under what's left of their obligations."""
        if after is not None:
            if to != EVERYTHING and self.table.swallowed(to, c):
                to = EVERYTHING
            _add(threads, after, to)

    def moves(self, bits: Bits, behinds: Behinds) -> Iterator[tuple[Obligations, Bits]]:
        """Where positions go, with the obligations that passing takes on; nothing is stepped yet."""
        if bits == EVERYTHING:
            yield FREE, EVERYTHING
            return
        yield FREE, self.table.following(bits)
        for demands, edges in self.table.demanding:
            to = 0
            for a, b in edges:
                if bits & a:
                    to |= b
            if to:
                to = self.table.prune(to)
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

    def discharge(self, obligations: Obligations, behinds: Behinds) -> list[Obligations | None]:
        """For each class what's left of the obligations; None when one has failed or two contradict each other."""
        key = (obligations, behinds)
        known = self.discharged.get(key)
        if known is None:
            known = [self._discharge(obligations, c, behinds) for c in range(len(self.table.classes))]
            self.discharged[key] = known
        return known

    def _discharge(self, obligations: Obligations, c: int, behinds: Behinds) -> Obligations | None:
        wanted: list[Configuration] = []
        unwanted: dict[Obligations, Bits] = {}
        for negative, config in obligations:
            after = DONE if config == DONE else self.steps(config, behinds).get(c, DEAD)
            if after == (DONE if negative else DEAD):
                return None
            if negative:
                for key, bits in after:
                    _add(unwanted, key, bits)
            elif after != DONE:
                wanted.append(after)
        # What none of several sets of threads may do, their union may not.
        refused = self.normal({key: self._prune(bits) for key, bits in unwanted.items()})
        if refused == DONE or (refused and any(_inside(config, unwanted) for config in wanted)):
            return None
        kept = {(False, config) for config in self._strongest(wanted)}
        return frozenset({*kept, (True, refused)} if refused else kept)

    def _strongest(self, wanted: list[Configuration]) -> list[Configuration]:
        """Without configurations that can do all that another one of the list can."""
        out: list[Configuration] = []
        for config in dict.fromkeys(wanted):
            if not any(self._implies(other, config) for other in out):
                out = [other for other in out if not self._implies(config, other)]
                out.append(config)
        return out

    def _implies(self, one: Configuration, two: Configuration) -> bool:
        """Whether all that `one` can do `two` can, as far as positions alone tell."""
        a, b = dict(one).get(FREE, 0), dict(two).get(FREE, 0)
        return len(one) == 1 and a > 0 and b > 0 and self._prune(a | b) | b == b

    def _prune(self, bits: Bits) -> Bits:
        return bits if bits == EVERYTHING else self.table.prune(bits)

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
                self.memory.charge(bits)
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


def _add(threads: dict[Obligations, Bits], obligations: Obligations, bits: Bits) -> None:
    old = threads.get(obligations, 0)
    threads[obligations] = EVERYTHING if EVERYTHING in (old, bits) else old | bits


def _inside(config: Configuration, threads: dict[Obligations, Bits]) -> bool:
    """Whether all threads of a configuration are among others."""
    return all(
        (more := threads.get(key, 0)) == EVERYTHING or (bits != EVERYTHING and bits | more == more)
        for key, bits in config
    )
