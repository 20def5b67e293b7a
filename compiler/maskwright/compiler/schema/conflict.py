"""Why a schema has no instance: a smallest set of its keywords that exclude each other.

QuickXplain (Junker, 2004) over the keywords: each probe compiles the schema with the others switched off (true where
they may have to hold, false where they only have to fail) and looks whether a text is left. The set found is
irreducible: without any one of its keywords there is an instance. Cost: about k log n probes for k of n keywords.

Probes have limits of their own, in states and in number, so that the answer depends on the schema alone (unless the
deadline passes): where they don't suffice, there's no explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.specialise import reach
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.schema.check import Findings, Residual
from maskwright.compiler.schema.keywords import KEYWORDS, Place

MAX_PROBES = 150
MAX_KEYWORDS = 5_000
STATES = 150_000
"""Of all probes together."""
STATES_OF_ONE = 20_000

Switch = tuple[int, str]
"""A keyword by the signature of its schema: equal schemas are switched together."""
_GROUPED = frozenset(("minContains", "maxContains"))
"""Judged as part of another keyword, and without it they could make the schema stricter."""


def unsatisfiable(found: Findings, explored: Callable[[Residual, int], ByteAutomaton]) -> Diagnostic:
    """The diagnostic of a schema without instances. `explored(switched off, states)` compiles it without them."""
    places = _places(found)
    try:
        kept = _Search(found, explored).conflict(list(places)) if len(places) <= MAX_KEYWORDS else []
    except LimitExceeded:
        kept = []
    pointers = _shown([places[switch] for switch in kept])
    if not pointers:
        return Diagnostic(Code.UNSATISFIABLE, "no text is in the language", pointer="")
    names = ", ".join(pointers[:-1]) + (f" and {pointers[-1]}" if len(pointers) > 1 else pointers[-1])
    what = "exclude each other" if len(pointers) > 1 else "excludes every value"
    return Diagnostic(
        Code.UNSATISFIABLE,
        f"no text is in the language: {names} {what}",
        pointer="",
        detail={"conflict": pointers},
        hint="change or remove one of them",
    )


def _places(found: Findings) -> dict[Switch, str]:
    """Keywords that can be switched, with their first place."""
    out: dict[Switch, str] = {}
    for (pointer, keyword), signatures in found.stands.items():
        if found.treated[pointer, keyword] == "enforced" and keyword not in _GROUPED:
            for signature in signatures:
                if (signature, keyword) not in found.residual and found.polarity[signature] != (True, True):
                    out.setdefault((signature, keyword), pointer)
    return out


def _shown(pointers: list[str]) -> list[str]:
    """Without references, and without keywords that only lead to others of the conflict."""
    leaves = [p for p in pointers if not p.endswith("/$ref")] or pointers

    def leads(pointer: str) -> bool:
        known = KEYWORDS.get(pointer.rpartition("/")[2])
        return known is not None and known.place is not Place.NONE and any(o.startswith(f"{pointer}/") for o in leaves)

    return [p for p in leaves if not leads(p)]


class _Search:
    def __init__(self, found: Findings, explored: Callable[[Residual, int], ByteAutomaton]) -> None:
        self.found, self.explored = found, explored
        self.every: list[Switch] = []
        self.probes, self.states = 0, 0

    def conflict(self, every: list[Switch]) -> list[Switch]:
        """An irreducible set of keywords that leave no instance; empty when it isn't found."""
        self.every = every
        if not self.excludes([*every]):
            return []
        kept = self._explain([], every, False)
        return kept if self.excludes(kept) else []

    def _explain(self, base: list[Switch], among: Sequence[Switch], grown: bool) -> list[Switch]:
        """Of `among` what it takes, with `base`, to leave none. `grown`: `base` has grown since it was last asked."""
        if grown and self.excludes(base):
            return []
        if len(among) <= 1:
            return list(among)
        one, two = among[: len(among) // 2], among[len(among) // 2 :]
        second = self._explain([*base, *one], two, True)
        first = self._explain([*base, *second], one, bool(second))
        return [*first, *second]

    def excludes(self, kept: list[Switch]) -> bool:
        """Whether no instance is left when only these keywords count. Raises LimitExceeded."""
        self.probes += 1
        if self.probes > MAX_PROBES or self.states > STATES:
            raise LimitExceeded("states", STATES, self.states, "conflict")
        on = set(kept)
        off = {switch: self.found.polarity[switch[0]][0] for switch in self.every if switch not in on}
        try:
            a = self.explored(self.found.residual | off, STATES_OF_ONE)
        except LimitExceeded as e:
            self.states += STATES_OF_ONE
            if e.limit_name == "compile_seconds":
                raise
            return False
        except CompileError:
            return False
        self.states += len(a.edges)
        assert a.start is not None
        use = sum(1 << v for v in a.accepting_verdicts)
        return not reach(a)[a.start - a.first_control] & use
