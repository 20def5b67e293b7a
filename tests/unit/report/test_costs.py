"""Costs by place: they add up, the tree holds them all, and the picture is one well-formed file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from maskwright.compiler import Compiler, Report, Vocabulary
from maskwright.compiler.cost_picture import draw_costs
from maskwright.compiler.cost_tree import MEASURES, Node, cost_tree, tree_lines

SCHEMA = {
    "type": "object",
    "properties": {
        "who": {"$ref": "#/$defs/person"},
        "lines": {
            "type": "array",
            "items": {"properties": {"code": {"pattern": "^[A-Z]{3}-[0-9]{4}$"}, "a/b": {"enum": ["<x>", "y"]}}},
        },
    },
    "$defs": {"person": {"type": "object", "properties": {"age": {"type": "integer", "maximum": 150}}}},
}


@pytest.fixture(scope="module")
def report() -> Report:
    return Compiler(Vocabulary.demo()).compile_json_schema(SCHEMA).report


def nodes(root: Node) -> list[Node]:
    out = [root]
    for node in out:
        out += node.below
    return out


def test_costs_add_up(report: Report) -> None:
    assert sum(c.bytes for c in report.costs) == report.artifact_bytes
    assert sum(c.states for c in report.costs) == report.states
    assert 0 < sum(c.rows for c in report.costs) <= report.masks
    assert [c.pointer for c in report.costs] == sorted({c.pointer for c in report.costs})
    places = {c.pointer for c in report.costs}
    assert {"", "/properties/lines", "/properties/lines/items", "/$defs/person"} <= places


def test_tree_holds_every_place_once(report: Report) -> None:
    costs = report.to_json()["costs"]
    found = nodes(cost_tree(costs))
    assert sorted(n.pointer for n in found) == sorted(c["pointer"] for c in costs)
    for node in found:
        for measure in MEASURES:
            assert node.total[measure] == node.own[measure] + sum(n.total[measure] for n in node.below)
        assert all(n.pointer.startswith(node.pointer + "/") for n in node.below)
        totals = [n.total["bytes"] for n in node.below]
        assert totals == sorted(totals, reverse=True)


def test_lines(report: Report) -> None:
    tree = cost_tree(report.to_json()["costs"])
    lines = tree_lines(tree)
    assert len(lines) == 1 + len(nodes(tree))
    assert f"{report.artifact_bytes:,}" in lines[1]
    assert any("items" in line for line in lines)


def test_wide_levels_are_cut_and_say_so() -> None:
    costs = [{"pointer": f"/properties/p{i}", "frames": ["x"], "states": 1, "rows": 1, "bytes": i} for i in range(500)]
    lines = tree_lines(cost_tree(costs), most=20)
    assert len(lines) < 25
    assert any(line.endswith("more") for line in lines)


def test_picture(report: Report) -> None:
    costs = report.to_json()["costs"]
    text = draw_costs(cost_tree(costs), "a <schema> & more.json")
    root = ElementTree.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{name}rect")) == len(costs)
    titles = {t.text.partition(":")[0] for t in root.findall(f".//{name}title") if t.text}
    assert titles == {c["pointer"] or "the whole source" for c in costs}
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    widths = [float(r.attrib["x"]) + float(r.attrib["width"]) for r in root.findall(f".//{name}rect")]
    assert max(widths) <= float(root.attrib["width"])


def test_places_in_a_list_of_tools() -> None:
    parameters = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    report = Compiler(Vocabulary.demo()).compile_tools(tools).report
    places = {c.pointer for c in report.costs}
    below = {p for p in places if p}
    assert below
    prefixes = {t[0] for t in report.treatment}
    assert all(any(t.startswith(p) for t in prefixes) for p in below)
    assert any(p.endswith("/parameters/properties/n") for p in below)


def test_small_places_are_counted_not_drawn() -> None:
    large: list[dict[str, Any]] = [{"pointer": "", "frames": [], "states": 1, "rows": 1, "bytes": 10**6}]
    small = [{"pointer": f"/p{i}", "frames": [], "states": 1, "rows": 1, "bytes": 1} for i in range(5)]
    text = draw_costs(cost_tree(large + small), "x")
    assert text.count("<rect") == 1
    assert "5 places too small to draw" in text
