"""Strings of pattern tokens: a tree or a CompileError with a span, nothing else; Python's syntax exactly."""

from __future__ import annotations

import random
import re
import warnings

import pytest
import regress
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.regex import Dialect, parse_pattern

TOKENS = list("ab01,-^$.*+?(){}[]|\\# \né😀\ud800")
TOKENS += ["(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<n>", "(?P<n>", "(?i)", "(?i:", "(?x)", "{2}", "{1,2}", "{,2}"]
TOKENS += ["{2,}", "[^", "[a-", r"\d", r"\w", r"\b", r"\B", r"\p{L}", r"\u", r"\u0041", r"\x4", r"\x41", r"\c", r"\cA"]
TOKENS += [r"\0", r"\1", r"\8", r"\k<n>", r"\N{DIGIT ONE}", "(?>", "++", "*+", "?+", "(?#", "(?P=n)", "(?(1)", r"\Z"]
TOKENS += [r"\A", "(?-i:", "(?a:", "(?s-i:", r"\U0001F600", r"\-", r"\/", "(?P>", "(?L)", "(?ai)", "(?#\\)"]


def code_of(pattern: str, dialect: Dialect) -> Code | None:
    """What the parser refuses a pattern for; None: it doesn't."""
    try:
        parse_pattern(pattern, dialect)
    except CompileError as e:
        (found,) = e.diagnostics
        assert found.span is not None
        assert 0 <= found.span[0] <= found.span[1] <= len(pattern)
        return found.code
    return None


def random_pattern(seed: int) -> str:
    r = random.Random(seed)
    return "".join(r.choices(TOKENS, k=r.randrange(1, 7)))


@given(seed=st.integers(0, 2**40))
@settings(max_examples=1500, deadline=None)
def test_python_syntax(seed: int) -> None:
    pattern = random_pattern(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
            valid = True
        except (re.error, OverflowError):
            valid = False
    code = code_of(pattern, "python")
    if code != Code.UNSUPPORTED_PATTERN:
        assert valid == (code is None)


@given(seed=st.integers(0, 2**40))
@settings(max_examples=1500, deadline=None)
def test_ecma262_syntax(seed: int) -> None:
    pattern = random_pattern(seed)
    code = code_of(pattern, "ecma262")
    # regress repeats \b, which no grammar of the standard does, and has no lone surrogates.
    if code == Code.INVALID_SOURCE and not re.search(r"\\[bB][*+?{]|\ud800", pattern):
        with pytest.raises(regress.RegressError):
            regress.Regex(pattern, "u")
