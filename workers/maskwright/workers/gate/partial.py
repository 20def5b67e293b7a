"""What a JSON text shows while it grows: for display, never to be committed.

    view = PartialView()
    for chunk in stream:
        partial = view.feed(chunk)
        draw(partial.value, partial.pointer, partial.pending)

`value` holds only what the text has finished: members and items whose end has been read. What is being written is
kept apart: `pointer` says where it goes, `pending` is its text so far. Nothing is guessed, closed or filled in,
and a `Partial` isn't a text: `CommitGate.commit` doesn't take one. `committed` is always False, also when the text
is complete, because whether it's committed is the gate's to say.

A pushdown scanner over characters, one step each, no recursion; the values of scalars come from `json.loads`. A text
that can't be JSON any more, as strictly as the gate reads it (no name twice, no number beyond a float's range), sets
`broken` to the character's place, and the view stays as it was before.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Any, Literal

from maskwright.workers.gate.layers import parse_float

_SPACE = " \t\n\r"
_SCALAR = "+-.0123456789abcdefghijklmnopqrstuvwxyzE"
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Partial:
    """A moment of a growing text.

    value: what is finished; None before the first container or scalar. It grows with the view; copy it to keep
    it. pointer: RFC 6901, of the value being written, None when none is. pending: that value's text so far, an
    object's name included while it's being written. complete: one whole value has been read. broken: place of the
    first character that can't follow, None while all is well.
    """

    value: Any
    pointer: str | None
    pending: str
    complete: bool
    broken: int | None
    committed: Literal[False] = False


class PartialView:
    """Follows one text. Belongs to one thread.

    Cost: linear in the text; each `feed` also in depth and pending text.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._length, self._broken = 0, -1
        self._root: Any = _MISSING
        self._stack: list[tuple[Any, str]] = []  # containers that are open, and the name being filled in each
        self._expect = "value"  # value, first, name, colon, more, end
        self._token: list[str] = []
        self._escaped = False

    def feed(self, chunk: str | bytes) -> Partial:
        """Goes on by a piece of text, which may end inside a character when it's bytes."""
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        for c in text:
            if self._broken < 0 and not self._step(c):
                self._broken = self._length
            self._length += 1
        return self.partial()

    def partial(self) -> Partial:
        """The text as it stands."""
        writing = self._token or self._expect == "value"
        complete = self._expect == "end" and self._broken < 0
        return Partial(
            value=None if self._root is _MISSING else self._root,
            pointer=self._pointer() if writing and not complete else None,
            pending="".join(self._token),
            complete=complete,
            broken=None if self._broken < 0 else self._broken,
        )

    def _pointer(self) -> str:
        parts = [name if isinstance(at, dict) else str(len(at)) for at, name in self._stack]
        # Of containers that are open, all but the last have been put into the one around them already.
        for i, (at, _) in enumerate(self._stack[:-1]):
            if isinstance(at, list):
                parts[i] = str(len(at) - 1)
        if self._expect in ("first", "name") and isinstance(self._stack[-1][0], dict):
            parts = parts[:-1]
        return "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in parts)

    def _step(self, c: str) -> bool:
        if self._token:
            return self._in_token(c)
        if c in _SPACE:
            return True
        if c in "]}":
            return self._close(c)
        if self._expect in ("value", "first"):
            return self._begin(c)
        if self._expect == "name":
            return c == '"' and self._start(c)
        if self._expect == "colon" and c == ":":
            self._expect = "value"
            return True
        if self._expect == "more" and c == ",":
            self._expect = "name" if isinstance(self._stack[-1][0], dict) else "value"
            return True
        return False

    def _begin(self, c: str) -> bool:
        """A value's first character; in `first` an object's first name."""
        if self._expect == "first" and isinstance(self._stack[-1][0], dict):
            return c == '"' and self._start(c)
        if c in "[{":
            container: Any = [] if c == "[" else {}
            self._put(container)
            self._stack.append((container, ""))
            self._expect = "first"
            return True
        return c in '"-0123456789tfn' and self._start(c)

    def _start(self, c: str) -> bool:
        self._token.append(c)
        return True

    def _in_token(self, c: str) -> bool:
        if self._token[0] != '"':
            if c in _SCALAR:
                self._token.append(c)
                return True
            return self._end_token() and self._step(c)
        self._token.append(c)
        if self._escaped:
            self._escaped = False
        elif c == "\\":
            self._escaped = True
        elif c == '"':
            return self._end_token()
        return True

    def _end_token(self) -> bool:
        text = "".join(self._token)
        try:
            value = json.loads(text, parse_float=parse_float)
        except ValueError:
            return False
        if isinstance(value, str) and self._stack and isinstance(self._stack[-1][0], dict) and self._expect != "value":
            if value in self._stack[-1][0]:
                return False
            self._token.clear()
            self._stack[-1] = (self._stack[-1][0], value)
            self._expect = "colon"
            return True
        self._token.clear()
        self._put(value)
        self._after_value()
        return True

    def _put(self, value: Any) -> None:
        if not self._stack:
            self._root = value
            return
        around, name = self._stack[-1]
        if isinstance(around, dict):
            around[name] = value
        else:
            around.append(value)

    def _after_value(self) -> None:
        self._expect = "more" if self._stack else "end"

    def _close(self, c: str) -> bool:
        if not self._stack or self._expect not in ("first", "more"):
            return False
        if isinstance(self._stack[-1][0], dict) != (c == "}"):
            return False
        self._stack.pop()
        self._after_value()
        return True
