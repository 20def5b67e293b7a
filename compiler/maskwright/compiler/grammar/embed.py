"""Values embedded in a grammar: `%json { a JSON Schema }` and `%regex { "pattern": … }` wherever a terminal
may stand; and special tokens, `<|name|>` or `<[ids]>`, in rules (`token_symbols.py`).

Lark doesn't know them. Each is replaced in the grammar's text by a terminal, padded to the same length so that places
in lark's messages stay true. A special token's terminal has a pattern that no text matches, and is read by its symbol.
The others are declared terminals, compiled on their own to an automaton whose root frame the grammar calls. A value
is read as far as it goes: where a number could go on, it does.

    %json {"type": "object"}
    %regex {"pattern": "\\\\d+(?!x)", "dialect": "ecma262", "flags": "i"}      dialect and flags may be left
    out
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.automaton.explore import explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.automaton.spell import cut_unspellable
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regex_frames import DfaFrame
from maskwright.compiler.regular import Budget, to_bytes
from maskwright.compiler.schema import compile_schema

PIECES = re.compile(
    r"""(?P<skip>"(?:\\.|[^"\\\n])*"i?|/(?![/*])(?:\\.|[^/\\\n])+/[imslux]*|//[^\n]*|\#[^\n]*)"""
    r"""|%(?P<kind>json|regex)\s*(?=\{)|(?P<special><\|[^|\n]*\|>|<\[[^\]\n]*\]>)"""
)
KEYS = {"pattern", "dialect", "flags"}
TOKEN_PATTERN, TOKEN_CHARACTER = r"\ud800", "\ud800"
"""What lark reads for a special token's symbol: a character that no text has. `program.py` never sees it."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """`terminal` stands for it in the grammar; `value` is its JSON, or a special token's symbol; `span` its place."""

    terminal: str
    kind: str
    value: Any
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class EmbeddedFrame:
    """An automaton over the library, live, whose start doesn't accept."""

    source: Embedded
    automaton: ByteAutomaton

    def first_bytes(self) -> list[tuple[int, int]]:
        """Ranges of bytes that it begins with."""
        a = self.automaton
        assert a.start is not None
        out: list[tuple[int, int]] = []
        for e in a.edges_of(a.start):
            if out and out[-1][1] + 1 == e.low:
                out[-1] = (out[-1][0], e.high)
            else:
                out.append((e.low, e.high))
        return out


def take_embedded(grammar: str) -> tuple[str, list[Embedded]]:
    """The grammar as lark can read it, and what was taken out. Raises CompileError with spans."""
    out: list[str] = []
    found: dict[str, Embedded] = {}
    at = 0
    for start, end, kind, value in _occurrences(grammar):
        key = f"{kind} {json.dumps(value)}"
        if key not in found:
            found[key] = Embedded(_free_name(grammar, len(found)), kind, value, (start, end))
        out += [grammar[at:start], found[key].terminal.ljust(end - start)]
        at = end
    if not found:
        return grammar, []
    lines = [f"{e.terminal}: /{TOKEN_PATTERN}/" for e in found.values() if e.kind == "token"]
    names = [e.terminal for e in found.values() if e.kind != "token"]
    lines += [f"%declare {' '.join(names)}"] if names else []
    return "\n".join(["".join(out) + grammar[at:], *lines, ""]), list(found.values())


def _free_name(grammar: str, number: int) -> str:
    for letter in "EFGHIJK":
        name = f"{letter}__{number}"
        if name not in grammar:
            return name
    raise _fault(f"every name for an embedded value is taken, as {name}", (0, len(grammar)))


def _occurrences(grammar: str) -> Iterator[tuple[int, int, str, Any]]:
    at = 0
    while m := PIECES.search(grammar, at):
        at = m.end()
        if m["special"]:
            yield m.start(), at, "token", m["special"]
        if m["kind"]:
            try:
                value, at = json.JSONDecoder().raw_decode(grammar, m.end())
            except (ValueError, RecursionError) as e:
                raise _fault(f"what follows %{m['kind']} isn't JSON: {e}", m.span()) from e
            yield m.start(), at, m["kind"], value


def _fault(message: str, span: tuple[int, int]) -> CompileError:
    return CompileError(Diagnostic(Code.INVALID_SOURCE, message, span=span))


# -- compiling -----------------------------------------------------------------------------------------------


def compile_embedded(
    found: list[Embedded],
    options: CompileOptions,
    limits: Limits,
    library: ByteAutomaton | None,
    deadline: float,
    spellable: int,
) -> dict[str, EmbeddedFrame]:
    """By terminal. Raises CompileError, each fault with the value's place in the grammar; LimitExceeded."""
    out: dict[str, EmbeddedFrame] = {}
    compilers: dict[str, Callable[[Any], ByteAutomaton]] = {
        "json": lambda value: compile_schema(value, options, limits, library, deadline).automaton,
        "regex": lambda value: _regex(value, options, limits, library, deadline),
    }
    for e in found:
        try:
            automaton, _ = cut_unspellable(compilers[e.kind](e.value), spellable, limits)
        except CompileError as refused:
            if any(d.code is Code.LIMIT_EXCEEDED for d in refused.diagnostics):
                raise
            raise CompileError([_placed(d, e.span) for d in refused.diagnostics]) from refused
        assert automaton.start is not None
        if automaton.verdict_of(automaton.start) >= 0:
            raise _fault("an embedded pattern must not match the empty text", e.span)
        out[e.terminal] = EmbeddedFrame(e, automaton)
    return out


def _regex(
    value: Any, options: CompileOptions, limits: Limits, library: ByteAutomaton | None, deadline: float
) -> ByteAutomaton:
    wrong = sorted(set(value) - KEYS)
    if wrong or not all(isinstance(v, str) for v in value.values()) or "pattern" not in value:
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, '%regex takes strings "pattern", "dialect", "flags"'))
    dialect = value.get("dialect", options.regex_dialect)
    if dialect not in ("ecma262", "python"):
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, f"unknown dialect {dialect!r}"))
    try:
        dfa = compile_pattern(value["pattern"], dialect, flags=value.get("flags", ""), limits=limits, deadline=deadline)
    except ValueError as e:
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, str(e))) from e
    bytes_dfa = to_bytes(dfa, "utf8", Budget(limits.states, deadline, limits.compile_seconds))
    return specialise(explore(DfaFrame(bytes_dfa), library, limits=limits, deadline=deadline), limits)


def _placed(d: Diagnostic, span: tuple[int, int]) -> Diagnostic:
    return Diagnostic(
        d.code,
        d.message,
        severity=d.severity,
        source=d.source,
        pointer=d.pointer,
        span=span,
        detail={**d.detail, **({"inner_span": list(d.span)} if d.span else {})},
        hint=d.hint,
    )
