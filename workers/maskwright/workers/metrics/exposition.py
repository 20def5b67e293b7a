"""Layered metrics in Prometheus's text format (version 0.0.4), written here so that a worker needs no client library.

    maskwright_texts_total                       generations seen
    maskwright_tokens_total                      tokens of those whose number is known
    maskwright_layer_verdicts_total{layer,verdict}   verdict: passed, failed, not_judged
    maskwright_layer_first_failures_total{layer}     failing texts by the first layer that said no
    maskwright_generation_ends_total{ended}
    maskwright_gate_outcomes_total{outcome}
    maskwright_added_ttft_seconds, maskwright_added_tpot_seconds      histograms

Every layer and verdict has a sample, also at zero, so that a rate never lacks its denominator. Words of more than one
word have underscores: `dead_end`, `in_doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from maskwright.workers.metrics.counters import Durations, LayerMetrics, MeasuredLayer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TTFT_NS = tuple(int(m * 10**e) for e in range(5, 10) for m in (1, 2.5, 5))
_TPOT_NS = tuple(int(m * 10**e) for e in range(3, 8) for m in (1, 2.5, 5))

_Sample = tuple[str, dict[str, str], float]


def render_prometheus(metrics: Iterable[LayerMetrics]) -> str:
    """The text of one scrape. Metrics of several sources need different labels. Cost: a few hundred short lines."""
    given = list(metrics)
    if len({tuple(sorted(m.labels.items())) for m in given}) != len(given):
        raise ValueError("two sources have the same labels")
    lines: list[str] = []
    for name, kind, about, samples in _FAMILIES:
        lines += (f"# HELP {name} {about}", f"# TYPE {name} {kind}")
        for m in given:
            lines += (_line(name + suffix, {**m.labels, **labels}, value) for suffix, labels, value in samples(m))
    return "\n".join(lines) + "\n"


def _verdicts(m: LayerMetrics) -> Iterator[_Sample]:
    for layer in MeasuredLayer:
        counts = {"passed": m.passed[layer], "failed": m.failed[layer], "not_judged": m.not_judged(layer)}
        for verdict, n in counts.items():
            yield "", {"layer": _word(layer), "verdict": verdict}, n


def _counter(read: Callable[[LayerMetrics], int]) -> Callable[[LayerMetrics], Iterator[_Sample]]:
    return lambda m: iter([("", {}, read(m))])


def _labelled(label: str, read: Callable[[LayerMetrics], Any]) -> Callable[[LayerMetrics], Iterator[_Sample]]:
    return lambda m: (("", {label: _word(name)}, n) for name, n in sorted(read(m).items()))


def _first(m: LayerMetrics) -> Iterator[_Sample]:
    return (("", {"layer": _word(layer)}, m.first[layer]) for layer in MeasuredLayer)


def _histogram(
    read: Callable[[LayerMetrics], Durations], bounds: tuple[int, ...]
) -> Callable[[LayerMetrics], Iterator[_Sample]]:
    def samples(m: LayerMetrics) -> Iterator[_Sample]:
        durations = read(m)
        for bound, n in zip(bounds, durations.at_most(bounds), strict=True):
            yield "_bucket", {"le": f"{bound / 1e9:g}"}, n
        yield "_bucket", {"le": "+Inf"}, durations.count
        yield "_sum", {}, durations.total
        yield "_count", {}, durations.count

    return samples


_FAMILIES: tuple[tuple[str, str, str, Callable[[LayerMetrics], Iterator[_Sample]]], ...] = (
    ("maskwright_texts_total", "counter", "Generations seen.", _counter(lambda m: m.texts)),
    ("maskwright_tokens_total", "counter", "Tokens generated, where known.", _counter(lambda m: m.tokens)),
    ("maskwright_layer_verdicts_total", "counter", "Texts by layer and its verdict.", _verdicts),
    ("maskwright_layer_first_failures_total", "counter", "Failing texts by the first layer that said no.", _first),
    ("maskwright_generation_ends_total", "counter", "How generations ended.", _labelled("ended", lambda m: m.ends)),
    ("maskwright_gate_outcomes_total", "counter", "Outcomes of commits.", _labelled("outcome", lambda m: m.outcomes)),
    (
        "maskwright_added_ttft_seconds",
        "histogram",
        "Time that masks add to the first token.",
        _histogram(lambda m: m.added_ttft, _TTFT_NS),
    ),
    (
        "maskwright_added_tpot_seconds",
        "histogram",
        "Time that masks add to a token.",
        _histogram(lambda m: m.added_tpot, _TPOT_NS),
    ),
)


def _word(name: str) -> str:
    return name.replace(" ", "_")


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
    return f"{name}{{{inside}}} {value:.17g}" if inside else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
