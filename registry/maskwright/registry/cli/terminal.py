"""What a command says: results on standard output, progress and failures on standard error."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from .excerpts import describe

EXIT_OK, EXIT_REFUSED, EXIT_USAGE, EXIT_FILE, EXIT_SERVICE = 0, 1, 2, 3, 4
_CONTROLS = {c: f"\\x{c:02x}" for c in (*range(32), 127)}
QUIET_SECONDS = 1.0
"""Work shorter than this isn't worth a line."""


class Failure(Exception):
    """A command can't go on. `diagnostics` in the JSON form of the compiler's; `source`: what their spans are in."""

    def __init__(
        self,
        exit_code: int,
        message: str,
        diagnostics: Sequence[dict[str, Any]] = (),
        *,
        source: str | None = None,
        **fields: Any,
    ) -> None:
        self.exit_code, self.message, self.source = exit_code, message, source
        self.diagnostics, self.fields = list(diagnostics), fields
        super().__init__(message)


class Terminal:
    """Writes for people, or with `as_json` for machines."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, lines: Sequence[str], fields: dict[str, Any]) -> None:
        """The result: lines for people, fields for machines."""
        text = json.dumps(fields, ensure_ascii=False) if self.as_json else "\n".join(lines)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def fail(self, failure: Failure) -> None:
        """A failure: its message and diagnostics."""
        if self.as_json:
            fields = {"error": failure.message, **failure.fields}
            if failure.diagnostics:
                fields["diagnostics"] = failure.diagnostics
            self.show([], fields)
            return
        self.note(f"maskwright: {failure.message}")
        for diagnostic in failure.diagnostics:
            for line in describe(diagnostic, failure.source, has_colour(sys.stderr)):
                self.note(line)

    def note(self, line: str) -> None:
        """A line on standard error."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Tells on standard error that `what` takes a while, and how long; nothing when it's quick."""
        began, done = time.monotonic(), threading.Event()
        told = threading.Thread(target=self._tell, args=(what, done), daemon=True)
        told.start()
        try:
            yield
        finally:
            done.set()
            told.join()
        seconds = time.monotonic() - began
        if seconds >= QUIET_SECONDS:
            self.note(f"{what}: {seconds:.1f} s")

    def _tell(self, what: str, done: threading.Event) -> None:
        if not done.wait(QUIET_SECONDS):
            self.note(f"{what} …")


def has_colour(stream: TextIO) -> bool:
    """Whether to write colours: to terminals, unless the environment says no (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def render_diagnostic(diagnostic: dict[str, Any]) -> str:
    """One line: code, place, message, hint."""
    place = ""
    if "pointer" in diagnostic:
        place = f" at {diagnostic['pointer'] or 'the root'}"
    if "span" in diagnostic:
        place += " at characters {}–{}".format(*diagnostic["span"])
    hint = f" ({diagnostic['hint']})" if diagnostic.get("hint") else ""
    level = "" if diagnostic.get("severity", "error") == "error" else f"{diagnostic['severity']} "
    return f"{level}{diagnostic['code']}{place}: {diagnostic['message']}{hint}"


def render_bytes(data: bytes) -> str:
    """Bytes for people: as text where they are, the rest escaped."""
    return data.decode("utf-8", "backslashreplace").translate(_CONTROLS)


def render_byte_set(values: bytes) -> str:
    """A set of bytes for people, runs of neighbours as ranges: `"`, `0`-`9`."""
    if not values:
        return "nothing"
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return ", ".join(_render_run(*run) for run in runs)


def _render_run(first: int, last: int) -> str:
    if first == last:
        return _render_byte(first)
    separator = " to " if last > first + 1 else ", "
    return f"{_render_byte(first)}{separator}{_render_byte(last)}"


def _render_byte(value: int) -> str:
    names = {0x09: "tab", 0x0A: "newline", 0x0D: "carriage return", 0x20: "space"}
    if value in names:
        return names[value]
    return f"{chr(value)!r}" if 0x20 < value < 0x7F else f"byte {value:02X}"
