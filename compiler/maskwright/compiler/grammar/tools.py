"""Tool calls: free text until a trigger, then one of the tools with arguments of its schema, then back.

The text is one `GraphFrame`; arguments are frames of the schema compiler, called. Tools share the
vocabulary's frames, and what else of their frames is alike is merged by `minimise`. What the parts of a text
look like is data (`tool_formats.py`).

    choice "auto"       free text and calls as the model likes
           "none"       free text that can't begin a call
           "required"   one call or more, and no free text
           a name       as "required", with that tool alone
    parallel False      one call at most
    reasoning           (open, close): the text begins with open, free text, close; an empty open: the prompt
                        wrote it already
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from maskwright.compiler.automaton.explore import Frame, explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.grammar.graph import GraphFrame
from maskwright.compiler.grammar.token_symbols import TokenSymbols
from maskwright.compiler.grammar.tool_formats import FORMATS, ToolFormat
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.check import Treatment, check
from maskwright.compiler.schema.document import Document
from maskwright.compiler.schema.formula import Space
from maskwright.compiler.schema.front import deep_recursion
from maskwright.compiler.schema.goals import Goal
from maskwright.compiler.schema.keywords import DRAFTS
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import root_nest
from maskwright.compiler.schema.lower import Lowering
from maskwright.compiler.schema.read import read_source
from maskwright.compiler.schema.values import Values
from maskwright.workers.specials import LENGTH, SYMBOL, spell_special

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

PLAIN = {"type", "title", "description", "default", "examples", "$comment", "$schema", "$defs", "definitions"}
"""Keywords that say no more of a string than that it is one, and no more of the parameters together."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`pointer`: where its schema lies in the list of tools."""

    name: str
    parameters: Any
    pointer: str


@dataclass(frozen=True)
class ToolOptions:
    """See the module's text. `format`: a name of `FORMATS`, or a format of one's own."""

    format: str | ToolFormat = "hermes"
    choice: str = "auto"
    parallel: bool = True
    reasoning: tuple[str, str] | None = None


@dataclass(frozen=True)
class ToolsResult:
    """The automaton, specialised; each keyword's treatment by pointer into the list of tools; notes."""

    automaton: ByteAutomaton
    treatment: list[Treatment]
    notes: list[Diagnostic]


def build_tools(
    tools: Sequence[dict[str, Any]],
    tool_options: ToolOptions | None = None,
    *,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
    library: ByteAutomaton | None = None,
    deadline: float | None = None,
    specials: TokenSymbols | None = None,
) -> ToolsResult:
    """Compile a list of tools, each `{"name", "parameters"}` or that under `"function"` as OpenAI writes it.

    specials: the vocabulary's special tokens, which learns those that are used. Where a format's texts name one, it's
    that token.
    Raises CompileError with every independent fault, by pointer into the list; LimitExceeded.
    Cost: each tool's schema, and the length of the literal texts.
    """
    options, limits = options or CompileOptions(), limits or Limits()
    if deadline is None:
        deadline = now() + limits.compile_seconds
    chosen = tool_options or ToolOptions()
    form = _format(chosen.format)
    found = _read(tools, chosen, form)
    b = _Builder(form, chosen, options, limits, library, deadline, specials or TokenSymbols())
    with deep_recursion(), closing(b):
        frame = b.build(found)
        automaton = specialise(explore(frame, library, limits=limits, deadline=deadline), limits)
    return ToolsResult(automaton, b.treatment, b.notes)


# -- reading -------------------------------------------------------------------------------------------------


def _format(form: str | ToolFormat) -> ToolFormat:
    if isinstance(form, ToolFormat):
        return form
    if form not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, or a ToolFormat, not {form!r}")
    return FORMATS[form]


