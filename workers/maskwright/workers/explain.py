"""Where in the source a sequence stands, for people.

The stack of an automaton's run is a stack of frames; each frame has a name and the pointer of the source part it
was made from (frames that all artifacts of a vocabulary share, like "any string", have none: there the pointer
is that of the nearest frame around it that has one). What may follow is told three ways: as bytes, as short texts
that alternatives begin with, and in words. Where the text is JSON, the place in it is told too.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from maskwright.workers.artifact import Artifact
from maskwright.workers.specials import BASE, DIGITS, FIRST_MARK, SYMBOL

MOST_ALTERNATIVES = 12
WHITE_SPACE = frozenset(" \t\n\r")
NAMES = {0x20: "space", 0x0A: "line feed", 0x0D: "carriage return", 0x09: "tab"}
CLASSES = (
    ("a digit", frozenset(range(0x30, 0x3A))),
    ("a lowercase letter", frozenset(range(0x61, 0x7B))),
    ("an uppercase letter", frozenset(range(0x41, 0x5B))),
    ("a character that isn't ASCII", frozenset(range(0xC2, 0xF5))),
    ("the rest of a character that isn't ASCII", frozenset(range(0x80, 0xC0))),
)
WHOLE = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a matcher stands: the frame's name, the source pointer it comes from, the bytes that may follow,
    whether it may end.
    """

    frame: str
    pointer: str
    expected: bytes
    may_end: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a matcher stands, and how it got in.

    pointer, frame: the innermost place. stack: (frame, pointer) from the outermost frame to the innermost.
    expected: the bytes that may follow. forced: the text that must follow, if there's only one way to go on.
    alternatives: texts that ways on begin with, from the start of a character that has begun, at most
    `MOST_ALTERNATIVES`, each as far as it's forced; empty where there are too many. may_end, terminated:
    whether the text may end here, whether it has. steps: how many were accepted. path: in a schema's text, the JSON
    pointer of the value that's being written (of the object, while a key is); None for other sources.
    """

    pointer: str
    frame: str
    stack: tuple[tuple[str, str], ...]
    expected: bytes
    forced: str
    alternatives: tuple[str, ...]
    may_end: bool
    terminated: bool
    steps: int
    path: str | None = None

    def __str__(self) -> str:
        if self.terminated:
            return "the text has ended"
        spaced = [a for a in self.alternatives if a[-1:] in WHITE_SPACE]
        parts = [repr(a) for a in self.alternatives if a not in spaced] or list(describe_bytes(self.expected))
        if spaced and len(spaced) < len(self.alternatives):
            parts.append("white space")
        if self.may_end:
            parts.append("the end of the text")
        at = f" at {self.path}" if self.path else ""
        return f"in {self.frame}{at} from {self.pointer or 'the root'}, expected {' or '.join(parts) or 'nothing'}"


_names: weakref.WeakKeyDictionary[Artifact, dict[int, tuple[str, str]]] = weakref.WeakKeyDictionary()


def frames_around(artifact: Artifact, numbers: list[int]) -> tuple[tuple[str, str], ...]:
    """(name, pointer) of frames, the outermost first; one without a pointer has that of the frame around it."""
    known = _names.setdefault(artifact, {})
    out, around = list[tuple[str, str]](), ""
    for number in numbers:
        if number not in known:
            known[number] = artifact.frame_name(number)
        name, pointer = known[number]
        around = pointer or around
        out.append((name, around))
    return tuple(out)


def readable(artifact: Artifact, text: bytes) -> str:
    """A text of the automaton for people: symbols of special tokens by their names."""
    first, *marked = text.split(SYMBOL) if artifact.has_specials else [text]
    out = first.decode("utf-8", "replace")
    for part in marked:
        token = 0
        for digit in part[:DIGITS]:
            token = token * BASE + digit - FIRST_MARK
        name = artifact.pack.special_text(token) if len(part) >= DIGITS else None
        out += (name or "(a special token)") + part[DIGITS:].decode("utf-8", "replace")
    return out


def unfinished_character(text: bytes) -> bytes:
    """The bytes at the end of a text that a character begins with and others have to end."""
    for n in range(1, min(4, len(text) + 1)):
        first = text[-n]
        if first < 0x80 or first >= 0xC0:
            return text[-n:] if n < 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0) else b""
    return b""


def instance_path(text: bytes) -> str:
    """The JSON pointer of the value that ends a JSON text that isn't complete. Cost: linear in the text."""
    path: list[int | str | None] = []  # an index, a key, or None: before a key
    string: int | None = None  # where the open string begins
    at = 0
    while at < len(text):
        byte = text[at]
        at += 1
        if string is not None:
            if byte == 0x5C:
                at += 1
            elif byte == 0x22:
                if path and path[-1] is None and text[at:].lstrip()[:1] == b":":
                    path[-1] = json.loads(text[string:at])
                string = None
        elif byte == 0x22:
            string = at - 1
        elif byte in b"{[":
            path.append(None if byte == 0x7B else 0)
        elif byte in b"}]":
            path.pop()
        elif byte == 0x2C and path:
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None
    known = [part for part in path if part is not None]
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in known)


def describe_bytes(expected: bytes) -> Iterator[str]:
    """A set of bytes in words, in no more parts than needed."""
    left = set(expected)
    if left >= WHOLE:
        yield "any character"
        left -= WHOLE | set(range(0x7F, 0x100))
    for name, members in CLASSES:
        if members <= left:
            yield name
            left -= members
    for byte in sorted(left):
        yield NAMES.get(byte) or (repr(chr(byte)) if 0x20 < byte < 0x7F else f"byte 0x{byte:02x}")
