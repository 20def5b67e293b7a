"""Diagnostics for people: what's wrong, the source's line with carets under the place, and the next step.

    error INVALID_SOURCE at /properties/a: duplicate key 'a'
      3 |   "a": 1,
        |   ^^^
      hint: …

The place is a span, or found from a JSON pointer. A pattern inside a schema has both: its own text is shown under the
line that holds it. A pointer into a source that isn't JSON has no line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from maskwright.compiler.json_places import locate

COLUMNS_SHOWN = 76
"""Of a source's line, when a place in it is pointed at."""
_COLOURS = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "note": "\x1b[1;36m",
    "caret": "\x1b[1;31m",
    "faint": "\x1b[2m",
}
_RESET = "\x1b[0m"


class Painter:
    """Puts colours on text, or doesn't."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, kind: str) -> str:
        return f"{_COLOURS[kind]}{text}{_RESET}" if self.colour else text


def describe(diagnostic: dict[str, Any], source: str | None, colour: bool) -> Iterator[str]:
    """Lines for a diagnostic in JSON form; `source` is the text it's about, if it's at hand."""
    paint = Painter(colour)
    severity = diagnostic.get("severity", "error")
    place = f" at {diagnostic['pointer'] or 'the root'}" if "pointer" in diagnostic else ""
    if "span" in diagnostic and "pointer" not in diagnostic:
        place = " at characters {}–{}".format(*diagnostic["span"])
    yield f"{paint(severity + ' ' + diagnostic['code'], severity)}{place}: {diagnostic['message']}"
    for text, span in _excerpts(diagnostic, source):
        yield from _excerpt(text, span, paint)
    if diagnostic.get("hint"):
        yield f"  {paint('hint:', 'faint')} {diagnostic['hint']}"


def _excerpts(diagnostic: dict[str, Any], source: str | None) -> Iterator[tuple[str, tuple[int, int]]]:
    """(text, span in it), the source's before the pattern's own."""
    own, span, pointer = diagnostic.get("source"), diagnostic.get("span"), diagnostic.get("pointer")
    if source is not None:
        if span is not None and own in (None, source):
            yield source, (span[0], span[1])
            return
        if pointer is not None and source.lstrip()[:1] in ("{", "["):
            found = locate(source, pointer)
            if found is not None:
                yield source, found
    if own is not None and span is not None:
        yield own, (span[0], span[1])


def _excerpt(text: str, span: tuple[int, int], paint: Painter) -> Iterator[str]:
    line, carets = point_at(text, *span)
    number = text.count("\n", 0, span[0]) + 1
    margin = f"  {number} | "
    yield paint(margin, "faint") + line
    yield paint(" " * (len(margin) - 2) + "| ", "faint") + paint(carets, "caret")


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
