"""Drawings are well formed and show every state and edge."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import length_range, to_bytes
from maskwright.compiler.regular.drawing import describe_transitions, to_dot, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_dot() -> None:
    assert to_dot(compile_pattern('a[b-d]*"')) == (
        "digraph automaton {\n"
        "  rankdir=LR;\n"
        '  start [shape=point, label=""];\n'
        "  start -> 0;\n"
        '  0 [shape=circle, label="0"];\n'
        '  1 [shape=circle, label="1"];\n'
        '  2 [shape=doublecircle, label="2"];\n'
        '  0 -> 1 [label="a"];\n'
        '  1 -> 2 [label="\\""];\n'
        '  1 -> 1 [label="b-d"];\n'
        "}\n"
    )


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "a<&>b", "[^a]*é?", "", "(?:ab|cd){2}"])
def test_svg(pattern: str) -> None:
    for dfa in (compile_pattern(pattern), to_bytes(compile_pattern(pattern), "utf8")):
        root = ElementTree.fromstring(to_svg(dfa))
        edges = {(s, t) for s, row in enumerate(dfa.transitions) for _, _, t in row}
        assert len(root.findall(f"{SVG}circle")) == dfa.n_states + len(dfa.accepting)
        assert len(root.findall(f"{SVG}path")) == len(edges) + 1
        assert len([t for t in root.findall(f"{SVG}text") if t.get("class") == "label"]) == len(edges)


def test_too_many_states() -> None:
    with pytest.raises(ValueError, match="too many to draw"):
        to_svg(length_range(0, 1000))
    with pytest.raises(ValueError, match="too many to draw"):
        to_dot(length_range(0, 1000))


def test_sets_are_written_as_in_brackets() -> None:
    assert describe_transitions([(97, 99, 0), (45, 45, 0), (0xE9, 0xE9, 0)], "chars") == "\\-a-cé"
    assert describe_transitions([(0, 10, 0), (0xC3, 0xC4, 0)], "bytes") == "\\x00-\\n\\xc3\\xc4"
    assert describe_transitions([(10, 10, 0), (97, 97, 0)], "chars") == "a\\n"


def test_large_sets_are_written_by_what_is_missing() -> None:
    (row, _) = compile_pattern(".").transitions
    assert describe_transitions(row, "chars") == r"not \n\r\u{2028}\u{2029}"
    assert describe_transitions([(0, 0x60, 0), (0x62, 0xFF, 0)], "bytes") == "not a"
    assert describe_transitions([(0, 0xFF, 0)], "bytes") == "any"


def test_what_is_cut_from_a_label_is_in_its_tooltip() -> None:
    drawing = to_svg(compile_pattern("[acegikmoqsuwy024]"))
    assert "<title>024acegikmoqsuwy</title>024acegikmoqs…" in drawing
    assert "024acegikmoqsuwy" in to_dot(compile_pattern("[acegikmoqsuwy024]"))
    assert "<title>" not in to_svg(compile_pattern("[aceg]"))


def test_everything_is_inside_the_drawing_and_labels_apart() -> None:
    for pattern in (r"(?:foo|bar|bazz?)+", r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", "(?:a|bc|def|ghij)*k"):
        root = ElementTree.fromstring(to_svg(compile_pattern(pattern)))
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        places = [(float(t.attrib["x"]), float(t.attrib["y"])) for t in root.findall(f"{SVG}text")]
        assert all(left < x < left + width and top + 8 < y < top + height - 4 for x, y in places)
        assert all(abs(x - u) > 12 or abs(y - v) > 8 for i, (x, y) in enumerate(places) for u, v in places[:i])
