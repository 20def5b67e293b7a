"""Sources made to exhaust or to mislead, by name: (kind, maker of the text, options). Makers keep them small on disk.

Used by the tests beside this file, by `tests/bench/bench_hostile.py` through a server, and by whoever wants to see
what a limit is for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any] | bool


@dataclass(frozen=True)
class Hostile:
    """`make` gives text, or bytes where it isn't any. `gives`: "artifact" or codes, where only that is right."""

    kind: str
    make: Callable[[], str | bytes]
    gives: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    huge: bool = False
    """Larger than a message of the service may be."""


SOURCES: dict[str, Hostile] = {}


def _add(
    name: str, kind: str, make: Callable[[], str | bytes], *gives: str, huge: bool = False, **options: Any
) -> None:
    assert name not in SOURCES
    SOURCES[name] = Hostile(kind, make, gives, options, huge)


def _schema(name: str, make: Callable[[], Json], *gives: str, **options: Any) -> None:
    _add(name, "json_schema", lambda: json.dumps(make()), *gives, **options)


# -- JSON Schema: nesting and products -----------------------------------------------------------------------


def one_ofs(depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "integer"}
    for i in range(depth):
        out = {"oneOf": [out, {"type": "string", "minLength": i}]}
    return out


def doubling(keyword: str, levels: int, last: Json) -> dict[str, Any]:
    """Each definition uses the next one twice."""
    defs: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}", "title": "again"}]}
        for i in range(levels)
    }
    return {"$defs": {**defs, f"d{levels}": last}, "$ref": "#/$defs/d0"}


def doubling_members(levels: int, keyword: str) -> dict[str, Any]:
    def level(i: int) -> dict[str, Any]:
        below = {"$ref": f"#/$defs/d{i + 1}"}
        return {"prefixItems": [below, below]} if keyword == "prefixItems" else {"properties": {"a": below, "b": below}}

    return {
        "$defs": {**{f"d{i}": level(i) for i in range(levels)}, f"d{levels}": {"type": "null"}},
        "$ref": "#/$defs/d0",
    }


def tower(levels: int) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "string", "maxLength": 9_999, "minLength": 777}
    for i in range(levels):
        out = {"type": "array", "items": out, "maxItems": 9_000 + i, "minItems": 300 + i}
    return out


def nested_text(depth: int, inside: str = "{}") -> str:
    return '{"items":' * depth + inside + "}" * depth


_schema("oneOf nested 16 deep", lambda: one_ofs(16))
_schema("oneOf nested 64 deep", lambda: one_ofs(64))
_schema("allOf doubling", lambda: doubling("allOf", 64, {"properties": {"a": {"type": "null"}}}))
_schema("anyOf doubling", lambda: doubling("anyOf", 64, {"enum": ["a", "b"]}))
_schema("oneOf doubling", lambda: doubling("oneOf", 64, {"type": "integer"}), "UNSATISFIABLE")
_schema("properties doubling", lambda: doubling_members(64, "properties"))
_schema("prefixItems doubling", lambda: doubling_members(64, "prefixItems"))
_schema(
    "unevaluated over doubling",
    lambda: {**doubling("anyOf", 64, {"properties": {"a": {}}}), "unevaluatedProperties": False},
)
_schema("tower of bounds", lambda: tower(6))
_schema(
    "product of alternatives",
    lambda: {
        "allOf": [
            {"anyOf": [{"properties": {f"p{i}_{k}": {"const": k}}, "required": [f"p{i}_{k}"]} for k in range(8)]}
            for i in range(8)
        ]
    },
)
_schema(
    "alternatives over properties",
    lambda: {"anyOf": [{"properties": {f"p{i}": {"const": 1}}, "required": [f"p{i}"]} for i in range(16)]},
)
_schema(
    "late discriminator",
    lambda: {
        "anyOf": [
            {"properties": {"child": {"$ref": "#"}, "kind": {"const": i}}, "required": ["child", "kind"]}
            for i in range(9)
        ]
    },
)
_schema("pairs of dependents", lambda: {"dependentRequired": {f"a{i}": [f"b{i}"] for i in range(16)}})
_schema("not, 200 times", lambda: json.loads('{"not":' * 200 + '{"type":"null"}' + "}" * 200))
_schema("not, 60 times", lambda: json.loads('{"not":' * 60 + '{"type":"null"}' + "}" * 60), "artifact")


