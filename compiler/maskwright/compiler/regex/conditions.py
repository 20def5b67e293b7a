"""What must hold at a point of the text for a path that consumes nothing: conditions, and the kinds of neighbours.

`^`, `$`, `\\b` and their relatives look at the characters beside a point only. The alphabet is cut into *cells*
that no such assertion of the pattern tells apart; the neighbour before is START or a character of a cell, the one
after is END or a character of a cell. So such an assertion is a set of (before, after) pairs, held as the bits of
an int, and conjunction is `&`. Python's `$` also looks at whether a newline is the text's last character: then the
newlines are two cells, "followed by the end" and "not", and pairs that contradict themselves are taken out of every
set.

A lookaround is an *atom*, positive or negative. A condition is a disjunction of (atoms that must hold, pairs) and
is interned: conditions are small ints, `NEVER` and `ALWAYS` among them, so that patterns without assertions pay
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.compiler.regex.tree import Point, PointKind
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, contains, intersect, partition

NEVER = 0
ALWAYS = 1
START = 0
END = 0
Atoms = frozenset[int]
"""Lookarounds that must hold: 2 * number, plus 1 when negative."""
Terms = tuple[tuple[Atoms, int], ...]
NO_ATOMS: Atoms = frozenset()


class Cells:
    """The cells of a pattern's alphabet: numbers 1..n, as 0 stands for START and END."""

    def __init__(self, points: Iterable[Point]) -> None:
        found = list(points)
        sets = {p.ranges for p in found if p.ranges}
        final = [p.ranges for p in found if p.kind is PointKind.FINAL_END]
        cells = [ranges for ranges, _ in partition([SCALARS, *sorted(sets)])]
        self.sets: list[Ranges] = [(), *cells]
        self.last = 0
        """The cell of a newline that ends the text, or 0; it has the characters of `self.newline`."""
        self.newline = 0
        if final:
            self.newline = next(i for i, c in enumerate(self.sets) if c and intersect(c, final[0]))
            self.last = len(self.sets)
            self.sets.append(self.sets[self.newline])
        self.count = len(self.sets)
        self.full = sum(1 << self.pair(a, b) for a in range(self.count) for b in range(self.count) if self.valid(a, b))

    def pair(self, before: int, after: int) -> int:
        return before * self.count + after

    def valid(self, before: int, after: int) -> bool:
        if self.last and before == self.last:
            return after == END
        return not (self.last and before == self.newline and after == END)

    def holds(self, kind: PointKind, point: Point, before: int, after: int) -> bool:
        """Whether an assertion holds between two neighbours."""
        if kind is PointKind.TEXT_START:
            return before == START
        if kind is PointKind.TEXT_END:
            return after == END
        if kind is PointKind.LINE_START:
            return before == START or self.inside(before, point.ranges)
        if kind is PointKind.LINE_END:
            return after == END or self.inside(after, point.ranges)
        if kind is PointKind.FINAL_END:
            return after == END or after == self.last
        if point.nonempty and before == START and after == END:
            return False
        differ = self.inside(before, point.ranges) != self.inside(after, point.ranges)
        return differ is (kind is PointKind.WORD)

    def inside(self, cell: int, ranges: Ranges) -> bool:
        """Cells are inside a set or apart from it; START and END are in none."""
        return cell != 0 and contains(ranges, self.sets[cell][0][0])

    def pairs(self, point: Point) -> int:
        """The pairs between which an assertion holds."""
        span = range(self.count)
        return self.full & sum(1 << self.pair(a, b) for a in span for b in span if self.holds(point.kind, point, a, b))

    def row(self, pairs: int, before: int) -> list[int]:
        """The neighbours after that go with one before."""
        return [b for b in range(self.count) if pairs >> self.pair(before, b) & 1]

    def split(self, ranges: Ranges) -> list[tuple[int, Ranges]]:
        """A set cut by cell; what's outside the alphabet is dropped."""
        if ranges == SCALARS:
            return [(i, cell) for i, cell in enumerate(self.sets) if cell]
        found = ((i, intersect(ranges, cell)) for i, cell in enumerate(self.sets) if cell)
        return [(i, part) for i, part in found if part]


class Conditions:
    """Interned disjunctions over one `Cells`."""

    def __init__(self, full: int) -> None:
        self.full = full
        self.terms: list[Terms] = [(), ((NO_ATOMS, full),)]
        self.known: dict[Terms, int] = {t: i for i, t in enumerate(self.terms)}
        self.memo: dict[tuple[int, int, bool], int] = {}

    def of_pairs(self, pairs: int) -> int:
        return self._intern({NO_ATOMS: pairs})

    def of_atom(self, atom: int) -> int:
        return self._intern({frozenset({atom}): self.full})

    def both(self, one: int, two: int) -> int:
        if one == ALWAYS or two == NEVER:
            return two
        if two == ALWAYS or one == NEVER:
            return one
        key = (one, two, True)
        if key not in self.memo:
            found: dict[Atoms, int] = {}
            for a, p in self.terms[one]:
                for b, q in self.terms[two]:
                    atoms = a | b
                    if not any(x ^ 1 in atoms for x in atoms):
                        found[atoms] = found.get(atoms, 0) | (p & q)
            self.memo[key] = self._intern(found)
        return self.memo[key]

    def either(self, one: int, two: int) -> int:
        if one in (two, ALWAYS) or two == NEVER:
            return one
        if one == NEVER or two == ALWAYS:
            return two
        key = (one, two, False)
        if key not in self.memo:
            found = dict(self.terms[one])
            for atoms, pairs in self.terms[two]:
                found[atoms] = found.get(atoms, 0) | pairs
            self.memo[key] = self._intern(found)
        return self.memo[key]

    def _intern(self, terms: dict[Atoms, int]) -> int:
        """Terms without those that another term, of fewer atoms, makes needless."""
        kept: list[tuple[Atoms, int]] = []
        for atoms, pairs in sorted(terms.items(), key=lambda t: (len(t[0]), sorted(t[0]))):
            for fewer, more in kept:
                if fewer <= atoms:
                    pairs &= ~more
            if pairs:
                kept.append((atoms, pairs))
        key = tuple(kept)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.terms)
            self.terms.append(key)
        return found
