"""Counted repeats against the same pattern written out, with counts large enough for every shortcut taken."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.compiler.regex import compile_pattern

ATOMS = ["a", "b", ".", "[ab]", "ab", "a|bc", "(?=a)[ab]", "a?", r"\bb", "(?<!a)b", "(?:^|a)"]


def repeated(r: random.Random, depth: int) -> tuple[str, str]:
    """A pattern with counts, and the same without."""
    if depth == 0:
        atom = r.choice(ATOMS)
        return f"(?:{atom})", f"(?:{atom})"
    if r.random() < 0.3:
        one, kind = repeated(r, depth - 1), r.choice(["?=", "?!", "?<=", "?<!"])
        rest = r.choice(["", "[ab]", "a|b"])
        return f"(?:({kind}{one[0]}){rest})", f"(?:({kind}{one[1]}){rest})"
    if r.random() < 0.4:
        one, two = repeated(r, depth - 1), repeated(r, depth - 1)
        middle = r.choice(["", "|", "c"])
        return f"(?:{one[0]}{middle}{two[0]})", f"(?:{one[1]}{middle}{two[1]})"
    counted, plain = repeated(r, depth - 1)
    low, more = r.randrange(4), r.choice([0, 1, 2, 5, 12, None])
    if more is None:
        return f"(?:{counted}){{{low},}}", plain * low + f"(?:{plain})*"
    optional = ""
    for _ in range(more):
        optional = f"(?:{plain}{optional})?"
    return f"(?:{counted}){{{low},{low + more}}}", plain * low + optional


@given(seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_counts_written_out(seed: int) -> None:
    r = random.Random(seed)
    counted, plain = repeated(r, r.randrange(1, 4))
    before, after = r.choice(["", "a", "[ab]*", "a.{0,9}", "(?=.{3,7}b)"]), r.choice(["", "b", "c?", "$"])
    if len(plain) < 3000:
        for mode in ("full", "search"):
            one = compile_pattern(before + counted + after, mode=mode)
            assert one == compile_pattern(before + plain + after, mode=mode), (counted, plain, mode)


def test_wide_counts_in_the_middle_of_a_search_stay_small() -> None:
    assert compile_pattern("a.{0,100}b", mode="search").n_states == 103
    assert compile_pattern("a.{2,60}b.{0,40}c", mode="search").n_states < 30_000
    assert compile_pattern("(.{0,30},){0,10}").n_states < 10_000


def test_wide_counts_in_lookarounds_under_repeats_stay_small() -> None:
    assert compile_pattern("((?!x.{0,60}y).)*").n_states == 62
    assert compile_pattern("((?=.{0,50}x)a|b)*x*").n_states == 52
    assert compile_pattern("((?<!x.{0,60})y|x|z)*").n_states == 62
