"""GBNF to a byte automaton: a recursive transition network, made deterministic with sets of rules that are
read at once.

Rules that don't recurse are laid out where they're used. A recursive rule is split into its alternatives:
those without recursion are laid out in place too; of the others, what comes before any recursion is laid out
before a call, and a tail of parts that may be empty (white space, mostly) after it; what's between is a
*core*, a frame of its own. A state is a set of positions of the layout (subset construction). Where several
cores may begin with the same bytes, the call's frame reads them all, and its verdict says which it was.

So alternatives needn't be told apart early, as long as recursion is entered and left at the same bytes
whatever the alternative. Where that doesn't hold the grammar is refused, with the rule and the byte: a byte
that may begin a recursive rule and something else; a byte that may go on in a rule and also follow it; left
recursion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from maskwright.compiler.automaton.explore import Call, Stay, explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar.gbnf_reader import Chars, Choice, Node, Ref, Repeat, Rules, Sequence, read_gbnf, refs
from maskwright.compiler.grammar.program import utf8_rows
from maskwright.compiler.options import Limits

MAX_POSITIONS = 100_000
Positions = frozenset[int]


def build_gbnf(
    text: str,
    root: str = "root",
    *,
    limits: Limits | None = None,
    deadline: float | None = None,
    library: ByteAutomaton | None = None,
) -> ByteAutomaton:
    """The automaton of a GBNF grammar, minimal and live.

    Raises CompileError (with the place, the rule, the byte), LimitExceeded. Cost: the states of the subset
    construction.
    """
    limits = limits or Limits()
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    if deadline is None:
        deadline = now() + limits.compile_seconds
    rules = read_gbnf(text)
    if root not in rules.bodies:
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, f"rule {root!r} isn't defined", detail={"rule": root}))
    network = Network(rules)
    start = network.lay_out_root(root)
    network.check_left_recursion()
    raw = explore(SetFrame(network, frozenset({start}), True), library, limits=limits, deadline=deadline)
    a = minimise(specialise(raw, limits))
    _refuse_ambiguity(a)
    return a


@dataclass(slots=True)
class Core:
    """A part of a rule that's read in a frame of its own."""

    rule: str
    body: Node
    entry: int
    end: int


@dataclass(slots=True)
class Position:
    """Ways on: without a byte; by byte; through a core."""

    jumps: list[int] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)


