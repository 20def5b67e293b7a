"""A log of generations: JSON Lines in UTF-8, one object a line.

The first line says what the file is:

    {"log": "maskwright-generations", "version": 1}

A line with `define` gives a schema a name; it comes before the first line that uses the name:

    {"define": "refund", "schema": {...}, "formats": true, "draft": "2020-12"}        formats, draft: optional

Every other line is one generation:

    text                required, string: what was generated, without the stop token
    ended               required: "stop", "length", "cancelled", "timed out", "disconnected" or "dead end"
    group               string, no lone surrogates: what is compared, "masked" or "unmasked" for example; default "all"
    id                  string: for people
    schema              string, a defined name: syntax and schema are judged from the text, whatever `layers` says
    layers              object of verdicts, true or false, by layer: syntax, schema, business, facts, permission, tool;
                        a layer that isn't there, or is null, didn't judge
    tokens              integer >= 0
    added_ttft_seconds  number >= 0: time that masks added before the first token
    added_tpot_seconds  number >= 0: time that masks added to each token after it, on average over the text
    meta                object: the writer's own, not looked at

There are no other fields. A line that breaks these rules is a `LogFault` with its number, and counts for nothing else;
reading goes on after it. A last line without its newline is read like any other. Blank lines are skipped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import IO, Any

from maskwright.workers.metrics.counters import MeasuredLayer

NAME, VERSION = "maskwright-generations", 1
MAX_LINE = 64 << 20
"""Bytes of a line."""
ENDS = ("stop", "length", "cancelled", "timed out", "disconnected", "dead end")
JUDGED = tuple(layer for layer in MeasuredLayer if layer != MeasuredLayer.DEAD_END)
DRAFTS = ("2020-12", "2019-09", "7", "6", "4")


class FaultCode(StrEnum):
    """What can be wrong with a line. Stable: a meaning never changes."""

    NOT_JSON = "NOT_JSON"
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    NO_HEADER = "NO_HEADER"
    WRONG_VERSION = "WRONG_VERSION"
    MISSING_FIELD = "MISSING_FIELD"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    WRONG_VALUE = "WRONG_VALUE"
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
    INVALID_SCHEMA = "INVALID_SCHEMA"
    TOO_LONG = "TOO_LONG"
    CONTRADICTION = "CONTRADICTION"
    """A verdict in the log isn't the one that its text gets. The text's counts; nothing is left out."""


@dataclass(frozen=True, slots=True)
class LogFault:
    """One finding. `line` counts from 1; `field` names the field, a verdict's as "layers.schema"."""

    line: int
    code: FaultCode
    message: str
    field: str | None = None

    def __str__(self) -> str:
        place = f", {self.field}" if self.field else ""
        return f"line {self.line}{place}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The fields that are set."""
        return {k: v for k, v in asdict(self).items() if v is not None}


@dataclass(frozen=True, slots=True)
class Definition:
    """A schema under a name."""

    line: int
    name: str
    schema: dict[str, Any] | bool
    formats: bool = True
    draft: str = "2020-12"


@dataclass(frozen=True, slots=True)
class Generation:
    """One text of a log; fields as in the module's text."""

    line: int
    text: str
    ended: str
    group: str = "all"
    schema: str | None = None
    layers: dict[MeasuredLayer, bool] = field(default_factory=dict)
    tokens: int = 0
    added_ttft_seconds: float | None = None
    added_tpot_seconds: float | None = None


class _Wrong(Exception):
    def __init__(self, code: FaultCode, message: str, field: str | None = None) -> None:
        self.code, self.message, self.field = code, printable(message), None if field is None else printable(field)
        super().__init__(message)


