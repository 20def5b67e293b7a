"""What may surprise in a grammar, as diagnostics: conflicts of the LALR table, and terminals that match the
same texts.

A reduce/reduce conflict refuses the grammar, as in lark. A shift/reduce conflict is decided by shifting, as
in lark, and noted; terminals of one priority that match a text in common are decided by lark's order, and
noted. With `strict` both refuse. Each finding has an example: the shortest symbols that lead to the
conflict, spelled with the shortest texts of their rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar.lark_tables import END, Conflict, Findings, Tables, Terminal
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import Budget, Dfa, intersection, is_empty, shortest_members

MAX_COLLISIONS = 8
COLLISION_STATES = 5_000
COLLISION_SECONDS = 1.0


def refuse_conflicts(found: Findings) -> CompileError:
    """The refusal of a grammar with reduce/reduce conflicts."""
    return CompileError(list(conflict_diagnostics(found, "error")))


def review(tables: Tables, strict: bool) -> tuple[Diagnostic, ...]:
    """Notes on conflicts and colliding terminals. With `strict`, raises CompileError when there is any."""
    severity = "error" if strict else "note"
    found = (*conflict_diagnostics(tables.findings, severity), *_collisions(tables, severity))
    if strict and found:
        raise CompileError(found)
    return found


def conflict_diagnostics(found: Findings, severity: str) -> Iterator[Diagnostic]:
    speller = _Speller(found)
    for c in found.conflicts:
        yield _conflict(c, speller, severity)


def _conflict(c: Conflict, speller: _Speller, severity: str) -> Diagnostic:
    example = speller.spell(c.prefix)
    follow = "the end of the text" if c.terminal == END else speller.show(c.terminal)
    rules = " and ".join(c.rules)
    if c.reduces:
        message = f"before {follow} the parser can't tell {rules} apart"
        hint = "merge the rules, or give one of them a priority"
    else:
        message = f"before {follow} the parser could end {rules}; it reads on instead"
        hint = "rewrite the rule with one alternative per binding strength"
    if example:
        message += f", for example after {' '.join(example)}"
    detail = {
        "conflict": "reduce/reduce" if c.reduces else "shift/reduce",
        "terminal": c.terminal,
        "rules": list(c.rules),
        "symbols": list(c.prefix),
        "example": example,
    }
    return Diagnostic(Code.UNSUPPORTED_GRAMMAR, message, severity=severity, detail=detail, hint=hint)


class _Speller:
    """Shortest spellings of symbols."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.words: dict[str, list[str]] = {}
        self.derived = False

    def show(self, terminal: str) -> str:
        t = self.found.terminals.get(terminal)
        return t.shown if t is not None else terminal

    def spell(self, symbols: tuple[str, ...]) -> list[str]:
        """Lexemes of the symbols; empty when one has no finite spelling."""
        if symbols and not self.derived:
            self.derive()
        out: list[str] = []
        for s in symbols:
            if s not in self.words:
                return []
            out += self.words[s]
        return out

    def derive(self) -> None:
        """The fewest lexemes for each rule, by rounds until nothing gets shorter."""
        self.derived = True
        for name, t in self.found.terminals.items():
            word = _shortest(t)
            self.words[name] = [word if word is not None else t.shown]
        changed = True
        while changed:
            changed = False
            for origin, symbols in self.found.productions:
                if all(s in self.words for s in symbols):
                    size = sum(len(self.words[s]) for s in symbols)
                    if origin not in self.words or size < len(self.words[origin]):
                        self.words[origin] = [w for s in symbols for w in self.words[s]]
                        changed = True


def _language(t: Terminal) -> Dfa | None:
    """None: too big, or not to be judged alone."""
    try:
        return compile_pattern(t.regexp, "python", limits=Limits(states=COLLISION_STATES))
    except CompileError:
        return None


def _shortest(t: Terminal) -> str | None:
    dfa = _language(t)
    members = shortest_members(dfa, 1) if dfa is not None else []
    return str(members[0]) if members else None


# -- terminals with a text in common -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    one: str
    two: str


def _collisions(tables: Tables, severity: str) -> Iterator[Diagnostic]:
    """Pairs of patterns of one priority in one lexer, as lark's strict mode looks for; at most
    `MAX_COLLISIONS`.
    """
    begin = time.monotonic()
    languages: dict[str, Dfa | None] = {}
    shown = 0
    for pair in _pairs(tables):
        if shown == MAX_COLLISIONS or time.monotonic() - begin > COLLISION_SECONDS:
            return
        text = _common(pair, tables, languages)
        if text is None:
            continue
        shown += 1
        one, two = (tables.terminals[n].shown for n in (pair.one, pair.two))
        yield Diagnostic(
            Code.UNSUPPORTED_GRAMMAR,
            f"terminals {one} and {two} both match {text!r}; the lexer takes {one}",
            severity=severity,
            detail={"terminals": [pair.one, pair.two], "example": text},
            hint="give one of them a higher priority",
        )


def _pairs(tables: Tables) -> Iterator[_Pair]:
    seen: set[frozenset[str]] = set()
    for lexer in tables.lexers:
        patterns = [t for n in lexer.scan if (t := tables.terminals[n]).is_pattern]
        for i, one in enumerate(patterns):
            for two in patterns[i + 1 :]:
                key = frozenset((one.name, two.name))
                if one.priority == two.priority and key not in seen:
                    seen.add(key)
                    yield _Pair(one.name, two.name)


def _common(pair: _Pair, tables: Tables, languages: dict[str, Dfa | None]) -> str | None:
    for name in (pair.one, pair.two):
        if name not in languages:
            languages[name] = _language(tables.terminals[name])
    one, two = languages[pair.one], languages[pair.two]
    if one is None or two is None:
        return None
    try:
        both = intersection(one, two, budget=Budget(COLLISION_STATES))
    except LimitExceeded:
        return None
    return None if is_empty(both) else str(shortest_members(both, 1)[0])
