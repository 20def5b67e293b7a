"""Lexer and LALR table as one pushdown automaton.

A configuration is (scan state, LR states). The control holds the scan state and the top LR state; the
stack's symbols are the LR states below. What a byte does is worked out on the part of the stack that's known
(at first the top alone):

    the lexeme goes on     an edge in place
    terminal T is decided  its actions run on the known part. They end in
        Go                 shifted: an edge that pushes what is known below the new top
        Pop                a reduction needs more of the stack than is known: the control is accepting, its
                           verdict is the Pop, and each symbol that may lie there says how the reduction goes
                           on
        Accept, None       the text may end here; a syntax error

A Pop is (terminal, rule's origin, states still to pop, bytes to read again). When the lexeme's end and every
byte that would fall back decide the same thing, the Pop waits for the byte after it, and no edge is made.
Otherwise such bytes get edges to controls that pop at once, with the byte among those to read again. A byte that
the control would take into the lexeme doesn't come after a Pop that waits, whatever the parser would do with
it: it's *blocked* in the Pop and where it leads, so that liveness doesn't count on it and no edge is hidden.

Bytes to read again are replaced by the first ones found with the same effect under every state that may come
next, and dropped with their hit when they have none. If they grow beyond `MAX_REST`, the lexer needs
unbounded look-ahead: refused by the names of the terminals, or with fallback="commit" the hit is given up,
which loses texts and never lets a wrong one through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.grammar.embed import EmbeddedFrame
from maskwright.compiler.grammar.lark_tables import END, Reduce, Shift, Tables
from maskwright.compiler.grammar.machine import (
    ACCEPT,
    Accept,
    Begin,
    Effect,
    Enter,
    Go,
    Lexing,
    Outcome,
    Pop,
    Stack,
)
from maskwright.compiler.grammar.scan import (
    IGNORED,
    History,
    Hit,
    Item,
    Rest,
    Run,
    ScanMove,
    Scanner,
    ScanState,
)
from maskwright.compiler.regular import Classifier, classify, one_of, to_bytes
from maskwright.compiler.regular.codepoints import Ranges, intersect, partition, subtract, unite
from maskwright.workers.specials import FIRST_MARK

MAX_REST = 24
MAX_REST_CLASSES = 20_000
MAX_ACTIONS = 10_000
SHARED_RANGES = 32
"""A set of characters with more ranges than this is read in controls of its own, called from wherever it may
stand.
"""
MULTI: Ranges = ((0x80, 0x10FFFF),)
FIRST_LEAD = 0xC2


class Pushdown:
    """What each control does."""

    def __init__(
        self,
        tables: Tables,
        *,
        commit: bool = False,
        embedded: dict[str, EmbeddedFrame] | None = None,
        tokens: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        """`tokens`: the special tokens that terminals stand for."""
        self.tables, self.commit, self.embedded = tables, commit, embedded or {}
        self.scanner = Scanner(tables, tokens)
        self.below: list[set[int]] = [set() for _ in range(tables.n_states)]
        self.shifted: dict[str, set[int]] = defaultdict(set)
        for q, row in enumerate(tables.actions):
            for t, action in row.items():
                if isinstance(action, Shift):
                    self.below[action.state].add(q)
                    self.shifted[t].add(action.state)
            for target in tables.gotos[q].values():
                self.below[target].add(q)
        self.representative: dict[tuple[Hashable, ...], Rest] = {}
        self.classes: dict[tuple[int, str, Rest], Rest | None] = {}
        self.settled: dict[Lexing, ScanState] = {}
        self.idle: dict[tuple[int, ScanState], Ranges] = {}
        self.begun: dict[tuple[int, History], Ranges] = {}
        self.opened: dict[int, list[tuple[int, int, str]]] = {}
        if self.embedded and any(not b.local for b in self.scanner.program.behinds):
            message = "embedded values don't go with terminals that look back over their start"
            raise CompileError(Diagnostic(Code.UNSUPPORTED_GRAMMAR, message))

    # -- the parser ------------------------------------------------------------------------------------------

    def act(self, stack: Stack, terminal: str, rest: Rest) -> Outcome:
        """A decided lexeme, on the known part of the stack."""
        if terminal == IGNORED:
            return self.lex(stack, rest)
        actions, gotos = self.tables.actions, self.tables.gotos
        for _ in range(MAX_ACTIONS):
            action = actions[stack[-1]].get(terminal)
            if isinstance(action, Shift):
                return self.lex((*stack, action.state), rest)
            if action is None:
                return None
            assert isinstance(action, Reduce)
            if action.size >= len(stack):
                return self.pop(stack, terminal, action, rest)
            stack = stack[: len(stack) - action.size]
            stack = (*stack, gotos[stack[-1]][action.origin])
            if terminal == END and stack[-1] == self.tables.end_state:
                return ACCEPT
        raise self.endless(terminal)

    def pop(self, stack: Stack, terminal: str, action: Reduce, rest: Rest) -> Outcome:
        kept: Rest | None = rest
        if rest.text and not rest.end:
            kept = self.class_of(stack[-1], terminal, rest)
        return None if kept is None else Pop(terminal, action.origin, action.size - len(stack), kept)

    def endless(self, terminal: str) -> CompileError:
        message = f"the parser reduces forever before terminal {terminal}"
        return CompileError(Diagnostic(Code.UNSUPPORTED_GRAMMAR, message, detail={"terminal": terminal}))

    def lex(self, stack: Stack, rest: Rest) -> Outcome:
        """Start a lexeme in the top state, on the bytes to read again."""
        scan = self.scanner.start(self.tables.lexer_of[stack[-1]], rest.history)
        if rest.text and (inside := self.opens(stack[-1], rest.text[0])):
            raise self.clash(rest.text[0], inside, "what the lexer reads again")
        for i, byte in enumerate(rest.text):
            found = self.scan_byte(stack[-1], scan, byte)
            if found is None:
                return None
            if isinstance(found, Hit):
                return self.act(stack, found.terminal, found.rest.after(rest.text[i + 1 :], rest))
            scan = found
        return self.finish(stack, scan) if rest.end else Go(stack, scan, rest.blocked)

    def finish(self, stack: Stack, scan: ScanState) -> Outcome:
        """The text ends."""
        if scan.fresh:
            return self.act(stack, END, Rest(b"", scan.history, True))
        hit = self.scanner.at_end(scan)
        return None if hit is None else self.act(stack, hit.terminal, hit.rest._replace(end=True))

    def scan_byte(self, top: int, scan: ScanState, byte: int) -> ScanState | Hit | None:
        """One byte in a lexeme; a hit's rest holds the byte when it's to be read again."""
        for m in self.scanner.moves(scan):
            if m.low <= byte <= m.high:
                if m.kind == "fall":
                    assert scan.fallback is not None
                    return scan.fallback._replace(rest=scan.fallback.rest.then(byte))
                return m.hit if m.kind == "done" else self.settle(top, scan, m)
        return None

    # -- embedded values -------------------------------------------------------------------------------------

    def openings(self, top: int) -> list[tuple[int, int, str]]:
        """Ranges of bytes that begin an embedded value in an LR state, by increasing byte."""
        if top not in self.opened:
            found: list[tuple[int, int, str]] = []
            for terminal, frame in self.embedded.items():
                if self.act((top,), terminal, self.fresh_rest()) is not None:
                    found += [(low, high, terminal) for low, high in frame.first_bytes()]
            found.sort()
            for one, two in pairwise(found):
                if two[0] <= one[1]:
                    raise self.clash(two[0], one[2], two[2])
            self.opened[top] = found
        return self.opened[top]

    def opens(self, top: int, byte: int) -> str | None:
        """The embedded terminal that a byte begins."""
        if not self.embedded:
            return None
        return next((t for low, high, t in self.openings(top) if low <= byte <= high), None)

    def fresh_rest(self) -> Rest:
        return Rest(b"", tuple(None for _ in self.scanner.program.behinds))

    def clash(self, byte: int, *names: str) -> CompileError:
        """Two things begin with one byte, one of them an embedded value."""
        shown = [f"%{self.embedded[n].source.kind}" if n in self.embedded else self.shown(n) for n in names]
        span = next(self.embedded[n].source.span for n in names if n in self.embedded)
        message = f"{' and '.join(shown)} may both begin with byte {chr(byte)!r} at one place"
        detail = {"terminals": list(names), "byte": byte}
        hint = "put them into one value, with anyOf, or mark them with different texts"
        return CompileError(Diagnostic(Code.UNSUPPORTED_GRAMMAR, message, span=span, detail=detail, hint=hint))

    def shown(self, name: str) -> str:
        found = self.tables.terminals.get(name)
        return "an ignored terminal" if name == IGNORED else found.shown if found is not None else name

    # -- bytes to read again ---------------------------------------------------------------------------------

    def settle(self, top: int, scan: ScanState, move: ScanMove) -> ScanState:
        """The move's state with each hit's rest replaced by its class; hits that can't lead anywhere are
        dropped.
        """
        state = move.state
        assert state is not None
        if not any(isinstance(i, Hit) and i.rest.text for i in state.items):
            return state
        if FIRST_LEAD <= move.low < FIRST_MARK and self.is_idle(top, scan, move.low):
            state = self.scanner.trim(state._replace(items=state.items[:-1]))
        key = Lexing(top, state)
        found = self.settled.get(key)
        if found is None:
            items = [kept for item in state.items if (kept := self.settle_item(top, item, state)) is not None]
            found = self.settled[key] = self.scanner.trim(state._replace(items=tuple(items)))
        return found

    def settle_item(self, top: int, item: Item, state: ScanState) -> Item | None:
        if isinstance(item, Run) or not item.rest.text:
            return item
        rest = self.class_of(top, item.terminal, item.rest)
        if rest is None or (self.commit and self.scanner.is_unbounded(state)):
            return None
        if len(rest.text) > MAX_REST or len(self.representative) > MAX_REST_CLASSES:
            raise self.refused_rest(item, state)
        return item._replace(rest=rest)

    def is_idle(self, top: int, scan: ScanState, lead: int) -> bool:
        """Whether a fallback is needed for no character that begins with byte `lead`.

        Each such character makes the longer match go on, or can't begin what comes after the fallback.
        Without this, names of Unicode letters would remember keywords that they began with through the
        middle of a character.
        """
        hit = scan.fallback
        if hit is None or hit.rest.text:
            return False
        key = (top, scan)
        if key not in self.idle:
            begins = _united(tuple(self.begins(q, hit.rest.history) for q in self.tops_after(top, hit.terminal)))
            self.idle[key] = _subtracted(begins, self.scanner.must_match(scan))
        return not intersect(self.idle[key], (_characters_of(lead),))

    def begins(self, top: int, history: History) -> Ranges:
        key = (self.tables.lexer_of[top], history)
        if key not in self.begun:
            self.begun[key] = self.scanner.may_begin(self.scanner.start(*key))
        return self.begun[key]

    def refused_rest(self, hit: Hit, state: ScanState) -> CompileError:
        """The refusal, by the terminals' names."""
        owner = self.scanner.program.owner
        longer = sorted({owner[i.pc] for i in state.items if isinstance(i, Run)})
        shown = [self.shown(n) for n in longer]
        name = self.shown(hit.terminal)
        return CompileError(
            Diagnostic(
                Code.UNSUPPORTED_GRAMMAR,
                f"after {name} the lexer may have to look ahead without bound to tell whether it is "
                f"{' or '.join(shown)}",
                detail={"terminals": [hit.terminal, *longer], "look_ahead": MAX_REST},
                hint='let the terminals start apart, or compile with fallback="commit"',
            )
        )

    def class_of(self, top: int, terminal: str, rest: Rest) -> Rest | None:
        """The first rest found with the same effect after `terminal` is tried in `top`; None: it has none."""
        key = (top, terminal, rest)
        if key not in self.classes:
            tops = self.tops_after(top, terminal)
            effects = tuple(self.effect(q, rest) for q in tops)
            alive = any(e is not None for e in effects)
            self.classes[key] = self.representative.setdefault((tops, effects, rest.blocked), rest) if alive else None
        return self.classes[key]

    def tops_after(self, top: int, terminal: str) -> Stack:
        """LR states that may be on top after a terminal: more than there are, where the stack decides."""
        if terminal == IGNORED:
            return (top,)
        action = self.tables.actions[top].get(terminal)
        if isinstance(action, Shift):
            return (action.state,)
        return tuple(sorted(self.shifted[terminal])) if action is not None else ()

    def effect(self, top: int, rest: Rest) -> Hashable | None:
        """What reading `rest` in LR state `top` leads to, as far as all that follows can tell."""
        scan = self.scanner.start(self.tables.lexer_of[top], rest.history)
        if rest.text and self.opens(top, rest.text[0]):
            return (top, rest)
        for i, byte in enumerate(rest.text):
            found = self.scan_byte(top, scan, byte)
            if found is None:
                return None
            if isinstance(found, Hit):
                after = self.class_of(top, found.terminal, found.rest.after(rest.text[i + 1 :], rest))
                return None if after is None else (found.terminal, after)
            scan = found
        return scan

    # -- what a control does ---------------------------------------------------------------------------------

    def outcomes(self, stack: Stack, scan: ScanState, low: int, high: int) -> Iterator[Effect]:
        """What bytes low..high lead to, by increasing byte; bytes left out can't follow."""
        if not self.embedded or not scan.fresh:
            yield from self.lexemes(stack, scan, low, high)
            return
        found: list[Effect] = list(self.lexemes(stack, scan, low, high))
        for a, b, terminal in self.openings(stack[-1]):
            if max(a, low) > min(b, high):
                continue
            for x, y, _ in found:
                if x <= b and a <= y:
                    raise self.clash(max(x, a), terminal, self.beginning(scan, max(x, a)))
            found.append((max(a, low), min(b, high), Begin(stack, terminal)))
        yield from sorted(found, key=lambda effect: effect[:2])

    def beginning(self, scan: ScanState, byte: int) -> str:
        """A terminal that a byte begins."""
        p = self.scanner.program
        runs = (i.pc for i in scan.items if isinstance(i, Run))
        return next(p.owner[pc] for pc in runs if self.scanner.target(pc, byte) >= 0)

    def lexemes(self, stack: Stack, scan: ScanState, low: int, high: int) -> Iterator[Effect]:
        for m in self.scanner.moves(scan):
            a, b = max(low, m.low), min(high, m.high)
            if a > b:
                continue
            if m.kind == "go":
                yield a, b, Go(stack, self.settle(stack[-1], scan, m))
            elif m.kind == "done":
                assert m.hit is not None
                yield a, b, self.act(stack, m.hit.terminal, m.hit.rest)
            else:
                yield from self.fall(stack, scan, a, b)

    def fall(self, stack: Stack, scan: ScanState, low: int, high: int) -> Iterator[Effect]:
        hit = scan.fallback
        assert hit is not None
        now = self.act(stack, hit.terminal, hit.rest)
        if isinstance(now, Go):
            yield from self.outcomes(now.stack, now.scan, low, high)
        elif now is not None:
            for byte in range(low, high + 1):
                yield byte, byte, self.act(stack, hit.terminal, hit.rest.then(byte))

    def waiting(self, control: Lexing) -> Pop | None:
        """The Pop that the control's fallback comes to, when it may wait for the byte after it."""
        hit = control.scan.fallback
        if hit is None or self.scanner.at_end(control.scan) != hit:
            return None
        rest = hit.rest._replace(blocked=self.blocked(control, hit))
        out = self.act((control.top,), hit.terminal, rest)
        return out if isinstance(out, Pop) else None

    def blocked(self, control: Lexing, hit: Hit) -> int:
        """Bytes that might follow the fallback, were they not taken into the lexeme."""
        taken = control.blocked
        for m in self.scanner.moves(control.scan):
            if m.kind != "fall":
                taken |= (1 << m.high + 1) - (1 << m.low)
        return sum(
            1 << byte
            for byte in range(256)
            if taken >> byte & 1 and self.class_of(control.top, hit.terminal, hit.rest.then(byte)) is not None
        )

    def characters(self, control: Lexing) -> list[tuple[int, int, Enter]] | None:
        """Calls for the characters of several bytes; None: bytes do as well, or the bytes would have to be
        kept.

        Without them each state before a letter would have a copy of the hundreds of states that Unicode's
        letters take.
        """
        sets = self.sets_ahead((control.top,), control.scan)
        if not sets or sum(map(len, sets)) < SHARED_RANGES:
            return None
        exits: dict[Go | Pop | Accept, list[Ranges]] = {}
        for cell, _ in partition([part for s in sets if (part := intersect(s, MULTI))]):
            out = self.read_character(control, chr(cell[0][0]).encode())
            if out is None:
                return None
            if out[0] is not None:
                exits.setdefault(out[0], []).append(cell)
        if not exits:
            return None
        told = tuple(_united(tuple(cells)) for cells in exits.values())
        machine = tell_apart(told)
        return [(low, high, Enter(told, t, tuple(exits))) for low, high, t in machine.transitions[0]]

    def read_character(self, control: Lexing, char: bytes) -> tuple[Outcome] | None:
        """What one character does from its start to its end; None when its bytes would be read again."""
        scan = control.scan
        for i, byte in enumerate(char):
            found = self.scan_byte(control.top, scan, byte)
            if found is None:
                return (None,)
            if isinstance(found, Hit):
                rest = found.rest._replace(text=found.rest.text + char[i + 1 :])
                out = self.act((control.top,), found.terminal, rest)
                if not rest.text and out is None:
                    return None
                known = out is None or not rest.text or (isinstance(out, Go) and not _keeps(out.scan))
                return (out,) if known else None
            scan = found
        return None if _keeps(scan) else (Go((control.top,), scan),)

    def sets_ahead(self, stack: Stack, scan: ScanState) -> list[Ranges] | None:
        """Sets of characters that the next byte may have to tell apart, after a fallback too."""
        sets = self.scanner.next_sets(scan)
        if scan.fresh and self.embedded and self.openings(stack[-1]):
            return None
        hit = scan.fallback
        if sets is None or hit is None:
            return sets
        after = self.act(stack, hit.terminal, hit.rest)
        if not isinstance(after, Go):
            return sets
        more = self.sets_ahead(after.stack, after.scan)
        return None if more is None else sets + more

    def taken(self, control: Lexing, low: int, high: int) -> Iterator[Effect]:
        """What bytes low..high lead to that the lexeme itself takes."""
        for m in self.scanner.moves(control.scan):
            a, b = max(low, m.low), min(high, m.high)
            if a > b or m.kind == "fall":
                continue
            if m.kind == "go":
                yield a, b, Go((control.top,), self.settle(control.top, control.scan, m))
            else:
                assert m.hit is not None
                yield a, b, self.act((control.top,), m.hit.terminal, m.hit.rest)

    def decide(self, control: Lexing) -> tuple[list[Effect], Outcome]:
        """What its bytes lead to, by increasing byte, and its verdict."""
        stack = (control.top,)
        pop = self.waiting(control)
        calls = self.characters(control)
        found: list[Effect] = []
        for low, high in ((0, 255),) if calls is None else ((0, FIRST_LEAD - 1), (FIRST_MARK, 255)):
            if pop is None:
                found += self.outcomes(stack, control.scan, low, high)
            else:
                found += self.taken(control, low, high)
        ordered = sorted((*found, *(calls or ())), key=lambda effect: effect[:2])
        open_ = [part for effect in ordered for part in _unblocked(effect, control.blocked)]
        return open_, pop if pop is not None else self.finish(stack, control.scan)


