"""Each keyword on texts: what it lets through and what it doesn't."""

from __future__ import annotations

from typing import Any

import pytest
from schema_texts import judge, library

D4, D6, D7 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 6, 7))
D2019 = "https://json-schema.org/draft/2019-09/schema"

CASES: list[tuple[str, Any, list[str], list[str]]] = [
    (
        "true",
        True,
        ["null", "1e5", "[]", '{"a": {"b": [1, "x"]}}', '"\\ud83d\\ude00"'],
        ["", " 1", "1 ", '"\\ud83d"'],
    ),
    ("type", {"type": ["string", "null"]}, ['"x"', "null"], ["1", "true", "[]", "{}"]),
    ("integer", {"type": "integer"}, ["0", "-7", "120"], ["1.0", "1e2", "01", "-", "1.5"]),
    ("number", {"type": "number"}, ["0", "-0.5", "1E+2"], ["01", "1.", ".5", '"1"', "+1"]),
    ("no-integer", {"not": {"type": "integer"}}, ["1.5", '"x"'], ["1", "1.0"]),
    (
        "enum",
        {"enum": ["ab", "a", 'q"', 2, None, [1], {"k": 1}]},
        ['"ab"', '"a"', '"q\\""', "2", "2.0", "null", "[1]", '{"k":1}', '{"k":1.00}'],
        ['"b"', '"abc"', '"\\u0061"', "2.5", "3", "[]", "[1,1]", "{}", '{"k":1,"j":1}'],
    ),
    ("const-bool", {"const": True}, ["true"], ["1", "false", '"true"']),
    ("const-zero", {"const": 0}, ["0", "-0", "0.0", "-0.00"], ["false", "0.1", "1"]),
    (
        "enum-or-any-string",
        {"anyOf": [{"enum": ["no"]}, {"type": "string", "minLength": 3}]},
        ['"no"', '"noo"', '"no\\u006f"', '"abc"'],
        ['"n"', '"ab"', '"\\u006eo"', '""'],
    ),
    (
        "not-enum",
        {"type": "string", "not": {"enum": ["no", "yes"]}},
        ['"n"', '"not"', '""', '"yesterd\\u0061y"'],
        ['"no"', '"yes"', '"\\u006eo"', '"n\\u006f"'],
    ),
    (
        "lengths",
        {"minLength": 2, "maxLength": 3},
        ['"ab"', '"é\\u00e9\\n"', '"😀\\ud83d\\ude00"', "1"],
        ['"a"', '"abcd"'],
    ),
    ("pattern", {"type": "string", "pattern": "^a+$|x"}, ['"aa"', '"bxb"', '"\\u0061"'], ['""', '"ab"']),
    ("pattern-length", {"pattern": "^a*$", "maxLength": 2}, ['""', '"aa"'], ['"aaa"', '"b"']),
    (
        "bounds",
        {"minimum": -1.5, "exclusiveMaximum": 10},
        ["-1.5", "-1.50", "9.99", "0", '"x"'],
        ["-1.51", "10", "10.0", "1e0"],
    ),
    (
        "integer-bounds",
        {"type": "integer", "minimum": 8, "maximum": 120},
        ["8", "9", "99", "120"],
        ["7", "121", "1000", "-9"],
    ),
    ("multiple", {"multipleOf": 0.01}, ["1", "1.5", "0.01", "1.230", "-0.07"], ["0.001", "1.005"]),
    ("multiple-of-6", {"type": "integer", "multipleOf": 6}, ["0", "6", "-12", "600"], ["4", "9", "605"]),
    (
        "properties",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "null"}},
            "required": ["b"],
        },
        ['{"a": 1, "b": null}', '{"b":null}', '{"b":null,"c":[]}'],
        ["{}", '{"a":1}', '{"a":"x","b":null}', '{"b":null,"a":1}'],
    ),
    (
        "closed",
        {"properties": {"a": True, "ab": True}, "additionalProperties": False},
        ["{}", '{"a":1}', '{"ab":1}', '{"a":1,"ab":2}', "3"],
        ['{"b":1}', '{"abc":1}', '{"":1}', '{"a":1,"a":1}'],
    ),
    (
        "additional",
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ['{"a":1,"b":"x"}', '{"aa":"x","":"y"}'],
        ['{"b":1}', '{"a":"x"}', '{"\\u0061":"x"}', '{"b":"x","a":1}'],
    ),
    (
        "required-undeclared",
        {"required": ["z", "a"], "additionalProperties": {"type": "integer"}},
        ['{"z":1,"a":2}', '{"z":1,"a":2,"b":3}'],
        ['{"a":1,"z":2}', '{"z":1}', '{"z":"x","a":1}', '{"z":1,"b":1,"a":1}'],
    ),
    ("false-property", {"properties": {"a": False, "b": True}}, ['{"b":1}', "{}", '{"c":1}'], ['{"a":1}']),
    (
        "odd-names",
        {"properties": {'é\n"': {"type": "null"}, "": {"type": "null"}}, "additionalProperties": False},
        ['{"é\\n\\"":null,"":null}', '{"":null}'],
        ['{"\\u00e9\\n\\"":null}', '{"é":null}'],
    ),
    (
        "odd-names-open",
        {"properties": {"\n": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        ['{"\\n":null,"\\t":1}', '{"\\u0001":1}', '{"\\nx":1}'],
        ['{"\\n":1}', '{"\\u000a":1}'],
    ),
    (
        "patternProperties",
        {
            "properties": {"ab": True},
            "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 5}},
            "additionalProperties": {"type": "null"},
        },
        ['{"ab":5}', '{"ac":1}', '{"cb":5}', '{"x":null}', '{"cb":"x"}'],
        ['{"ab":4}', '{"ab":"x"}', '{"acb":4}', '{"x":1}'],
    ),
    (
        "propertyNames",
        {"properties": {"abc": True}, "propertyNames": {"maxLength": 2}},
        ['{"ab":1}', "{}"],
        ['{"abc":1}', '{"xyz":1}'],
    ),
    (
        "dependentRequired",
        {"properties": {"a": True, "b": True}, "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b":1}', '{"a":1,"b":1}'],
        ['{"a":1}'],
    ),
    (
        "dependentSchemas",
        {
            "properties": {"a": True, "b": True},
            "dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}},
        },
        ['{"b":1}', '{"a":1,"b":null}'],
        ['{"a":1,"b":1}'],
    ),
    ("maxProperties", {"maxProperties": 1}, ["{}", '{"a":1}'], ['{"a":1,"b":1}']),
    (
        "minProperties",
        {"properties": {"a": True}, "minProperties": 2},
        ['{"a":1,"b":1}'],
        ["{}", '{"a":1}', '{"b":1}'],
    ),
    (
        "items",
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        ["[1]", "[1, 2]"],
        ["[]", "[1,2,3]", '["x"]', "[1,]"],
    ),
    (
        "prefixItems",
        {"prefixItems": [{"type": "integer"}, {"type": "null"}], "items": False},
        ["[]", "[1]", "[1,null]"],
        ["[null]", "[1,null,1]"],
    ),
    ("max-zero", {"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    (
        "contains",
        {"contains": {"const": 7}, "minContains": 2, "maxContains": 3},
        ["[7,7]", "[7,1,7,7]"],
        ["[7]", "[7,7,7,7]", "[]"],
    ),
    ("items-false", {"items": False}, ["[]", "1"], ["[1]"]),
    ("unique-one", {"maxItems": 1, "uniqueItems": True}, ["[]", "[1]"], ["[1,1]"]),
    (
        "anyOf",
        {
            "anyOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a", "b"]},
                {"properties": {"a": {"const": 2}}},
            ],
            "type": "object",
        },
        ['{"a":1,"b":1}', '{"a":2}', "{}"],
        ['{"a":1}', '{"a":3}'],
    ),
    (
        "oneOf",
        {
            "oneOf": [
                {"type": "integer", "minimum": 0},
                {"type": "integer", "maximum": 10},
                {"type": "string"},
            ]
        },
        ["-3", "11", '"x"'],
        ["0", "10", "null"],
    ),
    (
        "allOf",
        {"allOf": [{"minimum": 1}, {"maximum": 2}, {"type": "integer"}]},
        ["1", "2"],
        ["0", "3", "1.5"],
    ),
    (
        "if",
        {
            "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
            "then": {"required": ["x"]},
            "else": {"required": ["y"]},
            "type": "object",
        },
        ['{"k":1,"x":0}', '{"k":2,"y":0}', '{"y":1}'],
        ['{"k":1,"y":0}', '{"k":2,"x":0}', "{}"],
    ),
    ("then-alone", {"then": False, "type": "null"}, ["null"], ["1"]),
    (
        "ref",
        {"$defs": {"a/b~c%d": {"type": "integer"}}, "$ref": "#/$defs/a~1b~0c%25d", "minimum": 3},
        ["3"],
        ["2", '"x"'],
    ),
    (
        "ref-anchor",
        {"$defs": {"x": {"$anchor": "here", "type": "null"}}, "items": {"$ref": "#here"}, "type": "array"},
        ["[null]"],
        ["[1]"],
    ),
    (
        "ref-id",
        {
            "$id": "http://x.y/a/root",
            "$defs": {"k": {"$id": "other", "type": "null", "$defs": {"m": {"type": "array"}}}},
            "anyOf": [{"$ref": "other"}, {"$ref": "/a/other#/$defs/m"}],
        },
        ["null", "[]"],
        ["1", '"x"'],
    ),
    ("ref-unknown-place", {"x-parts": {"q": {"type": "null"}}, "$ref": "#/x-parts/q"}, ["null"], ["1"]),
    (
        "recursive",
        {
            "properties": {"next": {"$ref": "#"}},
            "required": ["v"],
            "type": "object",
            "additionalProperties": True,
        },
        ['{"next":{"v":1},"v":2}', '{"v":1}'],
        ['{"next":{},"v":1}', "{}"],
    ),
    (
        "draft4-exclusive",
        {"$schema": D4, "minimum": 1, "exclusiveMinimum": True, "type": "number"},
        ["1.1", "2"],
        ["1", "1.0"],
    ),
    (
        "draft4-items",
        {"$schema": D4, "items": [{"type": "null"}], "additionalItems": {"type": "integer"}, "type": "array"},
        ["[null]", "[null,1]"],
        ["[1]", "[null,null]"],
    ),
    ("draft4-no-const", {"$schema": D4, "const": 1}, ["2"], []),
    (
        "draft4-id",
        {
            "$schema": D4,
            "id": "http://x.y/r",
            "definitions": {"k": {"id": "#k", "type": "null"}},
            "items": {"$ref": "#k"},
            "type": "array",
        },
        ["[null]"],
        ["[1]"],
    ),
    (
        "draft7-ref-siblings",
        {
            "$schema": D7,
            "definitions": {"k": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/definitions/k", "minimum": 5}},
        },
        ['{"a":1}'],
        ['{"a":"x"}'],
    ),
    (
        "draft2019-ref-siblings",
        {
            "$schema": D2019,
            "$defs": {"k": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/$defs/k", "minimum": 5}},
        },
        ['{"a":5}'],
        ['{"a":1}', '{"a":"x"}'],
    ),
    (
        "draft7-dependencies",
        {"$schema": D7, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "type": "object"},
        ['{"b":1,"a":1}', '{"c":1,"d":1}', "{}"],
        ['{"a":1}', '{"c":1}'],
    ),
    ("draft6-if-unknown", {"$schema": D6, "if": True, "then": False}, ["1"], []),
    (
        "id-property",
        {"properties": {"id": {"type": "integer"}, "$id": {"type": "integer"}, "enum": {"type": "integer"}}},
        ['{"id":1,"$id":2,"enum":3}'],
        ['{"id":"x"}'],
    ),
    (
        "order-of-branches",
        {
            "properties": {"m": True},
            "allOf": [{"properties": {"z": True}}, {"properties": {"a": True, "m": True}}],
            "required": ["q"],
        },
        ['{"m":1,"z":1,"a":1,"q":1,"b":1}', '{"z":1,"q":1}'],
        ['{"z":1,"m":1,"q":1}', '{"q":1,"a":1}'],
    ),
    ("repeated-additional", {"additionalProperties": {"type": "integer"}}, ['{"x":1,"x":2}'], ['{"x":"y"}']),
]


@pytest.mark.parametrize(("schema", "good", "bad"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.parametrize("with_library", [False, True], ids=["own", "library"])
def test_texts(schema: Any, good: list[str], bad: list[str], with_library: bool) -> None:
    judge(schema, good, bad, library() if with_library else None)
