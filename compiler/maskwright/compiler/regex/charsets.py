"""What `\\d`, `\\w`, `\\s`, `.` and line ends mean in each dialect, as sets of characters."""

from __future__ import annotations

from functools import cache

from maskwright.compiler.regex.unicode import general_category
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, complement, of_chars, unite

ASCII_DIGIT: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
NEWLINE: Ranges = ((0x0A, 0x0A),)
ANY: Ranges = SCALARS

# ECMA-262, LineTerminator and WhiteSpace.
ECMA_NEWLINES = of_chars("\n\r\u2028\u2029")
ECMA_SPACE = unite(of_chars("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), ((0x2000, 0x200A),))
# With both `i` and `u`, WordCharacters also has what folds into it: the long s and the Kelvin sign.
ECMA_WORD_FOLDED = unite(ASCII_WORD, of_chars("\u017f\u212a"))

# str.isspace: bidirectional type WS, B or S, or category Zs.
PYTHON_SPACE = unite(
    ((0x09, 0x0D), (0x1C, 0x20)),
    of_chars("\u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000"),
    ((0x2000, 0x200A),),
)


@cache
def python_word() -> Ranges:
    """str.isalnum or the underscore: letters and whatever has a numeric value, which are the N categories."""
    return unite(general_category("L") or (), general_category("N") or (), of_chars("_"))


@cache
def python_digit() -> Ranges:
    return general_category("Nd") or ()


def negate(ranges: Ranges) -> Ranges:
    return complement(ranges)


def dot(newlines: Ranges) -> Ranges:
    return complement(newlines)
