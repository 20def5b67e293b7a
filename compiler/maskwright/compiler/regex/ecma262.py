"""The parser for ECMA-262 patterns with the `u` flag's meaning (ECMA-262, 2025, section 22.2).

The text is a sequence of code points; `\\w`, `\\d` and `\\b` are ASCII; `\\p{…}` works; `(?ims-ims:…)` sets flags.
What the `u` grammar rejects but the web grammar (Annex B) gives one plain meaning is taken with that meaning, since
real schemas are full of it: `\\-`, `\\_` and other escaped punctuation, `]`, `{` and `}` standing for themselves, a
class like `\\w` beside a hyphen in brackets, a repeated lookahead. Escaped letters and digits that mean nothing in
`u` mode are errors.

Refused as not regular: back-references. Lone surrogates are never in a text, so they match nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from maskwright.compiler.regex.builder import Cursor, GroupStack, Wrap, read_count
from maskwright.compiler.regex.charsets import (
    ANY,
    ASCII_DIGIT,
    ASCII_WORD,
    ECMA_NEWLINES,
    ECMA_SPACE,
    ECMA_WORD_FOLDED,
    negate,
)
from maskwright.compiler.regex.tree import Chars, Look, Node, Point, PointKind, Span, repeat
from maskwright.compiler.regex.unicode import close_over_case, property_set, unicode_version
from maskwright.compiler.regular.codepoints import Ranges, intersect, normalise

HEX = "0123456789abcdefABCDEF"
DIGITS = "0123456789"
CONTROL_ESCAPES = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
JOINING = str.maketrans("$\u200c\u200d", "___")
"""What a name has beyond identifiers, after its first character."""
FLAGS = "ims"
LOOKS = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False), "(?<!": (False, True)}


@dataclass(frozen=True, slots=True)
class Flags:
    """ignore_case `i`, multi_line `m`, dot_all `s`."""

    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False


def parse(pattern: str, flags: str = "") -> Node:
    """The pattern's tree. `flags`: some of "ims" ("u" is implied).

    Raises CompileError with a span, ValueError for an unknown flag.
    """
    if set(flags) - set("imsu"):
        raise ValueError(f"unknown flags {flags!r}")
    return _Parser(pattern, Flags("i" in flags, "m" in flags, "s" in flags)).run()


class _Parser(Cursor):
    def __init__(self, pattern: str, flags: Flags) -> None:
        super().__init__(pattern)
        self.flags = flags
        self.stack: GroupStack[Flags] = GroupStack(flags)
        self.quantifiable = False
        self.item_start = 0

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
        if c == "|":
            self.stack.alternate(start)
            self.quantifiable = False
        elif c == "(":
            self.open(start)
        elif c == ")":
            self.close(start)
        elif c in "*+?" or (c == "{" and self.counts(start)):
            self.quantify(start, c)
        else:
            self.atom(start, c)

    def atom(self, start: int, c: str) -> None:
        if c == "^":
            self.assertion(PointKind.LINE_START if self.flags.multi_line else PointKind.TEXT_START, start)
        elif c == "$":
            self.assertion(PointKind.LINE_END if self.flags.multi_line else PointKind.TEXT_END, start)
        elif c == "\\":
            self.escape(start)
        elif c == "[":
            self.chars(self.brackets(start), start)
        elif c == ".":
            self.chars(ANY if self.flags.dot_all else negate(ECMA_NEWLINES), start)
        else:
            self.chars(self.fold(_one(ord(c))), start)

    def chars(self, ranges: Ranges, start: int) -> None:
        self.stack.items.append(Chars(ranges, (start, self.at)))
        self.quantifiable, self.item_start = True, start

    def assertion(self, kind: PointKind, start: int) -> None:
        ranges: Ranges = ()
        if kind in (PointKind.LINE_START, PointKind.LINE_END):
            ranges = ECMA_NEWLINES
        elif kind in (PointKind.WORD, PointKind.NOT_WORD):
            ranges = self.word()
        self.stack.items.append(Point(kind, (start, self.at), ranges))
        self.quantifiable = False

    def fold(self, ranges: Ranges) -> Ranges:
        return close_over_case(ranges) if self.flags.ignore_case else ranges

    def word(self) -> Ranges:
        return ECMA_WORD_FOLDED if self.flags.ignore_case else ASCII_WORD

    # -- quantifiers ---------------------------------------------------------------------------------------------

    def counts(self, start: int) -> bool:
        """Whether the brace just taken opens a count; if not it stands for itself."""
        at = self.at
        low = self.digits(DIGITS, self.end)
        if low and self.skip(","):
            self.digits(DIGITS, self.end)
        found = bool(low) and self.peek() == "}"
        self.at = at
        return found

    def quantify(self, start: int, c: str) -> None:
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self.braces()
        lazy = self.skip("?")
        if not self.quantifiable:
            self.fail("there's nothing to repeat", start)
        if high is not None and high < low:
            self.fail(f"the count {{{low},{high}}} is out of order", start)
        item = self.stack.items.pop()
        self.stack.items.append(repeat(item, low, high, (self.item_start, self.at), lazy))
        self.quantifiable = False

    def braces(self) -> tuple[int, int | None]:
        low = read_count(self.digits(DIGITS, self.end))
        high: int | None = low
        if self.skip(","):
            most = self.digits(DIGITS, self.end)
            high = read_count(most) if most else None
        self.take()
        return low, high

    # -- groups --------------------------------------------------------------------------------------------------

    def open(self, start: int) -> None:
        self.quantifiable = False
        outer = self.flags
        if not self.skip("?"):
            self.stack.open(start, None, outer, self.at)
            return
        for opening in sorted(LOOKS, key=len, reverse=True):
            if self.skip(opening[2:]):
                ahead, negative = LOOKS[opening]
                self.stack.open(start, _look(ahead, negative), outer, self.at, quantifiable=ahead)
                return
        if self.skip("<"):
            self.name(start)
        elif not self.skip(":"):
            self.flags = self.modifiers(start)
        self.stack.open(start, None, outer, self.at)

    def name(self, start: int) -> None:
        """A group's name, in which an escape may stand for a letter."""
        name = ""
        while not self.skip(">"):
            if self.done():
                self.fail("the group's name isn't closed", start, self.end)
            c = self.take()
            name += chr(self.u_escape(start)) if c == "\\" and self.skip("u") else c
        if not (name[:1].replace("$", "_") + name[1:].translate(JOINING)).isidentifier():
            self.fail(f"{name!r} isn't a group name", start)
        self.declare({name: (start, self.at)})

    def declare(self, names: dict[str, Span]) -> None:
        """Alternatives may share a name (since 2025), since only one of them takes part."""
        twice = self.stack.declare(names)
        if twice:
            self.fail("two groups of this name can take part in one match", *twice)

    def modifiers(self, start: int) -> Flags:
        """(?ims-ims: with each flag at most once and one of them at least."""
        on = self.digits(FLAGS, self.end)
        off = self.digits(FLAGS, self.end) if (minus := self.skip("-")) else ""
        if not self.skip(":"):
            hint = "set flags for a group: (?i:…)" if self.peek() == ")" and (on or off) else None
            self.fail("unknown kind of group", start, min(self.at + 1, self.end), hint)
        if len(set(on + off)) < len(on + off) or (minus and not on + off):
            self.fail("a flag may be set once", start)
        flags = self.flags
        for letter, name in zip(FLAGS, ("ignore_case", "multi_line", "dot_all"), strict=True):
            if letter in on + off:
                flags = replace(flags, **{name: letter in on})
        return flags

    def close(self, start: int) -> None:
        if not self.stack.depth:
            self.fail("no group is open", start)
        node, group = self.stack.close(start)
        self.stack.items.append(node)
        self.declare(group.all_names())
        self.flags = group.flags
        self.quantifiable, self.item_start = group.quantifiable, group.start

    # -- escapes -------------------------------------------------------------------------------------------------

    def escape(self, start: int) -> None:
        """An escape outside brackets; the backslash is taken."""
        c = self.peek()
        if c == "b" or c == "B":
            self.take()
            self.assertion(PointKind.WORD if c == "b" else PointKind.NOT_WORD, start)
        elif c and c in "123456789":
            number = self.digits(DIGITS, self.end)
            self.refuse(f"the back-reference \\{number}", start)
        elif c == "k" and self.peek(1) == "<":
            self.until(">", "the back-reference", start)
            self.refuse(f"the back-reference {self.pattern[start : self.at]}", start)
        else:
            found = self.class_escape(start)
            self.chars(self.fold(_one(self.char_escape(start))) if found is None else found, start)

    def class_escape(self, start: int) -> Ranges | None:
        """The set of \\d \\D \\s \\S \\w \\W \\p \\P; None, with nothing taken, for other escapes."""
        c = self.peek()
        if not c or c not in "dDsSwWpP":
            return None
        self.take()
        if c in "pP":
            found = self.property(start)
            # Folding comes last: the complement of a property may have a member that equals one outside.
            return self.fold(negate(found) if c == "P" else found)
        found = {"d": ASCII_DIGIT, "s": ECMA_SPACE, "w": self.word()}[c.lower()]
        return negate(found) if c.isupper() else found

    def property(self, start: int) -> Ranges:
        if not self.skip("{"):
            self.fail("\\p needs a property in braces", start)
        text = self.until("}", "the property", start)
        name, equals, value = text.partition("=")
        found = property_set(name, value if equals else None)
        if found is None:
            self.fail(f"no property {text!r} in Unicode {unicode_version()}", start)
        return found

    def char_escape(self, start: int) -> int:
        """The code point of a character escape, in brackets or outside."""
        if self.done():
            self.fail("the pattern ends in a backslash", start)
        c = self.take()
        if c in CONTROL_ESCAPES:
            return CONTROL_ESCAPES[c]
        if c == "c" and self.peek().isascii() and self.peek().isalpha():
            return ord(self.take()) % 32
        if c == "0" and self.peek() not in tuple(DIGITS):
            return 0
        if c == "x" and len(found := self.digits(HEX, 2)) == 2:
            return int(found, 16)
        if c == "u":
            return self.u_escape(start)
        if c.isascii() and c.isalnum():
            self.fail(f"\\{c} has no meaning", start)
        return ord(c)

    def u_escape(self, start: int) -> int:
        if self.skip("{"):
            found = self.until("}", "the code point", start)
            if not found or set(found) - set(HEX) or int(found, 16) > 0x10FFFF:
                self.fail("that's no code point", start)
            return int(found, 16)
        found = self.digits(HEX, 4)
        if len(found) < 4:
            self.fail("\\u needs four hex digits", start)
        code = int(found, 16)
        after = self.pattern[self.at : self.at + 6]
        if 0xD800 <= code <= 0xDBFF and after[:2] == "\\u" and not set(after[2:]) - set(HEX) and len(after) == 6:
            low = int(after[2:], 16)
            if 0xDC00 <= low <= 0xDFFF:
                self.at += 6
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        return code

    # -- brackets ------------------------------------------------------------------------------------------------

    def brackets(self, start: int) -> Ranges:
        """The set of a class whose bracket is taken."""
        negative = self.skip("^")
        parts: list[tuple[int, int]] = []
        while not self.skip("]"):
            if self.done():
                self.fail("the class isn't closed", start, self.end)
            self.member(parts)
        ranges = self.fold(intersect(normalise(parts), ANY))
        return negate(ranges) if negative else ranges

    def member(self, parts: list[tuple[int, int]]) -> None:
        """One character, set or range of a class."""
        start = self.at
        one = self.class_atom()
        if self.peek() != "-" or self.peek(1) in ("]", ""):
            parts += one if isinstance(one, tuple) else [(one, one)]
            return
        self.take()
        two = self.class_atom()
        if isinstance(one, int) and isinstance(two, int):
            if one > two:
                self.fail("the range is out of order", start)
            parts.append((one, two))
            return
        # A set beside a hyphen: the hyphen stands for itself.
        for part in (one, ord("-"), two):
            parts += part if isinstance(part, tuple) else [(part, part)]

    def class_atom(self) -> int | Ranges:
        start = self.at
        c = self.take()
        if c != "\\":
            return ord(c)
        found = self.class_escape(start)
        if found is not None:
            return found
        if self.skip("b"):
            return 0x08
        return self.char_escape(start)


def _one(code: int) -> Ranges:
    """The set of one character; a surrogate is in no text."""
    return () if 0xD800 <= code <= 0xDFFF else ((code, code),)


def _look(ahead: bool, negative: bool) -> Wrap:
    def wrap(body: Node, span: Span) -> Node:
        return Look(body, ahead, negative, span)

    return wrap
