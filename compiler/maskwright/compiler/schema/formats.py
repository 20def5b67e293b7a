"""The standard formats as regular languages over decoded characters.

Each is written from its RFC's grammar. *Exact* formats are regular and complete. The others have two
languages: what surely has the format (narrower, and they say by what) and what possibly has it. Texts between
the two are left out wherever it matters, so formats are right in negative places (`not`, `if`, a branch of
`oneOf`) too.

    date, time, date-time, duration    RFC 3339 (appendix A for durations)
    email, idn-email                   RFC 5321 mailbox, RFC 6531
    hostname, idn-hostname             RFC 1123, RFC 5891
    ipv4, ipv6                         RFC 2673, RFC 4291
    uri, uri-reference, iri, iri-reference     RFC 3986, RFC 3987
    uri-template                       RFC 6570
    uuid                               RFC 4122
    json-pointer, relative-json-pointer        RFC 6901 and its relative draft
    regex                              ECMA-262
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import Dfa


@dataclass(frozen=True)
class Format:
    """A pattern for the whole string. For an approximated format `narrower` says what it leaves out, and
    `possible` is a pattern of everything that might have the format."""

    pattern: str
    narrower: str = ""
    possible: str = ""


_D = "[0-9]"
_LEAP_YEAR = f"(?:{_D}{{2}}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_D}{{4}}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]{_D}|3[01])"
    f"|(?:0[469]|11)-(?:0[1-9]|[12]{_D}|30)|02-(?:0[1-9]|1{_D}|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_FRACTION = f"(?:\\.{_D}+)?"
_ZONE = f"(?:[Zz]|[+-]{_HOUR}:{_SIXTY})"
_TIME = f"(?:{_HOUR}:{_SIXTY}:{_SIXTY}{_FRACTION}{_ZONE}|23:59:60{_FRACTION}(?:[Zz]|[+-]00:00))"
_ANY_TIME = f"{_HOUR}:{_SIXTY}:(?:{_SIXTY}|60){_FRACTION}{_ZONE}"
_LEAP_SECONDS = "leap seconds with an offset other than zero"

_SECONDS = f"{_D}+S"
_MINUTES = f"{_D}+M(?:{_SECONDS})?"
_HOURS = f"{_D}+H(?:{_MINUTES})?"
_CLOCK = f"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_MONTHS = f"{_D}+M(?:{_D}+D)?"
_DURATION = f"P(?:(?:{_D}+D|{_MONTHS}|{_D}+Y(?:{_MONTHS})?)(?:{_CLOCK})?|{_CLOCK}|{_D}+W)"

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"{_OCTET}(?:\\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"


def _ipv6() -> str:
    """RFC 3986's nine forms: n groups before `::`, the rest after it."""
    forms = [f"(?:{_H16}:){{6}}{_LS32}", f"::(?:{_H16}:){{5}}{_LS32}"]
    for before, after in ((0, 4), (1, 3), (2, 2), (3, 1), (4, 0)):
        forms.append(f"(?:(?:{_H16}:){{0,{before}}}{_H16})?::(?:{_H16}:){{{after}}}{_LS32}")
    forms += [f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}", f"(?:(?:{_H16}:){{0,6}}{_H16})?::"]
    return f"(?:{'|'.join(forms)})"


_IPV6 = _ipv6()


def _labels(letter: str, first: int, other: int, count: int) -> str:
    """Dotted labels that begin and end with a letter or digit, without hyphens in places 3 and 4: the first
    of at
    most `first` characters, then at most `count` of `other`. Counting every length exactly takes 16,000
    states."""

    def label(size: int) -> str:
        return f"(?!..--){letter}(?:(?:{letter}|-){{0,{size - 2}}}{letter})?"

    return f"{label(first)}(?:\\.{label(other)}){{0,{count}}}"