class Network:
    """Positions of all cores. Cores are laid out when they're first called."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.recursive = _recursive(rules)
        self.positions: list[Position] = []
        self.cores: list[Core] = []
        self.numbers: dict[tuple[str, int], int] = {}
        self.pending: list[int] = []
        self.work: list[tuple[Node, int, int, str]] = []
        self.closures: dict[Positions, Positions] = {}
        self.firsts: list[int] = []

    def new(self) -> int:
        if len(self.positions) >= MAX_POSITIONS:
            raise LimitExceeded("positions", MAX_POSITIONS, len(self.positions) + 1, "gbnf")
        self.positions.append(Position())
        return len(self.positions) - 1

    def lay_out_root(self, root: str) -> int:
        """All that the root needs; the number of its core."""
        first = self.core(root, -1, self.rules.bodies[root])
        while self.pending:
            core = self.cores[self.pending.pop()]
            self.work.append((core.body, core.entry, core.end, core.rule))
            while self.work:
                self.emit(*self.work.pop())
        self.firsts = self.find_firsts()
        return first

    def core(self, rule: str, branch: int, body: Node) -> int:
        number = self.numbers.get((rule, branch))
        if number is None:
            number = self.numbers[rule, branch] = len(self.cores)
            self.cores.append(Core(rule, body, self.new(), self.new()))
            self.pending.append(number)
        return number

    # -- layout ----------------------------------------------------------------------------------------------

    def emit(self, node: Node, entry: int, to: int, rule: str) -> None:
        if isinstance(node, Chars):
            self.chars(node, entry, to)
        elif isinstance(node, Sequence):
            at = [entry, *(self.new() for _ in node.items[1:]), to]
            if not node.items:
                self.positions[entry].jumps.append(to)
            self.work.extend((n, at[i], at[i + 1], rule) for i, n in enumerate(node.items))
        elif isinstance(node, Choice):
            self.work.extend((b, entry, to, rule) for b in node.branches)
        elif isinstance(node, Repeat):
            self.repeat(node, entry, to, rule)
        elif node.name in self.recursive:
            self.enter(node.name, entry, to, ())
        else:
            self.work.append((self.rules.bodies[node.name], entry, to, node.name))

    def chars(self, node: Chars, entry: int, to: int) -> None:
        rows = utf8_rows(node.ranges)
        at = [entry, *(self.new() for _ in rows[1:])]
        for i, row in enumerate(rows):
            self.positions[at[i]].steps += [(low, high, to if t < 0 else at[t]) for low, high, t in row]

    def repeat(self, node: Repeat, entry: int, to: int, rule: str) -> None:
        at = self.new()
        self.positions[entry].jumps.append(at)
        for _ in range(node.low):
            after = self.new()
            self.work.append((node.item, at, after, rule))
            at = after
        if node.high is None:
            loop = self.new()
            self.positions[at].jumps.append(loop)
            self.positions[loop].jumps.append(to)
            body = self.new()
            self.positions[loop].jumps.append(body)
            self.work.append((node.item, body, loop, rule))
            return
        for _ in range(node.high - node.low):
            self.positions[at].jumps.append(to)
            after = self.new()
            self.work.append((node.item, at, after, rule))
            at = after
        self.positions[at].jumps.append(to)

    def enter(self, name: str, entry: int, to: int, within: tuple[str, ...]) -> None:
        """A recursive rule: its alternatives in place, or their cores called."""
        if name in within:
            raise self.left_recursion(name)
        for i, branch in enumerate(_branches(self.rules.bodies[name])):
            if not self.has_recursion(branch):
                self.work.append((branch, entry, to, name))
                continue
            head, body, tail = self.split(branch)
            mid = to
            if tail:
                mid = self.new()
                self.work.append((Sequence(tail), mid, to, name))
            if isinstance(body, Ref) and not head:
                if body.name in self.recursive:
                    self.enter(body.name, entry, mid, (*within, name))
                else:
                    self.work.append((body, entry, mid, name))
                continue
            if isinstance(body, Ref):
                head, body = (), Sequence((*head, body))
            inner = entry
            if head:
                inner = self.new()
                self.work.append((Sequence(head), entry, inner, name))
            self.positions[inner].calls.append((self.core(name, i, body), mid))

    def split(self, branch: Node) -> tuple[tuple[Node, ...], Node, tuple[Node, ...]]:
        """A branch's beginning before any recursion, the rest, and its tail of parts that may be empty and
        don't recurse.
        """
        items = branch.items if isinstance(branch, Sequence) else (branch,)
        n = len(items)
        while n > 1 and not self.has_recursion(items[n - 1]) and self.may_be_empty(items[n - 1], ()):
            n -= 1
        first = next(i for i, item in enumerate(items) if self.has_recursion(item))
        rest = items[first:n]
        return tuple(items[:first]), (rest[0] if len(rest) == 1 else Sequence(rest)), tuple(items[n:])

    def has_recursion(self, node: Node) -> bool:
        """Whether the node leads to a recursive rule."""
        seen: set[str] = set()
        work = refs(node)
        while work:
            ref = work.pop()
            if ref.name in self.recursive:
                return True
            if ref.name not in seen:
                seen.add(ref.name)
                work += refs(self.rules.bodies[ref.name])
        return False

    def may_be_empty(self, node: Node, within: tuple[str, ...]) -> bool:
        """Of a node without recursion."""
        if isinstance(node, Chars):
            return False
        if isinstance(node, Sequence):
            return all(self.may_be_empty(n, within) for n in node.items)
        if isinstance(node, Choice):
            return any(self.may_be_empty(n, within) for n in node.branches)
        if isinstance(node, Repeat):
            return node.low == 0 or self.may_be_empty(node.item, within)
        return self.may_be_empty(self.rules.bodies[node.name], within)

    # -- sets of positions -----------------------------------------------------------------------------------

    def closure(self, found: Iterable[int]) -> Positions:
        """With all that's reached without a byte, through cores that may be empty too."""
        key = frozenset(found)
        if key not in self.closures:
            out, work = set(key), list(key)
            while work:
                p = self.positions[work.pop()]
                for t in (*p.jumps, *(to for core, to in p.calls if self.firsts[core] & 1)):
                    if t not in out:
                        out.add(t)
                        work.append(t)
            self.closures[key] = frozenset(out)
        return self.closures[key]

    def find_firsts(self) -> list[int]:
        """For each core bit 0: it may be empty; bit b + 1: it may begin with byte b. Rounds to a fixpoint."""
        self.firsts = [0] * len(self.cores)
        changed = True
        while changed:
            changed = False
            for n, core in enumerate(self.cores):
                self.closures.clear()
                inside = self.closure({core.entry})
                bits = int(core.end in inside)
                for at in inside:
                    for low, high, _ in self.positions[at].steps:
                        bits |= ((1 << high + 1) - (1 << low)) << 1
                    for called, _ in self.positions[at].calls:
                        bits |= self.firsts[called] & ~1
                if bits != self.firsts[n]:
                    self.firsts[n], changed = bits, True
        self.closures.clear()
        return self.firsts

    def check_left_recursion(self) -> None:
        """Raises CompileError when a core may call itself before it has read a byte."""
        calls = {
            n: {called for at in self.closure({core.entry}) for called, _ in self.positions[at].calls}
            for n, core in enumerate(self.cores)
        }
        state: dict[int, int] = {}
        for first in calls:
            work = [(first, iter(sorted(calls[first])))]
            while work:
                n, rest = work[-1]
                state[n] = 1
                called = next(rest, None)
                if called is None:
                    state[n] = 2
                    work.pop()
                elif state.get(called) == 1:
                    raise self.left_recursion(self.cores[called].rule)
                elif called not in state:
                    work.append((called, iter(sorted(calls[called]))))

    def left_recursion(self, rule: str) -> CompileError:
        return CompileError(
            Diagnostic(
                Code.UNSUPPORTED_GRAMMAR,
                f"rule {rule!r} is left-recursive",
                span=self.rules.spans[rule],
                detail={"rule": rule},
                hint="repeat with * or + instead",
            )
        )


