"""From a tree to a position automaton (Glushkov, "The abstract theory of automata", 1961), with conditions on its
edges.

Every set of characters in the tree is a position (one per cell that it meets); a state is the position of the
character just read. First, last and follow sets are ints with a bit per position, and follow edges are kept as
products of two sets, so that long alternations and repeats of optional parts stay small. A repeat is its item laid
out again for each count.

A lookaround's body is a machine of its own in the same numbering, shared by all copies of the lookaround: it's a
statement about a point of the text, whoever asks. A lookahead's body is followed by a *tail*, a loop over any
character. Each machine starts in pseudo-positions, one per cell that the character before may be in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from maskwright.compiler.regex.conditions import ALWAYS, END, NEVER, START, Atoms, Cells, Conditions
from maskwright.compiler.regex.survey import copies, survey
from maskwright.compiler.regex.tree import (
    Alternation,
    Chars,
    Concat,
    Look,
    Node,
    Point,
    Repeat,
    Span,
    children,
)
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.codepoints import SCALARS, Ranges

MAX_TERMS = 2_000

Bits = int
Conditional = dict[int, Bits]
"""Positions by the condition under which they're meant."""


@dataclass(slots=True)
class Fragment:
    """A part of the pattern: when it may be empty, where it may begin and end."""

    empty: int
    first: Conditional
    last: Conditional


@dataclass(frozen=True, slots=True)
class Demand:
    """A lookaround that must hold where an edge passes, between characters of the cells `before` and `after`."""

    look: int
    negative: bool
    before: int
    after: int


Demands = frozenset[Demand]
NO_DEMANDS: Demands = frozenset()


@dataclass(slots=True)
class Machine:
    """The main pattern or a lookaround's body. `starts[cell]`: the pseudo-position after a character of that cell.

    `ahead`: any text may follow, by the positions of `tail`.
    """

    starts: list[Bits]
    tail: Bits
    ahead: bool = True
    fragment: Fragment | None = None


