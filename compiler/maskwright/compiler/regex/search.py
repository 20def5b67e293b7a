"""What a search lets us drop: at the edges of a match, a repeat beyond its least count adds nothing.

A text that contains x{n,m}y contains x{n}y. So patterns like `.{0,65536}foo` don't grow.
"""

from __future__ import annotations

from maskwright.compiler.regex.tree import Alternation, Concat, Node, Repeat, concat, is_empty_text, repeat

MAX_DEPTH = 40
"""Recursion stops here; deeper parts are left as they are."""


def trim_search(root: Node) -> Node:
    """A tree that matches within the same texts."""
    return _trim(_trim(root, 0, left=True), 0, left=False)


def _trim(node: Node, depth: int, left: bool) -> Node:
    if depth > MAX_DEPTH:
        return node
    if isinstance(node, Repeat):
        return repeat(node.item, node.low, node.low, node.span)
    if isinstance(node, Alternation):
        return Alternation(tuple(_trim(b, depth + 1, left) for b in node.branches), node.span)
    if isinstance(node, Concat):
        items = list(node.items)
        while items:
            edge = 0 if left else -1
            items[edge] = _trim(items[edge], depth + 1, left)
            if not is_empty_text(items[edge]):
                break
            del items[edge]
        return concat(items, node.span)
    return node
