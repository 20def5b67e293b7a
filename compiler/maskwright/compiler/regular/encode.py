"""From automata over characters to automata over bytes: UTF-8, and the inside of a JSON string.

    "utf8"            the UTF-8 of the characters
    "json"            what may stand between the quotes of a JSON string (RFC 8259, section 7): a character raw, or
                      by any escape: \\uXXXX with hex digits of either case, surrogate pairs for what lies beyond
                      U+FFFF, the short escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t. Quotes, backslashes and controls
                      below U+0020 aren't raw.
    "json_canonical"  one spelling: \\" \\\\ \\b \\f \\n \\r \\t, \\u00xx with lower-case hex for the other controls,
                      all else raw

An encoding is built once per partition of the alphabet, as a decision tree over bytes whose leaves are symbol
classes (ranges are split digit by digit, so its size goes with the number of ranges, not of characters). Each
state's row is then that tree with the classes replaced by targets. Trees are hash-consed, so equal sub-trees are
one node and the result is nearly minimal already. No encoding of one character is a prefix of another's, so it's
deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, overload

from maskwright.compiler.regular.budget import CHECK_EVERY, DEFAULT, Budget
from maskwright.compiler.regular.codepoints import MAX, Ranges, intersect
from maskwright.compiler.regular.dfa import Automaton, Classifier, Dfa, Transition, Transitions, cut_ranges
from maskwright.compiler.regular.minimise import canonical

Encoding = Literal["utf8", "json", "json_canonical"]
Node = int
"""A leaf is ~x for a class (or, in the result, a state) x; an inner node is an index into a `_Forest`."""
Edge = tuple[int, int, Node]
Edges = tuple[Edge, ...]
Piece = tuple[int, int, Node]
"""Values low..high of a number lead to a node."""

CONTROLS: Ranges = ((0, 0x1F),)
SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, MAX))


@dataclass(frozen=True, slots=True)
class Digit:
    """One place of a number: values low..high are spelled by consecutive bytes from `first`, by block.

    `before`: ranges of bytes that are spelled first.
    """

    bits: int
    blocks: tuple[tuple[int, int, int], ...]
    before: tuple[tuple[int, int], ...] = ()


CONTINUATION = Digit(6, ((0, 63, 0x80),))
HEX = Digit(4, ((0, 9, 0x30), (10, 15, 0x41), (10, 15, 0x61)))
HEX_LOWER = Digit(4, ((0, 9, 0x30), (10, 15, 0x61)))
UTF8 = (
    ((0, 0x7F), (Digit(7, ((0, 0x7F, 0),)),)),
    ((0x80, 0x7FF), (Digit(5, ((0, 31, 0xC0),)), CONTINUATION)),
    ((0x800, 0xFFFF), (Digit(4, ((0, 15, 0xE0),)), CONTINUATION, CONTINUATION)),
    ((0x10000, MAX), (Digit(3, ((0, 7, 0xF0),)), CONTINUATION, CONTINUATION, CONTINUATION)),
)
FOUR_HEX = (HEX, HEX, HEX, HEX)
# After "\ud" of a high surrogate: 8, 9, a or b, two digits, "\ud" of the low one, c to f, two digits.
HIGH = Digit(2, ((0, 1, 0x38), (2, 3, 0x41), (2, 3, 0x61)))
LOW = Digit(2, ((0, 3, 0x43), (0, 3, 0x63)), ((0x5C, 0x5C), (0x75, 0x75), (0x44, 0x44), (0x64, 0x64)))
PAIR = (HIGH, HEX, HEX, LOW, HEX, HEX)
CONTROL = (
    Digit(1, ((0, 1, 0x30),), ((0x75, 0x75), (0x30, 0x30), (0x30, 0x30))),
    HEX_LOWER,
)


@overload
def to_bytes(automaton: Dfa, encoding: Encoding, budget: Budget = DEFAULT) -> Dfa: ...
@overload
def to_bytes(automaton: Classifier, encoding: Encoding, budget: Budget = DEFAULT) -> Classifier: ...
def to_bytes(automaton: Dfa | Classifier, encoding: Encoding, budget: Budget = DEFAULT) -> Dfa | Classifier:
    """The automaton over the bytes that spell the characters, minimal, with the same labels.

    Raises LimitExceeded by `budget`, ValueError for an automaton over bytes or an unknown encoding.
    """
    if automaton.alphabet != "chars" and automaton.n_states > 1:
        raise ValueError("only an automaton over characters can be encoded")
    if encoding not in _EDGES:
        raise ValueError(f"unknown encoding {encoding!r}")
    transitions, labels = _Lowering(automaton, encoding, budget).table()
    made = type(automaton).from_byte_ranges(transitions, labels)
    assert isinstance(made, Dfa | Classifier)
    return made


class _Forest:
    """Hash-consed decision trees over bytes."""

    def __init__(self) -> None:
        self.edges: list[Edges] = []
        self.known: dict[Edges, Node] = {}
        self.full: dict[tuple[Node, tuple[Digit, ...]], Node] = {}

    def node(self, edges: Iterable[Edge]) -> Node:
        """The node with these edges: in any order, disjoint, at least one."""
        out: list[Edge] = []
        for low, high, node in sorted(edges):
            if out and out[-1][2] == node and out[-1][1] + 1 == low:
                out[-1] = (out[-1][0], high, node)
            else:
                out.append((low, high, node))
        return self.intern(tuple(out))

    def intern(self, key: Edges) -> Node:
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.edges)
            self.edges.append(key)
        return found

    def number(self, pieces: Sequence[Piece], digits: tuple[Digit, ...]) -> list[Edge]:
        """The first-byte edges of a number's spelling; pieces are sorted and disjoint, within the digits' width."""
        digit, rest = digits[0], digits[1:]
        edges: list[Edge] = []
        for first, last, part in _by_digit(pieces, sum(d.bits for d in rest)):
            child = self.rest(part, rest)
            for low, high, byte in digit.blocks:
                a, b = max(low, first), min(high, last)
                if a <= b:
                    edges.append((byte + a - low, byte + b - low, child))
        return self.after(digit.before, edges) if digit.before else edges

    def rest(self, pieces: Sequence[Piece], digits: tuple[Digit, ...]) -> Node:
        """The node that reads a number's remaining digits; whole ranges are built once."""
        if not digits:
            return pieces[0][2]
        low, high, only = pieces[0]
        if low or high + 1 != 1 << sum(d.bits for d in digits):
            return self.node(self.number(pieces, digits))
        found = self.full.get((only, digits))
        if found is None:
            found = self.full[only, digits] = self.node(self.number(pieces, digits))
        return found

    def after(self, before: Sequence[tuple[int, int]], edges: list[Edge]) -> list[Edge]:
        """Edges moved behind fixed bytes; a letter that comes in both cases is given twice in a row."""
        i = len(before)
        while i:
            node = self.node(edges)
            i -= 1
            edges = [(*before[i], node)]
            if i and before[i][0] == before[i - 1][0] | 0x20 and before[i][0] != before[i - 1][0]:
                i -= 1
                edges = [(*before[i], node), *edges]
        return edges


