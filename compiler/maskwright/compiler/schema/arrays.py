"""The frames of an array and of a chunk of its items.

States: ("start",), ("open",), ("next", n, formulas) before an item, ("after", n, formulas), ("end", verdict).
Progress (place in a prefix, counts, items found) is in the formulas' atoms, so equal futures are one state; n
is 0.

A large `maxItems` or `minItems` would cost states for every count. Instead, while a bound is more than
`CHUNK` items away, the array calls a `ChunkFrame`: it reads exactly `CHUNK` items with their commas and
returns ("full", formulas) at once, or ends with the bracket and returns ("closed", verdict). Bounds out of
reach are `Far` atoms in it, so that all chunks of an array are one frame. In a chunk n counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from maskwright.compiler.automaton.explore import Call, Stay, Transition
from maskwright.compiler.schema.atoms import Alternatives, AtLeastItems, AtMostItems, Far
from maskwright.compiler.schema.container import COMMA, ContainerFrame
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula
from maskwright.compiler.schema.goals import Formulas, Plan, Submission, plan
from maskwright.compiler.schema.layout import Nest, literal
from maskwright.compiler.schema.sources import Sources

if TYPE_CHECKING:
    from maskwright.compiler.schema.values import Values

OPEN, CLOSE = 0x5B, 0x5D
CHUNK = 32


class ArrayFrame(ContainerFrame):
    """Judged by `must` and `watched`, formulas over array atoms. Compared by identity; `Values` makes one of
    a kind."""

    def __init__(
        self, values: Values, must: Formula, watched: Formulas, nest: Nest, pointer: str, order: Sources = ()
    ) -> None:
        super().__init__(values, "array", nest, pointer, order)
        self.first: Formulas = (must, *watched)
        self.chunk = 0
        self._items: dict[Formulas, tuple[Formulas, Plan] | None] = {}

    def item(self, formulas: Formulas) -> tuple[Formulas, Plan] | None:
        """The formulas once another item has begun, and what it's asked; None when there can't be one."""
        if formulas not in self._items:
            self._items[formulas] = self._item(formulas)
        return self._items[formulas]

    def _item(self, formulas: Formulas) -> tuple[Formulas, Plan] | None:
        space, what, submissions = self.space, {}, []
        for atom in self.asking(formulas):
            payload: Any = atom.payload
            became = payload.on_item(atom, space)
            if became is not atom:
                what[atom] = became
                continue
            wanted: Alternatives = payload.submit()
            if isinstance(payload, AtMostItems | AtLeastItems | Far):
                continue
            asked = self.space.any(self.values.lowering.holds(s) for s in wanted) if wanted else TRUE
            held, failed = payload.outcome(True, atom, space), payload.outcome(False, atom, space)
            if asked.constant:
                what[atom] = held if asked is TRUE else failed
            else:
                submissions.append(Submission(atom, asked, held, failed, wanted))
        out = self.assign(formulas, what)
        if out[0] is FALSE:
            return None
        found = plan(space, out[0], submissions)
        return None if found.goal.must is FALSE else (out, found)

    def settle(self, position: int, formulas: Formulas) -> Formulas | None:
        return formulas

    # -- the frame ---------------------------------------------------------------------------------

    def transitions(self, state: Any) -> Iterable[Transition]:
        if type(state) is tuple and state[0] != "end":  # layout states are tuples with a type
            return _STATES[state[0]](self, *state[1:])
        return self.layout_transitions(state)

    def _start(self) -> Iterator[Transition]:
        yield Stay(OPEN, OPEN, self.gap(("open",)))

    def _open(self) -> Iterator[Transition]:
        verdict = self.verdict_of(self.first)
        if verdict is not None:
            yield Stay(CLOSE, CLOSE, ("end", verdict))
        if self.item(self.first) is not None:
            yield from self.first_member(("next", 0, self.first))

    def _next(self, count: int, formulas: Formulas) -> Iterator[Transition]:
        far = {} if self.chunk else self._far(formulas)
        if far:
            yield Call(self._chunk_of(formulas, far), ("chunk", formulas))
            return
        found = self.item(formulas)
        if found is not None:
            yield from self.value_calls(found[1], count + 1 if self.chunk else 0, found[0])

    def _after(self, count: int, formulas: Formulas) -> Iterator[Transition]:
        following = ("next", count, formulas) if self.item(formulas) is not None else None
        yield from self.separators(self.verdict_of(formulas), following, CLOSE)

    def resume(self, continuation: Any, verdict: Any) -> Hashable | None:
        if continuation[0] == "chunk":
            return self._after_chunk(continuation[1], verdict)
        return self.value_resume(continuation, verdict)

    # -- chunks ------------------------------------------------------------------------------------

    def _far(self, formulas: Formulas) -> dict[Formula, Formula]:
        """Bounds more than a chunk away, each with its stand-in."""
        out: dict[Formula, Formula] = {}
        for atom in self.atoms(formulas):
            bound: Any = atom.payload
            if isinstance(bound, AtMostItems | AtLeastItems) and bound.count > CHUNK:
                out[atom] = self.space.atom(Far(len(out), isinstance(bound, AtMostItems)))
        return out

    def _chunk_of(self, formulas: Formulas, far: dict[Formula, Formula]) -> ChunkFrame:
        return self.values.chunk(self.assign(formulas, far), self.nest, self.pointer, self.order)

    def _after_chunk(self, formulas: Formulas, verdict: tuple[str, Any]) -> Hashable | None:
        kind, content = verdict
        if kind == "closed":
            return ("end", content)
        back = {}
        for atom, stand_in in self._far(formulas).items():
            bound: Any = atom.payload
            back[stand_in] = self.space.atom(type(bound)(bound.count - CHUNK))
        after = self.assign(content, back)
        state = ("next", 0, after)
        return None if after[0] is FALSE else literal(self.line(self.nest.depth + 1), self.gap(state))


class ChunkFrame(ArrayFrame):
    """`CHUNK` items of an array, from before the first to behind the comma after the last."""

    def __init__(self, values: Values, formulas: Formulas, nest: Nest, pointer: str, order: Sources) -> None:
        super().__init__(values, formulas[0], formulas[1:], nest, pointer, order)
        self.name, self.chunk = "items", CHUNK

    def start(self) -> Hashable:
        return ("next", 0, self.first)

    def _after(self, count: int, formulas: Formulas) -> Iterator[Transition]:
        verdict = self.verdict_of(formulas)
        closed = None if verdict is None else ("closed", verdict)
        if count < CHUNK:
            following = ("next", count, formulas) if self.item(formulas) is not None else None
            yield from self.separators(closed, following, CLOSE)
            return
        yield from self.separators(closed, None, CLOSE)
        if self.item(formulas) is not None:
            yield Stay(COMMA, COMMA, ("end", ("full", formulas)))


_STATES: dict[str, Callable[..., Iterable[Transition]]] = {
    "start": lambda frame: frame._start(),
    "open": lambda frame: frame._open(),
    "next": lambda frame, *rest: frame._next(*rest),
    "after": lambda frame, *rest: frame._after(*rest),
}