def printable(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be written anywhere."""
    return text.encode("utf-8", "backslashreplace").decode()


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """A file's lines. Of one that's too long no more than MAX_LINE + 1 bytes are kept, so that a file without newlines
    doesn't fill the memory.
    """
    while line := file.readline(MAX_LINE + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 1)
        yield line


def read_log(lines: Iterable[bytes]) -> Iterator[Definition | Generation | LogFault]:
    """What the lines hold, in order. Without a good first line, one fault and nothing else."""
    names: set[str] = set()
    begun = False
    for number, line in enumerate(lines, 1):
        if begun and not line.strip():
            continue
        try:
            value = _object(line)
            if not begun:
                _check_header(value)
                begun = True
            elif "define" in value:
                definition = _definition(number, value, names)
                names.add(definition.name)
                yield definition
            else:
                yield _generation(number, value, names)
        except _Wrong as wrong:
            yield LogFault(number, wrong.code, wrong.message, wrong.field)
            if not begun:
                return
    if not begun:
        yield LogFault(1, FaultCode.NO_HEADER, "the log is empty")


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise _Wrong(FaultCode.TOO_LONG, f"more than {MAX_LINE} bytes")
    try:
        value = json.loads(line.decode(), parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise _Wrong(FaultCode.NOT_JSON, str(error)) from error
    if not isinstance(value, dict):
        raise _Wrong(FaultCode.NOT_AN_OBJECT, f"not an object but {_kind(value)}")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} isn't JSON")


def _check_header(value: dict[str, Any]) -> None:
    if value.get("log") != NAME:
        raise _Wrong(FaultCode.NO_HEADER, f'the first line isn\'t {{"log": "{NAME}", "version": {VERSION}}}')
    if type(value.get("version")) is not int or value["version"] != VERSION:
        raise _Wrong(FaultCode.WRONG_VERSION, f"version {value.get('version')!r:.20}; {VERSION} is known", "version")
    _check_names(value, ("log", "version"))


def _definition(number: int, value: dict[str, Any], names: set[str]) -> Definition:
    _check_names(value, ("define", "schema", "formats", "draft"))
    name = _take(value, "define", (str,), required=True)
    if name in names:
        raise _Wrong(FaultCode.WRONG_VALUE, f"{name!r} is defined already", "define")
    draft = _take(value, "draft", (str,), "2020-12")
    if draft not in DRAFTS:
        raise _Wrong(FaultCode.WRONG_VALUE, f"{draft!r:.20} is none of {', '.join(DRAFTS)}", "draft")
    schema = _take(value, "schema", (dict, bool), required=True)
    return Definition(number, name, schema, _take(value, "formats", (bool,), True), draft)


_FIELDS = (
    "text", "ended", "group", "id", "schema", "layers", "tokens", "added_ttft_seconds", "added_tpot_seconds", "meta",
)  # fmt: skip


def _generation(number: int, value: dict[str, Any], names: set[str]) -> Generation:
    _check_names(value, _FIELDS)
    _take(value, "id", (str,))
    _take(value, "meta", (dict,))
    ended = _take(value, "ended", (str,), required=True)
    if ended not in ENDS:
        raise _Wrong(FaultCode.WRONG_VALUE, f"{ended!r:.40} is none of {', '.join(ENDS)}", "ended")
    schema = _take(value, "schema", (str,))
    if schema is not None and schema not in names:
        raise _Wrong(FaultCode.UNKNOWN_SCHEMA, f"{schema!r:.80} isn't defined before", "schema")
    return Generation(
        line=number,
        text=_take(value, "text", (str,), required=True),
        ended=ended,
        group=_group(value),
        schema=schema,
        layers=_layers(_take(value, "layers", (dict,), {})),
        tokens=_number(value, "tokens", (int,)) or 0,
        added_ttft_seconds=_number(value, "added_ttft_seconds", (int, float)),
        added_tpot_seconds=_number(value, "added_tpot_seconds", (int, float)),
    )


def _group(value: dict[str, Any]) -> str:
    group: str = _take(value, "group", (str,), "all")
    if group != printable(group):
        raise _Wrong(FaultCode.WRONG_VALUE, f"{group!r:.40} has half a character", "group")
    return group


def _layers(value: dict[str, Any]) -> dict[MeasuredLayer, bool]:
    found: dict[MeasuredLayer, bool] = {}
    for name, verdict in value.items():
        if name not in JUDGED:
            raise _Wrong(FaultCode.UNKNOWN_FIELD, f"no layer; layers are {', '.join(JUDGED)}", f"layers.{name[:40]}")
        if verdict is not None and not isinstance(verdict, bool):
            raise _Wrong(FaultCode.WRONG_VALUE, f"not true, false or null but {_kind(verdict)}", f"layers.{name}")
        if verdict is not None:
            found[MeasuredLayer(name)] = verdict
    return found


def _check_names(value: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in value:
        if name not in known:
            raise _Wrong(FaultCode.UNKNOWN_FIELD, f"not a field; fields are {', '.join(known)}", name[:40])


def _take(
    value: dict[str, Any], name: str, kinds: tuple[type, ...], default: Any = None, required: bool = False
) -> Any:
    if name not in value:
        if required:
            raise _Wrong(FaultCode.MISSING_FIELD, "is missing", name)
        return default
    found = value[name]
    if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
        expected = " or ".join(_KINDS[kind] for kind in kinds)
        raise _Wrong(FaultCode.WRONG_VALUE, f"not {expected} but {_kind(found)}", name)
    return found


def _number(value: dict[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    found = _take(value, name, kinds)
    if found is not None and not (0 <= found < 1e9 and math.isfinite(found)):
        raise _Wrong(FaultCode.WRONG_VALUE, f"{found!r:.40} isn't from 0 to 1e9", name)
    return found


_KINDS: dict[type, str] = {
    str: "a string", bool: "true or false", dict: "an object", int: "an integer", float: "a number",
    list: "an array", type(None): "null",
}  # fmt: skip


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


class LogWriter:
    """Writes a log to a binary file. Each line is written at once; the file isn't closed here."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._write({"log": NAME, "version": VERSION})

    def define(
        self, name: str, schema: Mapping[str, Any] | bool, *, formats: bool = True, draft: str = "2020-12"
    ) -> None:
        """Gives a schema a name."""
        self._write({"define": name, "schema": schema, "formats": formats, "draft": draft})

    def write(self, text: str, ended: str, **fields: Any) -> None:
        """One generation; `fields` by the names of the format, None where there is nothing to say. Raises ValueError
        for what a reader would refuse, but for the names of schemas.
        """
        value = {"text": text, "ended": str(ended), **{k: v for k, v in fields.items() if v is not None}}
        try:
            _generation(0, value, {value.get("schema", "")})
        except _Wrong as wrong:
            raise ValueError(f"{wrong.field}: {wrong.message}") from wrong
        self._write(value)

    def _write(self, value: dict[str, Any]) -> None:
        line = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        self._file.write(line.encode() + b"\n")