def _by_digit(pieces: Sequence[Piece], width: int) -> list[tuple[int, int, list[Piece]]]:
    """Pieces by their leading digit, relative to it: (first digit, last digit, what they lead to).

    Digits that a piece covers whole are one run.
    """
    out: list[tuple[int, int, list[Piece]]] = []
    size = 1 << width
    for low, high, node in pieces:
        first, last = low >> width, high >> width
        at = low - (first << width)
        if first == last and (at or high - low + 1 < size):
            _add_piece(out, first, (at, high - (first << width), node))
            continue
        if at:
            _add_piece(out, first, (at, size - 1, node))
            first += 1
        end = high - (last << width)
        whole_last = last if end == size - 1 else last - 1
        if first <= whole_last:
            out.append((first, whole_last, [(0, size - 1, node)]))
        if whole_last < last:
            out.append((last, last, [(0, end, node)]))
    return out


def _add_piece(out: list[tuple[int, int, list[Piece]]], digit: int, piece: Piece) -> None:
    if out and out[-1][0] == out[-1][1] == digit:
        out[-1][2].append(piece)
    else:
        out.append((digit, digit, [piece]))


def _clip(pieces: Sequence[Piece], low: int, high: int, base: int = 0) -> list[Piece]:
    """The pieces between low and high, less `base`."""
    return [(max(a, low) - base, min(b, high) - base, n) for a, b, n in pieces if a <= high and b >= low]


