"""What a command says: results on standard output, progress and failures on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

EXIT_OK, EXIT_REFUSED, EXIT_USAGE, EXIT_FILE, EXIT_SERVICE = 0, 1, 2, 3, 4
_CONTROLS = {c: f"\\x{c:02x}" for c in (*range(32), 127)}
COLUMNS_SHOWN = 76
"""Of a source's line, when a place in it is pointed at."""
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
            self.note(f"  {render_diagnostic(diagnostic)}")
            if failure.source is not None and "span" in diagnostic:
                for line in point_at(failure.source, *diagnostic["span"]):
                    self.note(f"    {line}")

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


def point_at(source: str, start: int, end: int) -> tuple[str, str]:
    """The line with a span's start, cut to `COLUMNS_SHOWN`, and carets under the span's part of it."""
    line_start = source.rfind("\n", 0, start) + 1
    line_end = source.find("\n", start)
    line_end = len(source) if line_end < 0 else line_end
    end = max(min(end, line_end), start + 1)
    # Cells of two columns and escapes of four are rare: the window is counted in characters.
    low = max(line_start, min(start - COLUMNS_SHOWN // 3, line_end - COLUMNS_SHOWN))
    high = min(line_end, low + COLUMNS_SHOWN)
    before, inside, after = (
        [_shown(c) for c in source[a:b]] for a, b in ((low, start), (start, min(end, high)), (min(end, high), high))
    )
    left, right = "…" * (low > line_start), "…" * (high < line_end)
    blank = " " * (len(left) + sum(map(_columns, before)))
    carets = "^" * max(1, sum(map(_columns, inside)))
    return left + "".join([*before, *inside, *after]) + right, blank + carets


def _shown(c: str) -> str:
    return c if c.isprintable() else c.encode("unicode_escape").decode()


def _columns(shown: str) -> int:
    """Columns of a terminal that a character, or its escape, takes."""
    if len(shown) > 1:
        return len(shown)
    if unicodedata.combining(shown):
        return 0
    return 2 if unicodedata.east_asian_width(shown) in "WF" else 1


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
