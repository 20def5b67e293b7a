"""Documents of tools: what the command line and the service compile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.grammar import FORMATS, ToolFormat
from maskwright.compiler.grammar.tool_document import read_tool_document, tool_document
from maskwright.compiler.grammar.tools import ToolOptions

TOOLS = [{"name": "f", "parameters": {"type": "object"}}]


def test_what_is_written_is_read_back() -> None:
    custom = replace(FORMATS["openai"], name_of_format="mine", trigger="[{")
    for given in (ToolOptions(), ToolOptions("qwen", "f", False, ("<think>", "</think>")), ToolOptions(custom, "none")):
        text = tool_document(TOOLS, given.format, given.choice, given.parallel, given.reasoning)
        assert read_tool_document(text) == (TOOLS, given)


def test_a_bare_list_has_the_default_options() -> None:
    assert read_tool_document(json.dumps(TOOLS)) == (TOOLS, ToolOptions())


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ("3", [""]),
        ({}, ["/tools"]),
        ({"tools": [], "formatt": "hermes"}, ["/formatt"]),
        ({"tools": [], "format": "hermes2", "parallel": 1}, ["/parallel", "/format"]),
        ({"tools": [], "tool_choice": None}, ["/tool_choice"]),
        ({"tools": [], "reasoning": ["<think>", ""]}, ["/reasoning"]),
        ({"tools": [], "reasoning": "<think>"}, ["/reasoning"]),
        ({"tools": [], "format": {"trigger": "x"}}, ["/format"]),
        ({"tools": [], "format": {"trigger": "x", "before": "x", "middle": 1, "after": ""}}, ["/format"]),
        ({"tools": [], "format": {"trigger": "x", "before": "y", "middle": "", "after": ""}}, ["/format"]),
        ({"tools": [], "format": {"trigger": "x", "before": "x", "middle": "", "after": "", "z": 1}}, ["/format/z"]),
    ],
)
def test_faults_have_their_place(document: Any, pointers: list[str]) -> None:
    with pytest.raises(CompileError) as refused:
        read_tool_document(document if isinstance(document, str) else json.dumps(document))
    assert [d.pointer for d in refused.value.diagnostics] == pointers


def test_what_is_not_json_has_its_place() -> None:
    with pytest.raises(CompileError) as refused:
        read_tool_document("[}")
    assert refused.value.diagnostics[0].span == (1, 2)


def test_a_trigger_begins_its_section() -> None:
    with pytest.raises(ValueError, match="isn't how a section begins"):
        ToolFormat("mine", trigger="", before="x", middle="", after="")