def _read(tools: Sequence[Any], chosen: ToolOptions, form: ToolFormat) -> list[Tool]:
    found: list[Tool] = []
    faults: list[Diagnostic] = []
    seen: set[str] = set()
    for i, entry in enumerate(tools):
        tool = _tool(entry, f"/{i}", form, faults)
        if tool is None:
            continue
        if tool.name in seen:
            faults.append(_fault(f"two tools are named {tool.name!r}", f"/{i}/name"))
        seen.add(tool.name)
        found.append(tool)
    if chosen.choice not in ("auto", "none", "required") and chosen.choice not in seen:
        faults.append(_fault(f"no tool is named {chosen.choice!r}", "", {"choice": chosen.choice}))
    if chosen.choice == "required" and not tools:
        faults.append(_fault("a call is required and there are no tools", ""))
    if faults:
        raise CompileError(faults)
    if chosen.choice in ("auto", "none", "required"):
        return found
    return [t for t in found if t.name == chosen.choice]


def _tool(entry: Any, pointer: str, form: ToolFormat, faults: list[Diagnostic]) -> Tool | None:
    if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
        entry, pointer = entry["function"], f"{pointer}/function"
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        faults.append(_fault("a tool is an object with a name", pointer))
        return None
    if form.name == "raw" and (not name.isprintable() or any(c in name for c in "<> ")):
        faults.append(_fault(f"{name!r} can't stand in a tag", f"{pointer}/name"))
        return None
    for key in ("parameters", "input_schema"):
        if entry.get(key) is not None:
            return Tool(name, entry[key], f"{pointer}/{key}")
    return Tool(name, NO_ARGUMENTS, f"{pointer}/parameters")


def _fault(message: str, pointer: str, detail: dict[str, Any] | None = None) -> Diagnostic:
    return Diagnostic(Code.INVALID_SOURCE, message, pointer=pointer, detail=detail or {})


# -- building ------------------------------------------------------------------------------------------------


