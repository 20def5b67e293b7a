"""Unicode properties and simple case folding at one version, from a committed table.

The table is text (`unicode_tables.txt`, 95 KB; its format is in the generator,
`tests/unit/regex/make_unicode_tables.py`), read on first use. One version for both dialects and all Python
versions, so that a pattern means the same everywhere: Python's own tables are older, by its version.

The data is Unicode's (© Unicode, Inc., under the Unicode License, https://www.unicode.org/license.txt).
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from maskwright.compiler.regular.codepoints import SCALARS, Ranges, complement, intersect, normalise, unite

GROUPS = {
    "LC": ("Lu", "Ll", "Lt"),
    "L": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "M": ("Mn", "Mc", "Me"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S": ("Sm", "Sc", "Sk", "So"),
    "Z": ("Zs", "Zl", "Zp"),
    "C": ("Cc", "Cf", "Cn", "Co"),
}
GENERAL_NAMES = {
    "Cased_Letter": "LC", "Close_Punctuation": "Pe", "Connector_Punctuation": "Pc", "Control": "Cc", "cntrl": "Cc",
    "Currency_Symbol": "Sc", "Dash_Punctuation": "Pd", "Decimal_Number": "Nd", "digit": "Nd",
    "Enclosing_Mark": "Me", "Final_Punctuation": "Pf", "Format": "Cf", "Initial_Punctuation": "Pi", "Letter": "L",
    "Letter_Number": "Nl", "Line_Separator": "Zl", "Lowercase_Letter": "Ll", "Mark": "M", "Combining_Mark": "M",
    "Math_Symbol": "Sm", "Modifier_Letter": "Lm", "Modifier_Symbol": "Sk", "Nonspacing_Mark": "Mn", "Number": "N",
    "Open_Punctuation": "Ps", "Other": "C", "Other_Letter": "Lo", "Other_Number": "No", "Other_Punctuation": "Po",
    "Other_Symbol": "So", "Paragraph_Separator": "Zp", "Private_Use": "Co", "Punctuation": "P", "punct": "P",
    "Separator": "Z", "Space_Separator": "Zs", "Spacing_Mark": "Mc", "Surrogate": "Cs", "Symbol": "S",
    "Titlecase_Letter": "Lt", "Unassigned": "Cn", "Uppercase_Letter": "Lu",
}  # fmt: skip
SCRIPT_ALIASES = {"Qaac": "Copt", "Qaai": "Zinh"}


@cache
def _lines() -> dict[str, str]:
    text = resources.files(__package__).joinpath("unicode_tables.txt").read_text("ascii")
    return dict(line.split("\t", 1) for line in text.splitlines())


def unicode_version() -> str:
    return _lines()["version"]


def property_set(name: str, value: str | None = None) -> Ranges | None:
    """The characters with `\\p{name}` or `\\p{name=value}`, by ECMA-262's names; None: there's no such property."""
    if value is None:
        found = general_category(name)
        return _binary(name) if found is None else found
    if name in ("General_Category", "gc"):
        return general_category(value)
    if name in ("Script", "sc"):
        return _script("sc", value)
    if name in ("Script_Extensions", "scx"):
        return _script("scx", value)
    return None


@cache
def general_category(name: str) -> Ranges | None:
    """A general category or a group of them, by its short or long name. Surrogates aren't characters here."""
    short = GENERAL_NAMES.get(name, name)
    table = _partition("gc")
    if short == "Cs":
        return ()
    if short in GROUPS:
        return unite(*(general_category(g) or () for g in GROUPS[short]))
    if short == "Cn":
        return complement(unite(*(_decode(data) for data in table.values())))
    return _decode(table[short]) if short in table else None


@cache
def _binary(name: str) -> Ranges | None:
    if name == "Any":
        return SCALARS
    if name == "ASCII":
        return ((0, 0x7F),)
    if name == "Assigned":
        return complement(general_category("Cn") or ())
    lines = _lines()
    full = dict(p.split("=") for p in lines["binary_names"].split(" ")).get(name, name)
    return _decode(lines[full]) if full[:1].isupper() and full in lines else None


@cache
def _script(table: str, name: str) -> Ranges | None:
    names = {long: short for short, long in (p.split("=") for p in _lines()["sc_names"].split(" "))}
    scripts = _partition(table)
    short = SCRIPT_ALIASES.get(name) or names.get(name, name)
    if short in ("Zzzz", "Unknown"):
        return complement(unite(*(_decode(data) for data in scripts.values())))
    return _decode(scripts[short]) if short in scripts else None


@cache
def _partition(name: str) -> dict[str, str]:
    return dict(item.split(":", 1) for item in _lines()[name].split(" "))


def _decode(data: str) -> Ranges:
    numbers = [int(x, 36) for x in data.split(",")] if data else []
    out: list[tuple[int, int]] = []
    at = 0
    for gap, length in zip(numbers[::2], numbers[1::2], strict=True):
        low = at + gap
        at = low + length
        out.append((low, at))
    return intersect(tuple(out), SCALARS)


@cache
def fold_orbits() -> dict[int, tuple[int, ...]]:
    """For each character that has others equal to it by simple case folding: all of them, itself among them."""
    out: dict[int, tuple[int, ...]] = {}
    for orbit in _lines()["fold"].split(" "):
        codes = tuple(int(x, 36) for x in orbit.split(","))
        out.update(dict.fromkeys(codes, codes))
    return out


@cache
def _foldable() -> Ranges:
    return normalise((c, c) for c in fold_orbits())


@cache
def close_over_case(ranges: Ranges, turkish: bool = False) -> Ranges:
    """The set and everything equal to a member by simple case folding.

    `turkish`: i, I, dotted I and dotless i are all equal too, as in Python's `re.IGNORECASE`.
    """
    extra: set[int] = set()
    if not (ranges and ranges[-1][1] < 0x80 and _no_ascii_letters(ranges)):
        orbits = fold_orbits()
        for low, high in intersect(ranges, _foldable()):
            for code in range(low, high + 1):
                extra.update(orbits[code])
    if turkish and any(low <= c <= high for low, high in ranges for c in TURKISH):
        extra.update(TURKISH)
    return normalise([*ranges, *((c, c) for c in extra)]) if extra else ranges


TURKISH = (0x49, 0x69, 0x130, 0x131)


def _no_ascii_letters(ranges: Ranges) -> bool:
    return not intersect(ranges, ((0x41, 0x5A), (0x61, 0x7A)))
