"""The demo's three schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DemoSchema:
    """`profile`: the limits that it's compiled under. `refused`: it's there to be refused."""

    name: str
    about: str
    schema: dict[str, Any]
    profile: str = "default"
    refused: bool = False


def _action(name: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"action": {"const": name}, **fields},
        "required": ["action", *required],
        "additionalProperties": False,
    }


REFUND = DemoSchema(
    "refund-tool",
    'one of two actions, "refund" or "ask", each with its own fields',
    {
        "anyOf": [
            _action(
                "refund",
                {
                    "order": {"type": "integer", "minimum": 1, "maximum": 999999},
                    "amount": {"type": "number", "minimum": 0, "maximum": 500},
                    "currency": {"enum": ["EUR", "USD", "JPY"]},
                },
                ["order", "amount", "currency"],
            ),
            _action("ask", {"question": {"type": "string", "minLength": 1, "maxLength": 80}}, ["question"]),
        ]
    },
)

TREE = DemoSchema(
    "file-tree",
    "recursive: a folder holds files and folders",
    {
        "$ref": "#/$defs/entry",
        "$defs": {
            "entry": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 12},
                    "bytes": {"type": ["integer", "null"], "minimum": 0},
                    "entries": {"type": "array", "items": {"$ref": "#/$defs/entry"}, "maxItems": 3},
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
    },
)

_NAMES = [f"feature{n}" for n in range(10)]

TANGLED = DemoSchema(
    "tangled",
    "over-complex: ten alternatives that only the last key tells apart, so any subset may still be open",
    {
        "type": "object",
        "properties": {**dict.fromkeys(_NAMES, True), "outcome": True},
        "anyOf": [
            {
                "properties": {name: {"type": "integer"}, "outcome": {"const": name}},
                "required": ["outcome"],
            }
            for name in _NAMES
        ],
    },
    profile="strict",
    refused=True,
)

SCHEMAS = (REFUND, TREE, TANGLED)
