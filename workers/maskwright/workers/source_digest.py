"""The identity of a source: what an artifact's header says it was compiled from.

It lives with the workers so that an engine can find the artifact of a schema that a request brings. Standard library
only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

SchemaSource = str | bytes | dict[str, Any] | bool
"""JSON text, its UTF-8 bytes, or the decoded value."""


def source_digest(kind: str, source: SchemaSource, resources: Mapping[str, SchemaSource] | None = None) -> str:
    """SHA-256 in hex of what identifies a source: a schema's or tool list's compact JSON with key order kept, and that
    of the resources supplied, by URI; else its text."""
    if kind in ("json_schema", "tools"):
        return hashlib.sha256(with_resources(schema_text(source), resources)).hexdigest()
    text = source if isinstance(source, str | bytes) else json.dumps(source)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


def schema_text(source: SchemaSource) -> bytes:
    """Compact JSON where the source is JSON; the source itself where it isn't (it will be refused by place).

    Numbers that a float doesn't hold as they're written are told apart by the list of their spellings.
    """
    spelled: list[str] = []

    def number(text: str) -> float:
        spelled.append(text)
        return float(text)

    try:
        value = json.loads(source, parse_float=number) if isinstance(source, str | bytes) else source
        text = json.dumps(value, separators=(",", ":"))
        if any(Decimal(s) != Decimal(repr(float(s))) for s in spelled):
            text += "\0" + " ".join(spelled)
        return text.encode()
    except (ValueError, ArithmeticError, RecursionError, TypeError):
        if isinstance(source, bytes):
            return source
        return (source if isinstance(source, str) else repr(source)).encode("utf-8", "surrogatepass")


def with_resources(text: bytes, resources: Mapping[str, SchemaSource] | None) -> bytes:
    """JSON holds no NUL, so the parts can't be mistaken for one another."""
    parts = [text]
    for uri in sorted(resources or (), key=str):
        parts += [str(uri).rstrip("#").encode("utf-8", "surrogatepass"), schema_text((resources or {})[uri])]
    return b"\0\0".join(parts)