def _keep(pieces: Sequence[Piece], ranges: Ranges) -> list[Piece]:
    return [(a, b, n) for low, high, n in pieces for a, b in intersect(((low, high),), ranges)]


def _utf8_edges(f: _Forest, pieces: Sequence[Piece]) -> list[Edge]:
    """RFC 3629: one to four bytes by the value's size."""
    edges: list[Edge] = []
    for (low, high), digits in UTF8:
        part = _clip(pieces, low, high)
        if part:
            edges += f.number(part, digits)
    return edges


def _json_edges(f: _Forest, pieces: Sequence[Piece]) -> list[Edge]:
    after = [(ord(x), ord(x), n) for code, x in (*SHORT.items(), (0x2F, "/")) for a, b, n in pieces if a <= code <= b]
    after += [(ord("u"), ord("u"), n) for n in _u_escape(f, pieces)]
    escape = [(0x5C, 0x5C, f.node(after))] if after else []
    return _utf8_edges(f, _keep(pieces, RAW)) + escape


def _u_escape(f: _Forest, pieces: Sequence[Piece]) -> list[Node]:
    """What follows \\u, if anything: four hex digits, and a second escape after a high surrogate."""
    edges: list[Edge] = []
    for low, high in ((0, 0xCFFF), (0xE000, 0xFFFF)):
        part = _clip(pieces, low, high)
        if part:
            edges += f.number(part, FOUR_HEX)
    after_d: list[Edge] = []
    for part, digits in (
        (_clip(pieces, 0xD000, 0xD7FF, 0xD000), FOUR_HEX[1:]),
        (_clip(pieces, 0x10000, MAX, 0x10000), PAIR),
    ):
        if part:
            after_d += f.number(part, digits)
    if after_d:
        node = f.node(after_d)
        edges += [(0x44, 0x44, node), (0x64, 0x64, node)]
    return [f.node(edges)] if edges else []


def _canonical_edges(f: _Forest, pieces: Sequence[Piece]) -> list[Edge]:
    after = [(ord(x), ord(x), n) for code, x in SHORT.items() for a, b, n in pieces if a <= code <= b]
    others = [(code, code, n) for a, b, n in _keep(pieces, CONTROLS) for code in range(a, b + 1) if code not in SHORT]
    if others:
        after += f.number(others, CONTROL)
    escape = [(0x5C, 0x5C, f.node(after))] if after else []
    return _utf8_edges(f, _keep(pieces, RAW)) + escape


_EDGES: dict[str, Callable[[_Forest, Sequence[Piece]], list[Edge]]] = {
    "utf8": _utf8_edges,
    "json": _json_edges,
    "json_canonical": _canonical_edges,
}


@dataclass(frozen=True, slots=True)
class _Tree:
    """An encoding of a partition. `edges`: by node, children before parents; `classes`: of a node's leaves."""

    edges: list[Edges]
    classes: list[tuple[int, ...]]
    root: Node | None


@lru_cache(maxsize=256)
def _encoding_tree(classes: tuple[Ranges, ...], encoding: str) -> _Tree:
    forest = _Forest()
    pieces = sorted((a, b, ~c) for c, ranges in enumerate(classes) for a, b in ranges)
    edges = _EDGES[encoding](forest, pieces)
    root = forest.node(edges) if edges else None
    below: list[tuple[int, ...]] = []
    for node in forest.edges:
        found: set[int] = set()
        for _, _, n in node:
            if n < 0:
                found.add(~n)
            else:
                found.update(below[n])
        below.append(tuple(sorted(found)))
    return _Tree(forest.edges, below, root)


