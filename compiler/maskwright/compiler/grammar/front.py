"""Grammar text to a byte automaton: the passes in order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar.conflicts import refuse_conflicts, review
from maskwright.compiler.grammar.lark_tables import ConflictsFound, Tables, read_tables
from maskwright.compiler.grammar.liveness import Liveness, cut_bytes, cut_dead
from maskwright.compiler.grammar.pushdown import Lexing, Machine, PushdownBuilder
from maskwright.compiler.options import Limits

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
) -> GrammarResult:
    """Compile a Lark grammar. `spellable`: bytes, as bits, that texts may hold (those that the vocabulary
    has a token for).

    Raises CompileError (with lark's own message for what lark refuses) and LimitExceeded.
    """
    options, limits = options or GrammarOptions(), limits or Limits()
    size = len(grammar.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    if deadline is None:
        deadline = time.monotonic() + limits.compile_seconds
    try:
        tables = read_tables(grammar, options.start)
    except ConflictsFound as e:
        assert e.findings is not None
        raise refuse_conflicts(e.findings) from e
    notes = review(tables, options.strict)
    automaton, missing = build_automaton(tables, options, limits, deadline, spellable)
    return GrammarResult(minimise(automaton), (*notes, *_notes(missing)))


def build_automaton(
    tables: Tables, options: GrammarOptions, limits: Limits, deadline: float, spellable: int = ALL_BYTES
) -> tuple[ByteAutomaton, list[int]]:
    """The live automaton of tables, and the bytes left out. Controls whose edges mustn't be lost are made
    explicit, and all is built again.
    """
    builder = PushdownBuilder(tables, commit=options.fallback == "commit", limits=limits, deadline=deadline)
    while True:
        machine, controls = builder.build()
        missing = cut_bytes(machine, spellable)
        found = _live(machine, limits, deadline, missing)
        more = {
            c
            for n, low, high in found.shadowed
            if isinstance(c := controls[n], Lexing) and builder.follows(c, low, high)
        }
        if not more:
            return found.automaton, missing
        assert not more <= builder.explicit
        builder.explicit |= more


def _live(machine: Machine, limits: Limits, deadline: float, missing: list[int]) -> Liveness:
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
