"""The pushdown machine of a grammar, as `pushdown.py` finds it and `assemble.py` lays it out.

Controls are numbered, stack symbols are LR states and, from their number on, return addresses of characters
and embedded values.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from maskwright.compiler.grammar.scan import Rest, ScanState
from maskwright.compiler.regular.codepoints import Ranges

Stack = tuple[int, ...]


class Go(NamedTuple):
    """The lexer goes on in `scan`, not with a blocked byte; `stack` is the known part, its top last."""

    stack: Stack
    scan: ScanState
    blocked: int = 0


class Pop(NamedTuple):
    """`more` further symbols are popped, then one is exposed and a goto by `origin` is made; then `terminal`
    is tried again.
    """

    terminal: str
    origin: str
    more: int
    rest: Rest


class Accept(NamedTuple):
    """The text is a member."""


Outcome = Go | Pop | Accept | None
ACCEPT = Accept()


class Enter(NamedTuple):
    """Into the middle of a character: state `state` of the automaton that tells `sets` apart; `exits[i]`
    follows set i.
    """

    sets: tuple[Ranges, ...]
    state: int
    exits: tuple[Go | Pop | Accept, ...]


class Begin(NamedTuple):
    """Into the frame of an embedded terminal; `stack` is the known part below it."""

    stack: Stack
    terminal: str


class InEmbedded(NamedTuple):
    """Stands for an embedded terminal's frame, which returns `Exit(0)`."""

    terminal: str


class InCharacter(NamedTuple):
    """A control in the middle of a character, shared by all contexts; at its end the verdict is the set's
    number.
    """

    sets: tuple[Ranges, ...]
    state: int


class Exit(NamedTuple):
    """The verdict of a character's end."""

    number: int


class Lexing(NamedTuple):
    """A control in the middle of, or before, a lexeme. `blocked`: bytes, as bits, that don't come next, because a
    lexeme before would have taken them.
    """

    top: int
    scan: ScanState
    blocked: int = 0


Effect = tuple[int, int, Go | Pop | Accept | Enter | Begin | None]
"""Bytes low..high and what they lead to."""
Control = Lexing | InCharacter | InEmbedded | Pop | Accept


@dataclass(frozen=True, slots=True)
class Transition:
    """Bytes low..high push LR states and go to a control."""

    low: int
    high: int
    pushes: Stack
    target: int


@dataclass(slots=True)
class Machine:
    """Controls by number; `returns[s][v]` says where verdict v leads over LR state s: (pushes, control)."""

    edges: list[list[Transition]] = field(default_factory=list)
    verdict: list[int] = field(default_factory=list)
    returns: dict[int, dict[int, tuple[Stack, int]]] = field(default_factory=lambda: defaultdict(dict))
    n_states: int = 0
    """LR states; symbols from here on are return addresses."""
    tops: dict[int, int] = field(default_factory=dict)
    """The LR state on top, of controls that read lexemes; and the start for the accepting control."""
    characters: dict[int, tuple[Ranges, ...]] = field(default_factory=dict)
    """Controls in the middle of a character, with the sets told apart."""
    embedded: dict[int, str] = field(default_factory=dict)
    """Controls that stand for an embedded terminal's frame."""
    n_verdicts: int = 0
    start: int = 0
    accept: int = 0
