"""Costs by place as a picture: an icicle diagram in SVG, one rectangle for each place, as wide as its share.

The root is on top; what's below a place hangs under it, the rest of the width is its own. The picture is one file
without scripts, fonts or references, and has colours for light and dark surroundings. Hovering shows the figures, which
are also in each rectangle's title for readers of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from maskwright.compiler.cost_tree import By, Node

WIDTH, ROW, TOP, MARGIN = 960.0, 30.0, 52.0, 12.0
NARROWEST = 0.6
"""Pixels; what would be narrower isn't drawn, and counted in a line at the bottom."""
CHARACTER = 6.8
_STYLE = """
svg { background: #ffffff; font: 12px system-ui, sans-serif; }
text { fill: #1c1c1c; } .faint { fill: #5a5a5a; }
rect { stroke: #ffffff; stroke-width: 1; }
.s0 { fill: #e3ecf7; } .s1 { fill: #c3d8f0; } .s2 { fill: #f6dfae; } .s3 { fill: #f5b98a; } .s4 { fill: #ef8f7e; }
g:hover > rect { stroke: #1c1c1c; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181d; } text { fill: #f0f0f0; } .faint { fill: #a8adb7; } rect { stroke: #16181d; }
  .s0 { fill: #26313f; } .s1 { fill: #2c4a6b; } .s2 { fill: #5f4d1d; } .s3 { fill: #7b4420; } .s4 { fill: #8a3029; }
  g:hover > rect { stroke: #f0f0f0; }
}
"""
_SHARES = (0.02, 0.08, 0.2, 0.4)
"""Of the whole that a place costs itself, where its colour changes."""


def draw_costs(root: Node, title: str, by: By = "bytes") -> str:
    """The SVG's text."""
    placed, hidden = _place(root, by)
    depth = max(level for _, level, _, _ in placed) + 1
    height = TOP + depth * ROW + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title)}: cost by place">',
        f"<style>{_STYLE}</style>",
        f'<text x="{MARGIN:g}" y="22" font-size="14" font-weight="600">{escape(_cut(title, 900, 7.6))}</text>',
        f'<text class="faint" x="{MARGIN:g}" y="40">{escape(_figures(root.total))}; width: share of {by}, '
        "colour: what a place costs itself</text>",
    ]
    whole = max(1, root.total[by])
    for node, level, x, width in placed:
        out += _rectangle(node, level, x, width, node.own[by] / whole, by)
    note = f"{hidden} places too small to draw" if hidden else "every place is drawn"
    out.append(f'<text class="faint" x="{MARGIN:g}" y="{height - 12:g}">{note}</text>')
    return "\n".join([*out, "</svg>", ""])


def _place(root: Node, by: By) -> tuple[list[tuple[Node, int, float, float]], int]:
    """(node, level, left, width) of each node that's wide enough, and the number of the others."""
    scale = (WIDTH - 2 * MARGIN) / max(1, root.total[by])
    work = [(root, 0, MARGIN, WIDTH - 2 * MARGIN)]
    out, hidden = [], 0
    while work:
        node, level, x, width = work.pop()
        out.append((node, level, x, width))
        for below in node.below:
            wide = below.total[by] * scale
            if wide < NARROWEST:
                hidden += _count(below)
            else:
                work.append((below, level + 1, x, wide))
            x += wide
    return out, hidden


def _count(node: Node) -> int:
    order = [node]
    for n in order:
        order += n.below
    return len(order)


def _rectangle(node: Node, level: int, x: float, width: float, share: float, by: By) -> Iterator[str]:
    y = TOP + level * ROW
    colour = sum(share > s for s in _SHARES)
    pointer = node.pointer or "the whole source"
    yield "<g>"
    yield f"<title>{escape(f'{pointer}: {_figures(node.total)}; itself {node.own[by]:,} {by}')}</title>"
    yield f'<rect class="s{colour}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{ROW - 2:g}" rx="2"/>'
    label = _cut(f"{node.label} {node.total[by]:,}" if width > 140 else node.label, width - 8)
    if label:
        yield f'<text x="{x + 4:.2f}" y="{y + 18:g}">{escape(label)}</text>'
    yield "</g>"


def _figures(total: dict[By, int]) -> str:
    return f"{total['bytes']:,} bytes, {total['rows']:,} rows, {total['states']:,} states"


def _cut(text: str, width: float, character: float = CHARACTER) -> str:
    """The text's end where it's too long: the last part of a pointer tells most."""
    room = int(width // character)
    if len(text) <= room:
        return text
    return "…" + text[-(room - 1) :] if room >= 4 else ""
