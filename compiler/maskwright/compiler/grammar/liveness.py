"""Cut what can't finish, per context.

    reach(c)       = verdicts with which the level that control c starts in can end       (least fixpoint;
                   pre* of a pushdown system)
    through(s, v)  = the same, after verdict v over stack symbol s
    usable(s, U)   = { v : through(s, v) meets U }      verdicts that symbol s can take when U can be used
                   below it

A control is copied for each set of verdicts that its context can use, cut down to those it can reach; so is
a symbol. Every configuration that's reached in the result can be completed. All controls are of one frame:
what is pushed is always taken off by the same frame.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maskwright.compiler.automaton.ir import Edge, Move
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded, out_of_time
from maskwright.compiler.grammar.machine import Machine, Stack, Transition
from maskwright.compiler.options import Limits

Bits = int
Path = tuple[Stack, int]
"""What's pushed, and the control after it."""


@dataclass(frozen=True, slots=True)
class Live:
    """The live part, numbered from 0 with the start first; verdicts are the machine's.

    `controls`, `symbols`: what they were in the machine.
    """

    controls: list[int]
    edges: list[tuple[Edge, ...]]
    verdict: list[int]
    symbols: list[int]
    returns: list[dict[int, Move]]


def cut_dead(m: Machine, limits: Limits | None = None, deadline: float | None = None) -> Live:
    """The live part of a machine. Raises CompileError (UNSATISFIABLE) when there's none, LimitExceeded."""
    return _Cut(m, limits or Limits(), deadline).run()


def cut_bytes(m: Machine, spellable: int) -> list[int]:
    """Takes the transitions on bytes that aren't in `spellable` (as bits) out of the machine; returns those
    bytes.
    """
    missing: set[int] = set()
    if spellable != (1 << 256) - 1:
        for c, edges in enumerate(m.edges):
            lost = [b for t in edges for b in range(t.low, t.high + 1) if not spellable >> b & 1]
            if lost:
                missing.update(lost)
                m.edges[c] = [part for t in edges for part in _spelled(t, spellable)]
    return sorted(missing)


def _spelled(t: Transition, spellable: int) -> Iterator[Transition]:
    low = -1
    for b in range(t.low, t.high + 2):
        good = b <= t.high and spellable >> b & 1
        if good and low < 0:
            low = b
        elif not good and low >= 0:
            yield Transition(low, b - 1, t.pushes, t.target)
            low = -1


class _Reach:
    """The fixpoint, propagating differences.

    Nodes: controls 0..n-1; a node per (symbol, verdict) return; a node per call (symbol, node called), whose
    value is the union of the symbol's returns over the verdicts in the called node's value.
    """

    def __init__(self, m: Machine) -> None:
        self.m = m
        self.n = len(m.edges)
        self.pairs = [(s, v) for s, row in m.returns.items() for v in row]
        self.place = {pair: self.n + i for i, pair in enumerate(self.pairs)}
        self.keys: dict[int, Bits] = {s: sum(1 << v for v in row) for s, row in m.returns.items()}
        size = self.n + len(self.pairs)
        self.value: list[Bits] = [0] * size
        self.delta: list[Bits] = [0] * size
        self.into: list[list[int]] = [[] for _ in range(size)]
        """Nodes that take over a node's value as it is."""
        self.callers: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        """(symbol, call node) of the calls whose called node this is."""
        self.calls: dict[tuple[int, int], int] = {}
        self.work: deque[int] = deque()

    def run(self) -> list[Bits]:
        m = self.m
        for c, edges in enumerate(m.edges):
            for path in dict.fromkeys((t.pushes, t.target) for t in edges):
                self.into[self.node(path)].append(c)
        for s, v in self.pairs:
            self.into[self.node(m.returns[s][v])].append(self.place[s, v])
        for c, v in enumerate(m.verdict):
            if v >= 0:
                self.add(c, 1 << v)
        while self.work:
            self.spread(self.work.popleft())
        return self.value

    def node(self, path: Path) -> int:
        pushes, node = path
        for s in reversed(pushes):
            found = self.calls.get((s, node))
            if found is None:
                found = self.calls[s, node] = len(self.value)
                for table in (self.value, self.delta):
                    table.append(0)
                self.into.append([])
                self.callers.append([])
                self.callers[node].append((s, found))
            node = found
        return node

    def add(self, node: int, bits: Bits) -> None:
        new = bits & ~self.value[node]
        if new:
            if not self.delta[node]:
                self.work.append(node)
            self.delta[node] |= new

    def spread(self, node: int) -> None:
        new, self.delta[node] = self.delta[node], 0
        self.value[node] |= new
        for n in self.into[node]:
            self.add(n, new)
        for s, call in self.callers[node]:
            for v in ones(new & self.keys.get(s, 0)):
                r = self.place[s, v]
                self.into[r].append(call)
                self.add(call, self.value[r])


