"""From automata over characters to automata over bytes: UTF-8, and the inside of a JSON string.

    "utf8"            the UTF-8 of the characters
    "json"            what may stand between the quotes of a JSON string (RFC 8259, section 7): a character raw, or by
                      any escape: \\uXXXX with hex digits of either case, surrogate pairs for what lies beyond U+FFFF,
                      the short escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t. Quotes, backslashes and controls below U+0020 aren't raw.
    "json_canonical"  one spelling: \\" \\\\ \\b \\f \\n \\r \\t, \\u00xx (lower-case hex) for the other controls, all else raw

An encoding is built once per partition of the alphabet, as a decision tree over bytes whose leaves are symbol classes
(ranges are split by digit, so its size goes with the number of ranges, not of characters). Each state's row is then
that tree with the classes replaced by targets. Trees are hash-consed, so equal sub-trees are one node and the result is
nearly minimal already. No encoding of one character is a prefix of another's, so the result is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar, overload

from maskwright.compiler.regular.budget import CHECK_EVERY, DEFAULT, Budget
from maskwright.compiler.regular.codepoints import MAX, Ranges, intersect
from maskwright.compiler.regular.dfa import Automaton, Classifier, Dfa
from maskwright.compiler.regular.minimise import canonical, number_states

Encoding = Literal["utf8", "json", "json_canonical"]
Node = int
"""A leaf is a class c as ~c; an inner node is an index into a `_Forest`."""
Edges = tuple[tuple[int, int, Node], ...]
Piece = tuple[int, int, Node]
"""Values low..high of a fixed-width number lead to a node."""

CONTROLS: Ranges = ((0, 0x1F),)
SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, MAX))
HEX_BOTH = [(f"{d:x}{d:X}" if d > 9 else f"{d}") for d in range(16)]
HEX_LOWER = [f"{d:x}" for d in range(16)]
CONTINUATION = [[0x80 + i] for i in range(64)]

A = TypeVar("A", Dfa, Classifier)


@overload
def to_bytes(automaton: Dfa, encoding: Encoding, budget: Budget = DEFAULT) -> Dfa: ...
@overload
def to_bytes(automaton: Classifier, encoding: Encoding, budget: Budget = DEFAULT) -> Classifier: ...
def to_bytes(automaton: Dfa | Classifier, encoding: Encoding, budget: Budget = DEFAULT) -> Dfa | Classifier:
    """The automaton over the bytes that spell the characters, minimal, with the same labels.

    Raises LimitExceeded by `budget`, ValueError for an automaton over bytes or an unknown encoding.
    """
    if automaton.alphabet != "chars" and automaton.classes:
        raise ValueError("only an automaton over characters can be encoded")
    if encoding not in ("utf8", "json", "json_canonical"):
        raise ValueError(f"unknown encoding {encoding!r}")
    table = _Lowering(automaton, encoding, budget).table()
    return type(automaton)(*table, "bytes")


class _Forest:
    """Hash-consed decision trees over bytes."""

    def __init__(self) -> None:
        self.edges: list[Edges] = []
        self.known: dict[Edges, Node] = {}

    def node(self, edges: Iterable[tuple[int, int, Node]]) -> Node | None:
        """The node with these edges (any order, disjoint); None when there are none."""
        out: list[tuple[int, int, Node]] = []
        for low, high, node in sorted(edges):
            if out and out[-1][2] == node and out[-1][1] + 1 == low:
                out[-1] = (out[-1][0], high, node)
            else:
                out.append((low, high, node))
        if not out:
            return None
        key = tuple(out)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.edges)
            self.edges.append(key)
        return found

    def digits(self, pieces: Sequence[Piece], digits: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> Node | None:
        """A tree over a number's digits, most significant first.

        digits: for each place (bits, the bytes that spell each digit's value). Pieces: sorted and disjoint.
        """
        if not pieces:
            return None
        if not digits:
            return pieces[0][2]
        bits, spelling = digits[0]
        width = sum(b for b, _ in digits[1:])
        full = (1 << width) - 1
        low, high, only = pieces[0]
        edges: list[tuple[int, int, Node]] = []
        if len(pieces) == 1 and low == 0 and high == (1 << (bits + width)) - 1:
            child = self.digits(((0, full, only),), digits[1:])
            assert child is not None
            return self.node((b, b, child) for bytes_ in spelling for b in bytes_)
        for digit, part in _by_digit(pieces, width):
            child = self.digits(part, digits[1:])
            assert child is not None
            edges += ((b, b, child) for b in spelling[digit])
        return self.node(edges)

    def text(self, spelling: str, node: Node) -> Node:
        """A chain of ASCII characters before a node."""
        for c in reversed(spelling):
            found = self.node([(ord(c), ord(c), node)])
            assert found is not None
            node = found
        return node


def _by_digit(pieces: Sequence[Piece], width: int) -> list[tuple[int, list[Piece]]]:
    """Pieces grouped by their leading digit, relative to it. A piece may span many digits."""
    out: list[tuple[int, list[Piece]]] = []
    size = 1 << width
    for low, high, node in pieces:
        for digit in range(low >> width, (high >> width) + 1):
            base = digit << width
            piece = (max(low - base, 0), min(high - base, size - 1), node)
            if out and out[-1][0] == digit:
                out[-1][1].append(piece)
            else:
                out.append((digit, [piece]))
    return out


def _clip(pieces: Sequence[Piece], low: int, high: int) -> list[Piece]:
    """The pieces between low and high, relative to low."""
    return [(max(a, low) - low, min(b, high) - low, n) for a, b, n in pieces if a <= high and b >= low]


def _keep(pieces: Sequence[Piece], ranges: Ranges) -> list[Piece]:
    out = [(a, b, n) for low, high, n in pieces for a, b in intersect(((low, high),), ranges)]
    return sorted(out)


def _utf8_edges(f: _Forest, pieces: Sequence[Piece]) -> list[tuple[int, int, Node]]:
    """The first-byte edges of UTF-8 (RFC 3629): one to four bytes by the value's size."""
    edges = [(a, b, n) for a, b, n in _clip(pieces, 0, 0x7F)]
    for low, high, lead, places in ((0x80, 0x7FF, 0xC0, 1), (0x800, 0xFFFF, 0xE0, 2), (0x10000, MAX, 0xF0, 3)):
        for digit, part in _by_digit([(a + low, b + low, n) for a, b, n in _clip(pieces, low, high)], 6 * places):
            child = f.digits(part, [(6, CONTINUATION)] * places)
            assert child is not None
            edges.append((lead + digit, lead + digit, child))
    return edges


def _hex_digits(values: Sequence[str]) -> tuple[int, list[list[int]]]:
    return len(values).bit_length() - 1, [[ord(c) for c in v] for v in values]


def _json_edges(f: _Forest, pieces: Sequence[Piece]) -> list[tuple[int, int, Node]]:
    edges = _utf8_edges(f, _keep(pieces, RAW))
    after: list[tuple[int, int, Node]] = []
    for code, letter in (*SHORT.items(), (0x2F, "/")):
        after += ((ord(letter), ord(letter), n) for a, b, n in pieces if a <= code <= b)
    unicode_escape = _u_escape(f, pieces)
    if unicode_escape is not None:
        after.append((ord("u"), ord("u"), unicode_escape))
    escape = f.node(after)
    return edges if escape is None else [*edges, (0x5C, 0x5C, escape)]


def _u_escape(f: _Forest, pieces: Sequence[Piece]) -> Node | None:
    """What follows \\u: four hex digits, and a second escape after a high surrogate."""
    place = _hex_digits(HEX_BOTH)
    bmp = _clip(pieces, 0, 0xFFFF)
    low_surrogate: list[Piece] = []
    for digit, part in _by_digit(_clip(pieces, 0x10000, MAX), 10):
        tail = f.digits(part, [_hex_digits(HEX_BOTH[12:]), place, place])
        assert tail is not None
        node = f.node([(ord(c), ord(c), tail) for c in "dD"])
        assert node is not None
        low_surrogate.append((0xD800 + digit, 0xD800 + digit, f.text("\\u", node)))
    return f.digits(_joined(sorted([*bmp, *low_surrogate])), [place] * 4)


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for low, high, node in pieces:
        if out and out[-1][2] == node and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, node)
        else:
            out.append((low, high, node))
    return out