@dataclass(slots=True)
class PositionAutomaton:
    """`sets` and `cell_of`: of each position. `edges`: (from, demands, to). `ends[m][cell]`: where machine m may end.

    `all_useful`: no condition or empty set can have cut a position off from the end.
    """

    cells: Cells
    sets: list[Ranges] = field(default_factory=list)
    cell_of: list[int] = field(default_factory=list)
    edges: list[tuple[Bits, Demands, Bits]] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    ends: list[dict[int, list[tuple[Bits, Demands]]]] = field(default_factory=list)
    all_useful: bool = True
    copies: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Optional copies of repeats: (positions of a copy, copies) and where they begin."""


def build_positions(root: Node, search: bool, budget: Budget) -> tuple[PositionAutomaton, Span]:
    """The position automaton of a tree without `Atomic`; machine 0 is the pattern. Raises LimitExceeded.

    Also gives the span of the repeat that costs most, for diagnostics of later passes.
    search: texts that contain a match; otherwise the whole text must be one.
    """
    found = survey(root, budget)
    built = _Builder(Cells(found.points), budget.at(span=found.costliest)).build(root, search)
    return built, found.costliest


class _Builder:
    def __init__(self, cells: Cells, budget: Budget) -> None:
        self.cells, self.budget = cells, budget
        self.out = PositionAutomaton(cells)
        self.conditions = Conditions(cells.full)
        self.edges: list[tuple[Bits, int, Bits]] = []
        self.splits: dict[Ranges, list[tuple[int, Ranges]]] = {}
        self.looks: dict[int, int] = {}
        self.points: dict[tuple[object, ...], int] = {}
        self.pending: list[Look] = []
        self.bases: list[int] = []
        """Where the open repeats' positions begin."""

    def build(self, root: Node, search: bool) -> PositionAutomaton:
        main = self.machine(ahead=search)
        self.start(main, [START])
        before = self.loop_any() if search else Fragment(ALWAYS, {}, {})
        self.fill(main, self.sequence(before, self.layout(root)))
        while self.pending:
            look = self.pending.pop()
            machine = self.out.machines[self.looks[id(look)]]
            self.start(machine, range(self.cells.count))
            self.fill(machine, self.layout(look.body))
        return self.resolve()

    def machine(self, ahead: bool) -> Machine:
        m = Machine([0] * self.cells.count, 0, ahead)
        self.out.machines.append(m)
        return m

    def start(self, m: Machine, cells: Iterable[int]) -> None:
        """Add the pseudo-positions; for a lookaround only when its turn comes, so that copies stay alike."""
        for cell in cells:
            m.starts[cell] = self.position((), cell)

    def position(self, ranges: Ranges, cell: int) -> Bits:
        self.out.sets.append(ranges)
        self.out.cell_of.append(cell)
        return 1 << (len(self.out.sets) - 1)

    def fill(self, m: Machine, fragment: Fragment) -> None:
        """Put a machine's body between its starts and, where the text may go on, its tail."""
        if m.ahead:
            tail = self.loop_any()
            m.tail = _all(tail.last)
            fragment = self.sequence(fragment, tail)
        starts = Fragment(NEVER, {}, {ALWAYS: sum(m.starts)})
        m.fragment = self.sequence(starts, fragment)

    # -- laying out ----------------------------------------------------------------------------------------------

    def layout(self, root: Node) -> Fragment:
        """The tree's fragment, by a post-order walk on an explicit stack."""
        work: list[tuple[Node, bool]] = [(root, False)]
        done: list[Fragment] = []
        while work:
            node, ready = work.pop()
            if ready:
                self.combine(node, done)
            elif isinstance(node, Chars):
                done.append(self.chars(node.ranges))
            elif isinstance(node, Point):
                self.out.all_useful = False
                done.append(Fragment(self.point(node), {}, {}))
            elif isinstance(node, Look):
                self.out.all_useful = False
                done.append(Fragment(self.look(node), {}, {}))
            else:
                work.append((node, True))
                if isinstance(node, Repeat):
                    self.bases.append(len(self.out.sets))
                    work.extend([(node.item, False)] * copies(node))
                else:
                    work.extend((c, False) for c in reversed(children(node)))
        return done[0]

    def combine(self, node: Node, done: list[Fragment]) -> None:
        n = copies(node) if isinstance(node, Repeat) else len(children(node))
        parts = done[len(done) - n :]
        del done[len(done) - n :]
        if isinstance(node, Concat):
            whole = Fragment(ALWAYS, {}, {})
            for part in parts:
                whole = self.sequence(whole, part)
        elif isinstance(node, Alternation):
            whole = Fragment(NEVER, {}, {})
            for part in parts:
                whole.empty = self.conditions.either(whole.empty, part.empty)
                _add(whole.first, part.first)
                _add(whole.last, part.last)
        else:
            assert isinstance(node, Repeat)
            whole = self.repeat(node, parts)
        done.append(whole)

    def chars(self, ranges: Ranges) -> Fragment:
        split = self.splits.get(ranges)
        if split is None:
            split = self.splits[ranges] = self.cells.split(ranges)
        bits = sum(self.position(part, cell) for cell, part in split)
        if not bits:
            self.out.all_useful = False
            return Fragment(NEVER, {}, {})
        return Fragment(NEVER, {ALWAYS: bits}, {ALWAYS: bits})

    def point(self, node: Point) -> int:
        key = (node.kind, node.ranges, node.nonempty)
        if key not in self.points:
            self.points[key] = self.conditions.of_pairs(self.cells.pairs(node))
        return self.points[key]

    def look(self, node: Look) -> int:
        number = self.looks.get(id(node))
        if number is None:
            number = self.looks[id(node)] = len(self.out.machines)
            self.machine(node.ahead)
            self.pending.append(node)
        return self.conditions.of_atom(2 * number + node.negative)

    def loop_any(self) -> Fragment:
        one = self.chars(SCALARS)
        self.connect(one.last, one.first)
        return Fragment(ALWAYS, one.first, one.last)

    def sequence(self, one: Fragment, two: Fragment) -> Fragment:
        """The first, then the second. The first is used up: its parts may be taken over."""
        self.connect(one.last, two.first)
        first, last = one.first, two.last
        if one.empty:
            first = dict(first)
            _add(first, self.under(two.first, one.empty))
        if two.empty:
            last = dict(last)
            _add(last, self.under(one.last, two.empty))
        return Fragment(self.both(one.empty, two.empty), first, last)

    def repeat(self, node: Repeat, parts: list[Fragment]) -> Fragment:
        low = node.low
        if parts[0].empty == ALWAYS:
            # (x|empty){n,m} is x{0,m}: the empty rounds add nothing.
            low = 0
            for part in parts:
                part.empty = NEVER
        whole = Fragment(ALWAYS, {}, {})
        self.note_copies(self.bases.pop(), len(parts), low, node.high is not None)
        first: Conditional = {}
        last: Conditional = {}
        empty = ALWAYS if low == 0 else NEVER
        for count, part in enumerate(parts, 1):
            whole = self.sequence(whole, part)
            if node.high is None and count == len(parts):
                self.connect(part.last, part.first)
            if count >= low:
                _add(last, whole.last)
                _add(first, whole.first)
                empty = self.conditions.either(empty, whole.empty)
        return Fragment(empty, first, last)

    def note_copies(self, base: int, count: int, low: int, bounded: bool) -> None:
        """Remember the copies after which the repeat may end: an earlier one can do whatever a later one can."""
        width = (len(self.out.sets) - base) // count
        free = count - max(low, 1) + 1
        if bounded and width and free > 1:
            self.out.copies.setdefault((width, free), []).append(base + (count - free) * width)

    def connect(self, last: Conditional, first: Conditional) -> None:
        for one, bits in last.items():
            for two, to in first.items():
                condition = self.both(one, two)
                if condition:
                    self.edges.append((bits, condition, to))

    def under(self, positions: Conditional, condition: int) -> Conditional:
        if condition == ALWAYS:
            return positions
        out: Conditional = {}
        for c, bits in positions.items():
            found = self.both(c, condition)
            if found:
                out[found] = out.get(found, 0) | bits
        return out

    def both(self, one: int, two: int) -> int:
        found = self.conditions.both(one, two)
        if len(self.conditions.terms[found]) > MAX_TERMS:
            raise self.budget.exceeded("lookaround_terms", MAX_TERMS, len(self.conditions.terms[found]))
        return found

    # -- conditions on edges become neighbours' cells and demands --------------------------------------------------

    def resolve(self) -> PositionAutomaton:
        out = self.out
        in_cell = [0] * self.cells.count
        for p, cell in enumerate(out.cell_of):
            in_cell[cell] |= 1 << p
        before = list(in_cell)
        after = [0, *in_cell[1:]]
        for bits, condition, to in self.edges:
            if condition == ALWAYS and not self.cells.last:
                out.edges.append((bits, NO_DEMANDS, to))
                continue
            for atoms, pairs in self.conditions.terms[condition]:
                out.edges += self.resolve_term(bits, atoms, pairs, to, before, after)
        for m in out.machines:
            assert m.fragment is not None
            out.ends.append(self.machine_ends(m.fragment.last, before))
        return out

    def resolve_term(
        self, bits: Bits, atoms: Atoms, pairs: int, to: Bits, before: list[Bits], after: list[Bits]
    ) -> Iterable[tuple[Bits, Demands, Bits]]:
        found: dict[tuple[Demands, Bits], Bits] = {}
        for cell, inside in enumerate(before):
            source = bits & inside
            if not source:
                continue
            by_demand: dict[Demands, Bits] = {}
            for b in self.cells.row(pairs, cell):
                target = to & after[b]
                if b != END and target:
                    demands = self.demands(atoms, cell, b)
                    by_demand[demands] = by_demand.get(demands, 0) | target
            for demands, target in by_demand.items():
                found[demands, target] = found.get((demands, target), 0) | source
        return [(source, demands, target) for (demands, target), source in found.items()]

    def machine_ends(self, last: Conditional, before: list[Bits]) -> dict[int, list[tuple[Bits, Demands]]]:
        out: dict[int, list[tuple[Bits, Demands]]] = {}
        for condition, bits in last.items():
            for atoms, pairs in self.conditions.terms[condition]:
                for cell, inside in enumerate(before):
                    if bits & inside:
                        for b in self.cells.row(pairs, cell):
                            out.setdefault(b, []).append((bits & inside, self.demands(atoms, cell, b)))
        return out

    def demands(self, atoms: Atoms, before: int, after: int) -> Demands:
        """A lookahead is asked without the cell after it: it sees that for itself."""
        if not atoms:
            return NO_DEMANDS
        machines = self.out.machines
        return frozenset(Demand(a >> 1, bool(a & 1), before, 0 if machines[a >> 1].ahead else after) for a in atoms)


def _all(positions: Conditional) -> Bits:
    out = 0
    for bits in positions.values():
        out |= bits
    return out


def _add(into: Conditional, more: Conditional) -> None:
    for condition, bits in more.items():
        into[condition] = into.get(condition, 0) | bits
