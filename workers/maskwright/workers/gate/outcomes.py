"""What a commit can come to: exactly one of `Committed`, `Duplicate`, `Rejected`, `Incomplete`, `InDoubt`.

    committed   the action ran, now, and its result is on disk
    duplicate   the action ran under this key before; its first result is returned, nothing ran now
    rejected    a layer said no, with reasons; nothing ran. The key is free: a corrected text may use it
    incomplete  the text was cut (length, cancelled, timed out, disconnected); nothing was looked at, nothing ran
    in doubt    the action began and nobody knows whether it took effect; it never runs again by itself

All are frozen values. `to_json()` gives an object for logs and wires: "outcome" and the fields.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar


class Layer(StrEnum):
    """The layers in their order. `KEY` is asked first: a key that belongs to other content never gets further."""

    KEY = "key"
    ACCEPTING = "accepting"
    PARSE = "parse"
    SCHEMA = "schema"
    BUSINESS = "business"
    PERMISSION = "permission"
    ACTION = "action"


class Ended(StrEnum):
    """Why a generation ended. Only `STOP` makes a text that may be committed: a cut text may look complete
    (`12` of `123`) and isn't.
    """

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"

    @classmethod
    def of(cls, reason: str) -> Ended:
        """From one of these values or an engine's finish reason (stop, eos, tool_calls, length, abort, timeout,
        disconnect and the like). Raises ValueError for a word it doesn't know: what isn't known to be a stop
        isn't taken for one. TypeError for what isn't a string, None for example.
        """
        if not isinstance(reason, str):
            raise TypeError(f"a finish reason is a string, not {type(reason).__name__}")
        found = _FINISH_REASONS.get(reason.lower().replace("_", " ").replace("-", " "))
        if found is None:
            raise ValueError(f"finish reason {reason[:40]!r} isn't known; pass an Ended")
        return found


_FINISH_REASONS = {
    **{str(ended): ended for ended in Ended},
    **dict.fromkeys(("eos", "eos token", "stop token", "tool calls", "function call", "end turn"), Ended.STOP),
    **dict.fromkeys(("max tokens", "max length", "truncated"), Ended.LENGTH),
    **dict.fromkeys(("abort", "aborted", "canceled", "cancel"), Ended.CANCELLED),
    **dict.fromkeys(("timeout", "time out", "timedout", "deadline exceeded"), Ended.TIMED_OUT),
    **dict.fromkeys(("disconnect", "connection lost"), Ended.DISCONNECTED),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of a rejection. `pointer`: RFC 6901, into the parsed value; `offset`: byte of the text."""

    message: str
    pointer: str | None = None
    offset: int | None = None
    check: str | None = None
    """Name of the validator that said so."""

    def __str__(self) -> str:
        place = "" if self.pointer is None else f"{self.pointer or 'the root'}: "
        place += "" if self.offset is None else f"byte {self.offset}: "
        return f"{place}{self.message}"


class _Outcome:
    __slots__ = ()
    name: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The outcome's name and its fields as JSON values."""
        return {"outcome": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class Committed(_Outcome):
    """The action ran. `result`: what it returned, as JSON gives it back, the same for each later duplicate.
    `note`: says when the result couldn't be kept as JSON (it is None then).
    """

    name: ClassVar[str] = "committed"
    key: str
    result: Any
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Duplicate(_Outcome):
    """The action had run. `result` is the first one; `done_at`: when it was recorded, seconds since 1970."""

    name: ClassVar[str] = "duplicate"
    key: str
    result: Any
    done_at: float
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected(_Outcome):
    """A layer said no: the first that did, with all its reasons. Layers after it weren't asked."""

    name: ClassVar[str] = "rejected"
    key: str
    layer: Layer
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Incomplete(_Outcome):
    """The text was cut. `cause` is never `Ended.STOP`."""

    name: ClassVar[str] = "incomplete"
    key: str
    cause: Ended


@dataclass(frozen=True, slots=True)
class InDoubt(_Outcome):
    """The action began at `since` (seconds since 1970) and its end isn't known. `running`: its process is alive
    and may still finish it: ask again. Otherwise it waits for `SqliteStore.settle`.
    """

    name: ClassVar[str] = "in doubt"
    key: str
    cause: str
    since: float
    running: bool = False


Outcome = Committed | Duplicate | Rejected | Incomplete | InDoubt
