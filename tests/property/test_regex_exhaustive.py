"""Every small pattern on every text up to six characters, in both dialects, searched and matched whole.

What runs by default: all patterns of one operation on one or two of 13 atoms (439), and all of two operations on one
to three of four atoms (some 1,800). With MASKWRIGHT_EXHAUSTIVE=1 it's all of two operations on all 13 atoms, some
24,000 patterns on 1,093 texts in four ways: a hundred million judgements, a few minutes.
"""

from __future__ import annotations

import os

import pytest
from regex_patterns import AllTexts, medium_patterns, oracle, small_patterns

from maskwright.compiler.regex import Dialect

TEXTS = AllTexts("ab\n", 6)
FEW_ATOMS = ["a", ".", "^", r"\b"]
EVERYTHING = os.environ.get("MASKWRIGHT_EXHAUSTIVE") == "1"
PATTERNS = medium_patterns() if EVERYTHING else [*small_patterns(), *medium_patterns(FEW_ATOMS)]


@pytest.mark.parametrize("dialect", ["ecma262", "python"])
def test_all_patterns_on_all_texts(dialect: Dialect) -> None:
    assert len(TEXTS.texts) == 1 + 3 + 9 + 27 + 81 + 243 + 729
    assert [d for p in PATTERNS for d in TEXTS.disagreements(p, dialect)] == []


@pytest.mark.parametrize("dialect", ["ecma262", "python"])
def test_the_oracle_takes_most_of_them(dialect: Dialect) -> None:
    assert sum(oracle(p, dialect) is not None for p in PATTERNS) > 0.6 * len(PATTERNS)
