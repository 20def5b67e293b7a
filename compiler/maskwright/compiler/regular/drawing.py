"""Drawings of automata: DOT for Graphviz, and SVG without any other program.

The SVG puts states in columns by their distance from the start, so an edge leads one column on, within its column,
or back. The first is a line; the second bows out beside the column, down on its right and up on its left; one back
is an arc over the columns or under them, whichever its ends are nearer to, and each arc has a lane of its own. A
state's edges to one target share a label; what is cut from a label is in its tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from maskwright.compiler.regular.codepoints import SCALARS, subtract
from maskwright.compiler.regular.dfa import Automaton, Transition

MAX_DRAWN = 300
"""More states than this can't be read by anyone."""
COLUMN, ROW, RADIUS, MARGIN, LANE = 160, 112, 18, 70, 26
GAP = RADIUS + 5
LABEL = 14
"""Characters of a label that fit between two columns."""
BYTES = ((0, 255),)
ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x20: "␠"}
STYLE = (
    "text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#1a1a1a}"
    "circle{fill:#fff;stroke:#1a1a1a;stroke-width:1.3}path{fill:none;stroke:#5a6270;stroke-width:1.2}"
    ".label{font-size:11px;fill:#2f4b8f;paint-order:stroke;stroke:#fff;stroke-width:3px}"
)
Place = tuple[int, int]
Drawn = tuple[str, float, float]
"""An edge's path and where its label goes."""


def to_dot(automaton: Automaton) -> str:
    """Graphviz source. Raises ValueError for more than `MAX_DRAWN` states."""
    _check(automaton)
    lines = ["digraph automaton {", "  rankdir=LR;", '  start [shape=point, label=""];', "  start -> 0;"]
    for s, label in enumerate(automaton.labels):
        shape = "doublecircle" if label >= 0 else "circle"
        lines.append(f'  {s} [shape={shape}, label="{_state_name(automaton, s)}"];')
    for s, target, symbols in _edges(automaton):
        quoted = _cut(symbols, 2 * LABEL).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {s} -> {target} [label="{quoted}"];')
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(automaton: Automaton) -> str:
    """A stand-alone SVG document. Raises ValueError for more than `MAX_DRAWN` states."""
    _check(automaton)
    places, edges = _places(automaton), _edges(automaton)
    paths, top, bottom = _paths(places, [(s, t) for s, t, _ in edges])
    width = max(x for x, _ in places) + MARGIN + RADIUS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top} {width} {bottom - top}" width="{width}" '
        f'height="{bottom - top}" role="img" aria-label="automaton of {automaton.n_states} states">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" style="fill:#5a6270;stroke:none"/></marker></defs>',
        f'<path d="M{places[0][0] - MARGIN + 5} {places[0][1]}H{places[0][0] - RADIUS}" marker-end="url(#a)"/>',
    ]
    labels = []
    for (_, _, symbols), (path, x, y) in zip(edges, paths, strict=True):
        parts.append(f'<path d="{path}" marker-end="url(#a)"/>')
        shown = _cut(symbols, LABEL)
        title = f"<title>{escape(symbols)}</title>" if shown != symbols else ""
        labels.append(f'<text class="label" x="{x:.0f}" y="{y:.0f}">{title}{escape(shown)}</text>')
    for s, (x, y) in enumerate(places):
        if automaton.labels[s] >= 0:
            parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS + 4}"/>')
        parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}"/>')
        parts.append(f'<text x="{x}" y="{y + 4}">{_state_name(automaton, s)}</text>')
    return "\n".join([*parts, *labels, "</svg>"]) + "\n"


def describe_transitions(transitions: Sequence[Transition], alphabet: str) -> str:
    """A set of symbols as one writes it in brackets, or "not" and what isn't in it, or "any"."""
    everything = SCALARS if alphabet == "chars" else BYTES
    ranges = tuple((low, high) for low, high, _ in transitions)
    rest = subtract(everything, tuple(sorted(ranges)))
    if not rest:
        return "any"
    if sum(b - a + 1 for a, b in rest) < sum(b - a + 1 for a, b in ranges):
        return "not " + _describe(rest, alphabet)
    return _describe(ranges, alphabet)


def _describe(ranges: Sequence[tuple[int, int]], alphabet: str) -> str:
    parts = []
    # Visible ASCII first: it's what a label that is cut should keep.
    for low, high in sorted(ranges, key=lambda r: (not 0x21 <= r[0] <= 0x7E, r)):
        one, two = _symbol(low, alphabet), _symbol(high, alphabet)
        parts.append(one if low == high else f"{one}{'' if high == low + 1 else '-'}{two}")
    return "".join(parts)


