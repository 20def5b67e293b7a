"""How models write tool calls, as data: one `ToolFormat` per wire format.

A text with calls is: free text, a section, free text, a section … A section is

    open, call, (separator, call) …, close          call = before NAME middle ARGUMENTS after

Free text ends where `trigger`, the beginning of `open + before`, appears. Names of the vocabulary's special
tokens in these texts are those tokens. Sources: the chat templates that the models are published with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """trigger: free text can't contain it; from there on a call is written.
    open, close: around a section; before, middle, after: around a call's name and arguments.
    separator: between calls of a section; None: a section has one call.
    between: between sections that follow each other when no free text is allowed.
    arguments: "json": one JSON value; "parameters": each parameter between tags, strings as they are.
    name: how the name is written, "raw" or as the inside of a "json" string.
    last: nothing may follow a section.

    Raises ValueError for values that don't fit together.
    """

    name_of_format: str
    trigger: str
    before: str
    middle: str
    after: str
    open: str = ""
    close: str = ""
    separator: str | None = None
    between: str | None = None
    arguments: Literal["json", "parameters"] = "json"
    name: Literal["raw", "json"] = "json"
    last: bool = False

    def __post_init__(self) -> None:
        texts = ("name_of_format", "trigger", "before", "middle", "after", "open", "close", "separator", "between")
        for name in texts:
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name in ("separator", "between")):
                raise ValueError(f"{name} must be a text, not {value!r}")
        if not self.trigger or not (self.open + self.before).startswith(self.trigger):
            raise ValueError(f"the trigger {self.trigger!r} isn't how a section begins, {self.open + self.before!r}")
        if self.arguments not in ("json", "parameters") or self.name not in ("json", "raw"):
            raise ValueError("arguments are json or parameters, the name is json or raw")
        if not isinstance(self.last, bool):
            raise ValueError(f"last must be true or false, not {self.last!r}")


FORMATS: dict[str, ToolFormat] = {
    f.name_of_format: f
    for f in (
        ToolFormat(
            "openai",
            trigger='[{"name": "',
            open="[",
            before='{"name": "',
            middle='", "arguments": ',
            after="}",
            separator=", ",
            close="]",
            last=True,
        ),
        ToolFormat(
            "hermes",
            trigger="<tool_call>",
            before='<tool_call>\n{"name": "',
            middle='", "arguments": ',
            after="}\n</tool_call>",
            between="\n",
        ),
        ToolFormat(
            "llama",
            trigger='{"name": "',
            before='{"name": "',
            middle='", "parameters": ',
            after="}",
            separator="; ",
            last=True,
        ),
        ToolFormat(
            "llama_tag",
            trigger="<|python_tag|>",
            open="<|python_tag|>",
            before='{"name": "',
            middle='", "parameters": ',
            after="}",
            separator="; ",
            last=True,
        ),
        ToolFormat(
            "mistral",
            trigger="[TOOL_CALLS]",
            open="[TOOL_CALLS][",
            before='{"name": "',
            middle='", "arguments": ',
            after="}",
            separator=", ",
            close="]",
            last=True,
        ),
        ToolFormat(
            "qwen",
            trigger="<tool_call>",
            before="<tool_call>\n<function=",
            middle=">\n",
            after="</function>\n</tool_call>",
            between="\n",
            arguments="parameters",
            name="raw",
        ),
        ToolFormat(
            "function_tag",
            trigger="<function=",
            before="<function=",
            middle=">",
            after="</function>",
            between="\n",
            name="raw",
        ),
    )
}
