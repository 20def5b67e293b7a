"""The contextual lexer as an automaton over bytes.

A lexer tries its terminals in order at one place of the text, each as Python's `re` does, and takes the
first that matches at all. `Scanner` follows that with one ordered list of items (the list of threads of
Pike's machine, for all terminals at once):

    Run(pc, obligations)               a thread that may still match
    Hit(terminal, rest, obligations)   a match; `rest` holds the bytes read since, to be read again by the
    next lexeme

An obligation is a lookahead that isn't decided yet. A hit without any cuts off everything behind it, because
earlier items are preferred. When the first item is such a hit, the lexeme is decided. What lookbehinds may
ask for is kept as the states of their bodies' automata, `history`. Keywords are told from names by running
them beside the thread.

What a byte does to a state (`Scanner.moves`): go on, decide, or *fall*: every item before the last hit dies,
so that hit is taken and the byte is read again after it. Bytes that do none of these can't follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from maskwright.compiler.grammar.lark_tables import Tables
from maskwright.compiler.grammar.program import Ahead, Behind, Match, Program, Split, Step, build_program
from maskwright.compiler.regular.codepoints import Ranges, unite

IGNORED = ""
"""The terminal of a hit that the parser never sees."""
MATCHED = -1
"""In an obligation: a match that waits for obligations of its own."""

Threads = frozenset[int]
History = tuple[Threads | None, ...]


class Rest(NamedTuple):
    """Bytes to read again; the history before them; whether the text ends after them; bytes, as bits, that can't
    come after them.
    """

    text: bytes
    history: History
    end: bool = False
    blocked: int = 0

    def then(self, byte: int) -> Rest:
        return Rest(self.text + bytes((byte,)), self.history, self.end)

    def after(self, again: bytes, before: Rest) -> Rest:
        """This rest of a lexeme found while `before` was read, with what's left of that."""
        return Rest(self.text + again, self.history, before.end, before.blocked)


class Obligation(NamedTuple):
    """A lookahead under way: it holds when one of the threads matches (negative: when none does)."""

    negative: bool
    threads: frozenset[tuple[int, Obligations]]


Obligations = frozenset[Obligation]
NONE: Obligations = frozenset()


class Run(NamedTuple):
    pc: int
    obligations: Obligations


class Hit(NamedTuple):
    terminal: str
    rest: Rest
    obligations: Obligations


Item = Run | Hit


class ScanState(NamedTuple):
    """Before or inside a lexeme.

    `typing[i]`: threads of the keywords of the i-th retyped terminal; empty when that terminal is out.
    """

    lexer: int
    items: tuple[Item, ...]
    typing: tuple[Threads, ...]
    history: History
    fresh: bool = False

    @property
    def fallback(self) -> Hit | None:
        """The hit that's taken when nothing before it comes to a match."""
        last = self.items[-1] if self.items else None
        return last if isinstance(last, Hit) and not last.obligations else None


@dataclass(frozen=True, slots=True)
class ScanMove:
    """What bytes low..high do.

    "go": to `state`; "done": `hit` is the lexeme; "fall": the state's fallback is, and the byte comes again.
    """

    low: int
    high: int
    kind: Literal["go", "done", "fall"]
    state: ScanState | None = None
    hit: Hit | None = None


