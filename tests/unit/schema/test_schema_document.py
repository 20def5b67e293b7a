"""Documents: where references lead, which sub-schemas are the same, in which order properties come."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.compile import source_digest
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema import compile_schema
from maskwright.compiler.schema.document import Document, Schema
from maskwright.compiler.schema.formula import Space
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.lower import Lowering

LIBRARY: Any = {
    "$id": "http://x.y/root.json",
    "$defs": {
        "a": {"$id": "a.json", "$defs": {"k": {"$anchor": "here"}}},
        "b": {"$id": "urn:uuid:1", "properties": {"a/b": True, "%": {}}},
        "c": {"const": {"$id": "not-a-schema"}},
    },
}


@pytest.mark.parametrize(
    ("reference", "pointer"),
    [
        ("", ""),
        ("#", ""),
        ("#/$defs/a", "/$defs/a"),
        ("a.json", "/$defs/a"),
        ("http://x.y/a.json#", "/$defs/a"),
        ("a.json#/$defs/k", "/$defs/a/$defs/k"),
        ("a.json#here", "/$defs/a/$defs/k"),
        ("urn:uuid:1#/properties/a~1b", "/$defs/b/properties/a~1b"),
        ("#/$defs/b/properties/%25", "/$defs/b/properties/%"),
    ],
)
def test_references(reference: str, pointer: str) -> None:
    document = Document(LIBRARY)
    found = document.resolve(document.root, reference)
    assert isinstance(found, Schema)
    assert found.pointer == pointer


@pytest.mark.parametrize(
    "reference", ["#/nope", "#here", "b.json", "not-a-schema", "#/$defs/c/const/$id", "http://[", "#/$defs/x/0"]
)
def test_references_that_lead_nowhere(reference: str) -> None:
    document = Document(LIBRARY)
    assert isinstance(document.resolve(document.root, reference), Diagnostic)


def test_equal_schemas_have_one_signature() -> None:
    document = Document(
        {
            "properties": {
                "a": {"type": "object", "title": "A", "properties": {"title": {"minimum": 1}}},
                "b": {"type": "object", "description": "B", "properties": {"title": {"minimum": 1, "x-note": 3}}},
                "c": {"type": "object", "properties": {"title": {"minimum": 2}}},
                "d": {"type": "object", "properties": {}},
            }
        }
    )
    a, b, c, d = (document.signature(document.schemas[f"/properties/{n}"]) for n in "abcd")
    assert a == b
    assert len({a, c, d}) == 3


TREE: Any = {
    "$id": "http://x.y/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"below": {"type": "array", "items": {"$dynamicRef": "#node"}}, "data": True},
}
STRICT: Any = {
    "$id": "http://x.y/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
}


def test_a_dynamic_reference_leads_to_the_outermost_anchor_of_each_context() -> None:
    document = Document(STRICT, resources={"http://x.y/tree": TREE})
    (tree,) = document.references(document.root)
    assert isinstance(tree, Schema)
    assert tree.pointer == "http://x.y/tree#"
    below = document.child(document.child(tree, "properties", "below"), "items")
    assert document.references(below) == [document.root]
    alone = Document(TREE)
    assert alone.references(alone.child(alone.child(alone.root, "properties", "below"), "items")) == [alone.root]


def test_dynamic_references_are_enforced() -> None:
    supplied = {"http://x.y/tree": json.dumps(TREE)}
    good, bad = b'{"below": [{"below": [], "data": 1}]}', b'{"below": [{"belw": []}]}'
    strict = compile_schema(json.dumps(STRICT), resources=supplied).automaton
    loose = compile_schema({"$ref": "http://x.y/tree"}, resources=supplied).automaton
    assert [accepts(strict, good), accepts(strict, bad)] == [True, False]
    assert [accepts(loose, good), accepts(loose, bad)] == [True, True]


def test_recursive_references_go_out_only_through_marked_schemas() -> None:
    draft = "https://json-schema.org/draft/2019-09/schema"
    tree = {"$id": "http://x.y/t", "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}, "type": "array"}
    for marked in (True, False):
        schema = {"$schema": draft, "$id": "http://x.y/s", "$ref": "t", "maxItems": 1, "$recursiveAnchor": marked}
        automaton = compile_schema(schema, resources={"http://x.y/t": {"$schema": draft, **tree}}).automaton
        assert accepts(automaton, b"[[[]]]")
        assert accepts(automaton, b"[[[], []]]") is not marked


# -- resources -------------------------------------------------------------------------------------


def test_references_into_supplied_resources() -> None:
    supplied = {
        "http://x.y/a.json": {"$defs": {"n": {"type": "integer", "minimum": 1}}, "$ref": "b.json#word"},
        "http://x.y/b.json": '{"$defs": {"w": {"$anchor": "word", "type": "string", "maxLength": 2}}}',
        "http://x.y/unused.json": b'{"type": "nonsense"}',
    }
    schema = {"prefixItems": [{"$ref": "http://x.y/a.json"}, {"$ref": "http://x.y/a.json#/$defs/n"}], "items": False}
    automaton = compile_schema(schema, resources=supplied).automaton
    assert accepts(automaton, b'["ab", 1]')
    assert not accepts(automaton, b'["abc", 1]')
    assert not accepts(automaton, b'["ab", 0]')


def test_an_identifier_inside_a_supplied_resource_is_found() -> None:
    supplied = {"http://x.y/all.json": {"$defs": {"n": {"$id": "http://z.z/n", "const": 1}}}}
    automaton = compile_schema({"$ref": "http://z.z/n"}, resources=supplied).automaton
    assert accepts(automaton, b"1")
    assert not accepts(automaton, b"2")


@pytest.mark.parametrize(
    "draft", ["draft-04/schema#", "draft-07/schema#", "draft/2019-09/schema", "draft/2020-12/schema"]
)
def test_the_drafts_meta_schemas_are_known(draft: str) -> None:
    uri = f"{'https' if '20' in draft else 'http'}://json-schema.org/{draft}"
    options = CompileOptions(formats="annotate", residual="allow")
    automaton = compile_schema({"$schema": uri, "$ref": uri}, options).automaton
    assert accepts(automaton, b'{"properties": {"a": {"minLength": 1}}}')
    assert not accepts(automaton, b'{"properties": {"a": {"minLength": "1"}}}')


def test_faults_in_a_resource_name_it() -> None:
    with pytest.raises(CompileError) as caught:
        compile_schema({"$ref": "http://x.y/a"}, resources={"http://x.y/a": {"items": {"type": "nonsense"}}})
    (found,) = caught.value.diagnostics
    assert (found.code, found.source, found.pointer) == (Code.INVALID_SOURCE, "http://x.y/a", "/items/type")
    with pytest.raises(CompileError) as caught:
        compile_schema({"$ref": "http://x.y/a"}, resources={"http://x.y/a": "{", "": True, "a#b": True})
    assert [d.source for d in caught.value.diagnostics] == ["http://x.y/a", None, None]


def test_a_missing_resource_is_residual() -> None:
    schema = {"properties": {"a": {"$ref": "http://x.y/a"}, "b": {"type": "integer"}}, "type": "object"}
    with pytest.raises(CompileError) as caught:
        compile_schema(schema)
    (found,) = caught.value.diagnostics
    assert (found.code, found.pointer) == (Code.UNRESOLVED_REFERENCE, "/properties/a/$ref")
    result = compile_schema(schema, CompileOptions(residual="allow"))
    assert ("/properties/a/$ref", "$ref", "residual") in result.treatment
    assert accepts(result.automaton, b'{"a": 1}')
    assert not accepts(result.automaton, b'{"b": "x"}')


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"not": {"$ref": "urn:x"}}, {"/not/$ref"}),
        ({"oneOf": [{"$ref": "urn:x"}, {"type": "integer"}]}, {"/oneOf/0/$ref", "/oneOf"}),
        ({"if": {"$ref": "urn:x"}, "then": {"type": "integer"}}, {"/if/$ref", "/if"}),
        ({"items": {"anyOf": [{"$ref": "urn:x"}, {"type": "null"}]}}, {"/items/anyOf/0/$ref"}),
        ({"not": {"not": {"$ref": "urn:x"}}}, {"/not/not/$ref"}),
        (
            {"$ref": "#/$defs/d", "not": {"$ref": "#/$defs/d"}, "$defs": {"d": {"$ref": "urn:x"}}},
            {"/$defs/d/$ref", "/not/$ref"},
        ),
        (
            {"allOf": [{"$ref": "urn:x"}], "unevaluatedProperties": False},
            {"/allOf/0/$ref", "/unevaluatedProperties"},
        ),
        ({"contains": {"$ref": "urn:x"}, "maxContains": 1}, {"/contains/$ref", "/contains"}),
    ],
)
def test_what_a_residual_keyword_makes_residual(schema: Any, left: set[str]) -> None:
    """Nothing that may be valid is blocked: the keyword around it is left to validation where need be."""
    result = compile_schema(schema, CompileOptions(residual="allow"))
    assert {p for p, _, how in result.treatment if how == "residual"} == left
    for text in ("1", '"a"', "null", '{"a": 1}', "[1, 1]"):
        assert accepts(result.automaton, text.encode())


def test_the_source_digest_covers_resources_and_spellings_that_a_float_does_not_hold() -> None:
    def digest(source: Any, resources: Any = None) -> str:
        return source_digest("json_schema", source, resources)

    assert digest('{"minimum": 0.1, "maximum": 2}') == digest({"minimum": 0.1, "maximum": 2})
    assert digest('{"minimum": 0.1}') != digest('{"minimum": 0.1000000000000000055}')
    one, two = {"$ref": "urn:x"}, {"urn:x": True}
    assert digest(one) == digest(one, {}) != digest(one, two)
    assert digest(one, two) != digest(one, {"urn:x": False})
    assert digest(one, {"urn:a": True, "urn:b": False}) == digest(one, {"urn:b": "false", "urn:a": b"true"})


# -- names -----------------------------------------------------------------------------------------


def test_names_given_twice_are_reported_and_can_not_be_referred_to() -> None:
    schema: Any = {"$defs": {"a": {"$anchor": "x", "const": 1}, "b": {"$anchor": "x", "const": 2}}}
    result = compile_schema(schema)
    (note,) = result.notes
    assert (note.severity, note.pointer, note.detail["first"]) == ("warning", "/$defs/b", "/$defs/a")
    with pytest.raises(CompileError) as caught:
        compile_schema({**schema, "$ref": "#x"})
    assert caught.value.diagnostics[0].code is Code.UNRESOLVED_REFERENCE
    twice = {"$defs": {"a": {"$id": "http://x.y/a"}, "b": {"$id": "http://x.y/a"}}}
    assert [n.pointer for n in compile_schema(twice).notes] == ["/$defs/b"]
    with pytest.raises(CompileError):
        compile_schema({**twice, "$ref": "http://x.y/a"})


def test_a_pointer_in_one_of_two_resources_of_one_name_stays_there() -> None:
    parts = {n: {"$id": "http://x.y/a", "$defs": {"v": {"const": n}}, "$ref": "#/$defs/v"} for n in "ab"}
    automaton = compile_schema({"properties": parts}).automaton
    assert accepts(automaton, b'{"a": "a", "b": "b"}')
    assert not accepts(automaton, b'{"a": "b"}')


def test_keys_that_are_not_strings() -> None:
    with pytest.raises(CompileError) as caught:
        compile_schema({"properties": {"a": {"enum": [{1: 2}]}}})
    (found,) = caught.value.diagnostics
    assert (found.code, found.pointer) == (Code.INVALID_SOURCE, "/properties/a/enum/0")


# -- dialects --------------------------------------------------------------------------------------

META: Any = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "http://x.y/meta",
    "$vocabulary": {
        "https://json-schema.org/draft/2020-12/vocab/core": True,
        "https://json-schema.org/draft/2020-12/vocab/applicator": True,
        "http://x.y/vocab/optional": False,
    },
}


def test_keywords_of_vocabularies_left_out_have_no_force() -> None:
    schema = {"$schema": "http://x.y/meta", "properties": {"a": {"minimum": 3}, "b": False}}
    result = compile_schema(schema, resources={"http://x.y/meta": META})
    assert accepts(result.automaton, b'{"a": 1}')
    assert not accepts(result.automaton, b'{"b": 1}')
    assert ("/properties/a/minimum", "minimum", "annotation") in result.treatment


def test_a_vocabulary_that_is_required_and_unknown() -> None:
    meta = {**META, "$vocabulary": {**META["$vocabulary"], "http://x.y/vocab/other": True}}
    with pytest.raises(CompileError) as caught:
        compile_schema({"$schema": "http://x.y/meta"}, resources={"http://x.y/meta": meta})
    (found,) = caught.value.diagnostics
    assert (found.code, found.pointer) == (Code.UNSUPPORTED_KEYWORD, "/$schema")


def test_a_dialect_that_asserts_formats() -> None:
    uri = "https://json-schema.org/draft/2020-12/vocab/format-assertion"
    meta = {**META, "$vocabulary": {**META["$vocabulary"], uri: True}}
    schema = {"$schema": "http://x.y/meta", "format": "ipv4"}
    options = CompileOptions(formats="annotate")
    automaton = compile_schema(schema, options, resources={"http://x.y/meta": meta}).automaton
    assert accepts(automaton, b'"127.0.0.1"')
    assert not accepts(automaton, b'"127.0.0.256"')


def test_an_unknown_schema_of_schemas_is_reported() -> None:
    result = compile_schema({"$schema": "http://x.y/unknown", "type": "integer"})
    assert [(n.severity, n.pointer) for n in result.notes] == [("warning", "/$schema")]


@pytest.mark.parametrize(("draft", "taken"), [("4", True), ("6", False), ("2020-12", False)])
def test_the_draft_of_schemas_that_name_none(draft: Any, taken: bool) -> None:
    automaton = compile_schema({"const": 1}, CompileOptions(draft=draft)).automaton
    assert accepts(automaton, b"2") is taken
    named = compile_schema(
        {"$schema": "http://json-schema.org/draft-07/schema#", "const": 1}, CompileOptions(draft=draft)
    )
    assert not accepts(named.automaton, b"2")


def test_property_order() -> None:
    schema = {
        "required": ["r", "b"],
        "allOf": [{"properties": {"b": {}, "a": {}}, "required": ["s"]}, {"$ref": "#/$defs/x"}],
        "properties": {"z": {}, "y": {}},
        "dependentRequired": {"q": ["p"]},
        "if": {"properties": {"i": {}}},
        "const": {"k": 1},
        "$defs": {"x": {"properties": {"x": {}, "z": {}}}},
    }
    document = Document(schema)
    options = CompileOptions()
    space = Space()
    lowering = Lowering(document, space, Languages(space, options, Limits(), None))
    names = lowering.order(document.root).names()
    assert names == ("z", "y", "k", "b", "a", "x", "i", "r", "p", "q", "s")


@pytest.mark.parametrize("source", [True, "true", b"true"])
def test_a_schema_may_be_a_boolean(source: Any) -> None:
    automaton = compile_schema(source, CompileOptions(), Limits()).automaton
    assert accepts(automaton, b'[1, {"a": null}]') and not accepts(automaton, b"[1,]")
