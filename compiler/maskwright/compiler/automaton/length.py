"""How long the texts of an automaton can be: whether there's a longest, and the shortest.

A text can be longer than any bound exactly when a cycle is reachable in the graph over controls whose edges are: a byte
that stays in the frame; a byte that calls, to the control entered; and a whole call, to each control that it can
return to. (Every edge reads at least one byte; a cycle through calls alone is nesting without bound.) Where a return
pushes, as a grammar's do, it's a node too: what it enters, and the returns that follow, are its edges. Which verdicts a
control can return is a least fixpoint, computed together with the least number of bytes to each of them. Without a
cycle the longest text is the longest path, by dynamic programming over the same graph.

Frames of a pack aren't cut to their callers, so a loop that no caller can use counts as one: "unbounded" may be said
of a text that isn't, "bounded" never wrongly.

Cost: a few visits of every control and edge that's reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, Move, initial, step

FAR = 1 << 62
"""Longer texts than this aren't told apart."""
MAX_SEARCHED = 20_000
"""Configurations looked at for a text that leads to the loop."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What makes texts unbounded: "nesting" or the name of the frame that goes round ("string", "number", "array", …),
    the place in the source that caused it, and (None: not found quickly) the shortest text that leads there."""

    name: str
    pointer: str
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Length:
    """`least` and `most` bytes of a text; `most` is None exactly when there's a `loop`."""

    least: int
    most: int | None
    loop: Loop | None


def measure_length(a: ByteAutomaton) -> Length:
    """The bounds on texts of `a`, which is specialised and has a start."""
    graph = _Graph(a)
    least = graph.least[a.start] if a.start is not None else {}
    shortest = min((n for v, n in least.items() if v in a.accepting_verdicts), default=0)
    cycles = graph.cycles()
    if cycles:
        return Length(shortest, None, _first(a, graph, cycles))
    return Length(shortest, graph.longest(), None)


class _Graph:
    """Reachable controls: their moves, and the least bytes to each verdict that they can return."""

    def __init__(self, a: ByteAutomaton) -> None:
        self.a = a
        self.parent: dict[int, int] = {}
        self._moves: dict[int, tuple[Move, ...]] = {}
        self._back: dict[Move, dict[int, int]] = {}
        self._most: dict[Move, dict[int, int]] = {}
        self._pushing: list[Move] = []
        self._numbers: dict[Move, int] = {}
        self.order = self._reach()
        self.least: dict[int, dict[int, int]] = {c: {} for c in self.order}
        self._settle()

    def moves(self, c: int) -> tuple[Move, ...]:
        found = self._moves.get(c)
        if found is None:
            found = self._moves[c] = tuple(dict.fromkeys(e.move for e in self.a.edges_of(c)))
        return found

    def _targets(self, m: Move) -> Iterator[int]:
        """Every control that a move can lead to, whatever is returned. A return may push, and come to itself again."""
        work, seen = [m], set[Move]()
        while work:
            m = work.pop()
            if m in seen:
                continue
            seen.add(m)
            yield m.target
            for s in m.pushes:
                work += [r for r in self.a.symbol(s).returns if r is not None]

    def _reach(self) -> list[int]:
        """In postorder: what a control leads to comes before it where there's no cycle."""
        assert self.a.start is not None
        out: list[int] = []
        seen = {self.a.start}
        path = [(self.a.start, self._next(self.a.start))]
        while path:
            c, below = path[-1]
            t = next((t for t in below if t not in seen), None)
            if t is None:
                out.append(c)
                path.pop()
                continue
            seen.add(t)
            self.parent[t] = c
            path.append((t, self._next(t)))
        return out

    def _next(self, c: int) -> Iterator[int]:
        return (t for m in self.moves(c) for t in self._targets(m))

    def _settle(self) -> None:
        changed = True
        while changed:
            changed = False
            for c in self.order:
                found = self._returns(c)
                if found != self.least[c]:
                    self.least[c], changed = found, True
            known = len(self._back)
            for r in tuple(self._back):
                found = self.leave(r, self.least)
                if found != self._back[r]:
                    self._back[r], changed = found, True
            changed = changed or len(self._back) > known

    def _returns(self, c: int) -> dict[int, int]:
        out: dict[int, int] = {}
        if self.a.verdict_of(c) >= 0:
            out[self.a.verdict_of(c)] = 0
        for m in self.moves(c):
            left = self.leave(m, self.least) if m.pushes else {m.target: 0}
            for target, n in left.items():
                for v, more in self.least[target].items():
                    if out.get(v, FAR) > n + more + 1:
                        out[v] = n + more + 1
        return out

    def leave(self, m: Move, by: dict[int, dict[int, int]], most: bool = False) -> dict[int, int]:
        """The controls of this frame that a move comes back to, with the bytes read in calls on the way."""
        pick = max if most else min
        now = {m.target: 0}
        for s in reversed(m.pushes):
            after: dict[int, int] = {}
            for c, n in now.items():
                for v, more in by[c].items():
                    r = self.a.symbol(s).returns[v]
                    for t, inside in self._inside(r, most).items():
                        total = n + more + inside
                        after[t] = pick(after[t], total) if t in after else total
            now = after
        return now

    def _inside(self, r: Move | None, most: bool) -> dict[int, int]:
        """`leave` of a return. One that pushes may need itself: its least is part of the fixpoint, as far as that is,
        and its most is known before it's needed, where there's no cycle."""
        if r is None:
            return {}
        if not r.pushes:
            return {r.target: 0}
        return self._most[r] if most else self._back.setdefault(r, {})

    def successors(self, node: int) -> set[int]:
        """What a control's moves enter and come back to. A return that pushes is a node of its own, below 0, since a
        loop may be of returns alone, as in a left-recursive grammar."""
        moves = self.moves(node) if node >= 0 else (self._pushing[-1 - node],)
        out = set[int]()
        for m in moves:
            now = {m.target}
            for s in reversed(m.pushes):
                out |= now
                returns = [self.a.symbol(s).returns[v] for c in now for v in self.least[c]]
                out.update(self._node(r) for r in returns if r is not None)
                now = {t for r in returns for t in self._inside(r, False)}
            out |= now
        return out

    def _node(self, r: Move) -> int:
        if not r.pushes:
            return r.target
        if r not in self._numbers:
            self._numbers[r] = -1 - len(self._pushing)
            self._pushing.append(r)
        return self._numbers[r]

    def cycles(self) -> list[set[int]]:
        """The controls of each strongly connected component that has a cycle."""
        components = _components(self.a.start or 0, self.successors)
        cyclic = (c for c in components if len(c) > 1 or c[0] in self.successors(c[0]))
        return [{n if n >= 0 else self._pushing[-1 - n].target for n in component} for component in cyclic]

    def longest(self) -> int:
        """The most bytes of a text; there's no cycle, so postorder has every value when it's needed."""
        by: dict[int, dict[int, int]] = {}
        for component in _components(self.a.start or 0, self.successors):
            c = component[0]
            if c < 0:
                r = self._pushing[-1 - c]
                self._most[r] = self.leave(r, by, most=True)
                continue
            out = by[c] = {}
            if self.a.verdict_of(c) >= 0:
                out[self.a.verdict_of(c)] = 0
            for m in self.moves(c):
                for target, n in self.leave(m, by, most=True).items():
                    for v, more in by[target].items():
                        out[v] = min(FAR, max(out.get(v, 0), n + more + 1))
        assert self.a.start is not None
        return max((n for v, n in by[self.a.start].items() if v in self.a.accepting_verdicts), default=0)


