"""JSON text to values, strictly (RFC 8259), without ever recursing on the text's depth unchecked.

Numbers with a fraction or exponent become `Decimal`, so bounds are exact. Refused: text that isn't JSON, NaN
and infinities, duplicate keys (their meaning differs between readers), lone surrogates, a byte order mark,
numbers of more than `MAX_NUMBER_LENGTH` characters. Size and depth are measured before parsing.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.options import Limits

MAX_NUMBER_LENGTH = 1000
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def read_source(source: str | bytes | dict[str, Any] | bool, limits: Limits) -> Any:
    """The JSON value of a schema given as text, UTF-8 bytes, or an already decoded value.

    Raises CompileError (INVALID_SOURCE), LimitExceeded (`source_bytes`, `schema_depth`).
    """
    text = _decode(source) if isinstance(source, bytes) else source
    if not isinstance(text, str):
        text = _write(text, limits)
    size = len(text)
    if size <= limits.source_bytes:
        size = len(_encode(text))
    if size > limits.source_bytes:
        raise LimitExceeded("source_bytes", limits.source_bytes, size, "read")
    check_depth(text, limits.schema_depth)
    value = _parse(text)
    if not isinstance(value, dict | bool):
        raise CompileError(_not_a_schema(value))
    return value


def check_depth(text: str, limit: int) -> None:
    """Raises LimitExceeded when brackets outside strings nest deeper than `limit`."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            if depth > limit:
                raise LimitExceeded("schema_depth", limit, depth, "read")
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
        raise CompileError(invalid(f"the text isn't UTF-8: byte {e.start}", byte=e.start)) from None


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise CompileError(invalid("a lone surrogate in the text", span=(e.start, e.end))) from None


def _write(value: Any, limits: Limits) -> str:
    if not isinstance(value, dict | bool):
        raise CompileError(invalid("a schema is an object or a boolean", pointer="", type=type(value).__name__))
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise LimitExceeded("schema_depth", limits.schema_depth, limits.schema_depth + 1, "read") from None
    except (TypeError, ValueError) as e:
        raise CompileError(invalid(f"the value isn't JSON: {e}")) from None


def _parse(text: str) -> Any:
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=lambda s: Decimal(_short(s)),
            parse_int=lambda s: int(_short(s)),
            parse_constant=_constant,
        )
    except json.JSONDecodeError as e:
        raise CompileError(invalid(f"not JSON: {e.msg}", span=(e.pos, e.pos), line=e.lineno, column=e.colno)) from None
    return value


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
            raise CompileError(invalid(f"duplicate key {key!r}", key=key))
        out[_scalar(key)] = _scalar(value)
    return out


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        _check_surrogates(value)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                _check_surrogates(item)
    return value


def _check_surrogates(text: str) -> None:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise CompileError(invalid("an escaped lone surrogate", text=text.encode("utf-8", "backslashreplace").decode()))
