"""The tree that both dialects parse to.

Only what is regular is left in it: sets of characters, sequences, alternatives, repeats and assertions. Groups
leave no trace (captures don't change the language), lazy repeats are repeats, flags are resolved into sets and
assertion kinds while parsing. `Atomic` is resolved by `atomic.py` before lowering.

Trees may be as deep as their source is long, so nothing here or later recurses over one, and nodes compare by
identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from maskwright.compiler.regular.codepoints import EMPTY, Ranges

Span = tuple[int, int]


class PointKind(Enum):
    """Assertions about the characters on both sides of a point in the text."""

    TEXT_START = "text_start"
    TEXT_END = "text_end"
    LINE_START = "line_start"
    LINE_END = "line_end"
    FINAL_END = "final_end"
    """At the end, or before a newline that is the last character (Python's `$`)."""
    WORD = "word"
    NOT_WORD = "not_word"


@dataclass(frozen=True, eq=False, slots=True)
class Chars:
    """One character of a set; the empty set matches nothing."""

    ranges: Ranges
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Concat:
    """The items one after the other; no item: the empty text."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Alternation:
    """Any of the branches, of which there are two or more. The order matters inside `Atomic` alone."""

    branches: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """low..high of the item; `high` None: without end. `lazy` matters inside `Atomic` alone."""

    item: Node
    low: int
    high: int | None
    span: Span
    lazy: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """An assertion about the two characters beside a point.

    `ranges`: the word characters, or the line terminators. `nonempty`: fails on the empty text (Python's \\b and \\B).
    """

    kind: PointKind
    span: Span
    ranges: Ranges = EMPTY
    nonempty: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """The body matches (or, negative, doesn't) from here on (`ahead`), or up to here."""

    body: Node
    ahead: bool
    negative: bool
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Atomic:
    """The body's first match in order of preference, never given back."""

    body: Node
    span: Span


Node = Chars | Concat | Alternation | Repeat | Point | Look | Atomic


def concat(items: Sequence[Node], span: Span) -> Node:
    return items[0] if len(items) == 1 else Concat(tuple(items), span)


def alternation(branches: Sequence[Node], span: Span) -> Node:
    return branches[0] if len(branches) == 1 else Alternation(tuple(branches), span)


def is_empty_text(node: Node) -> bool:
    return isinstance(node, Concat) and not node.items


def repeat(item: Node, low: int, high: int | None, span: Span, lazy: bool = False) -> Node:
    """A repeat, or something smaller with the same language: repeats of ?, * and + are merged.

    So stacks of such quantifiers don't nest.
    """
    if high == 0:
        return Concat((), span)
    if is_empty_text(item) or (low, high) == (1, 1):
        return item
    if isinstance(item, Repeat) and item.lazy == lazy:
        inner = (item.low, item.high)
        if inner == (0, 1):
            return Repeat(item.item, 0, high, span, lazy)
        if inner == (0, None):
            return item
        if inner == (1, None):
            return Repeat(item.item, low, None, span, lazy)
    return Repeat(item, low, high, span, lazy)


def children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Concat):
        return node.items
    if isinstance(node, Alternation):
        return node.branches
    if isinstance(node, Repeat):
        return (node.item,)
    if isinstance(node, Look | Atomic):
        return (node.body,)
    return ()


def walk(root: Node) -> Iterator[tuple[int, Node]]:
    """Every node with its depth, parents first, left to right. Shared nodes show up once for each parent."""
    stack = [(0, root)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack.extend((depth + 1, c) for c in reversed(children(node)))


def print_tree(root: Node) -> str:
    """One line per node, indented by depth, with its span: for people and for golden tests."""
    return "\n".join(f"{'  ' * depth}{_describe(n)}  {n.span[0]}..{n.span[1]}" for depth, n in walk(root))


def _describe(node: Node) -> str:
    if isinstance(node, Chars):
        return f"chars {describe_set(node.ranges)}"
    if isinstance(node, Concat):
        return "concat" if node.items else "empty"
    if isinstance(node, Alternation):
        return "alternation"
    if isinstance(node, Repeat):
        high = "" if node.high is None else node.high
        return f"repeat {node.low}..{high}{' lazy' if node.lazy else ''}"
    if isinstance(node, Point):
        return f"point {node.kind.value}"
    if isinstance(node, Look):
        return f"look {'ahead' if node.ahead else 'behind'}{' negative' if node.negative else ''}"
    return "atomic"


def describe_set(ranges: Ranges, limit: int = 8) -> str:
    """A set in brackets, at most `limit` ranges of it."""
    parts = [_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in ranges[:limit]]
    more = f" … {len(ranges)} ranges" if len(ranges) > limit else ""
    return f"[{''.join(parts)}{more}]"


def _char(code: int) -> str:
    if 0x21 <= code <= 0x7E and chr(code) not in "[]\\-^":
        return chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"
