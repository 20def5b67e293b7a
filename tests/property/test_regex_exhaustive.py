"""All small patterns against all short texts, in both dialects, searched and matched whole."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regex_patterns import TEXTS, disagreements, medium_patterns, small_patterns

from maskwright.compiler.regex import Dialect

MEDIUM = medium_patterns()


@pytest.mark.parametrize("dialect", ["ecma262", "python"])
def test_all_small_patterns(dialect: Dialect) -> None:
    assert [d for p in small_patterns() for d in disagreements(p, dialect, TEXTS)] == []


@given(st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None)
def test_samples_of_the_medium_ones(r: random.Random) -> None:
    for pattern in r.sample(MEDIUM, 40):
        assert disagreements(pattern, "ecma262", TEXTS) == []
        assert disagreements(pattern, "python", TEXTS) == []
