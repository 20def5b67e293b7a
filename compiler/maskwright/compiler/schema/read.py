"""JSON text to values, strictly (RFC 8259), without ever recursing on the text's depth unchecked.

Numbers with a fraction or exponent become `Decimal`, so bounds are exact. Refused: text that isn't JSON, NaN
and infinities, duplicate keys (their meaning differs between readers), lone surrogates, a byte order mark,
numbers of more than `MAX_NUMBER_LENGTH` characters. Size and depth are measured before parsing. The parser stops at
the first fault and can't place it, so then the text is read again for all of them (`json_places`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.json_places import make_pointer, unescape, values
from maskwright.compiler.options import Limits

MAX_NUMBER_LENGTH = 1000
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
"""A group for each character would cost a hundred bytes of memory for each."""


Source = str | bytes | dict[str, Any] | bool
"""JSON text, its UTF-8 bytes, or the decoded value."""


def read_source(source: Source, limits: Limits) -> Any:
    """The JSON value of a schema given as text, UTF-8 bytes, or an already decoded value.

    Raises CompileError (INVALID_SOURCE), LimitExceeded (`source_bytes`, `schema_depth`).
    """
    if not isinstance(source, str | bytes):
        try:
            return _read(_write(source, limits), limits)
        except CompileError as e:
            # Places in a text that the caller never saw would mislead; pointers are as good.
            e.diagnostics = [replace(d, span=None) for d in e.diagnostics]
            raise
    if len(source) > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, len(source), "read")
    return _read(_decode(source) if isinstance(source, bytes) else source, limits)


def _read(text: str, limits: Limits) -> Any:
    size = len(text)
    if size <= limits.source_bytes:
        size = len(_encode(text))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    check_depth(text, limits.schema_depth)
    value = parse_json(text)
    if not isinstance(value, dict | bool):
        raise CompileError(_not_a_schema(value))
    return value


def read_resources(resources: Mapping[str, Source], limits: Limits) -> dict[str, Any]:
    """Their values by URI. Raises CompileError with the URI as `source`, LimitExceeded for all of them together."""
    out: dict[str, Any] = {}
    faults: list[Diagnostic] = []
    size = 0
    for uri, source in resources.items():
        if not isinstance(uri, str) or not uri or uri[0] in "/@" or "#" in uri.rstrip("#"):
            faults.append(
                Diagnostic(
                    Code.INVALID_SOURCE,
                    f"{uri!r} names no resource",
                    detail={"uri": str(uri)},
                    hint="give an absolute URI without a fragment",
                )
            )
            continue
        try:
            out[uri.rstrip("#")] = value = read_source(source, limits)
            size += len(json.dumps(value, default=str))
        except LimitExceeded:
            raise
        except CompileError as e:
            faults += [replace(d, source=uri) for d in e.diagnostics]
    if faults:
        raise CompileError(faults)
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    return out


def check_depth(text: str, limit: int) -> None:
    """Raises LimitExceeded when brackets outside strings nest deeper than `limit`."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            if depth > limit:
                raise LimitExceeded("schema_depth", limit, depth, "read", span=(match.start(), match.start() + 1))
        elif first in "]}":
            depth -= 1


def invalid(message: str, pointer: str | None = None, span: tuple[int, int] | None = None, **detail: Any) -> Diagnostic:
    return Diagnostic(Code.INVALID_SOURCE, message, pointer=pointer, span=span, detail=detail)


def _not_a_schema(value: Any) -> Diagnostic:
    return invalid("a schema is an object or a boolean", pointer="", type=type(value).__name__)


def _decode(source: bytes) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as e:
        at = len(source[: e.start].decode("utf-8"))
        message = f"the text isn't UTF-8: byte 0x{source[e.start]:02x} at {e.start}"
        raise CompileError(invalid(message, span=(at, at + 1), byte=source[e.start], offset=e.start)) from None


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise CompileError(invalid("a lone surrogate in the text", span=(e.start, e.end))) from None


