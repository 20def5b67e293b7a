"""Formulas over atoms some of which aren't decided for a text.

An approximated format has two languages: what surely has the format, and what may have it. For a text between
them the atom is neither true nor false. A formula is decided when it has one value whatever those atoms are;
a text for which `must` or a watched formula isn't decided is left out of the language, so that every verdict
on the others is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space, constant

MAX_UNDECIDED = 6
"""Atoms undecided at once; with more, the text is left out."""


def cases(atoms: Sequence[Formula], truths: Sequence[bool | None]) -> Iterator[dict[Formula, Formula]]:
    """Every way the undecided atoms could be; none when they're too many."""
    known = {a: constant(t) for a, t in zip(atoms, truths, strict=True) if t is not None}
    undecided = [a for a, t in zip(atoms, truths, strict=True) if t is None]
    if len(undecided) > MAX_UNDECIDED:
        return
    for values in itertools.product((TRUE, FALSE), repeat=len(undecided)):
        yield known | dict(zip(undecided, values, strict=True))


def decide(
    space: Space, must: Formula, watched: Sequence[Formula], ways: Iterator[dict[Formula, Formula]]
) -> tuple[bool, ...] | None:
    """The watched formulas' values where `must` holds; None where it fails or anything isn't decided."""
    found: tuple[bool, ...] | None = None
    for known in ways:
        if space.assign(must, known) is not TRUE:
            return None
        values = tuple(space.assign(w, known) is TRUE for w in watched)
        if found is not None and found != values:
            return None
        found = values
    return found
