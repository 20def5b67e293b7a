"""Small schemas and their automata in print. `--update-golden` writes the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskwright.compiler.automaton.ir import show
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema

SCHEMAS: dict[str, Any] = {
    "optional_properties": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "ab": {"type": "null"}, "b": {"type": "null"}},
        "required": ["ab"],
        "additionalProperties": False,
    },
    "tree": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
    "either": {
        "type": "object",
        "properties": {"k": {"enum": ["x", "y"]}},
        "required": ["k"],
        "additionalProperties": False,
        "anyOf": [{"properties": {"k": {"const": "x"}}}, {"properties": {"k": {"const": "y"}}}],
    },
    "range": {"type": "integer", "minimum": -3, "maximum": 12},
    "one_of": {
        "oneOf": [
            {"type": "array", "items": {"type": "null"}},
            {"type": "array", "maxItems": 1, "items": {"enum": [None, True]}},
        ]
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_automaton(name: str, golden: Callable[[Path, str], None]) -> None:
    result = compile_schema(json.dumps(SCHEMAS[name]), CompileOptions(whitespace="compact"))
    text = json.dumps(SCHEMAS[name], indent=1) + "\n\n" + show(minimise(result.automaton))
    golden(Path(__file__).parent / f"{name}.txt", text)
