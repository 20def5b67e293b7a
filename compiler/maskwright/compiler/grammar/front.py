"""Grammar text to a byte automaton: the passes in order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.grammar.lark_tables import Tables, read_tables
from maskwright.compiler.grammar.liveness import cut_dead
from maskwright.compiler.grammar.pushdown import Lexing, PushdownBuilder
from maskwright.compiler.options import Limits


@dataclass(frozen=True)
class GrammarOptions:
    """start: the rule that a text must match.

    fallback: what to do where lark's lexer may have to look ahead without bound before it falls back on a shorter match:
        "refuse", or "commit" (never fall back that far; texts are lost, none is wrongly let through).
    """

    start: str = "start"
    fallback: Literal["refuse", "commit"] = "refuse"


def build_grammar(
    grammar: str,
    options: GrammarOptions | None = None,
    *,
    limits: Limits | None = None,
    deadline: float | None = None,
) -> ByteAutomaton:
    """The automaton of a Lark grammar: every configuration it can reach can be completed.

    Raises CompileError (with lark's own message for what lark refuses) and LimitExceeded.
    """
    options, limits = options or GrammarOptions(), limits or Limits()
    size = len(grammar.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    if deadline is None:
        deadline = time.monotonic() + limits.compile_seconds
    tables = read_tables(grammar, options.start)
    return minimise(build_automaton(tables, options, limits, deadline))


def build_automaton(tables: Tables, options: GrammarOptions, limits: Limits, deadline: float) -> ByteAutomaton:
    """Tables to a live automaton. Controls that would lose an edge are made explicit, and the machine is built again."""
    builder = PushdownBuilder(tables, commit=options.fallback == "commit", limits=limits, deadline=deadline)
    while True:
        machine, controls = builder.build()
        found = cut_dead(machine, limits, deadline)
        more = {c for n, low, high in found.shadowed if isinstance(c := controls[n], Lexing) and builder.follows(c, low, high)}
        if not more:
            return found.automaton
        assert not more <= builder.explicit
        builder.explicit |= more
