"""Where whitespace may stand, and how deep a value is nested.

compact    no whitespace
flexible   a *gap* between structural tokens: at most `max_whitespace` bytes of space, tab, line feed,
           carriage return.
           A state with a gap has the transitions of the state without it and a call of the whitespace frame,
           which comes back to the state without: two states a gap, whatever the bound
indent     the layout of `json.dumps(value, indent=n)`: fixed text, which depends on the depth
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.compiler.automaton.explore import Stay
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema.tables import Table


class Nest(NamedTuple):
    """`depth` counts open containers where the layout depends on it (else 0); `left`: how many more may open,
    or None."""

    depth: int
    left: int | None

    def deeper(self, indented: bool) -> Nest:
        return Nest(self.depth + 1 if indented else 0, None if self.left is None else self.left - 1)


def root_nest(options: CompileOptions) -> Nest:
    limit = options.max_nesting
    if limit is None and isinstance(options.whitespace, int):
        limit = CompileOptions.INDENT_NESTING
    return Nest(0, limit)


class Literal(NamedTuple):
    """Fixed text still to come, then `target`."""

    text: str
    target: object

    def stay(self) -> Stay:
        byte = ord(self.text[0])
        return Stay(byte, byte, literal(self.text[1:], self.target))


def literal(text: str, target: object) -> object:
    return Literal(text, target) if text else target


class Gap(NamedTuple):
    """Whitespace may stand here, before `target` goes on."""

    target: object


def whitespace_table(bound: int) -> Table:
    """1 to `bound` whitespace bytes."""
    spaces = (0x09, 0x0A, 0x0D, 0x20)
    rows = tuple(tuple((b, b, i + 1) for b in spaces) for i in range(bound))
    return Table((*rows, ()), (None, *([()] * bound)))
