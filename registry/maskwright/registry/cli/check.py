"""`maskwright check`: is a text accepted, and if not, where does it stop and what was expected there?"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from maskwright.workers import Artifact, Matcher, Place

from .files import file_failures, read_artifact
from .terminal import EXIT_OK, EXIT_REFUSED, Terminal, render_byte_set, render_bytes

NAME = "check"
EXTRA = "compiler"
HELP = "check a text against an artifact"
SHOWN_BEFORE = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact")
    parser.add_argument("text", help="the text, or - for standard input without its last newline")
    parser.add_argument("--tokenizer", metavar="FILE", help="default: the pack beside the artifact")


@dataclass(frozen=True)
class Verdict:
    """`stop`: bytes that were taken. `place` is where the text stops, or stops too early."""

    accepted: bool
    stop: int
    length: int
    place: Place


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    artifact = read_artifact(options.artifact, options.tokenizer, terminal)
    data = _read_text(options.text)
    verdict = check(artifact, data)
    _show(data, verdict, terminal)
    return EXIT_OK if verdict.accepted else EXIT_REFUSED


def check(artifact: Artifact, data: bytes) -> Verdict:
    """Follows the bytes as far as they go. Cost: linear in the text."""
    matcher = Matcher(artifact)
    if matcher.accept_string(data):
        return Verdict(matcher.is_accepting(), len(data), len(data), matcher.where())
    # A matcher rests only where a token may end: a byte that leads elsewhere is tried with those after it.
    stop, pending = 0, b""
    for position, byte in enumerate(data):
        pending += bytes((byte,))
        if matcher.accept_string(pending):
            stop, pending = position + 1, b""
        elif len(pending) == 16:
            break
    return Verdict(False, stop, len(data), matcher.where())


def _read_text(argument: str) -> bytes:
    if argument != "-":
        return argument.encode("utf-8", "surrogateescape")
    with file_failures("standard input"):
        return sys.stdin.buffer.read().removesuffix(b"\n")


def _show(data: bytes, verdict: Verdict, terminal: Terminal) -> None:
    before = data[: verdict.stop].decode("utf-8", "replace")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    place = verdict.place
    expected = render_byte_set(place.expected) + (", or the end" if place.may_end else "")
    fields = {
        "accepted": verdict.accepted,
        "stop_byte": verdict.stop,
        "line": line,
        "column": column,
        "complete": verdict.stop == verdict.length,
        "may_end": place.may_end,
        "expected": expected,
        "expected_bytes": list(place.expected),
        "frame": place.frame,
        "pointer": place.pointer,
    }
    if verdict.accepted:
        terminal.show([f"accepted: {verdict.length} bytes"], fields)
        return
    if verdict.stop == verdict.length:
        what = "the text ends too early"
    else:
        what = f"stops before {render_bytes(data[verdict.stop : verdict.stop + 8])!r}"
    shown = render_bytes(data[max(0, verdict.stop - SHOWN_BEFORE) : verdict.stop])
    lines = [
        f"not accepted: {what}, at byte {verdict.stop} (line {line}, column {column})",
        f"  after     {shown}",
        f"  expected  {expected}",
        f"  in        {place.frame}, from {place.pointer or 'the root'}",
    ]
    terminal.show(lines, fields)
