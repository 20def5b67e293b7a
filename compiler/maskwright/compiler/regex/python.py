"""The parser for Python's `re` syntax (str patterns, as of Python 3.11 to 3.13).

`\\w`, `\\d`, `\\s` and `\\b` go by Unicode unless `a` is set; `$` also holds before a final newline; `\\B` never
holds on the empty text; `(?>…)` and possessive repeats become `Atomic`. Unicode tables are the project's own, not
the running Python's.

One departure, where `re` leaves its own documentation: under `i` it compares a range that reaches beyond U+FFFF in
another way than all others (without the long s, the Kelvin sign and the like; with `a`, beyond ASCII). Here all
ranges are folded alike.

Refused as not regular: back-references and conditionals. A lookbehind without a fixed width is an error, as in
Python.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from maskwright.compiler.regex.builder import Cursor, GroupStack, Wrap, read_count
from maskwright.compiler.regex.charsets import (
    ANY,
    ASCII_DIGIT,
    ASCII_SPACE,
    ASCII_WORD,
    NEWLINE,
    PYTHON_SPACE,
    negate,
    python_digit,
    python_word,
)
from maskwright.compiler.regex.tree import Atomic, Chars, Look, Node, Point, PointKind, Span, repeat
from maskwright.compiler.regex.unicode import close_over_case
from maskwright.compiler.regex.width import width
from maskwright.compiler.regular.codepoints import Ranges, intersect, normalise, unite

HEX = "0123456789abcdefABCDEF"
OCTAL = "01234567"
DIGITS = "0123456789"
BLANK = " \t\n\r\v\f"
ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
FLAG_FIELDS = {"i": "ignore_case", "m": "multi_line", "s": "dot_all", "x": "verbose", "a": "ascii"}
POINTS = {"A": PointKind.TEXT_START, "Z": PointKind.TEXT_END, "b": PointKind.WORD, "B": PointKind.NOT_WORD}
MAX_REPEAT = 4_294_967_295


@dataclass(frozen=True, slots=True)
class Flags:
    """`i`, `m`, `s`, `x` and `a` of the re module."""

    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False
    verbose: bool = False
    ascii: bool = False


def parse(pattern: str, flags: str = "") -> Node:
    """The pattern's tree. `flags`: some of "imsxa". Raises CompileError with a span, ValueError for an unknown flag."""
    if set(flags) - set("imsxau"):
        raise ValueError(f"unknown flags {flags!r}")
    return _Parser(pattern, Flags(*(letter in flags for letter in FLAG_FIELDS))).run()


