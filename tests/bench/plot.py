"""Percentile curves as a self-contained SVG: one panel a measure, log scale upwards, the share of values sideways."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0b7a75", "#d1495b", "#edae49", "#30638e", "#6a4c93", "#7d7d7d")
WIDTH, HEIGHT, LEFT, TOP, GAP = 340, 220, 56, 30, 46
SHARES = (0, 50, 90, 99, 99.9)


@dataclass(frozen=True)
class Curve:
    """A name and all its values."""

    name: str
    values: Sequence[float]


def place(share: float) -> float:
    """Where a share of 0 to 100 stands, 0 to 1: each factor of ten in what's left has the same width."""
    return min(1.0, -math.log10(max(1 - share / 100, 1e-3)) / 3)


def plot_curves(panels: Mapping[str, Sequence[Curve]]) -> str:
    """The SVG's text. Panels without values are left out."""
    shown = [(title, [c for c in curves if c.values]) for title, curves in panels.items()]
    shown = [(title, curves) for title, curves in shown if curves]
    names = list(dict.fromkeys(c.name for _, curves in shown for c in curves))
    colour = {n: COLOURS[i % len(COLOURS)] for i, n in enumerate(names)}
    width, height = LEFT + WIDTH + GAP, TOP + HEIGHT + GAP
    columns = 2
    rows = math.ceil(len(shown) / columns)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * width} {rows * height + 30}" '
        'font-family="system-ui, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, n in enumerate(names):
        out.append(f'<rect x="{LEFT + 130 * i}" y="10" width="10" height="10" fill="{colour[n]}"/>')
        out.append(f'<text x="{LEFT + 16 + 130 * i}" y="19">{escape(n)}</text>')
    for i, (title, curves) in enumerate(shown):
        out.append(f'<g transform="translate({i % columns * width + LEFT} {i // columns * height + TOP + 30})">')
        out.extend(_panel(title, curves, colour))
        out.append("</g>")
    return "\n".join([*out, "</svg>", ""])


def _panel(title: str, curves: Sequence[Curve], colour: Mapping[str, str]) -> list[str]:
    values = [max(v, 1e-3) for c in curves for v in c.values]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def up(value: float) -> float:
        return HEIGHT * (1 - (math.log10(max(value, 1e-3)) - low) / (high - low))

    out = [f'<text x="0" y="-8" font-weight="600">{escape(title)}</text>']
    for power in range(low, high + 1):
        y = up(10.0**power)
        out.append(f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end" fill="#555">{10.0**power:,g}</text>')
    for share in SHARES:
        x = WIDTH * place(share)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle" fill="#555">p{share:g}</text>')
    for curve in curves:
        ordered = sorted(curve.values)
        points = " ".join(
            f"{WIDTH * place(100 * k / len(ordered)):.1f},{up(v):.1f}" for k, v in _thinned(ordered)
        )  # fmt: skip
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour[curve.name]}" stroke-width="1.8"/>')
    return out


def _thinned(ordered: Sequence[float], most: int = 400) -> list[tuple[int, float]]:
    """Positions and values, closer together where the scale is wider."""
    n = len(ordered)
    kept = {min(n - 1, int(n * (1 - 10 ** (-3 * i / most)))) for i in range(most)} | {n - 1}
    return [(k, ordered[k]) for k in sorted(kept)]