def ones(bits: Bits) -> list[int]:
    """The positions of the bits that are set."""
    out = []
    while bits:
        low = bits & -bits
        out.append(low.bit_length() - 1)
        bits ^= low
    return out


class _Cut:
    def __init__(self, m: Machine, limits: Limits, deadline: float | None) -> None:
        self.m, self.limits, self.deadline = m, limits, deadline
        r = _Reach(m)
        value = r.run()
        self.reach = value[: r.n]
        self.over: dict[int, dict[int, Bits]] = defaultdict(dict)
        for i, (s, v) in enumerate(r.pairs):
            self.over[s][v] = value[r.n + i]
        self.symbol_reach = {s: _union(row.values()) for s, row in self.over.items()}
        self.usable_memo: dict[tuple[int, Bits], Bits] = {}
        self.controls: dict[tuple[int, Bits], int] = {}
        self.order: list[tuple[int, Bits]] = []
        self.symbols: dict[tuple[int, Bits], int] = {}
        self.symbol_order: list[tuple[int, Bits]] = []
        self.edges: list[tuple[Edge, ...]] = []
        self.verdict: list[int] = []

    def run(self) -> Live:
        m = self.m
        accept = 1 << m.verdict[m.accept]
        if not self.reach[m.start] & accept:
            raise CompileError(Diagnostic(Code.UNSATISFIABLE, "no text is in the language"))
        self.control(m.start, accept)
        returns: list[dict[int, Move]] = []
        done = 0
        while done < len(self.order) or len(returns) < len(self.symbol_order):
            if done < len(self.order):
                self.expand(*self.order[done])
                done += 1
            else:
                returns.append(self.returns(*self.symbol_order[len(returns)]))
        return Live(
            [c for c, _ in self.order],
            self.edges,
            self.verdict,
            [s for s, _ in self.symbol_order],
            returns,
        )

    def usable(self, s: int, use: Bits) -> Bits:
        found = self.usable_memo.get((s, use))
        if found is None:
            found = sum(1 << v for v, bits in self.over.get(s, {}).items() if bits & use)
            self.usable_memo[s, use] = found
        return found

    def control(self, c: int, use: Bits) -> int:
        key = (c, use & self.reach[c])
        found = self.controls.get(key)
        if found is None:
            found = self.controls[key] = len(self.order)
            self.check(found)
            self.order.append(key)
        return found

    def check(self, n: int) -> None:
        if n >= self.limits.states:
            raise LimitExceeded("states", self.limits.states, n + 1, "liveness")
        if self.deadline is not None and n % 256 == 0 and now() > self.deadline:
            raise out_of_time(self.limits.compile_seconds, self.deadline, "liveness")

    def symbol(self, s: int, use: Bits) -> int:
        key = (s, use & self.symbol_reach.get(s, 0))
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = len(self.symbol_order)
            self.symbol_order.append(key)
        return found

    def move(self, path: Path, use: Bits) -> Move | None:
        """The path in its context; None when it can't finish."""
        pushes, target = path
        uses = [use]
        for s in pushes:
            uses.append(self.usable(s, uses[-1]))
        if not self.reach[target] & uses[-1]:
            return None
        symbols = tuple(self.symbol(s, u) for s, u in zip(pushes, uses, strict=False))
        return Move(self.control(target, uses[-1]), symbols)

    def expand(self, c: int, use: Bits) -> None:
        verdict = self.m.verdict[c]
        live = verdict >= 0 and bool(use >> verdict & 1)
        edges: list[Edge] = []
        moves: dict[Path, Move | None] = {}
        for t in self.m.edges[c]:
            path = (t.pushes, t.target)
            if path not in moves:
                moves[path] = self.move(path, use)
            move = moves[path]
            if move is not None:
                edges.append(Edge(t.low, t.high, move))
        self.edges.append(tuple(edges))
        self.verdict.append(verdict if live else -1)

    def returns(self, s: int, use: Bits) -> dict[int, Move]:
        out = {}
        for v, path in self.m.returns[s].items():
            move = self.move(path, use) if self.over[s][v] & use else None
            if move is not None:
                out[v] = move
        return out


def _union(parts: Iterable[Bits]) -> Bits:
    out = 0
    for bits in parts:
        out |= bits
    return out
