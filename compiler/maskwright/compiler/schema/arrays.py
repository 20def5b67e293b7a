"""The frame of an array. States: ("start",), ("open",), ("next", 0, formulas), ("after", 0, formulas),
("end", verdict).

Progress (place in a prefix, counts, items found) is in the formulas' atoms, so equal futures are one state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from maskwright.compiler.automaton.explore import Call, Stay
from maskwright.compiler.schema.container import ContainerFrame
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula
from maskwright.compiler.schema.goals import Formulas, Plan, Submission, plan
from maskwright.compiler.schema.layout import Nest

if TYPE_CHECKING:
    from maskwright.compiler.schema.values import Values

OPEN, CLOSE = 0x5B, 0x5D


class ArrayFrame(ContainerFrame):
    """Judged by `must` and `watched`, formulas over array atoms. Compared by identity; `Values` makes one of
    a kind."""

    def __init__(self, values: Values, must: Formula, watched: Formulas, nest: Nest, pointer: str) -> None:
        super().__init__(values, "array", nest, pointer)
        self.first: Formulas = (must, *watched)
        self._items: dict[Formulas, tuple[Formulas, Plan] | None] = {}

    def item(self, formulas: Formulas) -> tuple[Formulas, Plan] | None:
        """The formulas once another item has begun, and what it's asked; None when there can't be one."""
        if formulas not in self._items:
            self._items[formulas] = self._item(formulas)
        return self._items[formulas]

    def _item(self, formulas: Formulas) -> tuple[Formulas, Plan] | None:
        space, what, submissions = self.space, {}, []
        for atom in self.atoms(formulas):
            payload: Any = atom.payload
            became = payload.on_item(atom, space)
            if became is not atom:
                what[atom] = became
                continue
            schema = payload.submit()
            if schema is not None:
                asked = self.values.lowering.holds(schema)
                held, failed = payload.outcome(True, atom, space), payload.outcome(False, atom, space)
                if asked.constant:
                    what[atom] = held if asked is TRUE else failed
                else:
                    submissions.append(Submission(atom, asked, held, failed, (schema,)))
        out = self.assign(formulas, what)
        if out[0] is FALSE:
            return None
        found = plan(space, out[0], submissions)
        return None if found.goal.must is FALSE else (out, found)

    def settle(self, position: int, formulas: Formulas) -> Formulas | None:
        return formulas

    # -- the frame ---------------------------------------------------------------------------------

    def transitions(self, state: Any) -> Iterable[Stay | Call]:
        rest = self.layout_transitions(state)
        return _STATES[state[0]](self, *state[1:]) if rest is None else rest

    def _start(self) -> Iterator[Stay | Call]:
        yield Stay(OPEN, OPEN, self.gap(("open",)))

    def _open(self) -> Iterator[Stay | Call]:
        verdict = self.verdict_of(self.first)
        if verdict is not None:
            yield Stay(CLOSE, CLOSE, ("end", verdict))
        if self.item(self.first) is not None:
            yield from self.first_member(("next", 0, self.first))

    def _next(self, position: int, formulas: Formulas) -> Iterator[Stay | Call]:
        found = self.item(formulas)
        if found is not None:
            yield from self.value_calls(found[1], 0, found[0])

    def _after(self, position: int, formulas: Formulas) -> Iterator[Stay | Call]:
        following = ("next", 0, formulas) if self.item(formulas) is not None else None
        yield from self.separators(self.verdict_of(formulas), following, CLOSE)

    def resume(self, continuation: Any, verdict: Any) -> Hashable | None:
        return self.value_resume(continuation, verdict)


_STATES: dict[str, Any] = {
    "start": ArrayFrame._start,
    "open": ArrayFrame._open,
    "next": ArrayFrame._next,
    "after": ArrayFrame._after,
}