_LETTER = "[0-9A-Za-z]"
_HOSTNAME = f"(?:{_labels(_LETTER, 63, 30, 6)})"
_HOSTNAME_NARROWER = (
    "labels after the first longer than 30 characters, more than 7 labels, labels with hyphens in places 3 and 4"
)
# Letters that IDNA 2008 takes anywhere in a label and never maps. A label of 12 stays below 63 in Punycode.
_IDN_LETTER = (
    "[0-9a-z\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c1\u03c3-\u03c9\u0430-\u045f"
    "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]"
)
_IDN_POSSIBLE = "[0-9A-Za-z.\x80-\U0010ffff-]+"
_IDN_LABELS = _labels(_IDN_LETTER, 12, 12, 3)
_IDN_HOSTNAME = f"(?:{_HOSTNAME}|{_IDN_LABELS})"

_ATEXT = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_UTF8 = "\u0080-\ud7ff\ue000-\U0010ffff"
_LOCAL = f"(?=[^@]{{1,64}}@){_ATEXT}+(?:\\.{_ATEXT}+)*"
_EMAIL = f"{_LOCAL}@{_HOSTNAME}"
_IDN_EMAIL = f"[{_UTF8}{_ATEXT[1:]}{{1,16}}@(?:{_HOSTNAME}|{_IDN_LABELS})|{_EMAIL}"
_EMAIL_NARROWER = f"quoted local parts, address literals, long domains: {_HOSTNAME_NARROWER}"

EMAIL_BOUNDS = range(64 + 1 + 63 + 31, 64 + 1 + 63 + 6 * 31)
"""Bounds on the length beside which an e-mail address has fewer labels, instead of a count of its characters: that
would take a state for each, times those of the format."""


