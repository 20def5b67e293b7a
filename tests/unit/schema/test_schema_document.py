"""Documents: where references lead, which sub-schemas are the same, in which order properties come."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.compiler.diagnostics import Diagnostic
from maskwright.compiler.options import CompileOptions, Limits
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


def test_dynamic_references_with_one_target_are_static() -> None:
    one = Document({"$id": "http://x.y/t", "$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}})
    assert one.references(one.schemas["/items"]) == [one.root]
    two = Document(
        {
            "$id": "http://x.y/t",
            "$dynamicAnchor": "node",
            "items": {"$dynamicRef": "#node"},
            "$defs": {"o": {"$id": "o", "$dynamicAnchor": "node"}},
        }
    )
    assert two.references(two.schemas["/items"]) == [None]


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
