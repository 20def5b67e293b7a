"""Where things are in a JSON text: from JSON pointers to character spans, and faults that `json` can't place.

The text is cut into tokens by one regular expression and followed with an explicit stack, so depth costs nothing. It's
for messages: it runs only when there's something to show, and takes what isn't JSON as far as it can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

Span = tuple[int, int]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its path, the span of its text (of a container: of its opening bracket), and of its key if it has one;
    `repeated`: the key came before in this object."""

    path: Path
    span: Span
    key: Span | None
    repeated: bool


@dataclass(slots=True)
class _Open:
    """A container that isn't closed yet. `keys` is None for an array."""

    path: Path
    keys: set[str] | None
    index: int = 0
    key: tuple[str, Span] | None = None


def values(text: str) -> Iterator[Value]:
    """Every value in order of its beginning. Paths are built for each, so the cost is text times depth at worst."""
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        token, span = match.group(), match.span()
        top = stack[-1] if stack else None
        if token in (":", ","):
            continue
        if token in ("}", "]"):
            if stack:
                stack.pop()
            continue
        if top is not None and top.keys is not None and top.key is None:
            top.key = (unescape(token), span)
            continue
        value = _value(top, span)
        yield value
        if token in ("{", "["):
            stack.append(_Open(value.path, set() if token == "{" else None))


def _value(top: _Open | None, span: Span) -> Value:
    if top is None:
        return Value((), span, None, False)
    if top.keys is None:
        top.index += 1
        return Value((*top.path, str(top.index - 1)), span, None, False)
    assert top.key is not None
    name, key = top.key
    repeated = name in top.keys
    top.keys.add(name)
    top.key = None
    return Value((*top.path, name), span, key, repeated)


def locate(text: str, pointer: str) -> Span | None:
    """The span to show for a pointer: a member's key with a scalar after it, else the value's beginning. A pointer to
    what isn't there (a keyword that was implied) leads to the nearest place above it; None: the text has no value."""
    wanted = parse_pointer(pointer)
    best: Value | None = None
    for value in values(text):
        if value.path == wanted[: len(value.path)] and (best is None or len(value.path) > len(best.path)):
            best = value
            if value.path == wanted:
                break
    if best is None:
        return None
    if best.key is None:
        return best.span
    scalar = text[best.span[0]] not in "[{"
    return (best.key[0], best.span[1] if scalar else best.key[1])


def parse_pointer(pointer: str) -> Path:
    """The reference tokens of an RFC 6901 pointer."""
    parts = pointer.split("/")[1:]
    return tuple(p.replace("~1", "/").replace("~0", "~") for p in parts)


def make_pointer(path: Path) -> str:
    """The inverse of `parse_pointer`."""
    return "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in path)


def unescape(token: str) -> str:
    """The characters of a string token; lone surrogates stay, and what isn't an escape stands for itself."""
    if "\\" not in token:
        return token.strip('"')
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _PLAIN.get(m[2], m[2]), token[1:-1])
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if _pairs(text) else text


def _pairs(text: str) -> bool:
    return any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))