@cache
def email_within(most: int) -> Dfa:
    """E-mail addresses with so few labels that they have at most `most` characters, a bound of EMAIL_BOUNDS."""
    labels = _labels(_LETTER, 63, 30, (most - EMAIL_BOUNDS.start) // 31 + 1)
    return compile_pattern(f"{_LOCAL}@(?:{labels})", "ecma262", mode="full", flags="u")


_UCS = (
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane * 0x10000)}-{chr(plane * 0x10000 + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd"
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"


def _uri(ucs: str, private: str, absolute: bool) -> str:
    """RFC 3986 and 3987, appendix A: `ucs` extends the unreserved characters, `private` those of a query."""
    unreserved, sub = f"A-Za-z0-9._~{ucs}-", "!$&'()*+,;="
    percent = "%[0-9A-Fa-f]{2}"
    pchar = f"(?:[{sub}:@{unreserved}]|{percent})"
    no_colon = f"(?:[{sub}@{unreserved}]|{percent})"
    literal = f"\\[(?:{_IPV6}|[vV][0-9A-Fa-f]+\\.[:{sub}A-Za-z0-9._~-]+)\\]"
    host = f"(?:{literal}|(?:[{sub}{unreserved}]|{percent})*)"
    authority = f"(?:(?:[:{sub}{unreserved}]|{percent})*@)?{host}(?::[0-9]*)?"
    tail = (
        f"(?:\\?(?:[{sub}:@/?{unreserved}{private}]|{percent})*)?"
        if not private
        else (f"(?:\\?(?:[{private}{sub}:@/?{unreserved}]|{percent})*)?")
    )
    tail += f"(?:#(?:[{sub}:@/?{unreserved}]|{percent})*)?"
    path = f"(?:/{pchar}*)*"
    rooted = f"/(?:{pchar}+{path})?"
    full = f"[A-Za-z][A-Za-z0-9+.-]*:(?://{authority}{path}|{rooted}|{pchar}+{path}|){tail}"
    if absolute:
        return full
    return f"(?:{full}|(?://{authority}{path}|{rooted}|{no_colon}+{path}|){tail})"


_VAR = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_SPEC = f"{_VAR}(?:\\.?{_VAR})*(?::[1-9][0-9]{{0,3}}|\\*)?"
_TEMPLATE = (
    f"(?:[!#$&'()*+,./0-9:;=?@A-Z\\[\\]_a-z~{_UCS}{_PRIVATE}-]|%[0-9A-Fa-f]{{2}}"
    f"|\\{{[+#./;?&=,!@|]?{_SPEC}(?:,{_SPEC})*\\}})*"
)
_POINTER = "(?:/(?:[^~/]|~[01])*)*"

_REGEX_CHAR = r"[^\\^$.*+?()\[\]{}|]"
_REGEX_ESCAPE = r"\\(?:[dDwWsStnrfv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\^$\\.*+?()\[\]{}|/])"
_REGEX_ASSERTION = r"[$^]|\\[bB]"


def _regex_class() -> str:
    """Single characters, escapes, ranges from the first or to the last of the letters or digits; a hyphen
    stands
    only first or last."""
    ranges = "a-[a-z]|[a-z]-z|A-[A-Z]|[A-Z]-Z|0-[0-9]|[0-9]-9"
    single = rf"[A-Za-z0-9_ .:;,/@#%&*+?!=<>~()|{{}}$'\"^`]|\\-|[^\x00-\x7f]|{_REGEX_ESCAPE}"
    return rf"\[\^?-?(?:{ranges}|{single})*-?\]"


def _regex_times() -> str:
    """Quantifiers; of {n,m} those where the first digits or the number of digits say that n <= m."""
    pairs = [f"{n},(?:[{n}-9]|[1-9][0-9]{{1,2}})" for n in range(10)]
    pairs += [f"{tens}[0-9],[{tens + 1}-9][0-9]" for tens in range(1, 9)]
    pairs.append("[1-9][0-9],[1-9][0-9]{2}")
    return rf"(?:(?:[*+?]|\{{(?:[0-9]{{1,4}},?|{'|'.join(pairs)})\}})\??)?"


def _regex(depth: int) -> str:
    atom = f"{_REGEX_CHAR}|{_REGEX_ESCAPE}|{_regex_class()}|\\."
    piece = _REGEX_ASSERTION
    if depth:
        inner = _regex(depth - 1)
        atom += f"|\\((?:\\?:)?{inner}\\)"
        piece += f"|\\(\\?<?[=!]{inner}\\)"
    return f"(?:(?:{atom}){_regex_times()}|{piece}|\\|)*"


FORMATS: dict[str, Format] = {
    "date": Format(_DATE),
    "time": Format(_TIME, _LEAP_SECONDS, _ANY_TIME),
    "date-time": Format(f"{_DATE}[Tt]{_TIME}", _LEAP_SECONDS, f"{_DATE}[Tt]{_ANY_TIME}"),
    "duration": Format(_DURATION),
    "email": Format(_EMAIL, _EMAIL_NARROWER, "[\x00-\x7f]+@[\x00-\x7f]+"),
    "idn-email": Format(_IDN_EMAIL, _EMAIL_NARROWER, "[^]+@[^]+"),
    "hostname": Format(_HOSTNAME, _HOSTNAME_NARROWER, "[0-9A-Za-z.-]+"),
    "idn-hostname": Format(_IDN_HOSTNAME, f"{_HOSTNAME_NARROWER}; letters outside a few scripts", _IDN_POSSIBLE),
    "ipv4": Format(_IPV4),
    "ipv6": Format(_IPV6),
    "uri": Format(_uri("", "", True)),
    "uri-reference": Format(_uri("", "", False)),
    "iri": Format(_uri(_UCS, _PRIVATE, True)),
    "iri-reference": Format(_uri(_UCS, _PRIVATE, False)),
    "uri-template": Format(_TEMPLATE),
    "uuid": Format("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "json-pointer": Format(_POINTER),
    "relative-json-pointer": Format(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
    "regex": Format(
        _regex(2),
        "groups nested deeper than two, named groups, back-references, \\p{}, some repeats",
        "[^]*",
    ),
}


_LIMITS = Limits(pattern_length=100_000)


@cache
def format_language(name: str) -> Dfa:
    """The automaton of one of `FORMATS`; built once per process (the largest takes about a second)."""
    return compile_pattern(FORMATS[name].pattern, "ecma262", mode="full", flags="u", limits=_LIMITS)


@cache
def possible_language(name: str) -> Dfa | None:
    """What might have the format; None for an exact one."""
    possible = FORMATS[name].possible
    return compile_pattern(possible, "ecma262", mode="full", flags="u") if possible else None
