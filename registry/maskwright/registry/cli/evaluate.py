"""`maskwright evaluate`: a log of generations as a table, every layer counted apart."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.workers.metrics import LayerMetrics, MeasuredLayer, render_prometheus, render_table
from maskwright.workers.metrics.log import lines_of

from .files import file_failures
from .terminal import EXIT_FILE, EXIT_OK, EXIT_REFUSED, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.workers.metrics.evaluate import Evaluation

NAME = "evaluate"
EXTRA = "compiler"
HELP = "show a log of generations by layer"
FAULTS_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="JSON Lines as maskwright.workers.metrics.log writes them; - for standard input")
    parser.add_argument("--prometheus", action="store_true", help="as Prometheus text instead of a table")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    # Late: the gate brings SQLite along, which no other command needs.
    from maskwright.workers.gate.errors import MissingDependency
    from maskwright.workers.metrics.evaluate import evaluate

    with file_failures(options.log), terminal.working("evaluating"):
        try:
            found = evaluate(_lines(options.log))
        except MissingDependency as error:
            raise Failure(EXIT_USAGE, str(error)) from error
    if found.faults and found.faults[0].line == 1:  # without its first line nothing is read
        raise Failure(EXIT_FILE, f"{options.log} is no log of generations: {found.faults[0]}", _diagnostics(found))
    if options.prometheus and not terminal.as_json:
        lines = render_prometheus(found.groups.values()).splitlines()
    else:
        lines = render_table(found.groups)
    terminal.show(lines, _fields(found))
    if found.n_faults and not terminal.as_json:
        _note_faults(options.log, found, terminal)
    return EXIT_REFUSED if found.n_faults else EXIT_OK


def _note_faults(path: str, found: Evaluation, terminal: Terminal) -> None:
    terminal.note(f"maskwright: {path}: {found.n_faults} faults. Lines with one aren't counted; in a CONTRADICTION")
    terminal.note("  the text's verdict is counted, not the log's.")
    for fault in found.faults[:FAULTS_SHOWN]:
        terminal.note(f"  {fault.code} at {fault}")
    if found.n_faults > FAULTS_SHOWN:
        terminal.note(f"  … and {found.n_faults - FAULTS_SHOWN} more")


def _lines(path: str) -> Iterator[bytes]:
    if path == "-":
        yield from lines_of(sys.stdin.buffer)
        return
    with Path(path).open("rb") as file:
        yield from lines_of(file)


def _diagnostics(found: Evaluation) -> list[dict[str, Any]]:
    return [{"severity": "error", **fault.to_json()} for fault in found.faults]


def _fields(found: Evaluation) -> dict[str, Any]:
    return {
        "groups": {name: _group(metrics) for name, metrics in found.groups.items()},
        "faults": found.n_faults,
        "diagnostics": _diagnostics(found),
    }


def _group(m: LayerMetrics) -> dict[str, Any]:
    return {
        "texts": m.texts,
        "tokens": m.tokens,
        "ended": dict(m.ends),
        "layers": {
            layer: {
                "passed": m.passed[layer],
                "failed": m.failed[layer],
                "not_judged": m.not_judged(layer),
                "first_to_fail": m.first[layer],
            }
            for layer in MeasuredLayer
        },
        "every_layer_that_judged_passed": m.clean,
        "all_judged_and_passed": m.full,
        "added_ttft_seconds": {"p50": m.added_ttft.quantile(0.5), "p99": m.added_ttft.quantile(0.99)},
        "added_tpot_seconds": {"p50": m.added_tpot.quantile(0.5), "p99": m.added_tpot.quantile(0.99)},
    }
