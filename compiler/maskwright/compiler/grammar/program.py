"""Terminals as programs: an NFA over bytes whose threads have an order of preference (Thompson; Pike's and
Cox's machines).

Python's `re` prefers earlier alternatives and longer (or, lazy, shorter) repeats; a thread's place in a list
is that preference. A character set is a small automaton over UTF-8 bytes. Assertions are all turned into two
forms: `Look`, a statement about what follows, and `Behind`, one about the last few characters. `^`, `$`,
`\\b` and relatives become those.

Not handled: atomic groups and possessive repeats, lookaround inside a lookbehind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar.token_symbols import Rows, symbol_rows
from maskwright.compiler.regex.python import parse
from maskwright.compiler.regex.tree import (
    Alternation,
    Atomic,
    Chars,
    Concat,
    Look,
    Node,
    Point,
    PointKind,
    Repeat,
    Span,
    walk,
)
from maskwright.compiler.regex.width import width
from maskwright.compiler.regular import one_of, to_bytes
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, complement

MAX_INSTRUCTIONS = 200_000


@dataclass(frozen=True, slots=True)
class Step:
    """Consume a byte: (low, high, next)."""

    ranges: tuple[tuple[int, int, int], ...]
    ends: int = -1
    """Where the thread is after the whole character; -1 inside one."""
    chars: Ranges = ()
    """Before a character: which it may be."""
    sure: bool = False
    """Before a character: its terminal matches right after it, whatever follows."""
    unbounded: bool = False
    """Before a character: the thread may go on for ever without a match."""


@dataclass(frozen=True, slots=True)
class Split:
    """Go on at each of `to`, in order of preference; one target is a jump."""

    to: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Go on at `to` if what follows has (negative: hasn't) a prefix that the program at `body` matches."""

    body: int
    negative: bool
    to: int


@dataclass(frozen=True, slots=True)
class Behind:
    """Go on at `to` if lookbehind number `look` holds (negative: doesn't)."""

    look: int
    negative: bool
    to: int


@dataclass(frozen=True, slots=True)
class Match:
    """The end of terminal `owner`, or of a lookaround's body (empty owner)."""

    owner: str


Instruction = Step | Split | Ahead | Behind | Match


@dataclass(slots=True)
class Lookbehind:
    """`entry`: its body's program; `width` in characters; `local`: never sees what's before its terminal's
    start.
    """

    entry: int
    width: int
    local: bool = True


@dataclass(slots=True)
class Program:
    """`entries[t]`: where terminal t's program begins; `owner[pc]`: whose instruction it is."""

    code: list[Instruction] = field(default_factory=list)
    owner: list[str] = field(default_factory=list)
    entries: dict[str, int] = field(default_factory=dict)
    behinds: list[Lookbehind] = field(default_factory=list)
    needs: list[frozenset[int]] = field(default_factory=list)
    """Lookbehinds that a thread at pc may still ask for."""


def build_program(terminals: dict[str, str], tokens: Mapping[str, tuple[int, ...]] | None = None) -> Program:
    """The program of named Python patterns; those in `tokens` read any of these special tokens instead.

    Raises CompileError with the terminal's name, LimitExceeded.
    """
    b = _Builder()
    for name, regexp in terminals.items():
        if tokens and name in tokens:
            b.token(name, tokens[name])
        else:
            b.terminal(name, regexp)
    b.find_sure()
    b.find_unbounded()
    b.find_needs()
    for name in terminals:
        b.find_reach(name)
    return b.out


