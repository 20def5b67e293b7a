"""What there is to know about one pattern: its tree, its automata's sizes, its shortest members."""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.compiler.options import Limits
from maskwright.compiler.regex import Dialect, Mode, compile_pattern, parse_pattern
from maskwright.compiler.regex.tree import print_tree
from maskwright.compiler.regular import Budget, Dfa, is_empty, longest_member, shortest_members, to_bytes


@dataclass(frozen=True, slots=True)
class PatternReport:
    """`tree`: one line per node; states are counted without the dead state; `longest`: None when there is none.

    `longest` counts characters, -1 when nothing matches. `members`: up to three of the shortest.
    """

    tree: str
    dfa: Dfa
    utf8_states: int
    json_states: int
    members: tuple[str, ...]
    longest: int | None

    def __str__(self) -> str:
        """The report for people."""
        lines = [self.tree, "", f"states: {self.dfa.n_states} over characters, {self.utf8_states} over UTF-8 bytes,"]
        lines[-1] += f" {self.json_states} inside a JSON string"
        if is_empty(self.dfa):
            return "\n".join([*lines, "nothing matches"])
        longest = "unbounded" if self.longest is None else f"at most {self.longest} characters"
        shortest = "shortest, a character for its whole class: " + ", ".join(map(repr, self.members))
        return "\n".join([*lines, f"length: {longest}", shortest])


def report_pattern(
    pattern: str,
    dialect: Dialect = "ecma262",
    mode: Mode = "full",
    limits: Limits | None = None,
    deadline: float | None = None,
) -> PatternReport:
    """Compile a pattern for its own sake. Raises CompileError as `compile_pattern` does."""
    limits = limits or Limits()
    tree = print_tree(parse_pattern(pattern, dialect))
    dfa = compile_pattern(pattern, dialect, mode=mode, limits=limits, deadline=deadline)
    budget = Budget(limits.states, deadline, limits.compile_seconds, "bytes", span=(0, len(pattern)))
    utf8, inside = to_bytes(dfa, "utf8", budget), to_bytes(dfa, "json", budget)
    members = tuple(m for m in shortest_members(dfa, 3) if isinstance(m, str))
    return PatternReport(tree, dfa, utf8.n_states, inside.n_states, members, longest_member(dfa))
