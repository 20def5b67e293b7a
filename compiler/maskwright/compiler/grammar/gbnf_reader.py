"""The reader of GBNF, llama.cpp's grammar notation, which XGrammar's EBNF shares.

    name ::= alternatives        "text"  [a-z]  [^a-z]  .  (…)  a b  a | b  * + ? {n} {n,} {n,m}   # comment

A rule ends with its line, unless the line ends in `::=` or `|`, the next begins with `|`, or inside
parentheses. Escapes: \\n \\r \\t \\" \\\\ \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH. Refused: tokens (`<think>`,
`<[12]>`), and XGrammar's look-ahead and tag dispatch. Nesting is limited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.regular.codepoints import SCALARS, Ranges, complement, intersect, normalise

MACROS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken")
MAX_DEPTH = 100
MAX_COUNT = 10_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|[0-9][A-Za-z0-9_-]*")
SPACE = re.compile(r"(?:[ \t\r]|#[^\n]*)*")
LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
COUNTS = re.compile(r"\{\s*(\d+)\s*(,\s*(\d*)\s*)?\}")
ESCAPES = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    '"': '"',
    "\\": "\\",
    "[": "[",
    "]": "]",
    "-": "-",
    "^": "^",
    "/": "/",
    "'": "'",
}
HEX = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """Another rule."""

    name: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """low..high of the item; high None: without end."""

    item: Node
    low: int
    high: int | None


Node = Chars | Ref | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule's body and where its name stands."""

    bodies: dict[str, Node]
    spans: dict[str, tuple[int, int]]


def read_gbnf(text: str) -> Rules:
    """Raises CompileError with the place: a syntax error, a rule defined twice, a rule that isn't defined."""
    rules = _Reader(text).run()
    for body in rules.bodies.values():
        for ref in refs(body):
            if ref.name not in rules.bodies:
                message = f"rule {ref.name!r} isn't defined"
                raise CompileError(Diagnostic(Code.INVALID_SOURCE, message, span=ref.span, detail={"rule": ref.name}))
    return rules


def refs(node: Node) -> list[Ref]:
    """All references in a body."""
    out: list[Ref] = []
    work = [node]
    while work:
        n = work.pop()
        if isinstance(n, Ref):
            out.append(n)
        elif isinstance(n, Sequence):
            work.extend(n.items)
        elif isinstance(n, Choice):
            work.extend(n.branches)
        elif isinstance(n, Repeat):
            work.append(n.item)
    return out


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, message: str, start: int | None = None) -> NoReturn:
        start = self.at if start is None else start
        raise CompileError(Diagnostic(Code.INVALID_SOURCE, message, span=(start, min(self.at + 1, len(self.text)))))

    def refuse(self, construct: str, start: int) -> NoReturn:
        message = f"{construct} isn't supported"
        raise CompileError(
            Diagnostic(Code.UNSUPPORTED_GRAMMAR, message, span=(start, start + 1), detail={"construct": construct})
        )

    def space(self, lines: bool) -> None:
        found = (LINES if lines else SPACE).match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def run(self) -> Rules:
        bodies: dict[str, Node] = {}
        spans: dict[str, tuple[int, int]] = {}
        self.space(True)
        while self.at < len(self.text):
            start = self.at
            name = self.name()
            spans[name] = (start, self.at)
            self.space(True)
            if not self.text.startswith("::=", self.at):
                self.fail(f"::= should follow {name}")
            self.at += 3
            self.space(True)
            if name in bodies:
                self.fail(f"rule {name!r} is defined twice", start)
            bodies[name] = self.choice(0)
            if self.at < len(self.text) and self.peek() != "\n":
                self.fail(f"{self.peek()!r} is unexpected")
            self.space(True)
        return Rules(bodies, spans)

    def name(self) -> str:
        found = NAME.match(self.text, self.at)
        if found is None:
            self.fail("a rule's name should stand here")
        self.at = found.end()
        return found.group()

    def choice(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.fail(f"parentheses nest deeper than {MAX_DEPTH}")
        branches = [self.sequence(depth)]
        while self.bar():
            self.at += 1
            self.space(True)
            branches.append(self.sequence(depth))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def bar(self) -> bool:
        """Whether another alternative follows, on a later line too."""
        found = LINES.match(self.text, self.at)
        assert found is not None
        if not self.text.startswith("|", found.end()):
            return False
        self.at = found.end()
        return True

    def sequence(self, depth: int) -> Node:
        items: list[Node] = []
        while (c := self.peek()) and c not in "|)\n":
            start = self.at
            node = self.atom(c, depth)
            while (c := self.peek()) and c in "*+?{":
                node = self.repeat(node, c)
            items.append(node)
            if self.at == start:
                self.fail(f"{c!r} is unexpected")
            self.space(depth > 0)
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def atom(self, c: str, depth: int) -> Node:
        start = self.at
        if c == '"':
            return self.literal()
        if c == "[":
            return self.brackets()
        if c == ".":
            self.at += 1
            return Chars(SCALARS)
        if c == "(":
            self.at += 1
            if self.peek() == "=":
                self.refuse("look-ahead", start)
            self.space(True)
            node = self.choice(depth + 1)
            if self.peek() != ")":
                self.fail("the parenthesis isn't closed", start)
            self.at += 1
            return node
        if c in "<!":
            self.refuse("a token", start)
        name = self.name()
        if name in MACROS and self.peek() == "(":
            self.refuse(f"{name}(…)", start)
        return Ref(name, (start, self.at))

    def repeat(self, node: Node, c: str) -> Node:
        if c != "{":
            self.at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[c]
            return Repeat(node, low, high)
        found = COUNTS.match(self.text, self.at)
        if found is None:
            self.fail("that's no count")
        start, self.at = self.at, found.end()
        low = int(found[1][:9])
        high = low if found[2] is None else int(found[3][:9]) if found[3] else None
        if max(low, high or 0) > MAX_COUNT or (high is not None and high < low):
            self.fail(f"a count goes up, and not beyond {MAX_COUNT}", start)
        return Repeat(node, low, high)

    def literal(self) -> Node:
        start = self.at
        self.at += 1
        items: list[Node] = []
        while (c := self.peek()) != '"':
            if c in ("", "\n"):
                self.fail("the text isn't closed", start)
            items.append(Chars(_one(self.char())))
        self.at += 1
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def brackets(self) -> Node:
        start = self.at
        self.at += 1
        negative = self.peek() == "^"
        self.at += negative
        parts: list[tuple[int, int]] = []
        while (c := self.peek()) != "]":
            if c in ("", "\n"):
                self.fail("the set isn't closed", start)
            low = high = self.char()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.char()
                if high < low:
                    self.fail("the range goes down", start)
            parts.append((low, high))
        self.at += 1
        ranges = intersect(normalise(parts), SCALARS)
        return Chars(complement(ranges) if negative else ranges)

    def char(self) -> int:
        c = self.peek()
        self.at += 1
        if c != "\\":
            return ord(c)
        start = self.at - 1
        kind = self.peek()
        self.at += 1
        if kind in ESCAPES:
            return ord(ESCAPES[kind])
        if kind not in HEX:
            self.fail(f"\\{kind} has no meaning", start)
        digits = self.text[self.at : self.at + HEX[kind]]
        self.at += HEX[kind]
        if not re.fullmatch(r"[0-9a-fA-F]+", digits) or len(digits) < HEX[kind] or int(digits, 16) > 0x10FFFF:
            self.fail(f"\\{kind} needs {HEX[kind]} hex digits of a character", start)
        return int(digits, 16)


def _one(code: int) -> Ranges:
    return intersect(((code, code),), SCALARS)