@dataclass(frozen=True)
class SetFrame:
    """The frame that reads any of some cores. A state is a set of positions, with a mark before the first
    byte.
    """

    network: Network
    cores: frozenset[int]
    is_root: bool = False
    pointer: str = ""

    def __hash__(self) -> int:
        return hash((self.cores, self.is_root))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SetFrame) and (self.cores, self.is_root) == (other.cores, other.is_root)

    @property
    def name(self) -> str:
        return " or ".join(sorted({self.network.cores[c].rule for c in self.cores}))

    def start(self) -> tuple[bool, Positions]:
        return (True, self.network.closure(self.network.cores[c].entry for c in self.cores))

    def verdict(self, state: tuple[bool, Positions]) -> frozenset[int] | None:
        fresh, positions = state
        if fresh and not self.is_root:
            return None
        held = frozenset(c for c in self.cores if self.network.cores[c].end in positions)
        return held or None

    def resume(self, continuation: frozenset[tuple[int, int]], verdict: frozenset[int]) -> Any:
        found = [to for core, to in continuation if core in verdict]
        return (False, self.network.closure(found)) if found else None

    def transitions(self, state: tuple[bool, Positions]) -> Iterator[Stay | Call]:
        _, positions = state
        steps = [s for at in sorted(positions) for s in self.network.positions[at].steps]
        calls = [c for at in sorted(positions) for c in self.network.positions[at].calls]
        segments = _segments(steps)
        for low, high, targets in segments:
            yield Stay(low, high, (False, self.network.closure(targets)))
        taken = sum((1 << high + 1) - (1 << low) for low, high, _ in segments)
        for group in self.groups({core for core, _ in calls}, taken):
            yield Call(SetFrame(self.network, group), frozenset(c for c in calls if c[0] in group))

    def groups(self, cores: set[int], taken: int) -> list[frozenset[int]]:
        """Cores that share a first byte, together. Raises CompileError when one shares it with a step."""
        out: list[tuple[set[int], int]] = []
        for core in sorted(cores):
            bits = self.network.firsts[core] >> 1
            if bits & taken:
                raise self.clash(core, bits & taken)
            group = {core}
            rest = []
            for other, known in out:
                if known & bits:
                    group |= other
                    bits |= known
                else:
                    rest.append((other, known))
            out = [*rest, (group, bits)]
        return [frozenset(group) for group, _ in out]

    def clash(self, core: int, bits: int) -> CompileError:
        byte = (bits & -bits).bit_length() - 1
        rule = self.network.cores[core].rule
        return CompileError(
            Diagnostic(
                Code.UNSUPPORTED_GRAMMAR,
                f"in {self.name}, byte {chr(byte)!r} may begin recursive rule {rule!r} or something else",
                span=self.network.rules.spans[rule],
                detail={"rule": rule, "byte": byte},
                hint="let the alternatives begin with different characters",
            )
        )


