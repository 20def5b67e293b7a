"""Lark's tables, read in one place: everything that depends on lark's private structures is in this file.

lark 1.3.1 reads the grammar, computes LALR(1) tables and makes one lexer per set of terminals that a parser
state can take. This module copies what a parse depends on into frozen data: actions, gotos, and for each
lexer its terminals in matching order and which of them are retyped to keywords. LR states are renumbered
breadth first by symbol name, because lark numbers them in the order of a set of objects.
`tests/unit/grammar/test_lark_tables.py` notices when a lark release changes what is read here.

Imports are served from the grammars that ship with lark and from nowhere else: no file is opened.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pkgutil import get_data
from typing import Any

from lark import Lark
from lark.exceptions import GrammarError, LarkError
from lark.lexer import ContextualLexer, UnlessCallback
from lark.parsers.lalr_analysis import LALR_Analyzer
from lark.parsers.lalr_parser import LALR_Parser, _Parser

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar.program import parse_terminal
from maskwright.compiler.grammar.templates import check_templates

MAX_RULES = 3_000
"""Alternatives that lark analyses; its sets take time that grows with their square."""

END = "$END"
BUNDLED = ("common", "unicode", "python", "lark")


@dataclass(frozen=True, slots=True)
class Terminal:
    """`regexp` is in Python's syntax with its flags written inline; `shown` is how a person wrote it."""

    name: str
    regexp: str
    shown: str
    priority: int = 0
    is_pattern: bool = True


@dataclass(frozen=True, slots=True)
class Lexer:
    """Terminals in matching order; `retype[t]`: keywords tried in order on the whole of what t matched."""

    scan: tuple[str, ...]
    retype: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Shift:
    state: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """Pop `size` states, then go by `origin`."""

    origin: str
    size: int


Action = Shift | Reduce


@dataclass(frozen=True, slots=True)
class Conflict:
    """`prefix`: symbols after which the parser can't tell the rules apart (or, with one rule, that from a
    shift).
    """

    terminal: str
    rules: tuple[str, ...]
    prefix: tuple[str, ...]
    reduces: bool


@dataclass(frozen=True)
class Findings:
    """Conflicts, with what is needed to spell an example: rules as (origin, symbols), and the terminals."""

    conflicts: tuple[Conflict, ...]
    productions: tuple[tuple[str, tuple[str, ...]], ...]
    terminals: dict[str, Terminal]


class ConflictsFound(Exception):
    """Rules that lark can't tell apart: reduce/reduce conflicts."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts
        self.findings: Findings | None = None


@dataclass(frozen=True)
class Tables:
    """`actions[q]` by terminal or END; `gotos[q]` by rule name; `lexer_of[q]` indexes `lexers`. State 0 is
    the start.
    """

    terminals: dict[str, Terminal]
    ignored: frozenset[str]
    actions: tuple[dict[str, Action], ...]
    gotos: tuple[dict[str, int], ...]
    lexer_of: tuple[int, ...]
    lexers: tuple[Lexer, ...]
    end_state: int
    findings: Findings

    @property
    def n_states(self) -> int:
        return len(self.actions)


def read_tables(
    grammar: str,
    start: str = "start",
    declared: frozenset[str] = frozenset(),
    check_time: Callable[[], None] = lambda: None,
) -> Tables:
    """Lark's tables of a grammar. `declared`: terminals that may lack a pattern. `check_time` raises when it's too
    late.

    Raises ConflictsFound for reduce/reduce conflicts; CompileError for whatever else lark refuses, for
    %declare and for foreign imports.
    """
    try:
        check_templates(grammar, [_bundled_grammar])
        lark = _Reader(
            grammar,
            parser="lalr",
            lexer="contextual",
            start=start,
            import_paths=[_bundled_grammar],
            _plugins={
                "ContextualLexer": _UnvalidatedLexer,
                "LALR_Parser": partial(_WatchedParser, check_time=check_time),
            },
        )
    except (CompileError, ConflictsFound):
        raise
    except (LarkError, ValueError, TypeError, AssertionError, KeyError, IndexError, OSError, re.error) as e:
        raise _refused(e) from e
    except RecursionError as e:
        raise CompileError(
            Diagnostic(Code.UNSUPPORTED_GRAMMAR, "the grammar nests too deep", detail={"stage": "lark"})
        ) from e
    return _copy_tables(lark, start, declared)


class _Reader(Lark):
    """Lark, keeping the terminals for diagnostics when the parser can't be built."""

    def _build_parser(self) -> Any:
        try:
            return super()._build_parser()
        except ConflictsFound as e:
            e.findings = self.find(e.conflicts)
            raise

    def find(self, conflicts: tuple[Conflict, ...]) -> Findings:
        rules = tuple((str(r.origin.name), tuple(str(s.name) for s in r.expansion)) for r in self.rules)
        terminals = sorted(self.terminals, key=lambda t: t.name)
        return Findings(conflicts, rules, {t.name: _copy_terminal(t) for t in terminals if t.pattern is not None})


