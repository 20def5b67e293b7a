"""Every diagnostic code with its cure and examples. `DIAGNOSTICS.md` is this table, with what each example gives.

    python -m maskwright.compiler.pages        writes the page anew

An example is compiled as it stands, against the demo vocabulary unless it brings its own; a test checks that it gives
its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.options import CompileOptions, Limits


@dataclass(frozen=True)
class Example:
    """`kind`: "json_schema", "regex", "lark", "gbnf" or "tools"; "tokenizer": the text of a tokenizer file. `tokens`: a
    vocabulary of these alone."""

    source: str
    kind: str = "json_schema"
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    tokens: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Entry:
    """`cure`: what helps, in general; a diagnostic's own hint goes before it. `severity` of the examples."""

    cure: str
    examples: tuple[Example, ...]
    severity: str = "error"


CODES: Mapping[Code, Entry] = {
    Code.INVALID_SOURCE: Entry(
        "Correct the source at the place. All independent faults are listed at once.",
        (
            Example('{"type": "object", "properties": {"a": {"type": "strin"}, "b": {"minimum": "1"}}}'),
            Example('{"const": NaN, "title": "x", "title": "y"}'),
            Example("(a|b", "regex"),
            Example('root ::= "a" item', "gbnf"),
            Example('{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}'),
        ),
    ),
    Code.UNSUPPORTED_KEYWORD: Entry(
        'Remove the keyword, or compile with `residual="allow"` and have the commit gate check it.',
        (Example('{"type": "array", "items": {"type": "string"}, "uniqueItems": true}'),),
    ),
    Code.UNSUPPORTED_PATTERN: Entry(
        "Write the pattern without the construct. Back-references and recursion aren't regular.",
        (Example(r"(a|b)\1", "regex"), Example(r'{"type": "string", "pattern": "^(?<q>[\"x])a\\k<q>$"}')),
    ),
    Code.UNSUPPORTED_GRAMMAR: Entry(
        "Change the rules named so that one token of look-ahead decides; give terminals that collide priorities.",
        (Example('start: a | b\na: "x" "y"\nb: "x" "y"\n', "lark"), Example("root ::= root? [^a]", "gbnf")),
    ),
    Code.UNRESOLVED_REFERENCE: Entry(
        "Correct the reference, or supply the schema it names among the resources.",
        (
            Example('{"properties": {"a": {"$ref": "#/$defs/missing"}}}'),
            Example('{"$ref": "https://example.com/other.json"}'),
        ),
    ),
    Code.UNSATISFIABLE: Entry(
        "Some value must exist: look for bounds that exclude each other, or a required property that may not come.",
        (
            Example('{"type": "integer", "minimum": 3, "maximum": 2}'),
            Example('{"type": "object", "properties": {"a": false}, "required": ["a"]}'),
        ),
    ),
    Code.VOCABULARY_INCOMPLETE: Entry(
        "Use the tokenizer that the model has. One that can't spell single bytes can't write such texts.",
        (Example('{"const": "b"}', tokens=(b'"', b"a")),),
    ),
    Code.INVALID_VOCABULARY: Entry(
        "Give the tokenizer's own file: a tokenizer.json, a tekken.json, or a tiktoken rank file.",
        (Example('{"version": "1.0", "model": {"type": "Unknown"}}', "tokenizer"),),
    ),
    Code.LIMIT_EXCEEDED: Entry(
        "Follow the hint: it names the next step for the limit. LIMITS.md lists every limit and the profiles.",
        (
            Example('{"properties": {"size": {"enum": ["S", "M", "L", "XL"]}}}', limits={"enum_values": 3}),
            Example('{"items": {"items": {"items": {}}}}', limits={"schema_depth": 3}),
            Example("[ab]*a[ab]{9}", "regex", limits={"states": 500}),
        ),
    ),
    Code.IGNORED_KEYWORD: Entry(
        "Nothing, where it's meant as a remark. A misspelled keyword enforces nothing.",
        (Example('{"type": "string", "maxLenght": 5}'),),
        "note",
    ),
    Code.UNBOUNDED: Entry(
        "Bound them in the schema, or compile with `default_max_length` and `default_max_items`.",
        (Example('{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}'),),
        "warning",
    ),
    Code.OPEN_OBJECT: Entry(
        "Close the object with `additionalProperties: false` where no other member is meant.",
        (Example('{"type": "object", "properties": {"a": {"type": "null"}}}'),),
        "note",
    ),
    Code.UNANCHORED_PATTERN: Entry(
        "Anchor the pattern with `^` and `$` where it's meant for the whole string.",
        (Example('{"type": "string", "pattern": "[a-z]{3}", "maxLength": 9}'),),
        "warning",
    ),
    Code.UNREACHABLE: Entry(
        "Look for what excludes it: its own bounds, its type, or an `additionalProperties: false` beside it.",
        (
            Example('{"type": "string", "enum": ["a", 1]}'),
            Example(
                '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, '
                '"additionalProperties": false}'
            ),
        ),
        "warning",
    ),
    Code.UNKNOWN_FORMAT: Entry(
        "Use a standard format, or a pattern. SUPPORT.md lists the formats.",
        (Example('{"type": "string", "format": "phone", "maxLength": 20}'),),
        "warning",
    ),
    Code.NARROWER_FORMAT: Entry(
        "Nothing, where the texts left out aren't needed; else a pattern of your own.",
        (Example('{"type": "string", "format": "email", "maxLength": 40}'),),
        "note",
    ),
    Code.UNKNOWN_DIALECT: Entry(
        "Name a draft, or supply the schema of schemas among the resources.",
        (Example('{"$schema": "https://example.com/meta", "type": "null"}'),),
        "warning",
    ),
    Code.AMBIGUOUS_NAME: Entry(
        "Give each its own name: a reference to one given twice is refused.",
        (Example('{"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}, "type": "null"}'),),
        "warning",
    ),
}


def run_example(example: Example) -> list[Diagnostic]:
    """The diagnostics that an example gives: its errors, or the notes of its report."""
    from maskwright.compiler.compile import Compiler
    from maskwright.compiler.vocabulary import Vocabulary

    try:
        if example.kind == "tokenizer":
            Vocabulary.from_bytes(example.source.encode())
            return []
        vocabulary = Vocabulary.from_tokens(example.tokens) if example.tokens else Vocabulary.demo()
        limits = replace(Limits(), **example.limits)
        compiler = Compiler(vocabulary, CompileOptions(**example.options), limits)
        compile_kind = getattr(compiler, f"compile_{example.kind}")
        return list(compile_kind(example.source).report.notes)
    except CompileError as error:
        return error.diagnostics
