"""Costs by place as a tree, and the tree as lines of text.

A place's parent is the nearest place above it that has a cost of its own; its label is what its pointer adds to the
parent's. So chains of keywords that cost nothing take no level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

By = Literal["bytes", "rows", "states"]
MEASURES: tuple[By, ...] = ("bytes", "rows", "states")
BAR = 12


@dataclass(slots=True)
class Node:
    """`own` and `total` (with everything below) by measure; `frames` are the names of the frames caused here."""

    pointer: str
    label: str
    frames: tuple[str, ...]
    own: dict[By, int]
    total: dict[By, int]
    below: list[Node] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"pointer": self.pointer, "frames": list(self.frames), "own": self.own}
        return {**out, "total": self.total, "below": [n.to_json() for n in self.below]}


def cost_tree(costs: Sequence[Mapping[str, Any]], by: By = "bytes") -> Node:
    """From a report's `costs` in JSON form; what costs most comes first among its neighbours."""
    own: dict[By, int] = dict.fromkeys(MEASURES, 0)
    root = Node("", "the whole source", (), own, dict(own))
    above = [root]
    for cost in sorted(costs, key=lambda c: str(c["pointer"]).split("/")):
        pointer = str(cost["pointer"])
        figures: dict[By, int] = {m: int(cost[m]) for m in MEASURES}
        while above[-1] is not root and not pointer.startswith(above[-1].pointer + "/"):
            above.pop()
        if not pointer:
            root.frames, root.own = tuple(cost["frames"]), figures
        else:
            label = pointer[len(above[-1].pointer) + 1 :]
            node = Node(pointer, label, tuple(cost["frames"]), figures, dict(own))
            above[-1].below.append(node)
            above.append(node)
    _add_up(root, by)
    return root


def _add_up(root: Node, by: By) -> None:
    """Totals, by an explicit stack: those below first."""
    order = [root]
    for node in order:
        order += node.below
    for node in reversed(order):
        for m in MEASURES:
            node.total[m] = node.own[m] + sum(n.total[m] for n in node.below)
        node.below.sort(key=lambda n: -n.total[by])


def tree_lines(root: Node, by: By = "bytes", most: int = 60) -> list[str]:
    """A table with the tree in its last column; beyond `most` places the rest of each level is one line."""
    whole = max(1, root.total[by])
    out = [f"{'bytes':>10} {'rows':>8} {'states':>8}  {'share':<{BAR}}  place"]
    for prefix, node, left_out in _walk(root, most):
        if node is None:
            out.append(f"{'':>10} {'':>8} {'':>8}  {'':<{BAR}}  {prefix}{left_out} more")
            continue
        bar = "█" * round(BAR * node.total[by] / whole)
        figures = f"{node.total['bytes']:>10,} {node.total['rows']:>8,} {node.total['states']:>8,}"
        frames = f"  ({', '.join(node.frames)})" if node.frames else ""
        out.append(f"{figures}  {bar:<{BAR}}  {prefix}{node.label}{frames}")
    return out


def _walk(root: Node, most: int) -> Iterator[tuple[str, Node | None, int]]:
    """(drawing, node, 0), or (drawing, None, n) for n nodes left out."""
    stack: list[tuple[str, str, Node]] = [("", "", root)]
    shown = 0
    while stack:
        drawing, indent, node = stack.pop()
        shown += 1
        yield drawing, node, 0
        room = max(0, most - shown - len(stack))
        kept = node.below if len(node.below) <= room else node.below[: max(1, room)] if room else []
        if len(kept) < len(node.below):
            yield f"{indent}└ ", None, len(node.below) - len(kept)
        for i in range(len(kept) - 1, -1, -1):
            last = i == len(kept) - 1 and len(kept) == len(node.below)
            stack.append((indent + ("└ " if last else "├ "), indent + ("  " if last else "│ "), kept[i]))
