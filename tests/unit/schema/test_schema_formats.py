"""Formats: samples of each, and approximated ones where a string may have to lack them."""

from __future__ import annotations

import pytest
import regress
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import compiled, judge, library

from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.regular import difference, is_empty
from maskwright.compiler.schema import library_frames
from maskwright.compiler.schema.formats import FORMATS, format_language, possible_language

SAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "date": (["2024-02-29", "2000-02-29", "2023-12-31"], ["2023-02-29", "1900-02-29", "2023-13-01", "2023-1-01"]),
    "time": (["23:59:60Z", "12:00:00.5+01:30", "08:30:06z"], ["24:00:00Z", "22:59:60Z", "12:00:00", "1:00:00Z"]),
    "date-time": (
        ["1985-04-12T23:20:50.52Z", "1990-02-28t15:59:59-08:00"],
        ["1985-04-12 23:20:50Z", "1985-04-31T00:00:00Z"],
    ),
    "duration": (["P4DT12H30M5S", "PT0S", "P1Y2M3D", "P4W"], ["P", "PT", "P1Y2W", "4D", "P1D2H"]),
    "email": (["joe.bloggs@example.com", "a+b@x-y.org"], ["joe", ".a@x.org", "a..b@x.org", "a@-x.org", "a@x..org"]),
    "idn-email": (["실례@실례.테스트", "joe@example.com"], ["실례"]),
    "hostname": (["www.example.com", "x", "a-b.c9"], ["-a.com", "a_b.com", "a..b", "a." + "b" * 64, ""]),
    "idn-hostname": (["例え", "bücher.example"], ["-例", "a b"]),
    "ipv4": (["192.168.0.1", "0.0.0.0"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    "ipv6": (
        ["::1", "::", "12ab:abcd::1.2.3.4", "1:2:3:4:5:6:7:8", "1::"],
        ["12345::", "1::2::3", "1:2:3:4:5:6:7", ":1"],
    ),
    "uri": (
        ["http://a.b/c?d#e", "urn:x:y", "ldap://[2001:db8::7]/c", "mailto:J@x.org"],
        ["//a", "a b", "http://[x]", "/p", ":x"],
    ),
    "uri-reference": (["/abc", "#f", "", "//h/p", "a/b:c"], ["\\\\x", "a b", "#a\\b"]),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#π"], ["/x", "http://a b"]),
    "iri-reference": (["/âππ", "#ƒräg"], ["\\\\x"]),
    "uri-template": (["http://e.com/{term:1}/{+x*,y}", "'"], ["http://e.com/{t", "{}", "}"]),
    "uuid": (["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8"]),
    "json-pointer": (["", "/a~1b/~0", "/foo//"], ["a", "/~2", "/~"]),
    "relative-json-pointer": (["0", "1/a", "120#"], ["/a", "01", "0##", "-1"]),
    "regex": (["^[a-z]+$", "(a|b){2,3}?", "\\d"], ["(", "a**", "[z-a]", "a{3,1}", "\\"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_samples(name: str) -> None:
    good, bad = SAMPLES[name]
    language = format_language(name)
    assert [t for t in good if language.label(t) < 0] == []
    assert [t for t in bad if language.label(t) >= 0] == []


@pytest.mark.parametrize("name", [n for n, f in FORMATS.items() if f.narrower])
def test_what_has_a_format_possibly_has_it(name: str) -> None:
    possible = possible_language(name)
    assert possible is not None
    assert is_empty(difference(format_language(name), possible))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab09[](){}|^$.*+?\\,dwbB:=!<-é", max_size=10))
def test_format_regex_takes_nothing_that_is_not_a_pattern(text: str) -> None:
    if format_language("regex").label(text) >= 0:
        regress.Regex(text, "u")


def test_an_approximated_format_that_may_have_to_fail() -> None:
    """What is neither surely a mailbox nor surely none isn't written at all."""
    judge({"type": "string", "not": {"format": "email"}}, ['"x"', '""'], ['"a@b.org"', '"\\"q\\"@b.org"'], library())
    either = {"oneOf": [{"type": "string", "format": "date-time"}, {"enum": ["never", "1999-12-31T23:59:60Z"]}]}
    judge(
        either,
        ['"never"', '"2000-01-01T00:00:00Z"'],
        ['"now"', '"1999-12-31T23:59:60Z"', '"2000-01-01T01:29:60+01:30"'],
    )
    names = {
        "propertyNames": {"not": {"format": "hostname"}},
        "properties": {"a": {}, "a--b": {}, "a b": {}, "xn--a": {}},
    }
    judge(names, ['{"a b":1}', '{"c d":1}'], ['{"a":1}', '{"xn--a":1}', '{"b.c":1}'])


def test_annotate() -> None:
    judge({"format": "date"}, ['"x"'], [], formats="annotate")
    judge({"format": "no-such-format"}, ['"x"'], [])


def test_a_library_may_hold_formats() -> None:
    frames = library_frames(CompileOptions.max_whitespace, ("date", "email"))
    base = minimise(specialise(explore_library(frames)))
    schema = {"properties": {"d": {"format": "date"}, "e": {"type": "string", "format": "email", "maxLength": 7}}}
    automaton = compiled(schema, base)
    assert any(s.callee == base.frame_of(base.entries["format:date"]) for s in automaton.symbols)
    assert accepts(automaton, b'{"d":"2024-02-29","e":"a@b.org"}')
    assert accepts(automaton, b'{"d":1}')
    assert not accepts(automaton, b'{"d":"2023-02-29"}')
    assert not accepts(automaton, b'{"e":"ab@c.org"}')


@pytest.mark.parametrize(("most", "states"), [(1024, 700), (255, 700), (200, 500)])
def test_an_address_within_a_length_takes_no_count(most: int, states: int) -> None:
    automaton = compiled({"type": "string", "format": "email", "maxLength": most})
    assert len(automaton.edges) < states + 100
    assert accepts(automaton, b'"joe.bloggs@mail.example.com"')
    long = f'"{"a" * 64}@{"b" * 63}.{".".join(["c" * 30] * 8)}"'
    assert not accepts(automaton, long.encode())
    fits = f'"{"a" * 64}@{"b" * 63}.{"c" * 30}"'
    assert accepts(automaton, fits.encode())


def test_a_pattern_that_keeps_the_bound_is_not_counted() -> None:
    pattern = {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}
    assert len(compiled({**pattern, "maxLength": 100}).edges) == len(compiled(pattern).edges)
    judge({**pattern, "maxLength": 8}, ['"ABC-1234"'], ['"ABC-123"'])
    judge({**pattern, "maxLength": 7, "type": ["string", "null"]}, ["null"], ['"ABC-1234"'])
    judge({"not": {**pattern, "maxLength": 100}}, ['"x"', "1"], ['"ABC-1234"'])
