"""Operations on languages against sets of strings, and the canonical form."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import pytest

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.regular import (
    ANY_CHAR,
    ANY_STRING,
    EMPTY_STRING,
    NOTHING,
    Budget,
    Dfa,
    accepts,
    classifier_from_transitions,
    classify,
    combine,
    complement,
    concatenate,
    dfa_from_transitions,
    difference,
    intersection,
    is_empty,
    is_universal,
    labelled,
    length_range,
    literal,
    longest_member,
    one_of,
    reclassify,
    repeat,
    shortest_members,
    strings,
    union,
)

WORDS = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]
SHORT = [w for w in WORDS if len(w) <= 3]


def members(dfa: Dfa) -> set[str]:
    return {w for w in WORDS if accepts(dfa, w)}


def random_set(r: random.Random) -> set[str]:
    return set(r.sample(SHORT, r.randrange(0, 6)))


@pytest.mark.parametrize("seed", range(40))
def test_boolean_operations_are_those_of_sets(seed: int) -> None:
    r = random.Random(seed)
    a, b = random_set(r), random_set(r)
    one, two = strings(a), strings(b)
    assert members(one) == a
    assert members(union(one, two)) == a | b
    assert members(intersection(one, two)) == a & b
    assert members(difference(one, two)) == a - b
    assert members(complement(one)) == set(WORDS) - a
    assert union(one, two) == strings(a | b)
    assert complement(complement(one)) == one
    assert combine([one, two], lambda held: held[0] != held[1]) == strings(a ^ b)


@pytest.mark.parametrize("seed", range(40))
def test_concatenation_and_repeats(seed: int) -> None:
    r = random.Random(seed)
    a, b = random_set(r), random_set(r)
    one = strings(a)
    assert members(concatenate(one, strings(b))) == {x + y for x in a for y in b} & set(WORDS)
    low, high = r.randrange(3), r.choice([2, 3, None])
    found = members(repeat(one, low, high))
    power = {""}
    expected: set[str] = set()
    for count in range(8 if high is None else high + 1):
        if count >= low:
            expected |= power
        power = {x + y for x in power for y in a if len(x + y) <= 5}
    assert found == expected


def test_a_repeat_counts_texts_and_not_passes_through_its_start() -> None:
    odd = concatenate(literal("a"), repeat(literal("aa"), 0, None))
    assert members(repeat(odd, 0, 1)) == {"", "a", "aaa", "aaaaa"}
    assert members(repeat(odd, 2, 2)) == {"aa", "aaaa"}


def test_equal_languages_are_equal_automata() -> None:
    one = union(repeat(strings(["a", "b"]), 0, None), literal("ab"))
    two = repeat(repeat(one_of(((97, 98),)), 0, 3), 0, None)
    assert one == two
    assert hash(one) == hash(two)
    assert one != repeat(one, 1, None) or accepts(one, "")
    assert length_range(2, 4) == repeat(ANY_CHAR, 2, 4)
    assert length_range(3, None) == repeat(ANY_CHAR, 3, None)


def test_nothing_and_everything() -> None:
    assert is_empty(NOTHING) and not is_empty(EMPTY_STRING)
    assert is_universal(ANY_STRING) and not is_universal(length_range(1, None))
    assert complement(NOTHING) == ANY_STRING
    assert complement(ANY_STRING) == NOTHING
    assert is_empty(intersection(literal("a"), literal("b")))
    assert is_empty(length_range(3, 2))
    assert is_empty(literal("\ud800"))
    assert union() == NOTHING and concatenate() == EMPTY_STRING
    assert repeat(NOTHING, 0, 3) == EMPTY_STRING


def label_by_sum(held: tuple[bool, ...]) -> int:
    return sum(held) - 1


@pytest.mark.parametrize("label", [label_by_sum, lambda held: 2 * held[0] + held[1], lambda held: 0 if held[2] else -1])
def test_classify_labels_by_what_holds(label: Callable[[tuple[bool, ...]], int]) -> None:
    languages = [strings(["a", "ab", "b"]), length_range(2, 3), repeat(literal("a"), 1, None)]
    found = classify(languages, label)
    for w in [*WORDS, "c", "ac"]:
        assert found.label(w) == max(-1, label(tuple(accepts(d, w) for d in languages)))
    assert labelled(found, lambda x: x == 0) == combine(languages, lambda held: label(held) == 0)
    assert reclassify(found, lambda x: x % 2).label("ab") == (found.label("ab") % 2 if found.label("ab") >= 0 else -1)


def test_states_that_lead_nowhere_are_removed() -> None:
    dfa = dfa_from_transitions([[(97, 97, 1), (98, 98, 2)], [], [(0, 255, 2)]], [1])
    assert dfa.n_states == 2
    assert dfa.transitions == (((97, 97, 1),), ())
    assert dfa == literal("a")


def test_hand_made_tables_are_checked() -> None:
    with pytest.raises(ValueError, match="share symbol"):
        dfa_from_transitions([[(1, 5, 0), (5, 6, 0)]], [0])
    with pytest.raises(ValueError, match="no state"):
        dfa_from_transitions([[(1, 5, 7)]], [0])
    with pytest.raises(ValueError, match="characters and over bytes"):
        union(literal("a"), literal(b"a"))
    found = classifier_from_transitions([[(0, 9, 1)], [(0, 4, 0)]], [3, 5], "bytes")
    assert [found.label(x) for x in (b"", b"\x05", b"\x05\x01", b"\x05\x09")] == [3, 5, 3, -1]


def test_a_big_enum_is_minimal_and_quick() -> None:
    r = random.Random(1)
    words = {"".join(r.choices("abcdefghijkl-", k=r.randrange(2, 12))) for _ in range(20_000)}
    before = time.process_time()
    dfa = strings(words)
    assert time.process_time() - before < 6
    assert all(accepts(dfa, w) for w in list(words)[:500])
    assert not any(accepts(dfa, w + "x") for w in list(words)[:500])
    suffixes = strings(x + "ending" for x in "abcdefgh")
    assert suffixes.n_states == 8


def test_limits_are_kept_and_named() -> None:
    with pytest.raises(LimitExceeded) as e:
        length_range(0, 5000, Budget(max_states=100))
    assert e.value.limit_name == "states"
    exploding = [repeat(literal("a" * p), 0, None) for p in (7, 11, 13, 17)]
    with pytest.raises(LimitExceeded) as e:
        intersection(*exploding, budget=Budget(max_states=3000, stage="here", pointer="/x", span=(1, 2)))
    found = e.value.diagnostics[0]
    assert (e.value.stage, found.pointer, found.span) == ("here", "/x", (1, 2))
    with pytest.raises(LimitExceeded) as e:
        intersection(*exploding, budget=Budget(deadline=now() - 1))
    assert e.value.limit_name == "compile_seconds"


def test_members_and_lengths() -> None:
    ab = repeat(strings(["a", "bb"]), 1, None)
    assert shortest_members(ab, 5) == ["a", "aa", "bb", "aaa", "abb"]
    assert shortest_members(strings(["x"]), 5) == ["x"]
    assert longest_member(ab) is None
    assert longest_member(strings(["a", "bcd", "bc"])) == 3
    assert longest_member(NOTHING) == -1