def _cut(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _check(automaton: Automaton) -> None:
    if automaton.n_states > MAX_DRAWN:
        raise ValueError(f"{automaton.n_states} states are too many to draw; the limit is {MAX_DRAWN}")


def _state_name(automaton: Automaton, state: int) -> str:
    label = automaton.labels[state]
    return f"{state}:{label}" if label > 0 else str(state)


def _edges(automaton: Automaton) -> list[tuple[int, int, str]]:
    out = []
    for s, row in enumerate(automaton.transitions):
        by_target: dict[int, list[Transition]] = {}
        for t in row:
            by_target.setdefault(t[2], []).append(t)
        out += [(s, target, describe_transitions(ts, automaton.alphabet)) for target, ts in by_target.items()]
    return out


def _places(automaton: Automaton) -> list[Place]:
    """Coordinates by distance from the start; states are numbered breadth first, so columns fill in order."""
    depth = [0] + [-1] * (automaton.n_states - 1)
    for s, row in enumerate(automaton.transitions):
        for _, _, target in row:
            if depth[target] < 0:
                depth[target] = depth[s] + 1
    filled: dict[int, int] = {}
    out = []
    for d in depth:
        row_number = filled.get(d, 0)
        filled[d] = row_number + 1
        out.append((MARGIN + d * COLUMN, MARGIN + row_number * ROW))
    return out


def _paths(places: Sequence[Place], edges: Sequence[tuple[int, int]]) -> tuple[list[Drawn], int, int]:
    """Every edge's path, and the drawing's top and bottom."""
    lowest = max(y for _, y in places)
    back = [(s, t) for s, t in edges if places[t][0] < places[s][0]]
    over = {e for e in back if places[e[0]][1] + places[e[1]][1] <= lowest + MARGIN}
    under = set(back) - over
    heights = _lanes(places, over, -MARGIN // 3, -1) | _lanes(places, under, lowest + MARGIN - 10, 1)
    out = []
    for s, t in edges:
        if (s, t) in heights:
            out.append(_arc(places[s], places[t], heights[s, t]))
        elif s == t:
            out.append(_loop(places[s]))
        elif places[s][0] == places[t][0]:
            out.append(_bow(places[s], places[t]))
        else:
            out.append(_line(places[s], places[t]))
    top = min([0, *(h - LANE for h in heights.values())])
    return out, top, max([lowest + MARGIN, *(h + LANE for h in heights.values())])


def _lanes(places: Sequence[Place], arcs: set[tuple[int, int]], first: int, sign: int) -> dict[tuple[int, int], int]:
    """The height of each arc: shorter ones nearer to the states."""
    order = sorted(arcs, key=lambda e: (places[e[0]][0] - places[e[1]][0], e))
    return {e: first + sign * LANE * i for i, e in enumerate(order)}


def _line(one: Place, two: Place) -> Drawn:
    (x, y), (u, v) = one, two
    length = math.hypot(u - x, v - y)
    dx, dy = (u - x) / length * GAP, (v - y) / length * GAP
    # Nearer to the source than to the middle: lines that cross do so in the middle.
    at = 0.5 if y == v else 0.36
    path = f"M{x + dx:.0f} {y + dy:.0f}L{u - dx:.0f} {v - dy:.0f}"
    return path, x + at * (u - x), y + at * (v - y) - 6


def _loop(place: Place) -> Drawn:
    x, y = place
    return f"M{x - 8} {y - GAP}C{x - 28} {y - 58} {x + 28} {y - 58} {x + 8} {y - GAP}", x, y - 53


def _bow(one: Place, two: Place) -> Drawn:
    (x, y), (_, v) = one, two
    down = 1 if v > y else -1
    side = down * (4 + 26 * (abs(v - y) // ROW))
    edge = x + down * 14
    path = f"M{edge} {y + down * 17}C{x + side} {y + down * 34} {x + side} {v - down * 34} {edge} {v - down * 19}"
    return path, x + 3 * down + 0.7 * side, y + 0.36 * (v - y)


def _arc(one: Place, two: Place, height: int) -> Drawn:
    """An arc back whose middle is at `height`."""
    (x, y), (u, v) = one, two
    sign = -1 if height < y else 1
    y, v = y + sign * (GAP - 3), v + sign * (GAP - 3)
    # The middle of a cubic curve is at an eighth of its ends and three eighths of its two inner points.
    inner = (8 * height - y - v) / 6
    path = f"M{x - 9} {y}C{x - 40} {inner:.0f} {u + 40} {inner:.0f} {u + 9} {v}"
    return path, (x + u) / 2, height + 4


def _symbol(code: int, alphabet: str) -> str:
    if code in ESCAPES:
        return ESCAPES[code]
    if 0x21 <= code <= 0x7E:
        return f"\\{chr(code)}" if chr(code) in "\\-" else chr(code)
    if alphabet == "bytes" or code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return chr(code) if code < 0xD7FF and chr(code).isprintable() else f"\\u{{{code:x}}}"
