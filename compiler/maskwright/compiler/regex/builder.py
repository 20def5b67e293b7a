"""What both parsers share: a cursor over the pattern, refusals with spans, and an explicit stack of open groups.

Parsing is one loop over the pattern's characters with no recursion, so nesting costs memory only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.regex.tree import Node, Span, alternation, concat

F = TypeVar("F")
Wrap = Callable[[Node, Span], Node]
HUGE = 10**9
"""What a count of more than nine digits is read as; no automaton has so many states."""


def invalid(pattern: str, message: str, start: int, end: int, hint: str | None = None) -> CompileError:
    """A syntax error of the dialect."""
    return CompileError(
        Diagnostic(Code.INVALID_SOURCE, message, source=_shorten(pattern), span=(start, end), hint=hint)
    )


def unsupported(pattern: str, construct: str, start: int, end: int, hint: str | None = None) -> CompileError:
    """Valid, but not regular or not supported; `construct` names it."""
    return CompileError(
        Diagnostic(
            Code.UNSUPPORTED_PATTERN,
            f"{construct} isn't supported",
            source=_shorten(pattern),
            span=(start, end),
            detail={"construct": construct},
            hint=hint,
        )
    )


def _shorten(pattern: str) -> str:
    return pattern if len(pattern) <= 200 else pattern[:199] + "…"


class Cursor:
    """A position in a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.end = pattern, 0, len(pattern)

    def done(self) -> bool:
        return self.at >= self.end

    def peek(self, offset: int = 0) -> str:
        """The character at an offset, or the empty string beyond the end."""
        return self.pattern[self.at + offset : self.at + offset + 1]

    def take(self) -> str:
        c = self.pattern[self.at : self.at + 1]
        self.at += 1
        return c

    def skip(self, text: str) -> bool:
        """Go past `text` if it comes next."""
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def digits(self, alphabet: str, most: int) -> str:
        """Up to `most` of the next characters, as long as they're of the alphabet."""
        stop = self.at
        while stop < self.end and stop - self.at < most and self.pattern[stop] in alphabet:
            stop += 1
        found = self.pattern[self.at : stop]
        self.at = stop
        return found

    def until(self, closing: str, what: str, start: int) -> str:
        """The text before `closing`, going past it; refused when it doesn't come."""
        stop = self.pattern.find(closing, self.at)
        if stop < 0:
            self.fail(f"{what} isn't closed", start, self.end)
        found = self.pattern[self.at : stop]
        self.at = stop + len(closing)
        return found

    def fail(self, message: str, start: int, end: int | None = None, hint: str | None = None) -> NoReturn:
        raise invalid(self.pattern, message, start, self.at if end is None else end, hint)

    def refuse(self, construct: str, start: int, end: int | None = None, hint: str | None = None) -> NoReturn:
        raise unsupported(self.pattern, construct, start, self.at if end is None else end, hint)


def read_count(digits: str) -> int:
    """A repeat count; what has more than nine digits is `HUGE`."""
    digits = digits.lstrip("0")
    return HUGE if len(digits) > 9 else int(digits or "0")


@dataclass(slots=True)
class Group(Generic[F]):
    """An open group: where it began, how its node is wrapped when it closes, the flags to go back to."""

    start: int
    wrap: Wrap | None
    flags: F
    items: list[Node] = field(default_factory=list)
    branches: list[Node] = field(default_factory=list)
    branch_start: int = 0
    quantifiable: bool = True
    names: dict[str, Span] = field(default_factory=dict)
    """Of the groups in the branch being read."""
    earlier_names: dict[str, Span] = field(default_factory=dict)
    """Of those in the branches before it."""

    def all_names(self) -> dict[str, Span]:
        return self.earlier_names | self.names if self.earlier_names else self.names


class GroupStack(Generic[F]):
    """The sequence being read, in its branch, in its groups."""

    def __init__(self, flags: F) -> None:
        self.groups: list[Group[F]] = [Group(0, None, flags)]

    @property
    def items(self) -> list[Node]:
        return self.groups[-1].items

    @property
    def depth(self) -> int:
        return len(self.groups) - 1

    def open(self, start: int, wrap: Wrap | None, flags: F, at: int, quantifiable: bool = True) -> None:
        """`flags`: those in force outside; `at`: where the content starts."""
        self.groups.append(Group(start, wrap, flags, branch_start=at, quantifiable=quantifiable))

    def alternate(self, at: int) -> None:
        """A branch ends before the bar at `at`."""
        g = self.groups[-1]
        g.branches.append(concat(g.items, (g.branch_start, at)))
        g.items = []
        g.branch_start = at + 1
        g.earlier_names.update(g.names)
        g.names = {}

    def declare(self, names: dict[str, Span]) -> Span | None:
        """Adds names to the branch being read; the place of one that is there twice.

        Cost: the smaller of the two sets.
        """
        g = self.groups[-1]
        few, many = (names, g.names) if len(names) < len(g.names) else (g.names, names)
        for name, span in few.items():
            if name in many:
                return max(span, many[name])
        many.update(few)
        g.names = many
        return None

    def close(self, at: int) -> tuple[Node, Group[F]]:
        """The innermost group's node, ending after the parenthesis at `at`; it isn't added to the outer sequence."""
        g = self.groups.pop()
        return self._node(g, at, at + 1), g

    def finish(self, at: int) -> Node:
        """The whole pattern's node."""
        return self._node(self.groups.pop(), at, at)

    def _node(self, g: Group[F], at: int, end: int) -> Node:
        g.branches.append(concat(g.items, (g.branch_start, at)))
        node = alternation(g.branches, (g.start, end))
        return g.wrap(node, (g.start, end)) if g.wrap else node
