"""What a commit is given: the text, its key, who asks, the caller's functions; checked before anything is looked at."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MAX_KEY = 512


@dataclass(frozen=True, slots=True)
class Request:
    """What validators, the authorisation and the action are given. `value`: the parsed text, parsed anew for each of
    them, so that none can change what another sees.
    """

    key: str
    scope: str
    text: str
    value: Any
    principal: str | None


Validator = Callable[[Request], Any]
"""Returns reasons against the request: None or nothing, a string, or several. May be async for `commit_async`."""
Authorise = Callable[[Request], Any]
"""Returns True to permit; anything else denies, and a string says why. May be async for `commit_async`."""
Action = Callable[[Request], Any]
"""Does it, and returns a JSON value. Raises NotDone when it had no effect. May be async for `commit_async`."""


@dataclass(frozen=True, slots=True)
class Text:
    """What was generated, without its stop token."""

    data: bytes
    tokens: tuple[int, ...] | None

    @classmethod
    def of(cls, text: str | bytes, tokens: Sequence[int] | None) -> Text:
        """Raises TypeError, ValueError."""
        return cls(_bytes(text), _tokens(tokens))


def check_call(key: str, action: Action, principal: str | None) -> None:
    """Before anything is looked at: what nobody could run later, or write down."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not _is_text(key):
        raise ValueError(f"a key is a string of 1 to {MAX_KEY} characters, surrogates aside")
    if not callable(action):
        raise TypeError(f"an action is called, and {type(action).__name__} can't be")
    if principal is not None and not isinstance(principal, str):
        raise TypeError(f"a principal is a string or None, not {type(principal).__name__}")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes):
        return text
    raise TypeError(f"a text is str or bytes, not {type(text).__name__}")


def _tokens(tokens: Sequence[int] | None) -> tuple[int, ...] | None:
    if tokens is None:
        return None
    given = tuple(operator.index(t) for t in tokens)
    if any(not 0 <= t < 1 << 32 for t in given):
        raise ValueError("tokens are numbers from 0 on, below 2 ** 32")
    return given


def content_digest(text: Text, principal: str | None, with_tokens: bool) -> str:
    """What a key belongs to. Tokens count where the text alone doesn't tell what was said."""
    who = b"-" if principal is None else b"+" + principal.encode("utf-8", "surrogatepass")
    said = b"".join(t.to_bytes(8, "little") for t in text.tokens or ()) if with_tokens else b""
    parts = [len(part).to_bytes(8, "little") + part for part in (who, said, text.data)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def name_of(call: Callable[..., Any]) -> str:
    return str(getattr(call, "__qualname__", None) or type(call).__qualname__)