class _Parser(Cursor):
    def __init__(self, pattern: str, flags: Flags) -> None:
        super().__init__(pattern)
        self.flags = flags
        self.stack: GroupStack[Flags] = GroupStack(flags)
        self.names: set[str] = set()
        self.whole = {"a"} if flags.ascii else set[str]()
        """Flags set for the whole pattern."""
        self.at_start = True
        self.quantifiable = ""
        """Why the last item can't be repeated; empty: it can."""
        self.item_start = 0
        self.nothing()

    def nothing(self) -> None:
        self.quantifiable = "there's nothing to repeat"

    def run(self) -> Node:
        while not self.done():
            self.term()
        if self.stack.depth:
            self.fail("the group isn't closed", self.stack.groups[-1].start, self.end)
        return self.stack.finish(self.at)

    # -- terms ---------------------------------------------------------------------------------------------------

    def term(self) -> None:
        start = self.at
        c = self.take()
        if self.flags.verbose and (c in BLANK or c == "#"):
            if c == "#":
                stop = self.pattern.find("\n", self.at)
                self.at = self.end if stop < 0 else stop
        elif c == "|":
            self.stack.alternate(start)
            self.nothing()
            self.at_start = False
        elif c == "(":
            self.open(start)
        elif c == ")":
            self.close(start)
        elif c in "*+?" or (c == "{" and self.counts()):
            self.quantify(start, c)
        else:
            self.atom(start, c)

    def atom(self, start: int, c: str) -> None:
        if c == "^":
            self.point(PointKind.LINE_START if self.flags.multi_line else PointKind.TEXT_START, start)
        elif c == "$":
            self.point(PointKind.LINE_END if self.flags.multi_line else PointKind.FINAL_END, start)
        elif c == "\\":
            self.escape(start)
        elif c == "[":
            self.chars(self.brackets(start), start)
        elif c == ".":
            self.chars(ANY if self.flags.dot_all else negate(NEWLINE), start)
        else:
            self.chars(self.fold(_one(ord(c))), start)

    def chars(self, ranges: Ranges, start: int) -> None:
        self.stack.items.append(Chars(ranges, (start, self.at)))
        self.quantifiable, self.item_start = "", start
        self.at_start = False

    def point(self, kind: PointKind, start: int) -> None:
        ranges: Ranges = ()
        if kind in (PointKind.WORD, PointKind.NOT_WORD):
            ranges = self.word()
        elif kind is not PointKind.TEXT_START and kind is not PointKind.TEXT_END:
            ranges = NEWLINE
        words = kind in (PointKind.WORD, PointKind.NOT_WORD)
        self.stack.items.append(Point(kind, (start, self.at), ranges, nonempty=words))
        self.nothing()
        self.at_start = False

    def fold(self, ranges: Ranges) -> Ranges:
        if not self.flags.ignore_case:
            return ranges
        return _close_over_ascii_case(ranges) if self.flags.ascii else close_over_case(ranges, turkish=True)

    def word(self) -> Ranges:
        return ASCII_WORD if self.flags.ascii else python_word()

    # -- quantifiers ---------------------------------------------------------------------------------------------

    def counts(self) -> bool:
        """Whether the brace just taken opens a count; if not it stands for itself."""
        at = self.at
        if self.peek() == "}":
            return False
        self.digits(DIGITS, self.end)
        if self.skip(","):
            self.digits(DIGITS, self.end)
        found = self.peek() == "}"
        self.at = at
        return found

    def quantify(self, start: int, c: str) -> None:
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self.braces()
        if high is not None and high < low:
            self.fail(f"the count {{{low},{high}}} is out of order", start)
        if self.quantifiable:
            self.fail(self.quantifiable, start)
        lazy = self.skip("?")
        possessive = not lazy and self.skip("+")
        item = self.stack.items.pop()
        span = (self.item_start, self.at)
        node = repeat(item, low, high, span, lazy)
        self.stack.items.append(Atomic(node, span) if possessive else node)
        self.quantifiable = "a repeat can't be repeated"

    def braces(self) -> tuple[int, int | None]:
        low = self.digits(DIGITS, self.end)
        high: str | None = low
        if self.skip(","):
            high = self.digits(DIGITS, self.end) or None
        self.take()
        return read_count(low), None if high is None else read_count(high)

    # -- groups --------------------------------------------------------------------------------------------------

    def open(self, start: int) -> None:
        outer = self.flags
        wrap: Wrap | None = None
        if self.skip("?"):
            if self.skip("#"):
                self.comment(start)
                return
            found = self.extension(start)
            if found is False:
                return
            wrap = None if found is True else found
        self.stack.open(start, wrap, outer, self.at)
        self.nothing()
        self.at_start = False

    def comment(self, start: int) -> None:
        """Up to the first parenthesis that no backslash precedes."""
        while not self.skip(")"):
            if self.done():
                self.fail("the comment isn't closed", start, self.end)
            self.at += 2 if self.peek() == "\\" else 1

    def extension(self, start: int) -> Wrap | bool:
        """What comes after (?: how to wrap the group, True for a plain group, False when it was flags alone."""
        c = self.take()
        if c == ":":
            return True
        if c == ">":
            return Atomic
        if c == "P":
            self.named(start)
            return True
        if c in "=!" and c:
            return _look(True, c == "!")
        if c == "<":
            sign = self.take()
            if not sign or sign not in "=!":
                self.fail("unknown kind of group", start, min(self.at, self.end))
            return self.lookbehind(sign == "!")
        if c == "(":
            condition = self.until(")", "the condition", start)
            self.refuse(f"the conditional (?({condition})…)", start)
        return self.inline_flags(start, c)

    def named(self, start: int) -> None:
        c = self.take()
        if c == "=":
            name = self.until(")", "the back-reference", start)
            self.refuse(f"the back-reference (?P={name})", start)
        if c != "<":
            self.fail("unknown kind of group", start, min(self.at, self.end))
        name = self.until(">", "the group's name", start)
        if not name.isidentifier():
            self.fail(f"{name!r} isn't a group name", start)
        if name in self.names:
            self.fail(f"two groups are named {name!r}", start)
        self.names.add(name)

    def lookbehind(self, negative: bool) -> Wrap:
        def wrap(body: Node, span: Span) -> Node:
            low, high = width(body)
            if low != high:
                self.fail("a lookbehind needs a fixed width", span[0], span[1])
            return Look(body, False, negative, span)

        return wrap

    def inline_flags(self, start: int, first: str) -> bool:
        """(?flags) at the start, or (?flags-flags: …). True when a group was opened."""
        self.at -= bool(first)
        on = self.digits("imsxauL", self.end)
        off = self.digits("imsx", self.end) if (minus := self.skip("-")) else ""
        scoped = self.skip(":")
        if not scoped and (minus or not on or not self.skip(")")):
            self.fail("unknown kind of group", start, min(self.at + 1, self.end))
        if "L" in on or ("a" in on and "u" in on) or set(on) & set(off) or (minus and not off):
            self.fail("these flags can't be set together", start)
        if not scoped and not self.at_start:
            self.fail("flags for the whole pattern must come first", start)
        for letter in on + off:
            if letter != "u":
                self.flags = replace(self.flags, **{FLAG_FIELDS[letter]: letter in on})
        if not scoped:
            self.whole |= set(on)
            if {"a", "u"} <= self.whole:
                self.fail("these flags can't be set together", start)
        if "u" in on:
            self.flags = replace(self.flags, ascii=False)
        return scoped

    def close(self, start: int) -> None:
        if not self.stack.depth:
            self.fail("no group is open", start)
        node, group = self.stack.close(start)
        self.stack.items.append(node)
        self.flags = group.flags
        self.quantifiable, self.item_start = "", group.start

    # -- escapes -------------------------------------------------------------------------------------------------

    def escape(self, start: int) -> None:
        """An escape outside brackets; the backslash is taken."""
        c = self.peek()
        if c and c in POINTS:
            self.take()
            self.point(POINTS[c], start)
            return
        found = self.class_escape()
        if found is None:
            found = self.fold(_one(self.char_escape(start, in_class=False)))
        self.chars(found, start)

    def class_escape(self) -> Ranges | None:
        c = self.peek()
        if not c or c not in "dDsSwW":
            return None
        self.take()
        ascii_only = self.flags.ascii
        if c in "dD":
            found = ASCII_DIGIT if ascii_only else python_digit()
        elif c in "sS":
            found = ASCII_SPACE if ascii_only else PYTHON_SPACE
        else:
            found = self.word()
        return negate(found) if c.isupper() else found

    def char_escape(self, start: int, in_class: bool) -> int:
        if self.done():
            self.fail("the pattern ends in a backslash", start)
        c = self.take()
        if c in ESCAPES:
            return ESCAPES[c]
        if in_class and c == "b":
            return 8
        if c in "xuU":
            return self.hex_escape(start, {"x": 2, "u": 4, "U": 8}[c])
        if c == "N":
            return self.named_char(start)
        if c in DIGITS:
            return self.octal(start, c, in_class)
        if c.isascii() and c.isalpha():
            self.fail(f"\\{c} has no meaning", start)
        return ord(c)

    def hex_escape(self, start: int, length: int) -> int:
        found = self.digits(HEX, length)
        if len(found) < length:
            self.fail(f"the escape needs {length} hex digits", start)
        if int(found, 16) > 0x10FFFF:
            self.fail("that's no code point", start)
        return int(found, 16)

    def named_char(self, start: int) -> int:
        if not self.skip("{"):
            self.fail("\\N needs a character's name in braces", start)
        name = self.until("}", "the character's name", start)
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            self.fail(f"no character is named {name!r}", start)

    def octal(self, start: int, first: str, in_class: bool) -> int:
        """Octal escapes, where Python has them; other numbers outside brackets are back-references."""
        if first == "0" or (in_class and first in OCTAL):
            digits = first + self.digits(OCTAL, 2)
        else:
            two = first + self.digits(DIGITS, 1)
            if in_class:
                self.fail(f"\\{first} has no meaning", start)
            if len(two) < 2 or set(two) - set(OCTAL) or not (last := self.digits(OCTAL, 1)):
                self.refuse(f"the back-reference \\{two}", start)
            digits = two + last
        if int(digits, 8) > 0o377:
            self.fail("an octal escape ends at \\377", start)
        return int(digits, 8)

    # -- brackets ------------------------------------------------------------------------------------------------

    def brackets(self, start: int) -> Ranges:
        negative = self.skip("^")
        parts: list[tuple[int, int]] = []
        sets: list[Ranges] = []
        first = self.at
        while self.at == first or self.peek() != "]":
            if self.done():
                self.fail("the class isn't closed", start, self.end)
            self.member(parts, sets)
        self.take()
        # \w and its like aren't folded: U+0345 equals a letter and is none.
        ranges = unite(self.fold(intersect(normalise(parts), ANY)), *sets)
        return negate(ranges) if negative else ranges

    def member(self, parts: list[tuple[int, int]], sets: list[Ranges]) -> None:
        """One character or range of a class to `parts`, or a set like \\w to `sets`."""
        start = self.at
        one = self.class_atom()
        if self.peek() != "-" or self.peek(1) == "]":
            if isinstance(one, tuple):
                sets.append(one)
            else:
                parts.append((one, one))
            return
        self.take()
        if self.done():
            self.fail("the class isn't closed", start, self.end)
        two = self.class_atom()
        if not isinstance(one, int) or not isinstance(two, int) or one > two:
            self.fail("that's no character range", start)
        parts.append((one, two))

    def class_atom(self) -> int | Ranges:
        start = self.at
        c = self.take()
        if c != "\\":
            return ord(c)
        found = self.class_escape()
        return self.char_escape(start, in_class=True) if found is None else found


def _one(code: int) -> Ranges:
    """The set of one character; a surrogate is in no text."""
    return () if 0xD800 <= code <= 0xDFFF else ((code, code),)


def _close_over_ascii_case(ranges: Ranges) -> Ranges:
    upper = intersect(ranges, ((0x41, 0x5A),))
    lower = intersect(ranges, ((0x61, 0x7A),))
    moved = [(a + 32, b + 32) for a, b in upper] + [(a - 32, b - 32) for a, b in lower]
    return normalise([*ranges, *moved])


def _look(ahead: bool, negative: bool) -> Wrap:
    def wrap(body: Node, span: Span) -> Node:
        return Look(body, ahead, negative, span)

    return wrap
