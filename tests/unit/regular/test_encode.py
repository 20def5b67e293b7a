"""Encodings: every spelling is judged as the text that json.loads or UTF-8 makes of it; results are minimal."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator

import pytest

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.regular import (
    ANY_STRING,
    NOTHING,
    Budget,
    Dfa,
    classify,
    concatenate,
    length_range,
    literal,
    one_of,
    repeat,
    strings,
    to_bytes,
    union,
)
from maskwright.compiler.regular.codepoints import normalise
from maskwright.compiler.regular.minimise import canonical

EDGES = [0, 1, 8, 9, 10, 0x1F, 0x20, 0x22, 0x2F, 0x41, 0x5C, 0x61, 0x6E, 0x75, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF]
EDGES += [0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x1F600, 0x10FFFF]
BITS = ["\\", "u", "0", "d", "8", "D", "c", '"', "n", "a", "\x7f", "/", "é", "\x1f", "B", "3", "\\ud83d", "\\ude00"]


def spellings(code: int) -> Iterator[str]:
    """JSON spellings of a character: by escape in both cases, canonical, with an escaped slash."""
    units = chr(code).encode("utf-16-be").hex()
    escape = "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4))
    yield escape
    yield "\\u".join(x.upper() for x in escape.split("\\u"))
    yield json.dumps(chr(code), ensure_ascii=False)[1:-1]
    if code == 0x2F:
        yield "\\/"


def random_language(r: random.Random) -> Dfa:
    def chars() -> Dfa:
        lows = [r.choice(EDGES) for _ in range(r.randrange(1, 5))]
        return one_of(normalise((a, min(0x10FFFF, a + r.choice([0, 0, 1, 5, 100, 70_000]))) for a in lows))

    return union(concatenate(chars(), chars()), repeat(chars(), 0, r.choice([1, 2, None])), chars())


def random_text(r: random.Random) -> str:
    codes = [r.choice([*EDGES, r.randrange(0xD800), r.randrange(0xE000, 0x110000)]) for _ in range(r.randrange(3))]
    return "".join(map(chr, codes))


@pytest.mark.parametrize("seed", range(60))
def test_spellings_are_judged_as_their_text(seed: int) -> None:
    r = random.Random(seed)
    language = random_language(r)
    utf8, loose, strict = (to_bytes(language, e) for e in ("utf8", "json", "json_canonical"))
    for _ in range(40):
        text = random_text(r)
        wanted = language.label(text)
        assert utf8.label(text.encode()) == wanted
        canonical_text = json.dumps(text, ensure_ascii=False)[1:-1]
        assert strict.label(canonical_text.encode()) == wanted
        for parts in itertools.product(*(list(spellings(ord(c))) for c in text)):
            spelled = "".join(parts)
            assert loose.label(spelled.encode()) == wanted
            if spelled != canonical_text:
                assert strict.label(spelled.encode()) == -1


@pytest.mark.parametrize("seed", range(20))
def test_what_json_refuses_is_refused(seed: int) -> None:
    r = random.Random(seed)
    language = random_language(r)
    loose = to_bytes(language, "json")
    for _ in range(200):
        spelled = "".join(r.choices(BITS, k=r.randrange(9)))
        try:
            text = json.loads(f'"{spelled}"')
            text.encode()
        except (ValueError, UnicodeEncodeError):
            text = None
        assert loose.label(spelled.encode()) == (-1 if text is None else language.label(text))


@pytest.mark.parametrize("seed", range(60))
def test_results_are_minimal_and_canonical(seed: int) -> None:
    language = random_language(random.Random(seed))
    for encoding in ("utf8", "json", "json_canonical"):
        found = to_bytes(language, encoding)
        again = Dfa(*canonical(found.classes, found.rows, found.labels), "bytes")
        assert again == found
        assert again.transitions == found.transitions


def test_an_escape_that_meets_a_raw_letter_is_merged() -> None:
    """After the backslash of \\n, and before the second n of "nn", the same is left: one state."""
    language = union(literal("\n"), literal("nn"))
    found = to_bytes(language, "json_canonical")
    again = Dfa(*canonical(found.classes, found.rows, found.labels), "bytes")
    assert again.n_states == found.n_states == 3


def test_labels_survive() -> None:
    languages = [strings(["é", '"']), length_range(1, 2)]
    found = to_bytes(classify(languages, lambda held: 2 * held[0] + held[1]), "json")
    assert found.label("é".encode()) == 3
    assert found.label(rb"\"") == 3
    assert found.label(b"xx") == 1
    assert found.label(b"") == 0


def test_every_string_is_small_in_every_encoding() -> None:
    assert [to_bytes(ANY_STRING, e).n_states for e in ("utf8", "json", "json_canonical")] == [8, 20, 14]
    assert to_bytes(NOTHING, "json").labels == (-1,)


def test_bad_calls() -> None:
    with pytest.raises(ValueError, match="over characters"):
        to_bytes(literal(b"ab"), "utf8")
    with pytest.raises(ValueError, match="unknown encoding"):
        to_bytes(literal("ab"), "utf16")  # type: ignore[call-overload]
    with pytest.raises(LimitExceeded):
        to_bytes(length_range(0, 1000), "json", Budget(max_states=5000))
