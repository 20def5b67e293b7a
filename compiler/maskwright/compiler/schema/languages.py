"""Patterns and formats as regular languages over the decoded characters of a string."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from maskwright.compiler.diagnostics import CompileError, LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import (
    NOTHING,
    Budget,
    Dfa,
    is_universal,
    length_range,
    strings,
)
from maskwright.compiler.schema.atoms import Length, Matches, StringSet
from maskwright.compiler.schema.formats import EMAIL_BOUNDS, FORMATS, email_within, format_language, possible_language
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space
from maskwright.compiler.schema.truth import cases, decide


class Languages:
    """Compiles patterns and formats once each, to atoms of one space."""

    def __init__(
        self,
        space: Space,
        options: CompileOptions,
        limits: Limits,
        deadline: float | None,
        known: Languages | None = None,
    ) -> None:
        """`known`: languages of the same space whose patterns needn't be compiled again."""
        self.space, self.options, self.limits, self.deadline = space, options, limits, deadline
        self._patterns: dict[str, Formula] = known._patterns if known is not None else {}
        self._atoms: dict[Formula, Dfa] = known._atoms if known is not None else {}
        self._longest: dict[Formula, int | None] = {}

    def budget(self, pointer: str = "") -> Budget:
        return Budget(self.limits.states, self.deadline, self.limits.compile_seconds, "strings", pointer)

    def pattern(self, source: str, pointer: str) -> Formula:
        """Texts in which the pattern is found anywhere. Raises CompileError at `pointer`."""
        found = self._patterns.get(source)
        if found is None:
            found = self._patterns[source] = self._language(source, self._search(source, pointer))
        return found

    def _search(self, source: str, pointer: str) -> Dfa:
        try:
            return compile_pattern(
                source,
                self.options.regex_dialect,
                mode="search",
                limits=self.limits,
                deadline=self.deadline,
                pointer=pointer,
            )
        except LimitExceeded:
            raise
        except CompileError as e:
            raise CompileError([replace(d, pointer=pointer) for d in e.diagnostics]) from None

    def enforces(self, format_name: str, asserted: bool = False) -> bool:
        """Whether a format is judged; the others are annotations. `asserted`: the schema's dialect asks for it."""
        return (asserted or self.options.formats == "enforce") and format_name in FORMATS

    def format(self, name: str, asserted: bool = False) -> Formula:
        """True for what isn't enforced."""
        if not self.enforces(name, asserted):
            return TRUE
        return self.space.atom(Matches(name, format_language(name), possible_language(name), True))

    def within(self, atom: Formula, most: int) -> Formula | None:
        """A language whose texts have at most `most` characters, to stand for the atom where that length is asked
        beside it; None where it takes a count. An approximated format may become narrower."""
        payload = atom.payload
        if not isinstance(payload, Matches):
            return None
        if atom not in self._longest:
            self._longest[atom] = longest(payload.language)
        bound = self._longest[atom]
        if bound is not None and bound <= most:
            return atom
        if payload.is_format and payload.source == "email" and most in EMAIL_BOUNDS:
            return self.space.atom(Matches("email", email_within(most), payload.possible, True))
        return None

    def _language(self, source: str, language: Dfa) -> Formula:
        if is_universal(language):
            return TRUE
        return FALSE if language == NOTHING else self.space.atom(Matches(source, language))

    def dfa(self, atom: Formula) -> Dfa:
        """The language of a string atom over characters."""
        found = self._atoms.get(atom)
        if found is None:
            payload = atom.payload
            if isinstance(payload, Length):
                found = length_range(payload.low, payload.high, self.budget())
            elif isinstance(payload, StringSet):
                found = strings(sorted(payload.values), self.budget())
            else:
                assert isinstance(payload, Matches)
                found = payload.language
            self._atoms[atom] = found
        return found

    def possible(self, atom: Formula) -> Dfa | None:
        """The texts of an atom that's approximated which may match it; None for an exact one."""
        return atom.payload.possible if isinstance(atom.payload, Matches) else None

    def decide(self, must: Formula, watched: tuple[Formula, ...], text: str) -> tuple[bool, ...] | None:
        """The watched formulas' values for a text; None where `must` fails or anything isn't decided."""
        atoms = atoms_of((must, *watched))
        return decide(self.space, must, watched, cases(atoms, [self._truth(a, text) for a in atoms]))

    def member(self, f: Formula, text: str) -> bool:
        """Whether a formula over string atoms certainly holds for a text."""
        return self.decide(f, (), text) is not None

    def _truth(self, atom: Formula, text: str) -> bool | None:
        payload = atom.payload
        if isinstance(payload, StringSet):
            return text in payload.values
        if isinstance(payload, Length):
            return payload.contains(len(text))
        assert isinstance(payload, Matches)
        if payload.language.label(text) >= 0:
            return True
        return None if payload.possible is not None and payload.possible.label(text) >= 0 else False


def longest(language: Dfa) -> int | None:
    """Characters of the longest text; None when there's no longest. Every state of a `Dfa` leads to an end."""
    below = [sorted({t for _, _, t in row}) for row in language.transitions]
    if not below:
        return 0
    found: list[int | None] = [None] * len(below)
    path = [False] * len(below)
    work = [(0, iter(below[0]))]
    while work:
        at, rest = work[-1]
        path[at] = True
        target = next(rest, None)
        if target is None:
            found[at] = max((1 + (found[t] or 0) for t in below[at]), default=0)
            path[at] = False
            work.pop()
        elif path[target]:
            return None
        elif found[target] is None:
            work.append((target, iter(below[target])))
    return found[0]


def atoms_of(formulas: Iterable[Formula]) -> list[Formula]:
    """Their atoms, by creation."""
    return sorted({a for f in formulas for a in f.atoms}, key=lambda a: a.number)
