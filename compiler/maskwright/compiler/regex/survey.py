"""One walk over a tree before it's laid out: its assertions, its size, and what to blame when it's too big.

Sizes are computed with the repeats' counts multiplied, so a pattern that would be laid out over too many positions
is refused at once. Nothing recurses.
"""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.compiler.regex.tree import Chars, Look, Node, Point, Repeat, Span, children
from maskwright.compiler.regular.budget import Budget

MAX_POSITIONS = 50_000
"""Characters and classes of the pattern, repeats written out."""
MAX_VISITS = 1_000_000
"""Nodes of the pattern, repeats written out."""
MAX_LOOKS = 500
"""Lookarounds of one pattern."""
MAX_LOOK_NESTING = 20
"""Lookarounds inside one another; the subset construction recurses this deep."""


def copies(node: Repeat) -> int:
    """How many times a repeat's item is laid out."""
    return max(node.low, 1) if node.high is None else node.high


@dataclass(slots=True)
class Survey:
    """What one walk over the tree finds: its assertions, and the repeat that a state explosion is blamed on."""

    points: list[Point]
    costliest: Span


Size = tuple[int, int, int]
"""(positions, nodes visited, lookarounds inside one another) of a node's layout."""
LEAF: Size = (1, 1, 0)


def survey(root: Node, budget: Budget) -> Survey:
    """Raises LimitExceeded, with the span of the repeat that costs most, when the layout would be too big."""
    out = Survey([], root.span)
    most = looks = 0
    sizes: list[Size] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Chars):
            sizes.append(LEAF)
        elif isinstance(node, Point):
            out.points.append(node)
            sizes.append((0, 1, 0))
        elif not ready:
            stack.append((node, True))
            stack.extend([(c, False) for c in children(node)])
        else:
            n = len(children(node))
            found = _size(node, sizes[len(sizes) - n :])
            del sizes[len(sizes) - n :]
            sizes.append(found)
            if isinstance(node, Repeat) and copies(node) > 1 and found[0] > most:
                most, out.costliest = found[0], node.span
            if isinstance(node, Look):
                looks += 1
                if found[2] > MAX_LOOK_NESTING:
                    raise budget.at(span=node.span).exceeded("lookaround_nesting", MAX_LOOK_NESTING, found[2])
                if looks > MAX_LOOKS:
                    raise budget.at(span=node.span).exceeded("lookarounds", MAX_LOOKS, looks)
    positions, visits, _ = sizes[0]
    for name, limit, observed in (("positions", MAX_POSITIONS, positions), ("visits", MAX_VISITS, visits)):
        if observed > limit:
            raise budget.at(span=out.costliest).exceeded(name, limit, observed)
    return out


def _size(node: Node, inner: list[Size]) -> Size:
    positions = visits = nesting = 0
    for p, v, n in inner:
        positions += p
        visits += v
        nesting = max(nesting, n)
    if isinstance(node, Repeat):
        return positions * copies(node), visits * copies(node) + 1, nesting
    return positions, visits + 1, nesting + isinstance(node, Look)