def _canonical_edges(f: _Forest, pieces: Sequence[Piece]) -> list[tuple[int, int, Node]]:
    edges = _utf8_edges(f, _keep(pieces, RAW))
    after = [(ord(x), ord(x), n) for code, x in SHORT.items() for a, b, n in pieces if a <= code <= b]
    others = [(code, code, n) for a, b, n in _keep(pieces, CONTROLS) for code in range(a, b + 1) if code not in SHORT]
    place = _hex_digits(HEX_LOWER)
    tail = f.digits(_joined(others), [_hex_digits(["0", "1"]), place])
    if tail is not None:
        after.append((ord("u"), ord("u"), f.text("00", tail)))
    escape = f.node(after)
    return edges if escape is None else [*edges, (0x5C, 0x5C, escape)]


_EDGES: dict[str, Callable[[_Forest, Sequence[Piece]], list[tuple[int, int, Node]]]] = {
    "utf8": _utf8_edges,
    "json": _json_edges,
    "json_canonical": _canonical_edges,
}


class _Lowering:
    """Builds the byte table. Nodes of `made` are byte states; ~q in an edge is the character state q."""

    def __init__(self, automaton: Automaton, encoding: Encoding, budget: Budget) -> None:
        self.source, self.budget = automaton, budget
        self.tree = _Forest()
        pieces = sorted((a, b, ~c) for c, ranges in enumerate(automaton.classes) for a, b in ranges)
        self.root = self.tree.node(_EDGES[encoding](self.tree, pieces))
        self.used = self._classes_below()
        self.made = _Forest()
        self.memo: dict[tuple[Node, tuple[int, ...]], Node | None] = {}

    def _classes_below(self) -> list[tuple[int, ...]]:
        """For each tree node the classes among its leaves. Children are numbered before parents."""
        out: list[tuple[int, ...]] = []
        for edges in self.tree.edges:
            found: set[int] = set()
            for _, _, n in edges:
                if n < 0:
                    found.add(~n)
                else:
                    found.update(out[n])
            out.append(tuple(sorted(found)))
        return out

    def row(self, row: Sequence[tuple[int, int]]) -> Node | None:
        """The state's tree: the encoding's, with each class replaced by its target."""
        if self.root is None or not row:
            return None
        return self.replace(self.root, dict(row))

    def replace(self, node: Node, targets: dict[int, int]) -> Node | None:
        """Depth is bounded by the longest spelling (12 bytes), so recursion is safe."""
        if node < 0:
            target = targets.get(~node)
            return None if target is None else ~target
        key = (node, tuple([targets.get(c, -1) for c in self.used[node]]))
        if key in self.memo:
            return self.memo[key]
        edges = []
        for low, high, child in self.tree.edges[node]:
            made = self.replace(child, targets)
            if made is not None:
                edges.append((low, high, made))
        found = self.memo[key] = self.made.node(edges)
        return found

    def table(self) -> tuple[tuple[Ranges, ...], tuple[tuple[tuple[int, int], ...], ...], tuple[int, ...]]:
        n = self.source.n_states
        roots: list[Node | None] = []
        for i, row in enumerate(self.source.rows):
            roots.append(self.row(row))
            self.budget.check_states(n + len(self.made.edges))
            if not i % CHECK_EVERY:
                self.budget.check_time()
        return self._assemble(roots)

    def _assemble(
        self, roots: Sequence[Node | None]
    ) -> tuple[tuple[Ranges, ...], tuple[tuple[tuple[int, int], ...], ...], tuple[int, ...]]:
        """Character states first, then the inner nodes that are not some state's root alone."""
        n = len(roots)
        edge_lists: list[Edges] = [() if r is None else self.made.edges[r] for r in roots]
        inner = _inner_nodes(self.made, edge_lists)
        number = {node: n + i for i, node in enumerate(inner)}
        edge_lists += [self.made.edges[node] for node in inner]
        classes, cut = _byte_classes(edge_lists)
        rows = []
        for edges in edge_lists:
            rows.append([(c, ~t if t < 0 else number[t]) for a, b, t in edges for c in cut[a, b]])
        labels = [*self.source.labels, *([-1] * len(inner))]
        # Equal edges of a state and an inner node (or of two states with unlike labels) are the only way to be
        # equivalent and separate: the source is minimal and trees are shared.
        if number.keys() & {r for r in roots if r is not None}:
            return canonical(classes, rows, labels, self.budget)
        return number_states(classes, rows, labels, 0)


def _inner_nodes(forest: _Forest, edge_lists: Sequence[Edges]) -> list[Node]:
    seen: dict[Node, None] = {}
    work = [t for edges in edge_lists for _, _, t in edges if t >= 0]
    while work:
        node = work.pop()
        if node not in seen:
            seen[node] = None
            work.extend(t for _, _, t in forest.edges[node] if t >= 0)
    return list(seen)


def _byte_classes(edge_lists: Iterable[Edges]) -> tuple[list[Ranges], dict[tuple[int, int], range]]:
    """Bytes cut at every edge's ends; for each edge range the cells it is made of."""
    spans = {(a, b) for edges in edge_lists for a, b, _ in edges}
    cuts = sorted({a for a, _ in spans} | {b + 1 for _, b in spans})
    index = {x: i for i, x in enumerate(cuts)}
    cells: list[Ranges] = [((x, y - 1),) for x, y in zip(cuts, cuts[1:], strict=False)]
    return cells, {(a, b): range(index[a], index[b + 1]) for a, b in spans}
