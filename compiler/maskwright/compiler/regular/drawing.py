"""Drawings of automata: DOT for Graphviz, and SVG without any other program.

The SVG puts states in columns by their distance from the start. An edge to a later column is a line, one back or
within a column an arc above; a state's edges to one target share a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from maskwright.compiler.regular.dfa import Automaton, Transition

MAX_DRAWN = 300
"""More states than this can't be read by anyone."""
COLUMN, ROW, RADIUS, MARGIN = 150, 80, 18, 60
STYLE = (
    "text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#1a1a1a}"
    "circle{fill:#fff;stroke:#1a1a1a;stroke-width:1.3}path{fill:none;stroke:#5a6270;stroke-width:1.2}"
    ".label{font-size:11px;fill:#2f4b8f;paint-order:stroke;stroke:#fff;stroke-width:3px}"
)


def to_dot(automaton: Automaton) -> str:
    """Graphviz source. Raises ValueError for more than `MAX_DRAWN` states."""
    _check(automaton)
    lines = ["digraph automaton {", "  rankdir=LR;", '  start [shape=point, label=""];', "  start -> 0;"]
    for s, label in enumerate(automaton.labels):
        shape = "doublecircle" if label >= 0 else "circle"
        lines.append(f'  {s} [shape={shape}, label="{_state_name(automaton, s)}"];')
    for s, target, symbols in _edges(automaton):
        quoted = symbols.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {s} -> {target} [label="{quoted}"];')
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(automaton: Automaton) -> str:
    """A stand-alone SVG document. Raises ValueError for more than `MAX_DRAWN` states."""
    _check(automaton)
    places = _places(automaton)
    width = max(x for x, _ in places) + MARGIN + RADIUS
    height = max(y for _, y in places) + MARGIN
    top = -max(MARGIN, max((abs(places[t][0] - places[s][0]) for s, t, _ in _edges(automaton)), default=0) // 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top} {width} {height - top}" width="{width}" '
        f'height="{height - top}" role="img" aria-label="automaton of {automaton.n_states} states">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" style="fill:#5a6270;stroke:none"/></marker></defs>',
        f'<path d="M{places[0][0] - MARGIN + 5} {places[0][1]}H{places[0][0] - RADIUS}" marker-end="url(#a)"/>',
    ]
    labels = []
    for s, target, label in _edges(automaton):
        path, at = _curve(places[s], places[target])
        parts.append(f'<path d="{path}" marker-end="url(#a)"/>')
        labels.append(f'<text class="label" x="{at[0]:.0f}" y="{at[1]:.0f}">{escape(label)}</text>')
    for s, (x, y) in enumerate(places):
        if automaton.labels[s] >= 0:
            parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS + 4}"/>')
        parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}"/>')
        parts.append(f'<text x="{x}" y="{y + 4}">{_state_name(automaton, s)}</text>')
    return "\n".join([*parts, *labels, "</svg>"]) + "\n"


def describe_transitions(transitions: Sequence[Transition], alphabet: str, limit: int = 5) -> str:
    """A set of symbols as one writes it in brackets; at most `limit` ranges of it."""
    if not transitions:
        return ""
    parts = []
    for low, high, _ in transitions[:limit]:
        one, two = _symbol(low, alphabet), _symbol(high, alphabet)
        parts.append(one if low == high else f"{one}{'' if high == low + 1 else '-'}{two}")
    return "".join(parts) + ("…" if len(transitions) > limit else "")


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


def _places(automaton: Automaton) -> list[tuple[int, int]]:
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


def _curve(one: tuple[int, int], two: tuple[int, int]) -> tuple[str, tuple[float, float]]:
    """The path of an edge and where its label goes."""
    (x, y), (u, v) = one, two
    gap = RADIUS + 5
    if one == two:
        return f"M{x - 8} {y - gap}C{x - 30} {y - 62} {x + 30} {y - 62} {x + 8} {y - gap}", (x, y - 56)
    if u - x == COLUMN:
        length = math.hypot(u - x, v - y)
        dx, dy = (u - x) / length * gap, (v - y) / length * gap
        return f"M{x + dx:.0f} {y + dy:.0f}L{u - dx:.0f} {v - dy:.0f}", ((x + u) / 2, (y + v) / 2 - 6)
    bend = 34 + abs(u - x) // 3
    peak = min(y, v) - bend
    return f"M{x} {y - gap}C{x} {peak} {u} {peak} {u} {v - gap}", ((x + u) / 2, min(y, v) - 0.72 * bend)


def _symbol(code: int, alphabet: str) -> str:
    if 0x21 <= code <= 0x7E:
        return f"\\{chr(code)}" if chr(code) in "\\-" else chr(code)
    if alphabet == "bytes" or code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if code == 0x20:
        return "␠"
    return chr(code) if code < 0xD7FF and chr(code).isprintable() else f"\\u{{{code:x}}}"
