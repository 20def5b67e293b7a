"""How long texts can be, also where returns push: a grammar's reductions do, and may come back to themselves."""

from __future__ import annotations

import pytest

from maskwright.compiler import Compiler, Vocabulary

SUM = """
start: sum
sum: sum "+" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")"
NUMBER: /0|[1-9][0-9]*/
"""


@pytest.mark.parametrize(
    ("grammar", "least", "most"),
    [
        ('start: "a" b\nb: "x" | "yy"', 2, 3),
        ('start: a a a\na: b | "(" b ")"\nb: "x" | "yy"', 3, 12),
        ("start: item\nitem: pair\npair: one\none: /[ab]{2,5}/", 2, 5),
        ('start: list\nlist: list "," "x" | "x"', 1, None),
        ('start: list\nlist: "x" "," list | "x"', 1, None),
        ('start: nest\nnest: "(" nest ")" | "[" "]"', 2, None),
        (SUM, 1, None),
    ],
)
def test_grammars(grammar: str, least: int, most: int | None) -> None:
    report = Compiler(Vocabulary.demo()).compile_lark(grammar).report
    assert (report.min_bytes, report.max_bytes) == (least, most)
