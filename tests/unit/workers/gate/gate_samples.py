"""What the gate's tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.workers import Artifact

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["refund", "ask"]},
        "amount": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["action"],
    "additionalProperties": False,
}

Make = Callable[..., Artifact]
"""Compiles a source with options; a dict is a schema, a string a pattern."""