def conditions(n: int) -> dict[str, Any]:
    out: dict[str, Any] = {"required": ["z"]}
    for i in range(n):
        out = {"if": {"required": [f"k{i}"]}, "then": out, "else": {"properties": {f"k{i}": {"const": i}}}}
    return out


_schema("if inside if", lambda: conditions(12))
_schema("two counters", lambda: {"contains": {"const": 1}, "maxContains": 300, "maxItems": 9_000, "minItems": 400})
_schema("any order of 30", lambda: {"properties": {f"p{i}": {} for i in range(30)}}, property_order="any")
_schema("depth by recursion", lambda: {"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}}, max_nesting=1024)

# -- JSON Schema: many and long ------------------------------------------------------------------------------

_schema(
    "50,000 properties",
    lambda: {"properties": {f"p{i}": {} for i in range(50_000)}},
    "LIMIT_EXCEEDED",
)
_schema("100,000 enum values", lambda: {"enum": [f"v{i}" for i in range(100_000)]}, "LIMIT_EXCEEDED")
_schema("5,000 alternatives", lambda: {"anyOf": [{"const": i} for i in range(5_000)]}, "LIMIT_EXCEEDED")
_schema(
    "several limits",
    lambda: {"properties": {k: {"maxItems": 10**9, "maxLength": 10**12} for k in "ab"}},
    "LIMIT_EXCEEDED",
)
_schema("a name of a megabyte", lambda: {"properties": {"n" * 1_000_000: {}}})
_schema("names with one beginning", lambda: {"properties": {"x" * 400 + str(i): {"const": 1} for i in range(400)}})
_schema("prefixItems, 5,000", lambda: {"prefixItems": [{"const": i} for i in range(5_000)], "items": False})
_schema("enum of deep values", lambda: {"enum": [json.loads("[" * 40 + str(i) + "]" * 40) for i in range(60)]})
_schema("overlapping keys", lambda: {"patternProperties": {f"[a-z]{{{i}}}x": {"minimum": i} for i in range(1, 14)}})
_schema("required, 400", lambda: {"required": [f"r{i}" for i in range(400)]})
_schema("length times pattern", lambda: {"pattern": "^(a{1,50}b){1,50}$", "maxLength": 5_000})
_schema("least length times pattern", lambda: {"pattern": "^([a-c]+d)*$", "minLength": 90_000})
_schema("patterns that must all hold", lambda: {"allOf": [{"pattern": f"(a|b)*a(a|b){{{i}}}$"} for i in range(1, 12)]})
_schema("unique items of many", lambda: {"uniqueItems": True, "items": {"enum": list(range(200))}})
_schema("chain of references", lambda: {
    "$ref": "#/$defs/d0",
    "$defs": {**{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(3_000)}, "d3000": {}},
}, "LIMIT_EXCEEDED")  # fmt: skip

# -- JSON Schema: loops and numbers --------------------------------------------------------------------------

_schema("reference to itself", lambda: {"$ref": "#"}, "INVALID_SOURCE")
_schema("references in a ring", lambda: {
    "$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
}, "INVALID_SOURCE")  # fmt: skip
_schema("not itself", lambda: {"not": {"$ref": "#"}}, "INVALID_SOURCE")
_schema("only an endless value", lambda: {"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "UNSATISFIABLE")
_schema("dynamic loop", lambda: {"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]})
_schema("reference to nowhere", lambda: {"$ref": "#/%zz/~2/~"})
_schema("bounds that exclude each other", lambda: {"type": "integer", "minimum": 5, "maximum": 4}, "UNSATISFIABLE")
_schema("tiny divisor", lambda: {"multipleOf": 1e-300})
_schema("divisors that multiply", lambda: {"allOf": [{"multipleOf": p} for p in (97, 89, 83, 79)]})
_add("huge exponent", "json_schema", lambda: '{"minimum": 1e999999999}', "LIMIT_EXCEEDED")
_add("huge integer", "json_schema", lambda: '{"minimum": ' + "9" * 100_000 + "}", "INVALID_SOURCE")
_add("long fraction", "json_schema", lambda: '{"maximum": 0.' + "1" * 900 + "}")

# -- JSON texts ----------------------------------------------------------------------------------------------

_add("60,000 brackets", "json_schema", lambda: nested_text(60_000), "LIMIT_EXCEEDED")
_add(
    "60,000 brackets in a constant",
    "json_schema",
    lambda: '{"const":' + "[" * 60_000 + "]" * 60_000 + "}",
    "LIMIT_EXCEEDED",
)
_add("60,000 closing brackets", "json_schema", lambda: "]" * 60_000, "INVALID_SOURCE")
_add("deep constant", "json_schema", lambda: '{"const":' + "[" * 60 + "]" * 60 + "}", "artifact")
_add("100 MB of text", "json_schema", lambda: '{"title":"' + "x" * 100_000_000 + '"}', "LIMIT_EXCEEDED", huge=True)
_add("100 MB of space", "json_schema", lambda: " " * 100_000_000, "LIMIT_EXCEEDED", huge=True)
_add("250 KB of escapes", "json_schema", lambda: '{"title":"' + '\\"' * 125_000 + '"}')
_add("invalid UTF-8", "json_schema", lambda: b'{"title":"\xff\xfe"}', "INVALID_SOURCE")
_add("lone surrogate, escaped", "json_schema", lambda: '{"const":"\\ud800"}', "INVALID_SOURCE")
_add("lone surrogate as a key", "json_schema", lambda: '{"properties":{"\\udfff":{}}}', "INVALID_SOURCE")
_add("not a number", "json_schema", lambda: '{"minimum":NaN,"maximum":-Infinity}', "INVALID_SOURCE")
_add("keys twice", "json_schema", lambda: '{"type":"null","type":"string","enum":[{"a":1,"a":2}]}', "INVALID_SOURCE")
_add("byte order mark", "json_schema", lambda: "\ufeff{}", "INVALID_SOURCE")
_add("nothing", "json_schema", lambda: "", "INVALID_SOURCE")
_add("unclosed string", "json_schema", lambda: '{"title":"' + "a" * 1000, "INVALID_SOURCE")
_add("a number", "json_schema", lambda: "3", "INVALID_SOURCE")
_add("NUL", "json_schema", lambda: '{"const":"\\u0000"}\x00', "INVALID_SOURCE")

# -- patterns ------------------------------------------------------------------------------------------------

_add("counted counts", "regex", lambda: "((a{1,100}){1,100}){1,100}", "LIMIT_EXCEEDED")
_add("last but twenty", "regex", lambda: "[ab]*a[ab]{20}", "LIMIT_EXCEEDED")
_add("stars of stars", "regex", lambda: "(" * 40 + "a" + "*)" * 40 + "b", "artifact")
_add("600 lookaheads", "regex", lambda: "(?=a)" * 600 + "a", "LIMIT_EXCEEDED")
_add("lookaheads that multiply", "regex", lambda: "".join(f"(?=.*{c}.{{5}}{c})" for c in "abcdefgh") + ".*")
_add("30,000 brackets in a pattern", "regex", lambda: "(" * 30_000 + "a" + ")" * 30_000, regex_dialect="ecma262")
_add("back-reference", "regex", lambda: r"(a+)\1", "UNSUPPORTED_PATTERN")
_add("largest count", "regex", lambda: "a{4294967295}")
_add("letters, 300 of them", "regex", lambda: r"(\p{L}\p{Nd}?){1,300}", regex_dialect="ecma262")
_add("5,000 words", "regex", lambda: "|".join(f"w{i * 7919}" for i in range(5_000)))
_add("lists of lists", "regex", lambda: "(.{0,100},){0,10}")
_add("unclosed class", "regex", lambda: "[a", "INVALID_SOURCE")
_add("a pattern that holds nothing", "regex", lambda: "a(?!b)(?=b)c", "UNSATISFIABLE")
_add("long pattern", "regex", lambda: "a" * 200_000, "LIMIT_EXCEEDED")

# -- grammars ------------------------------------------------------------------------------------------------

_add("cyclic empty rules", "lark", lambda: "start: a\na: b |\nb: a |\n")
_add("ambiguous sums", "lark", lambda: 'start: start "+" start | "1"\n')
_add(
    "20,000 brackets in a rule",
    "lark",
    lambda: "start: " + "(" * 20_000 + '"a"' + ")" * 20_000 + "\n",
    "UNSUPPORTED_GRAMMAR",
)
_add(
    "chain of 400 rules",
    "lark",
    lambda: "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(400)) + 'r400: "a"\n',
)
_add(
    "4,000 rules",
    "lark",
    lambda: "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(4_000)) + 'r4000: "a"\n',
    "LIMIT_EXCEEDED",
)
_add("template without end", "lark", lambda: 'start: _t{"a"}\n_t{x}: _t{_u{x}} | x\n_u{x}: x x\n', "LIMIT_EXCEEDED")
_add(
    "templates that double",
    "lark",
    lambda: (
        'start: t0{"a"}\nd{x}: x x\n'
        + "".join(f"t{i}{{x}}: t{i + 1}{{d{{x}}}} | t{i + 1}{{d{{d{{x}}}}}}\n" for i in range(7))
        + "t7{x}: x\n"
    ),
)
_add("repeats of repeats", "lark", lambda: 'start: (("a"~1..60)~1..60)~1..60\n')
_add("terminal that doubles", "lark", lambda: "start: A\nA: /[ab]*a[ab]{18}/\n")
_add("import of a path", "lark", lambda: "start: a\n%import .....etc.passwd (a)\n")
_add("undefined terminal", "lark", lambda: "start: NOPE\n")
_add("only an endless rule", "lark", lambda: 'start: "a" start\n')
_add("terminals that collide", "lark", lambda: "start: (A|B)+\nA: /[a-m]+x?/\nB: /[g-z]+x?/\n")
_add("cyclic empty rules in GBNF", "gbnf", lambda: 'root ::= a\na ::= b | ""\nb ::= a | "x"\n')
_add("left recursion in GBNF", "gbnf", lambda: 'root ::= root "a" | "b"\n', "UNSUPPORTED_GRAMMAR")
_add("60,000 brackets in GBNF", "gbnf", lambda: "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000)
_add("counts of counts in GBNF", "gbnf", lambda: 'root ::= (("a"{0,300}){0,300}){0,300}')
_add("indirect recursion without end in GBNF", "gbnf", lambda: 'root ::= "a" b\nb ::= "c" root\n', "UNSATISFIABLE")

# -- tools ---------------------------------------------------------------------------------------------------


def tool(name: str, parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


_add("2,000 tools", "tools", lambda: json.dumps([tool(f"t{i}", {"type": "object"}) for i in range(2_000)]))
_add("one name for two tools", "tools", lambda: json.dumps([tool("t", {}), tool("t", {})]))
_add("a tool with a hostile schema", "tools", lambda: json.dumps([tool("t", one_ofs(40)), tool("u", {"$ref": "#"})]))
_add("tools that aren't", "tools", lambda: json.dumps({"tools": 3, "tool_choice": []}))
