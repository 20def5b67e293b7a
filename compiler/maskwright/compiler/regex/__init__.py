"""Regular expressions of two dialects, compiled to automata over characters.

    compile_pattern(pattern, dialect="ecma262" | "python", *, mode="full" | "search", flags="", limits=, deadline=,
        pointer=) -> Dfa over characters; `regular.to_bytes` makes bytes of it
    parse_pattern(pattern, dialect, flags) -> Node; `print_tree(node)` shows it

Passes: parse (`ecma262.py`, `python.py`; both give `tree.py`'s tree) -> resolve atomic groups (`atomic.py`) ->
position automaton (`positions.py`, `conditions.py`) -> subset construction (`determinise.py`) -> minimal, canonical
automaton.
"""

from __future__ import annotations

from typing import Literal

from maskwright.compiler.deadline import now
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import ecma262, python
from maskwright.compiler.regex.atomic import resolve_atomic
from maskwright.compiler.regex.determinise import determinise
from maskwright.compiler.regex.positions import build_positions
from maskwright.compiler.regex.search import trim_search
from maskwright.compiler.regex.tree import Node, print_tree
from maskwright.compiler.regex.unicode import unicode_version
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.dfa import Dfa

Dialect = Literal["ecma262", "python"]
Mode = Literal["full", "search"]

__all__ = ["Dialect", "Mode", "compile_pattern", "compile_tree", "parse_pattern", "print_tree", "unicode_version"]


def parse_pattern(pattern: str, dialect: Dialect = "ecma262", flags: str = "") -> Node:
    """The pattern's tree. Raises CompileError with a span: INVALID_SOURCE or UNSUPPORTED_PATTERN."""
    if dialect not in ("ecma262", "python"):
        raise ValueError(f"unknown dialect {dialect!r}")
    return ecma262.parse(pattern, flags) if dialect == "ecma262" else python.parse(pattern, flags)


def compile_pattern(
    pattern: str,
    dialect: Dialect = "ecma262",
    *,
    mode: Mode = "full",
    flags: str = "",
    limits: Limits | None = None,
    deadline: float | None = None,
    pointer: str | None = None,
) -> Dfa:
    """The minimal automaton over characters of a pattern.

    mode: "full": the whole text is a match; "search": the text contains one (JSON Schema's `pattern`).
    deadline: a `deadline.now` value, by default `limits.compile_seconds` from now.
    pointer: the pattern's place in a schema, for diagnostics.
    Raises CompileError (INVALID_SOURCE, UNSUPPORTED_PATTERN) with a span, LimitExceeded by `limits` (`pattern_length`,
    `states`) and `deadline`. Cost: linear in the pattern for parsing, then by the states met.
    """
    limits = limits or Limits()
    if deadline is None:
        deadline = now() + limits.compile_seconds
    budget = Budget(limits.states, deadline, limits.compile_seconds, "regex", pointer)
    if len(pattern) > limits.pattern_length:
        raise budget.at(span=(0, len(pattern))).exceeded("pattern_length", limits.pattern_length, len(pattern))
    root = parse_pattern(pattern, dialect, flags)
    if dialect == "python":
        root = resolve_atomic(root, pattern, lambda node: compile_tree(node, budget=budget))
    return compile_tree(root, mode, budget)


def compile_tree(root: Node, mode: Mode = "full", budget: Budget | None = None) -> Dfa:
    """As `compile_pattern`, from a tree without `Atomic`."""
    budget = budget or Budget(stage="regex")
    search = mode == "search"
    if search:
        root = trim_search(root)
    automaton, costliest = build_positions(root, search, budget)
    return determinise(automaton, budget.at(span=costliest))
