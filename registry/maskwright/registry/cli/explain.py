"""`maskwright explain`: what becomes of a source, and what it costs where, as a tree and as a picture."""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path
from typing import Any

from maskwright.compiler.cost_tree import MEASURES, cost_tree, tree_lines
from maskwright.compiler.diagnostics import CompileError

from .choices import add_choices, compile_kind, limits_of, options_of, resources_of, with_tool_arguments
from .files import compiling, file_failures, kind_of, prepare_compiler, read_source, read_vocabulary
from .terminal import EXIT_OK, EXIT_REFUSED, Failure, Terminal, render_diagnostic

NAME = "explain"
EXTRA = "compiler"
HELP = "show what becomes of a source and what each place of it costs"
LISTED = 40
"""Keywords that aren't enforced, and notes, shown to people; `--json` has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="file, or - for standard input")
    parser.add_argument("--tokenizer", metavar="FILE", help="default: the demo's, of 4,096 tokens")
    parser.add_argument("--by", choices=MEASURES, default="bytes", help="what shares and the picture's widths are of")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the picture there")
    add_choices(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    kind = kind_of(options.source, options.kind)
    chosen, limits, resources = options_of(options), limits_of(options), resources_of(options, kind)
    source = read_source(options.source)
    if kind == "tools":
        source = with_tool_arguments(source, options)
    tokenizer = options.tokenizer or str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
    compiler = prepare_compiler(read_vocabulary(tokenizer, terminal), chosen, limits, terminal)
    try:
        with compiling(options.source, terminal):
            report = compile_kind(compiler, kind, source, resources).report.to_json()
    except CompileError as error:
        diagnostics = [d.to_json() for d in error.diagnostics]
        message = f"{options.source} was refused"
        raise Failure(EXIT_REFUSED, message, diagnostics, source=source, accepted=False) from error
    tree = cost_tree(report["costs"], options.by)
    if options.svg:
        _draw(options, report, terminal)
    lines = [*_summary(options.source, report), "", *tree_lines(tree, options.by)]
    fields = {"source": options.source, "accepted": True, "report": report, "tree": tree.to_json()}
    terminal.show(lines, fields)
    return EXIT_OK


def _draw(options: argparse.Namespace, report: dict[str, Any], terminal: Terminal) -> None:
    from maskwright.compiler.cost_picture import draw_costs

    with file_failures(str(options.svg)):
        options.svg.write_text(draw_costs(cost_tree(report["costs"], options.by), options.source, options.by))
    terminal.note(f"{options.svg}: the picture")


def _summary(name: str, report: dict[str, Any]) -> list[str]:
    seconds = sum(report["seconds"].values())
    out = [
        f"{name}: {report['artifact_bytes']:,} bytes, {report['states']:,} states in {report['frames']:,} frames,"
        f" {report['contexts']:,} contexts, {report['masks']:,} masks; {seconds:.2f} s,"
        f" {report['peak_bytes'] / (1 << 20):.1f} MiB of memory",
        _length(report),
    ]
    treatment = report["treatment"]
    if treatment:
        count = {how: sum(t[2] == how for t in treatment) for how in ("enforced", "residual", "annotation")}
        out.append("keywords: " + ", ".join(f"{n} {how}" for how, n in count.items()))
        others = [t for t in treatment if t[2] != "enforced"]
        out += [f"  {how:<10} {pointer}" for pointer, _, how in others[:LISTED]]
        out += [f"  and {len(others) - LISTED} more"] * (len(others) > LISTED)
    out += [render_diagnostic(note) for note in report["notes"][:LISTED]]
    return out


def _length(report: dict[str, Any]) -> str:
    if report["bounded"]:
        imposed = f", bounded by {', '.join(report['bounded_by'])}" if report["bounded_by"] else ""
        return f"length: {report['min_bytes']:,} to {report['max_bytes']:,} bytes{imposed}"
    loop = report["unbounded"]
    after = f" after {loop['after']}" if loop["after"] else ""
    where = loop["pointer"] or "the root"
    least = f"length: {report['min_bytes']:,} bytes or more"
    return f"{least}; unbounded: {loop['what']} at {where}{after} ({loop['hint']})"