def _segments(steps: list[tuple[int, int, int]]) -> list[tuple[int, int, set[int]]]:
    """Disjoint ranges of bytes with all their targets."""
    cuts = sorted({b for low, high, _ in steps for b in (low, high + 1)})
    out = []
    for low, stop in pairwise(cuts):
        targets = {t for a, b, t in steps if a <= low and stop <= b + 1}
        if targets:
            out.append((low, stop - 1, targets))
    return out


def _branches(body: Node) -> list[Node]:
    """Alternatives at the top of a body."""
    out: list[Node] = []
    work = [body]
    while work:
        node = work.pop()
        if isinstance(node, Choice):
            work.extend(reversed(node.branches))
        else:
            out.append(node)
    return out


def _recursive(rules: Rules) -> set[str]:
    """Rules that lead back to themselves."""
    direct = {name: {r.name for r in refs(body)} for name, body in rules.bodies.items()}
    out = set()
    for name in direct:
        seen: set[str] = set()
        work = list(direct[name])
        while work:
            n = work.pop()
            if n not in seen:
                seen.add(n)
                work.extend(direct[n])
        if name in seen:
            out.add(name)
    return out


def _refuse_ambiguity(a: ByteAutomaton) -> None:
    """Raises CompileError when a rule may go on with a byte that may also follow it: edges win over
    returns.
    """
    after = _after_returns(a)
    for c in a.own_controls():
        key = (a.frame_of(c), a.verdict_of(c))
        shared = after.get(key, 0) & sum((1 << e.high + 1) - (1 << e.low) for e in a.edges_of(c))
        if shared:
            byte = (shared & -shared).bit_length() - 1
            name = a.frame_info(a.frame_of(c)).name
            raise CompileError(
                Diagnostic(
                    Code.UNSUPPORTED_GRAMMAR,
                    f"byte {chr(byte)!r} may go on in rule {name!r} or follow it",
                    detail={"rule": name, "byte": byte},
                    hint="let only one of the two rules take it",
                )
            )


def _after_returns(a: ByteAutomaton) -> dict[tuple[int, int], int]:
    """(frame, verdict) -> bytes, as bits, that may follow its return, through further returns too."""
    targets: dict[tuple[int, int], set[int]] = defaultdict(set)
    for n in range(a.first_symbol, a.n_symbols):
        s = a.symbol(n)
        for v, m in enumerate(s.returns):
            if m is not None:
                targets[s.callee, v].add(m.target)
    out = dict.fromkeys(targets, 0)
    changed = True
    while changed:
        changed = False
        for key, controls in targets.items():
            bits = out[key]
            for c in controls:
                bits |= sum((1 << e.high + 1) - (1 << e.low) for e in a.edges_of(c))
                bits |= out.get((a.frame_of(c), a.verdict_of(c)), 0)
            if bits != out[key]:
                out[key], changed = bits, True
    return out
