"""Patterns that are hard for other engines: small automata where they're small, a limit with its span where not."""

from __future__ import annotations

import time

import pytest

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import literal, shortest_members, to_bytes

LONG = Limits(pattern_length=1_000_000)
# The dead state isn't stored: a complete automaton has one state more.
STATES = [
    ("(x+x+)+y", 4),
    ("(a?){500}a{500}", 1001),
    ("[ab]*a[ab]{13}", 16_384),
    ("(a*)*b", 2),
    ("(a|a)*", 1),
    ("(a|aa)+$", 2),
    ("((a{0,5}){0,5}){0,5}", 126),
    ("(.*)(.*)(.*)(.*)(.*)x", 2),
    (r"^(?:(?:a|b)(?:c|d)){50}$", 101),
    ("(?:){1000000}", 1),
]


@pytest.mark.parametrize(("pattern", "states"), STATES)
def test_states(pattern: str, states: int) -> None:
    assert compile_pattern(pattern).n_states == states


# As textbooks count: complete over the pattern's own letters, with the dead state where some letter leads nowhere.
COMPLETE = [("(x+x+)+y", "xy", 5), ("(a?){500}a{500}", "a", 1002), ("[ab]*a[ab]{13}", "ab", 16_384)]


@pytest.mark.parametrize(("pattern", "letters", "states"), COMPLETE)
def test_states_with_the_dead_one(pattern: str, letters: str, states: int) -> None:
    dfa = compile_pattern(pattern)
    dead = any(dfa.step(s, ord(c)) < 0 for s in range(dfa.n_states) for c in letters)
    assert dfa.n_states + dead == states


def test_what_is_large_is_refused_soon_under_the_default_limits() -> None:
    before = time.process_time()
    with pytest.raises(LimitExceeded) as e:
        compile_pattern("[ab]*a[ab]{20}")
    assert (e.value.limit_name, e.value.diagnostics[0].span) == ("states", (6, 14))
    assert time.process_time() - before < 5


def test_counts_inside_counts_compile_under_the_default_limits() -> None:
    dfa = compile_pattern("(.{0,100},){0,10}")
    assert dfa.label("a,,b" * 4 + ",") == 0
    assert dfa.label("," * 10 + "a,") == 0  # the dot takes commas too
    assert dfa.label("a" * 101 + ",") == dfa.label("a" * 400) == -1


def test_a_search_needs_no_more_than_the_least_count() -> None:
    assert compile_pattern(".{0,65536}foo", mode="search") == compile_pattern("foo", mode="search")
    assert compile_pattern("a{3,100000}", mode="search") == compile_pattern("aaa", mode="search")


TOO_BIG = [
    ("[ab]*a[ab]{20}", "states", (6, 14)),
    ("x[ab]*a[ab]{16}b{1,2}c|d", "states", (7, 15)),
    ("ab(?:c{1000}){1000}", "positions", (2, 19)),
    ("a{0,99999999999999999999}b", "positions", (0, 25)),
    ("(?:(?:(?:^){1000}){1000}){1000}", "visits", (0, 31)),
    ("(?=" * 30 + "a" + ")" * 30, "lookaround_nesting", (27, 112)),
]


@pytest.mark.parametrize(("pattern", "name", "span"), TOO_BIG)
def test_refusals_name_the_limit_and_the_part(pattern: str, name: str, span: tuple[int, int]) -> None:
    before = time.process_time()
    with pytest.raises(LimitExceeded) as e:
        compile_pattern(pattern, limits=Limits(states=100_000), pointer="/p")
    found = e.value.diagnostics[0]
    assert (e.value.limit_name, found.span, found.pointer) == (name, span, "/p")
    assert time.process_time() - before < 5


def test_a_state_explosion_that_is_cut_off() -> None:
    with pytest.raises(LimitExceeded) as e:
        compile_pattern("(.{0,100},){0,10}", limits=Limits(states=30_000))
    assert e.value.limit_name == "states"


def test_the_deadline_is_kept() -> None:
    before = time.monotonic()
    with pytest.raises(LimitExceeded) as e:
        compile_pattern("[ab]*a[ab]{30}", limits=Limits(states=10**9), deadline=now() + 0.2)
    assert e.value.limit_name == "compile_seconds"
    assert time.monotonic() - before < 5


def test_the_pattern_length_is_limited() -> None:
    with pytest.raises(LimitExceeded) as e:
        compile_pattern("a" * 20_001)
    assert e.value.limit_name == "pattern_length"


@pytest.mark.parametrize(
    ("opening", "depth"), [("(", 60_000), ("(?:", 60_000), ("(?i:", 60_000), ("(?:x|", 10_000), ("(?:x?", 1_000)]
)
def test_nesting_is_not_limited_by_recursion(opening: str, depth: int) -> None:
    deep = opening * depth + "a" + ")" * depth
    dfa = compile_pattern(deep, limits=Limits(pattern_length=1_000_000, states=100_000))
    assert dfa.label("a") == 0


def test_nested_repeats_and_lookarounds_do_not_recurse() -> None:
    deep = "(?:" * 5_000 + "a" + "b){1}" * 5_000
    assert compile_pattern(deep, limits=LONG) == literal("a" + "b" * 5_000)
    chain = "(?=a)" * 300 + "a"
    assert compile_pattern(chain, limits=LONG) == literal("a")


def test_a_long_alternation() -> None:
    words = [f"literal{i}-{i * i * 7919}" for i in range(1200)]
    before = time.process_time()
    dfa = compile_pattern("|".join(words), limits=LONG)
    assert time.process_time() - before < 4
    assert all(dfa.label(w) == 0 for w in words)
    assert dfa.label("literal0") == -1


def test_a_password_rule() -> None:
    pattern = r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[@$!%*?&])[A-Za-z\d@$!%*?&]{8,}$"
    dfa = compile_pattern(pattern, mode="search")
    assert dfa.n_states == 76
    assert all(dfa.label(m) == 0 for m in ["aA1!aaaa", "!!!!!0Aa"])
    assert all(dfa.label(m) == -1 for m in ["aA1!aaa", "aaaaaaaa", "aA1aaaaa"])


def test_quotes_and_backslashes_are_matched_by_their_escapes() -> None:
    found = to_bytes(compile_pattern(r'^"\\é$', mode="search"), "json")
    assert found.label(rb"\"\\\u00e9") == 0
    assert found.label(r"\u0022\u005Cé".encode()) == 0
    assert found.label(rb'"\\\u00e9') == -1
    assert shortest_members(found, 1) == [r"\"\\é".encode()]