class _WatchedParser(LALR_Parser):
    """Lark's parser; the conflicts that its analysis meets are kept. The relations that the analysis goes through most
    are watched, so that it ends when it's too late."""

    def __init__(
        self,
        parser_conf: Any,
        debug: bool = False,
        strict: bool = False,
        check_time: Callable[[], None] = lambda: None,
    ) -> None:
        if len(parser_conf.rules) > MAX_RULES:
            raise LimitExceeded("grammar_rules", MAX_RULES, len(parser_conf.rules), "lark")
        analysis = LALR_Analyzer(parser_conf, debug=debug, strict=strict)
        for relation in ("reads", "includes", "lookback"):
            setattr(analysis, relation, _Watched(check_time))
        start = parser_conf.start[0]
        try:
            analysis.compute_lalr()  # type: ignore[no-untyped-call]
            self.conflicts = _conflicts(analysis, start, reduces=False)
        except GrammarError as e:
            found = _conflicts(analysis, start, reduces=True)
            raise ConflictsFound(found) if found else e from e
        finally:
            _untie(analysis)
        self._parse_table = analysis.parse_table
        self.parser_conf = parser_conf
        self.parser = _Parser(analysis.parse_table, parser_conf.callbacks, debug)


class _Watched(defaultdict[Any, set[Any]]):
    """A relation of lark's analysis; looking something up may raise."""

    def __init__(self, check_time: Callable[[], None]) -> None:
        super().__init__(set)
        self.check_time = check_time

    def __getitem__(self, key: Any) -> set[Any]:
        self.check_time()
        return super().__getitem__(key)


class _UnvalidatedLexer(ContextualLexer):
    """Lark's lexer without its search for colliding terminals, which may take seconds; `_check_terminals`
    does the rest.
    """

    def __init__(self, conf: Any, states: Any, always_accept: Any = ()) -> None:
        conf = copy(conf)
        conf.skip_validation = True
        super().__init__(conf, states, always_accept)


def _bundled_grammar(base_path: str | None, grammar_path: str) -> tuple[str, str]:
    """Called by lark before it would look at any folder."""
    name = grammar_path.removesuffix(".lark")
    if name not in BUNDLED:
        raise CompileError(
            Diagnostic(
                Code.UNSUPPORTED_GRAMMAR,
                f"%import of {name!r} isn't supported",
                detail={"import": name, "known": list(BUNDLED)},
                hint="copy the definitions into the grammar",
            )
        )
    data = get_data("lark", f"grammars/{grammar_path}")
    assert data is not None
    return f"<lark>/{grammar_path}", data.decode()


def _refused(e: BaseException) -> CompileError:
    """Lark's message as a diagnostic, with a span where lark knows the place."""
    place = getattr(e, "pos_in_stream", None)
    cause = e.__cause__ or e.__context__
    if place is None and cause is not None:
        place = getattr(cause, "pos_in_stream", None)
    message = str(e).strip() or type(e).__name__
    return CompileError(
        Diagnostic(
            Code.INVALID_SOURCE,
            message,
            span=(place, place + 1) if isinstance(place, int) and place >= 0 else None,
            detail={"error": type(e).__name__},
        )
    )


def _untie(analysis: Any) -> None:
    """Item sets lead to each other in circles: without this their analysis would stay until a collection."""
    for itemset in getattr(analysis, "lr0_itemsets", ()):
        itemset.transitions.clear()


# -- copying -------------------------------------------------------------------------------------------------


def _conflicts(analysis: Any, start: str, reduces: bool) -> tuple[Conflict, ...]:
    """Reduce/reduce conflicts that priorities don't decide; or shift/reduce conflicts, which lark decides by
    shifting.
    """
    found: list[Conflict] = []
    for prefix, itemset in _itemsets(analysis.lr0_start_states[start]):
        suspects = [t for t, rules in itemset.lookaheads.items() if len(rules) > 1 or t in itemset.transitions]
        for terminal in sorted(suspects, key=lambda t: str(t.name)):
            rules = _best(itemset.lookaheads[terminal])
            clash = len(rules) > 1 if reduces else terminal in itemset.transitions
            if clash:
                found.append(Conflict(str(terminal.name), tuple(sorted(map(str, rules))), prefix, reduces))
    return tuple(found)


def _best(rules: Any) -> list[Any]:
    """The rules of highest priority."""
    highest = max(r.options.priority or 0 for r in rules)
    return [r for r in rules if (r.options.priority or 0) == highest]


