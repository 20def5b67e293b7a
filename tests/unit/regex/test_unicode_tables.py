"""The committed Unicode tables against the Python running the tests (an older version) and against `regress`."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
import regress

from maskwright.compiler.regex.charsets import PYTHON_SPACE, python_digit, python_word
from maskwright.compiler.regex.unicode import (
    GROUPS,
    close_over_case,
    fold_orbits,
    general_category,
    property_set,
    unicode_version,
)
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, contains, size

CODES = [c for low, high in SCALARS for c in range(low, high + 1)]
ASSIGNED = [c for c in CODES if unicodedata.category(chr(c)) != "Cn"]
# Characters whose category was corrected after the version that Python 3.11 has.
CORRECTED = 30


def codes(ranges: Ranges | None) -> set[int]:
    assert ranges is not None
    return {c for low, high in ranges for c in range(low, high + 1)}


def test_the_version_is_named() -> None:
    assert unicode_version() == "17.0.0"


def test_categories_agree_where_python_knows_the_character() -> None:
    ours: dict[int, str] = {}
    for name in (short for group in GROUPS.values() for short in group if short not in ("Cn", "LC")):
        ours.update(dict.fromkeys(codes(general_category(name)), name))
    unlike = [c for c in ASSIGNED if ours.get(c) != unicodedata.category(chr(c))]
    assert len(unlike) < CORRECTED, [hex(c) for c in unlike]
    assert codes(general_category("C")) | codes(general_category("L")) >= set(range(32))
    assert sum(size(general_category(g) or ()) for g in "LMNPSZC") == len(CODES)


def test_pythons_classes() -> None:
    word, digit, space = codes(python_word()), codes(python_digit()), codes(PYTHON_SPACE)
    unlike = [c for c in ASSIGNED if (chr(c).isalnum() or chr(c) == "_") != (c in word)]
    unlike += [c for c in ASSIGNED if chr(c).isdecimal() != (c in digit)]
    assert len(unlike) < CORRECTED, [hex(c) for c in unlike]
    assert space == {c for c in CODES if chr(c).isspace()}


@pytest.mark.parametrize(
    "name", ["Alphabetic", "Emoji", "ID_Start", "White_Space", "sc=Latin", "scx=Deva", "Lu", "Any"]
)
def test_properties_agree_with_the_generators_engine(name: str) -> None:
    found = property_set(*name.split("=")) if "=" in name else property_set(name)
    assert found is not None
    judge = regress.Regex(rf"^\p{{{name}}}$", "u")
    for code in [*range(0x500), *(x for low, high in found[:200] for x in (low - 1, low, high, high + 1))]:
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            assert (judge.find(chr(code)) is not None) == contains(found, code), hex(code)


def test_names() -> None:
    assert property_set("Script", "Qaac") == property_set("sc", "Coptic")
    assert property_set("General_Category", "Cs") == property_set("Cs") == ()
    assert property_set("gc", "Nope") is None
    assert property_set("Alpha") == property_set("Alphabetic")
    assert property_set("fold") is property_set("version") is property_set("binary_names") is None
    assert property_set("Script") is None
    assert property_set("Nope", "Latin") is None
    unknown = property_set("Script", "Unknown")
    assert unknown is not None and not contains(unknown, 65)


def test_folding_is_an_equivalence() -> None:
    orbits = fold_orbits()
    assert all(orbits[x] == orbit for orbit in orbits.values() for x in orbit)
    assert set(orbits[ord("k")]) == {ord("k"), ord("K"), 0x212A}
    assert close_over_case(((0x30, 0x39),)) == ((0x30, 0x39),)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="checked against Python 3.11 to 3.13")
def test_pythons_case_folding() -> None:
    text = "".join(map(chr, sorted({*fold_orbits(), *range(0x590), *range(0x1E90, 0x1EA0), 0x130, 0x131})))
    newer = {0x19B, 0x264, 0xA7D3, 0xA7D5, 0x390, 0x1FD3, 0x3B0, 0x1FE3, 0xFB05, 0xFB06}
    for code in [*range(0x41, 0x250), *range(0x370, 0x590), 0x10D0, 0x1E9E, 0x1F80, 0x1F88, 0x2126, 0x212A, 0x212B]:
        if code not in newer:
            found = {ord(c) for c in re.findall(re.escape(chr(code)), text, re.IGNORECASE)}
            assert found == codes(close_over_case(((code, code),), turkish=True)), hex(code)