class _Builder:
    def __init__(self) -> None:
        self.out = Program()
        self.behinds: dict[object, int] = {}
        self.kept: list[Node] = []
        """Trees whose identity `behinds` goes by."""
        self.work: list[tuple[Node, int, int]] = []
        self.name = ""

    def new(self) -> int:
        if len(self.out.code) >= MAX_INSTRUCTIONS:
            raise LimitExceeded("instructions", MAX_INSTRUCTIONS, len(self.out.code) + 1, f"terminal {self.name}")
        self.out.code.append(Split(()))
        self.out.owner.append(self.name)
        return len(self.out.code) - 1

    def match(self, owner: str) -> int:
        pc = self.new()
        self.out.code[pc] = Match(owner)
        return pc

    def terminal(self, name: str, regexp: str) -> None:
        self.name = name
        tree = parse_terminal(name, regexp)
        self.out.entries[name] = entry = self.new()
        self.work.append((tree, entry, self.match(name)))
        self.run()

    def run(self) -> None:
        while self.work:
            self.emit(*self.work.pop())

    def emit(self, node: Node, entry: int, to: int) -> None:
        """The node's program at `entry`, going on at `to`."""
        code = self.out.code
        if isinstance(node, Chars):
            self.chars(node.ranges, entry, to)
        elif isinstance(node, Concat):
            self.sequence(node.items, entry, to)
        elif isinstance(node, Alternation):
            starts = tuple(self.new() for _ in node.branches)
            code[entry] = Split(starts)
            self.work.extend((b, s, to) for b, s in zip(node.branches, starts, strict=True))
        elif isinstance(node, Repeat):
            self.repeat(node, entry, to)
        elif isinstance(node, Point):
            self.work.append((_as_looks(node), entry, to))
        elif isinstance(node, Look):
            self.look(node, entry, to)
        else:
            self.refuse("an atomic group or possessive repeat", node)

    def sequence(self, items: tuple[Node, ...], entry: int, to: int) -> None:
        if not items:
            self.out.code[entry] = Split((to,))
            return
        starts = [entry, *(self.new() for _ in items[1:]), to]
        self.work.extend((item, starts[i], starts[i + 1]) for i, item in enumerate(items))

    def repeat(self, node: Repeat, entry: int, to: int) -> None:
        code, at = self.out.code, entry
        for _ in range(node.low):
            after = self.new()
            self.work.append((node.item, at, after))
            at = after
        if node.high is None:
            body = self.new()
            code[at] = Split((to, body) if node.lazy else (body, to))
            self.work.append((node.item, body, at))
            return
        for _ in range(node.high - node.low):
            body, after = self.new(), self.new()
            code[at] = Split((to, body) if node.lazy else (body, to))
            self.work.append((node.item, body, after))
            at = after
        code[at] = Split((to,))

    def look(self, node: Look, entry: int, to: int) -> None:
        if node.ahead:
            body = self.new()
            self.work.append((node.body, body, self.match("")))
            self.out.code[entry] = Ahead(body, node.negative, to)
            return
        key = node.body.ranges if isinstance(node.body, Chars) else id(node.body)
        number = self.behinds.get(key)
        if number is None:
            if any(isinstance(n, Look | Point | Atomic) for _, n in walk(node.body)):
                self.refuse("an assertion inside a lookbehind", node)
            low, high = width(node.body)
            if low != high:
                self.refuse("a lookbehind without a fixed width", node)
            number = self.behinds[key] = len(self.out.behinds)
            self.kept.append(node.body)
            body = self.new()
            self.out.behinds.append(Lookbehind(body, low))
            self.work.append((node.body, body, self.match("")))
        self.out.code[entry] = Behind(number, node.negative, to)

    def token(self, name: str, ids: tuple[int, ...]) -> None:
        self.name = name
        self.out.entries[name] = entry = self.new()
        self.rows(symbol_rows(ids), (), entry, self.match(name))

    def chars(self, ranges: Ranges, entry: int, to: int) -> None:
        """The set's UTF-8 automaton; its start is at `entry`, and its end is `to`."""
        spelled = utf8_rows(ranges)
        if not spelled:
            self.out.code[entry] = Split(())
            return
        self.rows(spelled, ranges, entry, to)

    def rows(self, spelled: Rows, ranges: Ranges, entry: int, to: int) -> None:
        at = [entry, *(self.new() for _ in spelled[1:])]
        for i, row in enumerate(spelled):
            steps = tuple((low, high, to if t < 0 else at[t]) for low, high, t in row)
            self.out.code[at[i]] = Step(steps, to, ranges) if i == 0 else Step(steps)

    def refuse(self, construct: str, node: Node) -> None:
        raise CompileError(
            Diagnostic(
                Code.UNSUPPORTED_PATTERN,
                f"terminal {self.name}: {construct} isn't supported",
                span=node.span,
                detail={"terminal": self.name, "construct": construct},
            )
        )

    # -- what is known of an instruction's future ------------------------------------------------------------

    def find_sure(self) -> None:
        """Backward from the ends of terminals over jumps and splits alone."""
        code = self.out.code
        preds: list[list[int]] = [[] for _ in code]
        for pc, ins in enumerate(code):
            if isinstance(ins, Split):
                for t in ins.to:
                    preds[t].append(pc)
        matches = {pc for pc, ins in enumerate(code) if isinstance(ins, Match) and ins.owner}
        work = list(matches)
        while work:
            for p in preds[work.pop()]:
                if p not in matches:
                    matches.add(p)
                    work.append(p)
        for pc, ins in enumerate(code):
            if isinstance(ins, Step) and ins.ends in matches:
                code[pc] = replace(ins, sure=True)

    def find_unbounded(self) -> None:
        """What's left when threads that stop, or that surely match, are taken away from the end backwards."""
        code = self.out.code
        preds: list[list[int]] = [[] for _ in code]
        open_ways = [0] * len(code)
        for pc, ins in enumerate(code):
            targets = () if isinstance(ins, Step) and ins.sure else set(_successors(ins, bodies=False))
            open_ways[pc] = len(targets)
            for t in targets:
                preds[t].append(pc)
        work = [pc for pc, n in enumerate(open_ways) if n == 0]
        while work:
            for p in preds[work.pop()]:
                open_ways[p] -= 1
                if open_ways[p] == 0:
                    work.append(p)
        for pc, ins in enumerate(code):
            if isinstance(ins, Step) and ins.ends >= 0 and open_ways[pc]:
                code[pc] = replace(ins, unbounded=True)

    # -- lookbehinds: who asks, and from how near ------------------------------------------------------------

    def find_needs(self) -> None:
        """Backward fixpoint over the program's graph."""
        code = self.out.code
        preds: list[list[int]] = [[] for _ in code]
        needs: list[frozenset[int]] = [frozenset()] * len(code)
        for pc, ins in enumerate(code):
            for t in _successors(ins):
                preds[t].append(pc)
            if isinstance(ins, Behind):
                needs[pc] = frozenset({ins.look})
        work = [pc for pc, n in enumerate(needs) if n]
        while work:
            pc = work.pop()
            for p in preds[pc]:
                if not needs[pc] <= needs[p]:
                    needs[p] |= needs[pc]
                    work.append(p)
        self.out.needs = needs

    def find_reach(self, name: str) -> None:
        """A lookbehind that may be asked for fewer characters after the terminal's start than it looks at
        isn't local.
        """
        code, entry = self.out.code, self.out.entries[name]
        if not self.out.needs[entry]:
            return
        distance = {entry: 0}
        layer = [entry]
        for d in range(max(b.width for b in self.out.behinds)):
            following: list[int] = []
            while layer:
                pc = layer.pop()
                ins = code[pc]
                if isinstance(ins, Behind):
                    self.out.behinds[ins.look].local &= d >= self.out.behinds[ins.look].width
                if isinstance(ins, Step):
                    if ins.ends >= 0 and ins.ends not in distance:
                        distance[ins.ends] = d + 1
                        following.append(ins.ends)
                    continue
                for t in _successors(ins):
                    if t not in distance:
                        distance[t] = d
                        layer.append(t)
            layer = following