def _itemsets(start: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """LR(0) item sets with the fewest symbols that lead to each."""
    queue: list[tuple[tuple[str, ...], Any]] = [((), start)]
    seen = {id(start)}
    for prefix, itemset in queue:
        yield prefix, itemset
        for symbol in sorted(itemset.transitions, key=lambda s: str(s.name)):
            after = itemset.transitions[symbol]
            if id(after) not in seen:
                seen.add(id(after))
                queue.append(((*prefix, str(symbol.name)), after))


def _copy_tables(lark: Any, start: str, declared: frozenset[str]) -> Tables:
    table = lark.parser.parser._parse_table
    contextual = lark.parser.lexer
    rules = frozenset(r.origin.name for r in lark.rules)
    _check_terminals(lark, table, rules | declared)
    order = _number_states(table.states, table.start_states[start])
    place = {old: new for new, old in enumerate(order)}
    lexers: dict[Lexer, int] = {}
    lexer_of = tuple(lexers.setdefault(_copy_lexer(contextual.lexers[q]), len(lexers)) for q in order)
    used = {t for lexer in lexers for t in (*lexer.scan, *(k for _, names in lexer.retype for k in names))}
    return Tables(
        terminals={t.name: _copy_terminal(t) for t in sorted(lark.terminals, key=lambda t: t.name) if t.name in used},
        ignored=frozenset(lark.ignore_tokens),
        actions=tuple(dict(_actions(table.states[q], place, rules)) for q in order),
        gotos=tuple(dict(_gotos(table.states[q], place, rules)) for q in order),
        lexer_of=lexer_of,
        lexers=tuple(lexers),
        end_state=place[table.end_states[start]],
        findings=lark.find(lark.parser.parser.conflicts),
    )


def _number_states(states: dict[int, dict[str, Any]], start: int) -> list[int]:
    order, seen = [start], {start}
    for q in order:
        for symbol in sorted(states[q]):
            action, arg = states[q][symbol]
            if action.name == "Shift" and arg not in seen:
                seen.add(arg)
                order.append(arg)
    return order


def _actions(row: dict[str, Any], place: dict[int, int], rules: frozenset[str]) -> Iterator[tuple[str, Action]]:
    reduces: dict[int, Reduce] = {}
    for symbol in sorted(row):
        action, arg = row[symbol]
        if action.name == "Reduce":
            if id(arg) not in reduces:
                reduces[id(arg)] = Reduce(str(arg.origin.name), len(arg.expansion))
            yield symbol, reduces[id(arg)]
        elif symbol not in rules:
            yield symbol, Shift(place[arg])


def _gotos(row: dict[str, Any], place: dict[int, int], rules: frozenset[str]) -> Iterator[tuple[str, int]]:
    for symbol in sorted(row):
        action, arg = row[symbol]
        if action.name == "Shift" and symbol in rules:
            yield symbol, place[arg]


def _copy_lexer(lexer: Any) -> Lexer:
    try:
        scanner = lexer.scanner
    except re.error as e:
        message = f"the terminals can't be matched together: {e}"
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, message, hint="flags go after the closing slash")) from e
    retype = []
    for name, callback in lexer.callback.items():
        assert isinstance(callback, UnlessCallback)
        retype.append((name, tuple(t.name for t in callback.scanner.terminals)))
    return Lexer(tuple(t.name for t in scanner.terminals), tuple(sorted(retype)))


def _copy_terminal(t: Any) -> Terminal:
    return Terminal(t.name, t.pattern.to_regexp(), t.user_repr(), t.priority, t.pattern.type == "re")


def _check_terminals(lark: Any, table: Any, excepted: frozenset[str]) -> None:
    """What lark's own validation checks, as diagnostics; and terminals that nothing defines."""
    known = {t.name: t for t in lark.terminals}
    needed = sorted({s for row in table.states.values() for s in row if s not in excepted and s != END})
    for name in [*needed, *sorted(lark.ignore_tokens)]:
        t = known.get(name)
        if t is None or t.pattern is None:
            raise CompileError(
                Diagnostic(
                    Code.UNSUPPORTED_GRAMMAR,
                    f"terminal {name} is declared and not defined",
                    detail={"terminal": name},
                    hint="give it a pattern",
                )
            )
        _check_terminal(t)


def _check_terminal(t: Any) -> None:
    try:
        re.compile(t.pattern.to_regexp())
    except re.error as e:
        message = f"terminal {t.name} isn't a valid regular expression: {e}"
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, message, detail={"terminal": t.name})) from e
    parse_terminal(t.name, t.pattern.to_regexp())
    if t.pattern.min_width == 0:
        raise CompileError(
            Diagnostic(
                Code.INVALID_SOURCE,
                f"terminal {t.name} can match nothing at all ({t.pattern})",
                detail={"terminal": t.name},
                hint="make the rule optional instead of the terminal",
            )
        )