class Scanner:
    """All lexers of a grammar. Moves are computed on demand and kept."""

    def __init__(self, tables: Tables, tokens: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """`tokens`: the special tokens that terminals stand for."""
        self.tables = tables
        self.program: Program = build_program({name: t.regexp for name, t in tables.terminals.items()}, tokens)
        self.known: dict[ScanState, list[ScanMove]] = {}
        self.starts: dict[tuple[int, History], ScanState] = {}

    # -- starts ----------------------------------------------------------------------------------------------

    def text_start(self) -> History:
        """The history before the text: what lookbehinds that aren't local see there."""
        behinds = self.program.behinds
        return tuple(None if b.local else self.spread({b.entry}) for b in behinds)

    def start(self, lexer: int, history: History) -> ScanState:
        """The state of a lexer before any byte of its lexeme."""
        found = self.starts.get((lexer, history))
        if found is None:
            behinds = self.program.behinds
            whole = tuple(self.spread({b.entry}) if b.local else h for b, h in zip(behinds, history, strict=True))
            items: list[Item] = []
            seen: set[Run] = set()
            for name in self.tables.lexers[lexer].scan:
                self.close(self.program.entries[name], NONE, whole, items, seen, str)
            typing = tuple(self.keyword_start(names) for _, names in self.tables.lexers[lexer].retype)
            found = self.trim(ScanState(lexer, tuple(items), typing, whole, True))
            self.starts[lexer, history] = found
        return found

    def keyword_start(self, names: Iterable[str]) -> Threads:
        return self.spread({self.program.entries[n] for n in names})

    def spread(self, pcs: Iterable[int]) -> Threads:
        """Epsilon closure of threads without assertions."""
        code, out, work = self.program.code, set(pcs), list(pcs)
        while work:
            ins = code[work.pop()]
            if isinstance(ins, Split):
                for t in ins.to:
                    if t not in out:
                        out.add(t)
                        work.append(t)
        return frozenset(pc for pc in out if not isinstance(code[pc], Split))

    def advance(self, threads: Threads, byte: int) -> Threads:
        return self.spread({t for pc in threads if (t := self.target(pc, byte)) >= 0})

    def target(self, pc: int, byte: int) -> int:
        ins = self.program.code[pc]
        if isinstance(ins, Step):
            for low, high, t in ins.ranges:
                if low <= byte <= high:
                    return t
        return -1

    # -- closure ---------------------------------------------------------------------------------------------

    def close(
        self,
        pc: int,
        obligations: Obligations,
        history: History,
        items: list[Item],
        seen: set[Run],
        typed: Callable[[str], str],
    ) -> bool:
        """Appends the items that a thread at pc stands for, in order.

        True: a hit cut off whatever would come next.
        """
        code = self.program.code
        work: list[tuple[int, Obligations]] = [(pc, obligations)]
        while work:
            pc, obligations = work.pop()
            run = Run(pc, obligations)
            if run in seen or (obligations and Run(pc, NONE) in seen):
                continue
            seen.add(run)
            ins = code[pc]
            if isinstance(ins, Split):
                work.extend((t, obligations) for t in reversed(ins.to))
            elif isinstance(ins, Behind):
                if self.holds_behind(ins.look, history) != ins.negative:
                    work.append((ins.to, obligations))
            elif isinstance(ins, Ahead):
                ob = self.obligation(ins, history)
                if ob is not False:
                    work.append((ins.to, obligations if ob is True else obligations | {ob}))
            elif isinstance(ins, Match):
                items.append(Hit(typed(ins.owner), Rest(b"", self.kept(history)), obligations))
                if not obligations:
                    return True
            else:
                items.append(run)
        return False

    def kept(self, history: History) -> History:
        """What of a history outlives the lexeme."""
        return tuple(None if b.local else h for b, h in zip(self.program.behinds, history, strict=True))

    def holds_behind(self, look: int, history: History) -> bool:
        threads = history[look]
        assert threads is not None
        return any(isinstance(self.program.code[pc], Match) for pc in threads)

    def obligation(self, ins: Ahead, history: History) -> Obligation | bool:
        """The lookahead from here on; a bool when that's decided already."""
        threads: set[tuple[int, Obligations]] = set()
        matched = self.gather(ins.body, NONE, history, threads)
        return self.judged(ins.negative, matched, threads)

    def judged(self, negative: bool, matched: bool, threads: set[tuple[int, Obligations]]) -> Obligation | bool:
        if matched:
            return not negative
        return Obligation(negative, frozenset(threads)) if threads else negative

    def gather(self, pc: int, obligations: Obligations, history: History, out: set[tuple[int, Obligations]]) -> bool:
        """Closure inside a lookahead's body, where order doesn't matter. True: the body has matched."""
        items: list[Item] = []
        matched = self.close(pc, obligations, history, items, set(), str)
        for item in items:
            out.add((MATCHED if isinstance(item, Hit) else item.pc, item.obligations))
        return matched

    # -- one byte --------------------------------------------------------------------------------------------

    def step_history(self, history: History, byte: int) -> History:
        out: list[Threads | None] = []
        for b, threads in zip(self.program.behinds, history, strict=True):
            out.append(None if threads is None else self.advance(threads, byte) | self.spread({b.entry}))
        return tuple(out)

    def step_obligations(self, obligations: Obligations, byte: int, history: History) -> Obligations | None:
        """None: one of them failed."""
        out: set[Obligation] = set()
        for ob in obligations:
            found = self.step_obligation(ob, byte, history)
            if found is False:
                return None
            if found is not True:
                out.add(found)
        return frozenset(out)

    def step_obligation(self, ob: Obligation, byte: int, history: History) -> Obligation | bool:
        threads: set[tuple[int, Obligations]] = set()
        for pc, inner in ob.threads:
            after = self.step_obligations(inner, byte, history)
            if after is None:
                continue
            if pc == MATCHED:
                if not after:
                    return not ob.negative
                threads.add((MATCHED, after))
            elif (t := self.target(pc, byte)) >= 0 and self.gather(t, after, history, threads):
                return not ob.negative
        return self.judged(ob.negative, False, threads)

    def step(self, state: ScanState, byte: int) -> ScanState | Hit | None:
        """The state after a byte; a hit: the lexeme is decided; None: the byte can't follow."""
        history = self.step_history(state.history, byte)
        retype = self.tables.lexers[state.lexer].retype
        typing = tuple(self.advance(t, byte) for t in state.typing)
        names = {name: i for i, (name, _) in enumerate(retype)}

        def typed(owner: str) -> str:
            if owner in self.tables.ignored:
                return IGNORED
            i = names.get(owner)
            return owner if i is None else self.keyword(typing[i], retype[i][1]) or owner

        items: list[Item] = []
        seen: set[Run] = set()
        for item in state.items:
            after = self.step_obligations(item.obligations, byte, history)
            if after is None:
                continue
            if isinstance(item, Hit):
                items.append(Hit(item.terminal, item.rest.then(byte), after))
                if not after:
                    break
            elif (t := self.target(item.pc, byte)) >= 0 and self.close(t, after, history, items, seen, typed):
                break
        if items and isinstance(first := items[0], Hit) and not first.obligations:
            return first
        return self.trim(ScanState(state.lexer, tuple(items), typing, history)) if items else None

    def keyword(self, threads: Threads, names: Iterable[str]) -> str | None:
        """The first keyword that the whole lexeme is."""
        ends = {ins.owner for pc in threads if isinstance(ins := self.program.code[pc], Match)}
        return next((n for n in names if n in ends), None)

    def trim(self, state: ScanState) -> ScanState:
        """Without typing and history that nobody can ask for any more."""
        p = self.program
        pcs = {pc for item in state.items for pc in _pcs(item)}
        owners = {p.owner[pc] for pc in pcs}
        needs = {n for pc in pcs for n in p.needs[pc]}
        retype = self.tables.lexers[state.lexer].retype
        typing = tuple(t if name in owners else frozenset() for t, (name, _) in zip(state.typing, retype, strict=True))
        history = tuple(h if not p.behinds[i].local or i in needs else None for i, h in enumerate(state.history))
        return state._replace(typing=typing, history=history)

    # -- all bytes -------------------------------------------------------------------------------------------

    def moves(self, state: ScanState) -> list[ScanMove]:
        """What each byte does, in order of bytes; neighbours with one effect are merged."""
        found = self.known.get(state)
        if found is None:
            found = self.known[state] = list(_merge(self.all_moves(state)))
        return found

    def all_moves(self, state: ScanState) -> Iterator[ScanMove]:
        for low, high in self.segments(state):
            result = self.step(state, low)
            if result is None:
                continue
            if isinstance(result, Hit):
                back = state.fallback
                if back is not None and result == back._replace(rest=back.rest.then(low)):
                    yield ScanMove(low, high, "fall")
                    continue
                several = bool(result.rest.text)
            else:
                several = any(isinstance(item, Hit) and item.rest.text for item in result.items)
            for byte in range(low, high + 1):
                if several and byte > low:
                    result = self.step(state, byte)
                top = byte if several else high
                if isinstance(result, Hit):
                    yield ScanMove(byte, top, "done", hit=result)
                elif result is not None:
                    yield ScanMove(byte, top, "go", state=result)
                if not several:
                    break

    def segments(self, state: ScanState) -> Iterator[tuple[int, int]]:
        """Ranges of bytes that no thread tells apart."""
        cuts = {0, 256}
        for pc in self.asked(state):
            ins = self.program.code[pc]
            if isinstance(ins, Step):
                for low, high, _ in ins.ranges:
                    cuts.add(low)
                    cuts.add(high + 1)
        ordered = sorted(cuts)
        yield from ((a, b - 1) for a, b in pairwise(ordered))

    def next_sets(self, state: ScanState) -> list[Ranges] | None:
        """The sets of characters that a state at a character's start tells apart; None inside a character."""
        sets: set[Ranges] = set()
        for pc in self.asked(state):
            ins = self.program.code[pc]
            if isinstance(ins, Step):
                if ins.ends < 0:
                    return None
                sets.add(ins.chars)
        return sorted(sets)

    def asked(self, state: ScanState) -> set[int]:
        """All instructions that the next byte is put to."""
        pcs = {pc for item in state.items for pc in _pcs(item)}
        pcs.update(pc for threads in state.typing for pc in threads)
        pcs.update(pc for threads in state.history if threads is not None for pc in threads)
        return pcs

    def is_unbounded(self, state: ScanState) -> bool:
        """Whether some thread at a character's start may go on for ever without a match."""
        steps = (self.program.code[i.pc] for i in state.items if isinstance(i, Run))
        return any(isinstance(s, Step) and s.unbounded for s in steps)

    def may_begin(self, state: ScanState) -> Ranges:
        """Characters that some thread of a state at a character's start can take."""
        steps = (self.program.code[i.pc] for i in state.items if isinstance(i, Run))
        return unite(*(s.chars for s in steps if isinstance(s, Step)))

    def must_match(self, state: ScanState) -> Ranges:
        """Characters after which some thread of a state at a character's start has matched, whatever
        follows.
        """
        steps = (self.program.code[i.pc] for i in state.items if isinstance(i, Run) and not i.obligations)
        return unite(*(s.chars for s in steps if isinstance(s, Step) and s.sure))

    # -- the end ---------------------------------------------------------------------------------------------

    def at_end(self, state: ScanState) -> Hit | None:
        """The lexeme if the text ends here. (A fresh state has none.)"""
        for item in state.items:
            if isinstance(item, Hit) and all(self.holds_at_end(ob) for ob in item.obligations):
                return item
        return None

    def holds_at_end(self, ob: Obligation) -> bool:
        matched = any(pc == MATCHED and all(self.holds_at_end(inner) for inner in obs) for pc, obs in ob.threads)
        return matched != ob.negative


def _pcs(item: Item) -> Iterator[int]:
    """Instructions an item may still run, in its lookaheads too."""
    if isinstance(item, Run):
        yield item.pc
    work = list(item.obligations)
    while work:
        for pc, inner in work.pop().threads:
            if pc != MATCHED:
                yield pc
            work.extend(inner)


def _merge(moves: Iterable[ScanMove]) -> Iterator[ScanMove]:
    last: ScanMove | None = None
    for m in moves:
        if (
            last is not None
            and last.high + 1 == m.low
            and (last.kind, last.state, last.hit) == (m.kind, m.state, m.hit)
        ):
            last = ScanMove(last.low, m.high, m.kind, m.state, m.hit)
            continue
        if last is not None:
            yield last
        last = m
    if last is not None:
        yield last
