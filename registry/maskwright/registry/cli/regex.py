"""`maskwright regex`: what one pattern means: its tree, its automaton's size, its shortest members, a drawing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from maskwright.compiler.diagnostics import CompileError

from .files import file_failures
from .terminal import EXIT_OK, EXIT_REFUSED, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.compiler.regex import Mode
    from maskwright.compiler.regex.report import PatternReport

NAME = "regex"
EXTRA = "compiler"
HELP = "show a pattern's tree, its automaton's size and its shortest members"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", help="write -- before one that begins with a hyphen")
    parser.add_argument("--dialect", choices=("ecma262", "python"), default="ecma262")
    parser.add_argument("--search", action="store_true", help="the text contains a match; default: it is one")
    parser.add_argument("--dot", metavar="FILE", help="write the automaton over characters for Graphviz")
    parser.add_argument("--svg", metavar="FILE", help="draw it, without any other program")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    from maskwright.compiler.regex.report import report_pattern

    pattern: str = options.pattern
    _check_text(pattern)
    mode: Mode = "search" if options.search else "full"
    try:
        with terminal.working("compiling"):
            report = report_pattern(pattern, options.dialect, mode)
    except CompileError as error:
        diagnostics = [d.to_json() for d in error.diagnostics]
        raise Failure(EXIT_REFUSED, "the pattern was refused", diagnostics, source=pattern) from error
    written = _draw(options, report)
    _show(options, mode, report, written, terminal)
    return EXIT_OK


def _check_text(pattern: str) -> None:
    """Bytes of the command line that aren't UTF-8 arrive as lone surrogates, which would match nothing."""
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise Failure(EXIT_REFUSED, f"character {error.start} of the pattern isn't UTF-8") from error


def _draw(options: argparse.Namespace, report: PatternReport) -> dict[str, str]:
    """Writes the drawings asked for; returns their files by kind."""
    from maskwright.compiler.regular.drawing import to_dot, to_svg

    written = {}
    for kind, draw in (("dot", to_dot), ("svg", to_svg)):
        path = getattr(options, kind)
        if path is None:
            continue
        try:
            drawing = draw(report.dfa)
        except ValueError as error:
            raise Failure(EXIT_REFUSED, f"there's no drawing: {error}") from error
        with file_failures(path):
            Path(path).write_text(drawing, encoding="utf-8")
        written[kind] = path
    return written


def _show(
    options: argparse.Namespace, mode: Mode, report: PatternReport, written: dict[str, str], terminal: Terminal
) -> None:
    fields = {
        "pattern": options.pattern,
        "dialect": options.dialect,
        "mode": mode,
        "tree": report.tree.splitlines(),
        "states": {"chars": report.dfa.n_states, "utf8": report.utf8_states, "json": report.json_states},
        "empty": report.longest == -1,
        "longest": None if report.longest == -1 else report.longest,
        "shortest": list(report.members),
        "written": written,
    }
    lines = [str(report), *(f"{kind}: {path}" for kind, path in written.items())]
    terminal.show(lines, fields)
