"""The report of one pattern."""

from __future__ import annotations

from maskwright.compiler.regex.report import report_pattern


def test_a_report() -> None:
    assert str(report_pattern("a|é{2}")) == (
        "alternation  0..6\n"
        "  chars [a]  0..1\n"
        "  repeat 2..2  2..6\n"
        "    chars [\\xe9]  2..3\n"
        "\n"
        "states: 3 over characters, 5 over UTF-8 bytes, 16 inside a JSON string\n"
        "length: at most 2 characters\n"
        "shortest, a character for its whole class: 'a', 'éé'"
    )


def test_a_report_of_nothing_and_of_everything() -> None:
    assert str(report_pattern("a^b")).endswith("nothing matches")
    found = report_pattern("", mode="search")
    assert found.longest is None
    assert found.members[:2] == ("", "a")
    assert "length: unbounded" in str(found)