class _Builder:
    def __init__(
        self,
        form: ToolFormat,
        chosen: ToolOptions,
        options: CompileOptions,
        limits: Limits,
        library: ByteAutomaton | None,
        deadline: float,
        specials: TokenSymbols,
    ) -> None:
        self.form, self.chosen, self.options, self.limits = form, chosen, options, limits
        self.library, self.deadline, self.specials = library, deadline, specials
        self.space = Space()
        self.languages = Languages(self.space, options, limits, deadline)
        self.treatment: list[Treatment] = []
        self.notes: list[Diagnostic] = []
        self.faults: list[Diagnostic] = []
        self.graph = GraphFrame("tool calls")
        self.known: dict[str, list[Frame]] = {}
        """Frames by the schema's text: tools often repeat each other's."""
        self.values: list[Values] = []
        """All that made them."""

    def close(self) -> None:
        for values in self.values:
            values.close()

    def build(self, tools: list[Tool]) -> GraphFrame:
        """The whole text's frame. Raises CompileError with the faults of all tools' schemas."""
        g = self.graph
        at = self.reasoning()
        if self.chosen.choice == "none" or (self.chosen.choice == "auto" and not tools):
            entry, _ = g.free(self.form.trigger, ends=True)
            self.alias(at, entry)
        elif self.chosen.choice == "auto":
            self.auto(at, tools)
        else:
            self.sections(at, tools)
        if self.faults:
            raise CompileError(self.faults)
        return g

    def reasoning(self) -> int:
        """The node after the reasoning section."""
        if self.chosen.reasoning is None:
            return 0
        opening, closing = self.chosen.reasoning
        if not closing:
            raise ValueError("reasoning needs a text that closes it")
        entry, after, rest = self.free(closing, closing, ends=False)
        if rest:
            after = self.graph.text(after, rest)
        if opening:
            self.graph.join(0, self.specials.spell(opening), entry)
        else:
            self.alias(0, entry)
        return after

    def free(self, trigger: str, whole: str, ends: bool) -> tuple[int, int, bytes]:
        """Free text up to `trigger`, with which `whole` begins: the entry, the node after, and what's left of `whole`.

        Where `whole` begins with a special token, that is what ends the free text; its name can't be spelled there.
        """
        spelled = self.specials.spell(whole)
        if spelled.startswith(SYMBOL):
            symbol = spelled[:LENGTH]
            name = next(n for n in self.specials.by_name if spell_special(self.specials.by_name[n]) == symbol)
            entry, after = self.graph.free(name, ends, symbol)
        else:
            text = spelled[: len(trigger.encode())].split(SYMBOL, 1)[0]
            symbol = text
            entry, after = self.graph.free(text, ends)
        assert after is not None
        return entry, after, spelled[len(symbol) :]

    def alias(self, at: int, target: int) -> None:
        """Node `at`, still empty, does what `target` does."""
        self.graph.nodes[at] = self.graph.nodes[target]

    def auto(self, at: int, tools: list[Tool]) -> None:
        """Free text with sections in it."""
        g, form = self.graph, self.form
        entry, after, rest = self.free(form.trigger, form.open + form.before, ends=True)
        self.alias(at, entry)
        end = g.node(ends=True)
        back = entry if self.chosen.parallel and not form.last else end
        self.section(after, rest, tools, back)

    def sections(self, at: int, tools: list[Tool]) -> None:
        """Sections alone: one or, in parallel, several."""
        g, form = self.graph, self.form
        start = g.text(at, self.specials.spell(form.open + form.before))
        end = g.node(ends=True)
        if self.chosen.parallel and form.between is not None and not form.last:
            g.join(end, self.specials.spell(form.between + form.open + form.before), start)
        self.section(start, b"", tools, end)

    def section(self, at: int, rest: bytes, tools: list[Tool], back: int) -> None:
        """From a section's beginning, less what's read of it, to `back`."""
        g, form = self.graph, self.form
        names = g.text(at, rest)
        done = g.node()
        for tool in tools:
            name = json.dumps(tool.name, ensure_ascii=False)[1:-1] if form.name == "json" else tool.name
            start = g.text(names, name.encode() + self.specials.spell(form.middle))
            self.arguments(start, tool, done)
        if form.separator is not None and self.chosen.parallel:
            g.join(done, self.specials.spell(form.separator + form.before), names)
        if form.close:
            g.join(done, self.specials.spell(form.close), back)
        else:
            self.alias_end(done, back)

    def alias_end(self, done: int, back: int) -> None:
        """After the last call of a section without a closing text."""
        node, target = self.graph.nodes[done], self.graph.nodes[back]
        for byte, to in target.ways.items():
            self.graph.way(done, byte, to)
        node.ends |= target.ends

    def arguments(self, at: int, tool: Tool, done: int) -> None:
        after = self.graph.node()
        if self.form.arguments == "json":
            self.graph.call(at, self.value(tool.parameters, tool.pointer), after)
            self.graph.join(after, self.specials.spell(self.form.after), done)
        else:
            self.parameters(at, tool, done)

    # -- schemas ---------------------------------------------------------------------------------------------

    def value(self, schema: Any, pointer: str) -> list[Frame]:
        """Frames that together read a value of the schema. Faults are collected."""
        try:
            document = Document(read_source(schema, self.limits), DRAFTS[self.options.draft])
        except CompileError as e:
            self.faults += [_below(d, pointer) for d in e.diagnostics]
            return []
        found = check(document, self.languages, self.options, self.limits)
        self.treatment += [(pointer + p, keyword, treated) for p, keyword, treated in found.treatment]
        self.notes += [_below(d, pointer) for d in found.notes]
        if found.faults or found.limits:
            limits = (d for limit in found.limits for d in limit.diagnostics)
            self.faults += [_below(d, pointer) for d in (*limits, *found.faults)]
            return []
        key = json.dumps(document.value)
        if key in self.known:
            return self.known[key]
        lowering = Lowering(document, self.space, self.languages, found.residual)
        lowering.prefix = pointer
        values = Values(lowering, self.options, self.limits, self.library)
        self.values.append(values)
        root = document.root
        calls = values.calls(Goal(lowering.holds(root), (), (root,)), root_nest(self.options))
        if not calls:
            message = "no arguments satisfy this schema"
            self.faults.append(Diagnostic(Code.UNSATISFIABLE, message, pointer=pointer))
        frames = self.known[key] = [frame for frame, _ in calls]
        return frames

    # -- parameters between tags -----------------------------------------------------------------------------

    def parameters(self, at: int, tool: Tool, done: int) -> None:
        """`<parameter=KEY>\\nVALUE\\n</parameter>\\n` for each property in declared order, then the closing
        text.
        """
        g = self.graph
        properties = list(self.properties(tool))
        begins = [g.node() for _ in properties]
        follows = [g.node() for _ in properties]
        for (_, schema, pointer, _), begin, follow in zip(properties, begins, follows, strict=True):
            self.parameter(begin, schema, pointer, follow)
        for i, node in enumerate([at, *follows]):
            for (name, _, _, required), begin in zip(properties[i:], begins[i:], strict=True):
                g.join(node, f"<parameter={name}>\n", begin)
                if required:
                    break
            else:
                g.join(node, self.specials.spell(self.form.after), done)

    def properties(self, tool: Tool) -> Iterator[tuple[str, Any, str, bool]]:
        schema = tool.parameters
        known = {*PLAIN, "properties", "required", "additionalProperties"}
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            self.faults.append(_fault("parameters between tags need an object schema", tool.pointer))
            return
        for keyword in sorted(set(schema) - known):
            message = f"keyword {keyword!r} isn't enforced between tags"
            pointer = f"{tool.pointer}/{keyword}"
            detail = {"keyword": keyword}
            self.faults.append(Diagnostic(Code.UNSUPPORTED_KEYWORD, message, pointer=pointer, detail=detail))
        required = schema.get("required", [])
        shared = {k: schema[k] for k in ("$defs", "definitions", "$schema") if k in schema}
        for name, value in schema.get("properties", {}).items():
            pointer = f"{tool.pointer}/properties/{name.replace('~', '~0').replace('/', '~1')}"
            if any(c in name for c in "<>\n") or not name:
                self.faults.append(_fault(f"{name!r} can't stand in a tag", pointer))
                continue
            whole = {**value, **shared} if isinstance(value, dict) else value
            yield name, whole, pointer, name in required

    def parameter(self, at: int, schema: Any, pointer: str, target: int) -> None:
        """One value: strings stand as they are, anything else as JSON."""
        g, closing = self.graph, "\n</parameter>\n"
        literal = _plain_strings(schema)
        if literal is None:
            after = g.node()
            g.call(at, self.value(schema, pointer), after)
            g.join(after, closing, target)
        elif literal:
            for text in literal:
                g.join(at, text + closing, target)
        else:
            entry, after_text = g.free(closing, ends=False)
            assert after_text is not None
            self.alias(at, entry)
            self.alias(after_text, target)


def _plain_strings(schema: Any) -> list[str] | None:
    """The strings of an enum; empty: any string; None: not a schema of plain strings."""
    if not isinstance(schema, dict) or schema.get("type") != "string":
        return None
    rest = set(schema) - PLAIN
    if rest == {"enum"} and all(isinstance(v, str) for v in schema["enum"]):
        return [v for v in dict.fromkeys(schema["enum"]) if "\n</parameter>" not in v]
    return [] if not rest else None


def _below(d: Diagnostic, pointer: str) -> Diagnostic:
    """A span is kept where it's in a source of its own (a pattern): the schema's text isn't the document's."""
    return replace(d, pointer=pointer + (d.pointer or ""), span=d.span if d.source is not None else None)