def _characters_of(lead: int) -> tuple[int, int]:
    """The code points whose UTF-8 begins with a lead byte of 0xC2 or more."""
    for mark, bits, shift, least in ((0xF0, 0x07, 18, 0x10000), (0xE0, 0x0F, 12, 0x800), (0xC0, 0x1F, 6, 0x80)):
        if lead >= mark:
            low = (lead & bits) << shift
            return max(low, least), low + (1 << shift) - 1
    raise ValueError(f"{lead} isn't the first byte of several")


def _unblocked(effect: Effect, blocked: int) -> Iterator[Effect]:
    """An effect without blocked bytes."""
    low, high, outcome = effect
    if not blocked:
        yield effect
        return
    start = -1
    for byte in range(low, high + 2):
        good = byte <= high and not blocked >> byte & 1
        if good and start < 0:
            start = byte
        elif not good and start >= 0:
            yield start, byte - 1, outcome
            start = -1


def _keeps(scan: ScanState) -> bool:
    return any(isinstance(item, Hit) and item.rest.text for item in scan.items)


@lru_cache(maxsize=1024)
def _united(sets: tuple[Ranges, ...]) -> Ranges:
    return unite(*sets)


@lru_cache(maxsize=1024)
def _subtracted(one: Ranges, two: Ranges) -> Ranges:
    return subtract(one, two)


@lru_cache(maxsize=256)
def tell_apart(sets: tuple[Ranges, ...]) -> Classifier:
    """The automaton over UTF-8 bytes whose label is the number of the set that a character is in."""
    return to_bytes(
        classify([one_of(s) for s in sets], lambda inside: inside.index(True) if any(inside) else -1), "utf8"
    )
