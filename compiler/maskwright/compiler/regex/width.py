"""How many characters a node may match: (least, most), most None when unbounded."""

from __future__ import annotations

from maskwright.compiler.regex.tree import Alternation, Atomic, Chars, Concat, Node, Repeat, children

Width = tuple[int, int | None]


def width(root: Node) -> Width:
    """Assertions have no width. Cost: linear in the tree; no recursion."""
    done: dict[int, Width] = {}
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if not ready and isinstance(node, Concat | Alternation | Repeat | Atomic):
            stack.append((node, True))
            stack.extend((c, False) for c in children(node))
        else:
            done[id(node)] = _width(node, done)
    return done[id(root)]


def _width(node: Node, done: dict[int, Width]) -> Width:
    if isinstance(node, Chars):
        return (1, 1)
    found = [done[id(c)] for c in children(node)] if isinstance(node, Concat | Alternation | Repeat | Atomic) else []
    if isinstance(node, Repeat):
        low, high = found[0]
        if high is None or node.high is None:
            return (low * node.low, 0 if high == 0 else None)
        return (low * node.low, high * node.high)
    if isinstance(node, Alternation):
        highs = [h for _, h in found]
        return (min(low for low, _ in found), None if None in highs else max(h for h in highs if h is not None))
    low = 0
    most: int | None = 0
    for a, b in found:
        low += a
        most = None if most is None or b is None else most + b
    return (low, most)
