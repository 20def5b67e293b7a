"""Tool calls in each wire format: what's written is accepted, and nothing near it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.ir import accepts, initial, may_end, step, verify
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.grammar.tool_formats import FORMATS, ToolFormat
from maskwright.compiler.grammar.tools import ToolOptions, build_tools
from maskwright.compiler.schema import library_frames

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
ZONE = {
    "type": "object",
    "properties": {"zone": {"type": "string", "enum": ["utc", "cet"]}},
    "additionalProperties": False,
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"name": "stop"},
    {"name": "get_time", "parameters": ZONE},
]
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x", "days": 3}}\n</tool_call>'
STOP = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
QWEN = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nSan <b>\nJosé\n</parameter>\n"
    "<parameter=days>\n12\n</parameter>\n</function>\n</tool_call>"
)
QWEN_NONE = "<tool_call>\n<function=get_time>\n</function>\n</tool_call>"


def judge(accept: list[str], reject: list[str], **choice: Any) -> None:
    a = minimise(build_tools(TOOLS, ToolOptions(**choice)).automaton)
    assert verify(a) == []
    for text in accept:
        assert accepts(a, text.encode()), text
    for text in reject:
        assert not accepts(a, text.encode()), text


def test_free_text_and_calls() -> None:
    accept = ["", "hi é", f"a{HERMES}b", HERMES + STOP, f"<tool_<{HERMES}<tool_cal"]
    judge(accept, ["<tool_call>", "<tool_call>\n{}", HERMES[:-1], f"a{HERMES}<tool_call>"])


def test_one_call_at_most() -> None:
    judge(["", f"a{STOP}"], [STOP + STOP, f"{STOP}a"], parallel=False)


def test_required() -> None:
    judge(
        [HERMES, f"{HERMES}\n{HERMES}", STOP], ["", "x", f"{HERMES}x", f"x{HERMES}", HERMES + HERMES], choice="required"
    )


def test_a_named_tool() -> None:
    judge([HERMES], [STOP, f"{HERMES}\n{HERMES}"], choice="get_weather", parallel=False)


def test_none() -> None:
    judge(["hi", "<tool_call"], [HERMES, "<tool_call>"], choice="none")


def test_reasoning() -> None:
    accept = [f"<think>hm</think>x{HERMES}", f"<think>{HERMES}</think>", "<think></think>"]
    judge(accept, ["x", "<think>x", "<think></think><tool_call>"], reasoning=("<think>", "</think>"))
    judge(["hm</think>x"], ["x", "<think>hm"], reasoning=("", "</think>"))


@pytest.mark.parametrize(
    ("name", "accept", "reject"),
    [
        (
            "openai",
            [
                '[{"name": "stop", "arguments": {}}]',
                '[{"name": "stop", "arguments": {}}, {"name": "get_time", "arguments": {"zone":"utc"}}]',
                'hello [{"nam',
            ],
            ['[{"name": "stop", "arguments": {}}] ', '[{"name": "'],
        ),
        (
            "llama",
            ['{"name": "stop", "parameters": {}}; {"name": "get_time", "parameters": {"zone":"cet"}}', "hi"],
            ['{"name": "x', '{"name": "stop", "parameters": {}};'],
        ),
        ("mistral", ['[TOOL_CALLS][{"name": "stop", "arguments": {}}]', "["], ["[TOOL_CALLS]"]),
        (
            "qwen",
            [QWEN, f"a{QWEN}b", QWEN_NONE],
            [QWEN.replace("12", "x"), QWEN_NONE.replace("get_time", "get_weather")],
        ),
        ("function_tag", ['<function=get_time>{"zone":"utc"}</function>', "<func"], ["<function=get>"]),
    ],
)
def test_formats(name: str, accept: list[str], reject: list[str]) -> None:
    judge(accept, reject, format=name)


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_prefix_of_a_call_can_be_finished(form: ToolFormat, choice: str) -> None:
    """Every format is consistent data: a call spelled from its fields is accepted."""
    arguments = "<parameter=zone>\ncet\n</parameter>\n" if form.arguments == "parameters" else '{"zone":"cet"}'
    text = form.open + form.before + "get_time" + form.middle + arguments + form.after + form.close
    a = build_tools(TOOLS, ToolOptions(format=form, choice=choice)).automaton
    config = initial(a)
    for byte in text.encode():
        following = step(a, config, byte)
        assert following is not None
        config = following
    assert may_end(a, config)


def test_a_trigger_that_overlaps_itself() -> None:
    form = ToolFormat("own", trigger="aab", before="aab", middle=":", after=";", name="raw")
    a = build_tools([{"name": "f"}], ToolOptions(format=form)).automaton
    assert accepts(a, b"aaaabf:{};aa")
    assert not accepts(a, b"aaaab")


def test_names_are_escaped_where_they_stand_in_json() -> None:
    a = build_tools([{"name": 'a"é'}], ToolOptions(choice="required")).automaton
    call = STOP.replace("stop", json.dumps('a"é', ensure_ascii=False)[1:-1])
    assert accepts(a, call.encode())


def test_frames_of_the_library_are_called() -> None:
    library = minimise(specialise(explore_library(library_frames(16))))
    a = minimise(build_tools(TOOLS, library=library).automaton)
    assert verify(a) == []
    assert accepts(a, f"a{HERMES}".encode())
    assert len(a.edges) < len(build_tools(TOOLS).automaton.edges)


def test_faults_are_named_by_tool() -> None:
    with pytest.raises(CompileError) as e:
        build_tools([{"name": "a", "parameters": {"type": "strin"}}, {"name": "a"}, {}, {"name": "b", "parameters": 3}])
    assert [d.pointer for d in e.value.diagnostics] == ["/1/name", "/2"]
    with pytest.raises(CompileError) as e:
        build_tools([{"name": "a", "parameters": {"type": "strin"}}, {"name": "b", "parameters": {"minimum": "x"}}])
    assert [d.pointer for d in e.value.diagnostics] == ["/0/parameters/type", "/1/parameters/minimum"]


def test_keywords_between_tags() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}
    with pytest.raises(CompileError) as e:
        build_tools([{"name": "f", "parameters": schema}], ToolOptions(format="qwen"))
    (d,) = e.value.diagnostics
    assert (d.code, d.pointer) == (Code.UNSUPPORTED_KEYWORD, "/0/parameters/minProperties")


def test_unknown_choices() -> None:
    with pytest.raises(CompileError):
        build_tools(TOOLS, ToolOptions(choice="nobody"))
    with pytest.raises(CompileError):
        build_tools([], ToolOptions(choice="required"))
    with pytest.raises(ValueError, match="format"):
        build_tools(TOOLS, ToolOptions(format="nothing"))