def _successors(ins: Instruction, bodies: bool = True) -> tuple[int, ...]:
    if isinstance(ins, Step):
        return tuple(t for _, _, t in ins.ranges)
    if isinstance(ins, Split):
        return ins.to
    if isinstance(ins, Ahead):
        return (ins.body, ins.to) if bodies else (ins.to,)
    return (ins.to,) if isinstance(ins, Behind) else ()


@lru_cache(maxsize=256)
def utf8_rows(ranges: Ranges) -> tuple[tuple[tuple[int, int, int], ...], ...]:
    """Rows of (low, high, row or -1 for the end): the automaton of one character of the set, in UTF-8."""
    dfa = to_bytes(one_of(ranges), "utf8")
    if not dfa.accepting:
        return ()
    inner = [s for s in range(dfa.n_states) if s not in dfa.accepting]
    place = {s: i for i, s in enumerate(inner)}
    return tuple(tuple((low, high, place.get(t, -1)) for low, high, t in dfa.transitions[s]) for s in inner)


def parse_terminal(name: str, regexp: str) -> Node:
    """The pattern's tree. Raises CompileError with the terminal's name."""
    try:
        return parse(regexp)
    except CompileError as e:
        raise CompileError([_of_terminal(d, name) for d in e.diagnostics]) from e


def _of_terminal(d: Diagnostic, name: str) -> Diagnostic:
    return Diagnostic(
        d.code,
        f"terminal {name}: {d.message}",
        source=d.source,
        span=d.span,
        detail={**d.detail, "terminal": name},
        hint=d.hint,
    )


# -- assertions as looks -------------------------------------------------------------------------------------


def _as_looks(p: Point) -> Node:
    """A point assertion by what's before and after it."""
    span = p.span
    any_char = Chars(SCALARS, span)
    other = Chars(complement(p.ranges), span)

    def ahead(body: Node, negative: bool = False) -> Node:
        return Look(body, True, negative, span)

    def behind(body: Node, negative: bool = False) -> Node:
        return Look(body, False, negative, span)

    if p.kind is PointKind.TEXT_START:
        return behind(any_char, True)
    if p.kind is PointKind.TEXT_END:
        return ahead(any_char, True)
    if p.kind is PointKind.LINE_START:
        return behind(other, True)
    if p.kind is PointKind.LINE_END:
        return ahead(other, True)
    inside = Chars(p.ranges, span)
    if p.kind is PointKind.FINAL_END:
        more = Concat((inside, any_char), span)
        return ahead(Alternation((other, more), span), True)
    return _word_edge(p, inside, span)


def _word_edge(p: Point, inside: Node, span: Span) -> Node:
    """\\b: one of the two sides is a word character; \\B: both or neither, and not on an empty text."""
    edge = p.kind is PointKind.WORD

    def both(before: bool, after: bool) -> Node:
        return Concat((Look(inside, False, not before, span), Look(inside, True, not after, span)), span)

    if edge:
        return Alternation((both(True, False), both(False, True)), span)
    branches = [both(True, True), both(False, False)]
    if p.nonempty:
        some = Alternation(
            (Look(Chars(SCALARS, span), False, False, span), Look(Chars(SCALARS, span), True, False, span)),
            span,
        )
        return Concat((some, Alternation(tuple(branches), span)), span)
    return Alternation(tuple(branches), span)
