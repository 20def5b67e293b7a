"""A list of tools and how they're called, as one JSON document: what the command line and the service compile.

    {"tools": [{"name": …, "parameters": {…}}, …],        as OpenAI writes them, or plain
     "format": "hermes",                                   a name, or an object with a `ToolFormat`'s fields
     "tool_choice": "auto",                                "none", "required", or a tool's name
     "parallel": true,
     "reasoning": ["<think>", "</think>"]}                 or null

Only `tools` is required. A bare list is its `tools`. The document is the source, so everything in it is part of
the artifact's key. Every fault has its pointer.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.grammar.tool_formats import FORMATS, ToolFormat
from maskwright.compiler.grammar.tools import ToolOptions

KEYS = ("tools", "format", "tool_choice", "parallel", "reasoning")


def tool_document(
    tools: Any,
    format: str | ToolFormat = "hermes",
    tool_choice: str = "auto",
    parallel: bool = True,
    reasoning: tuple[str, str] | None = None,
) -> str:
    """The document of these choices, as compact JSON with key order kept. Raises TypeError for what isn't JSON."""
    shown = format if isinstance(format, str) else {f.name: getattr(format, f.name) for f in fields(format)}
    pair = None if reasoning is None else list(reasoning)
    values = dict(zip(KEYS, (tools, shown, tool_choice, parallel, pair), strict=True))
    return json.dumps(values, separators=(",", ":"))


def read_tool_document(text: str) -> tuple[list[Any], ToolOptions]:
    """The list of tools and the options. Raises CompileError with every fault's pointer."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as e:
        place = getattr(e, "pos", None)
        span = None if place is None else (place, place + 1)
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, f"the list of tools isn't JSON: {e}", span=span)) from e
    if isinstance(value, list):
        value = {"tools": value}
    if not isinstance(value, dict):
        raise CompileError(_fault("tools are a list, or an object with one", ""))
    known = ", ".join(KEYS)
    faults = [_fault(f"{key!r} isn't known; there are {known}", f"/{key}") for key in value if key not in KEYS]
    if not isinstance(value.get("tools"), list):
        faults.append(_fault("the tools must be a list", "/tools"))
    options = _options(value, faults)
    if faults:
        raise CompileError(faults)
    return value["tools"], options


def _options(value: dict[str, Any], faults: list[Diagnostic]) -> ToolOptions:
    choice, parallel = value.get("tool_choice", "auto"), value.get("parallel", True)
    reasoning = value.get("reasoning")
    if not isinstance(choice, str):
        faults.append(_fault("tool_choice is auto, none, required or a tool's name", "/tool_choice"))
    if not isinstance(parallel, bool):
        faults.append(_fault("parallel is true or false", "/parallel"))
    if reasoning is not None and not _is_pair(reasoning):
        faults.append(_fault("reasoning is [text that opens, text that closes], the second not empty", "/reasoning"))
        reasoning = None
    form = _format(value.get("format", "hermes"), faults)
    return ToolOptions(form, choice, parallel, None if reasoning is None else (reasoning[0], reasoning[1]))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value) and value[1] != ""


def _format(value: Any, faults: list[Diagnostic]) -> str | ToolFormat:
    if isinstance(value, str) and value in FORMATS:
        return value
    if not isinstance(value, dict):
        faults.append(_fault(f"the format is one of {', '.join(FORMATS)}, or an object", "/format"))
        return "hermes"
    known = {f.name for f in fields(ToolFormat)}
    faults += [_fault(f"a format has no {key!r}", f"/format/{key}") for key in value if key not in known]
    try:
        return ToolFormat(**{"name_of_format": "custom", **{key: v for key, v in value.items() if key in known}})
    except (TypeError, ValueError) as e:
        faults.append(_fault(f"the format is incomplete or wrong: {e}", "/format"))
        return "hermes"


def _fault(message: str, pointer: str) -> Diagnostic:
    return Diagnostic(Code.INVALID_SOURCE, message, pointer=pointer)
