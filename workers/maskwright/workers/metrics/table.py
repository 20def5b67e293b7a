"""Layered metrics as a table for people: a row for each layer, groups one below the other.

    masked: 100 texts, 4,102 tokens; ended: stop 98, length 2
      layer        judged   passed   failed  of judged   of all   first to fail
      dead end        100      100        0     100.0%   100.0%               0
      ...
      every layer that judged passed 61 of 100; all 7 judged and passed 0 of 100
      added TTFT   p50 1.2 ms   p99 3 ms   (100)
      added TPOT   p50 4.1 µs   p99 20 µs   (4,002)

`of judged` is passed / judged, `of all` passed / texts. They differ where texts never got to a layer: a layer that
sees only what an earlier one lets through looks good in the first and not in the second. Without judged texts both
are "-", never 0% or 100%.
"""

from __future__ import annotations

from collections.abc import Mapping

from maskwright.workers.metrics.counters import Durations, LayerMetrics, MeasuredLayer

_HEAD = ("layer", "judged", "passed", "failed", "of judged", "of all", "first to fail")


def render_table(groups: Mapping[str, LayerMetrics]) -> list[str]:
    """The lines of the table, groups in the order given."""
    lines: list[str] = []
    for name, metrics in groups.items():
        lines += [*([""] if lines else []), *_group(name, metrics)]
    return lines


def _group(name: str, m: LayerMetrics) -> list[str]:
    ended = ", ".join(f"{end} {n:,}" for end, n in m.ends.most_common())
    name = name if name.isprintable() else name.encode("unicode_escape").decode()
    lines = [f"{name}: {m.texts:,} texts, {m.tokens:,} tokens" + (f"; ended: {ended}" if ended else "")]
    lines.append(_row(_HEAD))
    for layer in MeasuredLayer:
        passed, failed = m.passed[layer], m.failed[layer]
        cells = (f"{passed + failed:,}", f"{passed:,}", f"{failed:,}", _share(passed, passed + failed))
        of_all = _share(passed, m.texts) if passed + failed else "-"
        lines.append(_row((layer, *cells, of_all, f"{m.first[layer]:,}")))
    lines.append(
        f"  every layer that judged passed {m.clean:,} of {m.texts:,};"
        f" all {len(MeasuredLayer)} judged and passed {m.full:,} of {m.texts:,}"
    )
    if m.outcomes:
        lines.append("  outcomes: " + ", ".join(f"{outcome} {n:,}" for outcome, n in m.outcomes.most_common()))
    lines += _times("added TTFT", m.added_ttft) + _times("added TPOT", m.added_tpot)
    return lines


def _row(cells: tuple[str, ...]) -> str:
    widths = (12, 8, 8, 8, 11, 8, 15)
    return "  " + cells[0].ljust(widths[0]) + "".join(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))


def _share(part: int, whole: int) -> str:
    """Rounded down, so that 100.0% means all."""
    return f"{part * 1000 // whole / 10:.1f}%" if whole else "-"


def _times(name: str, durations: Durations) -> list[str]:
    middle, high = durations.quantile(0.5), durations.quantile(0.99)
    if middle is None or high is None:
        return []
    return [f"  {name:<12} p50 {_seconds(middle)}   p99 {_seconds(high)}   ({durations.count:,})"]


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