def _components(start: int, successors: Callable[[int], set[int]]) -> list[list[int]]:
    """Strongly connected components (Tarjan 1972, with an explicit stack), those without successors first."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    out: list[list[int]] = []

    def enter(c: int) -> tuple[int, Iterator[int]]:
        index[c] = low[c] = len(index)
        open_.append(c)
        is_open.add(c)
        return c, iter(sorted(successors(c)))

    path = [enter(start)]
    while path:
        c, below = path[-1]
        t = next(below, None)
        if t is None:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[c])
            if low[c] == index[c]:
                at = open_.index(c)
                out.append(open_[at:])
                is_open.difference_update(open_[at:])
                del open_[at:]
        elif t not in index:
            path.append(enter(t))
        elif t in is_open:
            low[c] = min(low[c], index[t])
    return out


def _first(a: ByteAutomaton, graph: _Graph, cycles: list[set[int]]) -> Loop:
    """The loop that the shortest text leads to; any, when no text is found quickly."""
    of = {c: cycle for cycle in cycles for c in cycle}
    found = _shortest_to(a, of.keys())
    c, after = found or (min(of, key=lambda c: (c < a.first_control, c)), None)
    cycle = of[c]
    nested = any(m.pushes and m.target in cycle for x in cycle for m in graph.moves(x))
    c = min(cycle, key=lambda x: (x < a.first_control, x))
    name = "nesting" if nested else a.frame_info(a.frame_of(c)).name
    # A pack's frame has no place of its own: that of the frame it was called from is the nearest.
    while c < a.first_control and c in graph.parent:
        c = graph.parent[c]
    return Loop(name, a.frame_info(a.frame_of(c)).pointer, after)


def _shortest_to(a: ByteAutomaton, controls: Container[int]) -> tuple[int, bytes] | None:
    """A control of these and a shortest text that leads to it; breadth-first over configurations."""
    work: deque[tuple[Configuration, bytes]] = deque([(initial(a), b"")])
    seen = {work[0][0]}
    while work:
        config, text = work.popleft()
        if config[0] in controls:
            return config[0], text
        for byte in _bytes_on(a, config):
            after = step(a, config, byte)
            if after is not None and after not in seen:
                if len(seen) >= MAX_SEARCHED:
                    return None
                seen.add(after)
                work.append((after, text + bytes([byte])))
    return None


def _bytes_on(a: ByteAutomaton, config: Configuration) -> list[int]:
    """One byte of each way on: of the control's own edges, and of those that a return leads to."""
    control, stack = config
    out = [e.low for e in a.edges_of(control)]
    while stack and a.verdict_of(control) >= 0:
        move = a.symbol(stack[-1]).returns[a.verdict_of(control)]
        if move is None:
            break
        control, stack = move.target, stack[:-1] + move.pushes
        out += [e.low for e in a.edges_of(control)]
    return sorted(set(out))