def _write(value: Any, limits: Limits) -> str:
    if not isinstance(value, dict | bool):
        raise CompileError(invalid("a schema is an object or a boolean", pointer="", type=type(value).__name__))
    fault = _odd_key(value, limits)
    if fault is not None:
        raise CompileError(fault)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise LimitExceeded("schema_depth", limits.schema_depth, limits.schema_depth + 1, "read") from None
    except (TypeError, ValueError) as e:
        raise CompileError(invalid(f"the value isn't JSON: {e}")) from None


def _odd_key(value: Any, limits: Limits) -> Diagnostic | None:
    """Of a decoded value a key that isn't a string: `json` would turn it into one."""
    work: list[tuple[Any, tuple[str, ...]]] = [(value, ())] if isinstance(value, dict | list) else []
    while work:
        at, path = work.pop()
        if len(path) > limits.schema_depth:
            raise LimitExceeded("schema_depth", limits.schema_depth, len(path), "read")
        for key, below in at.items() if isinstance(at, dict) else enumerate(at):
            if isinstance(at, dict) and not isinstance(key, str):
                return invalid(f"the key {key!r} isn't a string", make_pointer(path), key=repr(key))
            if isinstance(below, dict | list | tuple):
                work.append((below, (*path, str(key))))
    return None


def parse_json(text: str) -> Any:
    """The value of a JSON text whose size and depth are in bounds. Raises CompileError with every fault's place."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=lambda s: Decimal(_short(s)),
            parse_int=lambda s: int(_short(s)),
            parse_constant=_constant,
        )
    except json.JSONDecodeError as e:
        found = invalid(f"not JSON: {e.msg}", span=(e.pos, e.pos), line=e.lineno, column=e.colno)
        raise CompileError(found) from None
    except CompileError as e:
        raise CompileError(list(_faults(text)) or e.diagnostics) from None


def _faults(text: str) -> Iterator[Diagnostic]:
    """Every fault that the parser's hooks find, with its place. `text` is JSON but for these."""
    for value in values(text):
        token, pointer = text[value.span[0] : value.span[1]], make_pointer(value.path)
        key = None if value.key is None else text[value.key[0] : value.key[1]]
        if value.repeated:
            shown = _readable(value.path[-1])
            yield invalid(f"duplicate key {shown!r}", pointer, value.key, key=shown)
        for span, string in ((value.key, key), (value.span, token)):
            if string is not None and string.startswith('"') and _has_surrogate(unescape(string)):
                yield invalid("an escaped lone surrogate", _readable(pointer), span, text=_readable(unescape(string)))
        if token in ("NaN", "Infinity", "-Infinity"):
            yield invalid(f"{token} isn't JSON", pointer, value.span, constant=token)
        elif token[0] in "-0123456789" and len(token) > MAX_NUMBER_LENGTH:
            yield invalid(f"a number of {len(token)} characters", pointer, value.span, length=len(token))


def _readable(text: str) -> str:
    """Lone surrogates as escapes: they have no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


# -- hooks of the parser ---------------------------------------------------------------------------


def _short(number: str) -> str:
    if len(number) > MAX_NUMBER_LENGTH:
        raise CompileError(invalid(f"a number of {len(number)} characters", length=len(number)))
    return number


def _constant(name: str) -> Any:
    raise CompileError(invalid(f"{name} isn't JSON", constant=name))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise CompileError(invalid(f"duplicate key {_readable(key)!r}", key=_readable(key)))
        _check_surrogates(key)
        out[key] = _scalar(value)
    return out


def _scalar(value: Any) -> Any:
    """Strings are judged here, and in an array by what holds it."""
    if isinstance(value, str):
        _check_surrogates(value)
    elif isinstance(value, list):
        for item in value:
            _scalar(item)
    return value


def _check_surrogates(text: str) -> None:
    if _has_surrogate(text):
        raise CompileError(invalid("an escaped lone surrogate", text=_readable(text)))
