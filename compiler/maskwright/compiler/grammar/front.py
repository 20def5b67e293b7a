"""Grammar text to a byte automaton: the passes in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded, out_of_time
from maskwright.compiler.grammar.assemble import assemble
from maskwright.compiler.grammar.conflicts import refuse_conflicts, review
from maskwright.compiler.grammar.embed import TOKEN_CHARACTER, TOKEN_PATTERN, Embedded, compile_embedded, take_embedded
from maskwright.compiler.grammar.emit import emit
from maskwright.compiler.grammar.lark_tables import ConflictsFound, Tables, read_tables
from maskwright.compiler.grammar.liveness import Live, cut_bytes, cut_dead
from maskwright.compiler.grammar.machine import Machine
from maskwright.compiler.grammar.merge_states import merge_states
from maskwright.compiler.grammar.pushdown import Pushdown
from maskwright.compiler.grammar.token_symbols import MARKERS, TokenSymbols
from maskwright.compiler.options import CompileOptions, Limits

ALL_BYTES = (1 << 256) - 1


@dataclass(frozen=True)
class GrammarOptions:
    """start: the rule that a text must match.

    fallback: what to do where lark's lexer may have to look ahead without bound before it falls back on a
    shorter match:
        "refuse", or "commit" (never fall back that far; texts are lost, none is wrongly let through).
    strict: refuse shift/reduce conflicts, and terminals of one priority that match a text in common, instead
    of noting them.
    """

    start: str = "start"
    fallback: Literal["refuse", "commit"] = "refuse"
    strict: bool = False


@dataclass(frozen=True)
class GrammarResult:
    """The automaton, every configuration of which can be completed, and what the user should know."""

    automaton: ByteAutomaton
    notes: tuple[Diagnostic, ...] = ()


def build_grammar(
    grammar: str,
    options: GrammarOptions | None = None,
    *,
    limits: Limits | None = None,
    deadline: float | None = None,
    spellable: int = ALL_BYTES,
    library: ByteAutomaton | None = None,
    compile_options: CompileOptions | None = None,
    specials: TokenSymbols | None = None,
) -> GrammarResult:
    """Compile a grammar in Lark's notation, with `%json` and `%regex` values.

    spellable: bytes, as bits, that texts may hold (those that the vocabulary has a token for).
    library, compile_options: the vocabulary's frames, and the options for embedded values.
    specials: the vocabulary's special tokens, which learns those that are used.
    Raises CompileError (with lark's own message for what lark refuses) and LimitExceeded.
    """
    options, limits = options or GrammarOptions(), limits or Limits()
    size = len(grammar.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    if deadline is None:
        deadline = now() + limits.compile_seconds
    text, values = take_embedded(grammar)
    symbols = {e.terminal: ((specials or TokenSymbols()).read(e.value, e.span), e) for e in values if e.kind == "token"}
    values = [e for e in values if e.kind != "token"]
    embedded = compile_embedded(values, compile_options or CompileOptions(), limits, library, deadline, spellable)
    spellable |= MARKERS

    def check_time() -> None:
        if now() > deadline:
            raise out_of_time(limits.compile_seconds, deadline, "lark")

    try:
        tables = name_symbols(read_tables(text, options.start, frozenset(embedded), check_time), symbols)
    except ConflictsFound as e:
        assert e.findings is not None
        raise refuse_conflicts(e.findings) from e
    notes = review(tables, options.strict)
    tokens = {name: ids for name, (ids, _) in symbols.items()}
    merged = merge_states(tables)
    pushdown = Pushdown(merged, commit=options.fallback == "commit", embedded=embedded, tokens=tokens)
    machine = assemble(pushdown, limits, deadline)
    missing = cut_bytes(machine, spellable)
    live = _cut(machine, limits, deadline, missing)
    return GrammarResult(minimise(emit(live, machine, embedded, library)), (*notes, *_notes(missing)))


def name_symbols(tables: Tables, symbols: dict[str, tuple[tuple[int, ...], Embedded]]) -> Tables:
    """The tables with special tokens shown as they're written. Raises CompileError for one inside a terminal."""
    if not symbols:
        return tables
    known = dict(tables.terminals)
    for name, t in known.items():
        if name in symbols:
            known[name] = replace(t, shown=symbols[name][1].value)
        elif TOKEN_CHARACTER in t.regexp or TOKEN_PATTERN in t.regexp:
            message = f"terminal {name} holds a special token, which stands in rules only"
            raise CompileError(Diagnostic(Code.UNSUPPORTED_GRAMMAR, message, detail={"terminal": name}))
    findings = replace(tables.findings, terminals={n: known.get(n, t) for n, t in tables.findings.terminals.items()})
    return replace(tables, terminals=known, findings=findings)


def _cut(machine: Machine, limits: Limits, deadline: float, missing: list[int]) -> Live:
    try:
        return cut_dead(machine, limits, deadline)
    except CompileError as refused:
        if not missing or any(d.code is not Code.UNSATISFIABLE for d in refused.diagnostics):
            raise
        message = f"every text needs a byte that no token spells: {_hex(missing)}"
        raise CompileError(Diagnostic(Code.VOCABULARY_INCOMPLETE, message, detail={"bytes": missing})) from refused


def _notes(missing: list[int]) -> tuple[Diagnostic, ...]:
    if not missing:
        return ()
    message = f"texts with these bytes are left out, because no token spells them alone: {_hex(missing)}"
    return (Diagnostic(Code.VOCABULARY_INCOMPLETE, message, severity="warning", detail={"bytes": missing}),)


def _hex(values: list[int]) -> str:
    return ", ".join(f"0x{b:02x}" for b in values[:16]) + (", …" if len(values) > 16 else "")