class _Lowering:
    """Builds the byte automaton. Nodes of `made` are byte states; ~q in an edge is the character state q."""

    def __init__(self, automaton: Automaton, encoding: Encoding, budget: Budget) -> None:
        self.source, self.budget = automaton, budget
        self.tree = _encoding_tree(automaton.classes, encoding)
        self.made = _Forest()
        self.memo: dict[tuple[int, ...], Node | None] = {}
        """By node and the targets of its classes."""

    def table(self) -> tuple[Transitions, tuple[int, ...]]:
        n = self.source.n_states
        roots: list[Node | None] = []
        for i, row in enumerate(self.source.rows):
            roots.append(self.replace(self.tree.root, dict(row)) if row and self.tree.root is not None else None)
            self.budget.check_states(n + len(self.made.edges))
            if not i % CHECK_EVERY:
                self.budget.check_time()
        inner = _inner_nodes(self.made, [r for r in roots if r is not None])
        # A state and an inner node with the same edges are equivalent. Nothing else is: the source is minimal, and
        # trees are shared.
        if inner & {r for r in roots if r is not None}:
            return self.minimised(roots, inner)
        return _number(self.made, roots, self.source.labels)

    def replace(self, node: Node, targets: dict[int, int]) -> Node | None:
        """The inner node with classes replaced by targets. Recursion is bounded by the longest spelling, 12 bytes."""
        classes, memo = self.tree.classes, self.memo
        edges: list[Edge] = []
        for low, high, child in self.tree.edges[node]:
            if child < 0:
                target = targets.get(~child)
                made = None if target is None else ~target
            else:
                key = (child, *[targets.get(c, -1) for c in classes[child]])
                if key in memo:
                    made = memo[key]
                else:
                    made = memo[key] = self.replace(child, targets)
            if made is not None:
                if edges and edges[-1][2] == made and edges[-1][1] + 1 == low:
                    edges[-1] = (edges[-1][0], high, made)
                else:
                    edges.append((low, high, made))
        return self.made.intern(tuple(edges)) if edges else None

    def minimised(self, roots: Sequence[Node | None], inner: set[Node]) -> tuple[Transitions, tuple[int, ...]]:
        """The general way: all nodes as a table, minimised."""
        n = len(roots)
        number = {node: n + i for i, node in enumerate(sorted(inner))}
        lists = [
            *(() if r is None else self.made.edges[r] for r in roots),
            *(self.made.edges[x] for x in sorted(inner)),
        ]
        spelled = [[(a, b, ~t if t < 0 else number[t]) for a, b, t in edges] for edges in lists]
        classes, rows = cut_ranges(spelled)
        labels = [*self.source.labels, *([-1] * len(inner))]
        table = canonical(classes, rows, labels, self.budget)
        return Dfa(*table, "bytes").transitions, table[2]


def _inner_nodes(forest: _Forest, roots: Sequence[Node]) -> set[Node]:
    """The nodes below the roots; a root is among them only if it's below another."""
    seen: set[Node] = set()
    done: set[Node] = set()
    work = list(roots)
    while work:
        top = work.pop()
        if top in done:
            continue
        done.add(top)
        for _, _, node in forest.edges[top]:
            if node >= 0 and node not in seen:
                seen.add(node)
                work.append(node)
    return seen


def _number(
    forest: _Forest, roots: Sequence[Node | None], labels: Sequence[int]
) -> tuple[Transitions, tuple[int, ...]]:
    """States numbered breadth first, along ascending bytes. A key is an inner node, or ~q for a character state."""
    numbers: dict[Node, int] = {~0: 0}
    queue: list[Node] = [~0]
    out: list[tuple[Transition, ...]] = []
    for key in queue:
        root = roots[~key] if key < 0 else key
        row: list[Transition] = []
        for low, high, target in () if root is None else forest.edges[root]:
            n = numbers.get(target)
            if n is None:
                n = numbers[target] = len(queue)
                queue.append(target)
            row.append((low, high, n))
        out.append(tuple(row))
    return tuple(out), tuple(labels[~key] if key < 0 else -1 for key in queue)
