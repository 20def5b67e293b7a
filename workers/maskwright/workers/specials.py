"""Special tokens as symbols of an automaton over bytes.

A special token that a source names is spelled as nine bytes that UTF-8 never holds: 0xff, then its id in eight digits
of base 7, 0xf8 to 0xfe, the highest first. No text token can be taken for a part of it: compilers treat these bytes of
text tokens as unreadable, and matchers refuse texts that hold them. Artifacts that use it say so by a required feature
bit (FORMAT.md), and then rows may hold special tokens.
"""

from __future__ import annotations

SPECIAL_TOKENS, LAZY_CONTEXTS = 1, 2
"""Required feature bits: rows hold special tokens; contexts are made as they're met (lazy.py)."""
SYMBOL = b"\xff"
FIRST_MARK = 0xF8
DIGITS = 8
LENGTH = 1 + DIGITS
BASE = 7


def spell_special(token: int) -> bytes:
    """The symbol of a special token below 7 ** 8."""
    out = bytearray(LENGTH)
    out[0] = SYMBOL[0]
    for place in range(DIGITS, 0, -1):
        token, digit = divmod(token, BASE)
        out[place] = FIRST_MARK + digit
    return bytes(out)
