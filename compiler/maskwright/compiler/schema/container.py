"""What object and array frames share: formulas as state, layout, calls of values.

A container's formulas are a tuple: the first must hold in the end, the verdict holds the values of the
others. States are tuples that begin with a name; `Gap` and `Literal` states come from the layout.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from maskwright.compiler.automaton.explore import Also, Call, Stay, Transition
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Kind, constant
from maskwright.compiler.schema.goals import Formulas, Goal, Plan
from maskwright.compiler.schema.layout import Gap, Literal, Nest, literal
from maskwright.compiler.schema.sources import Ranking, Sources

if TYPE_CHECKING:
    from maskwright.compiler.schema.values import Values

MAX_WATCHED = 4
"""Outcomes are compared for so many watched formulas at most: there are two to that power."""
COMMA, COLON = 0x2C, 0x3A
Mapped = tuple[bool | int, ...]
"""For each watched formula its value, or where it's in the called frame's verdict (~i: negated)."""


class ContainerFrame:
    """Base of `ObjectFrame` and `ArrayFrame`. Compared by identity."""

    def __init__(self, values: Values, name: str, nest: Nest, pointer: str, order: Sources = ()) -> None:
        self.values, self.space = values, values.space
        self.name, self.pointer, self.nest = name, pointer, nest
        self.indent = values.options.whitespace if isinstance(values.options.whitespace, int) else None
        self.flexible = values.options.whitespace == "flexible"
        self.order = order
        self._ranking = Ranking(order)
        self._finished: dict[Formulas, tuple[bool, ...] | None] = {}

    def start(self) -> Hashable:
        return ("start",)

    def verdict(self, state: Any) -> Hashable | None:
        return state[1] if isinstance(state, tuple) and state[0] == "end" else None

    def settle(self, position: int, formulas: Formulas) -> Formulas | None:
        """After a member: atoms with nothing left to say become true. None: a contradiction."""
        raise NotImplementedError

    # -- formulas ----------------------------------------------------------------------------------

    def atoms(self, formulas: Formulas) -> Iterable[Formula]:
        if len(formulas) == 1:
            return formulas[0].atoms
        return sorted({a for f in formulas for a in f.atoms}, key=lambda a: a.number)

    def asking(self, formulas: Formulas) -> Iterable[Formula]:
        """The atoms, those of members or items in the order of the schemas that bring them: see sources.py."""
        return self._ranking.sort(self.atoms(formulas))

    def assign(self, formulas: Formulas, what: Mapping[Formula, Formula]) -> Formulas:
        return tuple(self.space.assign(f, what) for f in formulas) if what else formulas

    def verdict_of(self, formulas: Formulas) -> tuple[bool, ...] | None:
        """The watched formulas' values when the container ends here; None when what must hold doesn't."""
        if formulas not in self._finished:
            ends = {a: a.payload.finish() for a in self.atoms(formulas)}  # type: ignore[attr-defined]
            # An atom that can't tell (None) only matters where the others don't decide.
            must, *watched = self.assign(formulas, {a: constant(end) for a, end in ends.items() if end is not None})
            decided = must is TRUE and all(w.constant for w in watched)
            self._finished[formulas] = tuple(w is TRUE for w in watched) if decided else None
        return self._finished[formulas]

    # -- layout ------------------------------------------------------------------------------------

    def gap(self, state: Hashable) -> Hashable:
        return Gap(state) if self.flexible else state

    def line(self, depth: int) -> str:
        return "" if self.indent is None else "\n" + " " * (self.indent * depth)

    def layout_transitions(self, state: Any) -> Iterable[Transition]:
        """The transitions of a layout state or an end."""
        if isinstance(state, Literal):
            return [state.stay()]
        if isinstance(state, Gap):
            return [Also(state.target), Call(self.values.whitespace, ("to", state.target))]
        return []

    def transitions(self, state: Any) -> Iterable[Transition]:
        raise NotImplementedError

    def colon(self, value: Hashable) -> Stay:
        return Stay(COLON, COLON, self.gap(value) if self.indent is None else literal(" ", value))

    def first_member(self, state: Hashable) -> Iterator[Transition]:
        """From behind the opening bracket to the first member, whose transitions are those of `state`."""
        if self.indent is None:
            yield from self.transitions(state)
        else:
            yield Literal(self.line(self.nest.depth + 1), state).stay()

    def separators(self, verdict: Hashable | None, following: Hashable | None, bracket: int) -> Iterator[Stay]:
        """After a member: a comma and another, or the closing bracket."""
        if following is not None:
            yield Stay(COMMA, COMMA, literal(self.line(self.nest.depth + 1), self.gap(following)))
        if verdict is not None:
            end = ("end", verdict)
            if self.indent is None:
                yield Stay(bracket, bracket, end)
            else:
                yield Literal(self.line(self.nest.depth) + chr(bracket), end).stay()

    # -- values ------------------------------------------------------------------------------------

    def value_calls(self, plan: Plan, position: int, formulas: Formulas) -> Iterator[Call]:
        """Calls of the value's frames, by type; `position` and `formulas` are those after it, up to the
        value's outcome."""
        nest = self.nest.deeper(self.indent is not None)
        only = self._only_outcome(plan, position, formulas)
        if only is not None:
            for frame, _ in self.values.calls(Goal(plan.goal.must, (), plan.goal.schemas), nest):
                yield Call(frame, ("to", only))
            return
        for frame, mapped in self.values.calls(plan.goal, nest):
            if all(isinstance(m, bool) for m in mapped):
                after = self._after_value(plan, position, formulas, mapped, ())
                if after is not None:
                    yield Call(frame, ("to", after))
            else:
                yield Call(frame, ("value", plan, position, formulas, mapped))

    def _only_outcome(self, plan: Plan, position: int, formulas: Formulas) -> Hashable | None:
        """The state after the value when every verdict that `must` allows leads to one; then none need be
        watched."""
        must, watched = plan.goal.must, plan.goal.watched
        if len(watched) > MAX_WATCHED:
            return None
        found: set[Hashable] = set()
        for held in itertools.product((False, True), repeat=len(watched)):
            known = {w: constant(h) for w, h in zip(watched, held, strict=True) if w.kind is Kind.ATOM}
            if self.space.assign(must, known) is not FALSE:
                found.add(self._after_value(plan, position, formulas, held, ()))
                if None in found or len(found) > 1:
                    return None
        return next(iter(found), None)

    def value_resume(self, continuation: Any, verdict: Any) -> Hashable | None:
        if continuation[0] == "to":
            state: Hashable = continuation[1]
            return state
        _, plan, position, formulas, mapped = continuation
        return self._after_value(plan, position, formulas, mapped, verdict)

    def _after_value(
        self, plan: Plan, position: int, formulas: Formulas, mapped: Mapped, verdict: tuple[bool, ...]
    ) -> Hashable | None:
        held = tuple(m if isinstance(m, bool) else verdict[m] if m >= 0 else not verdict[~m] for m in mapped)
        out = self.assign(formulas, plan.outcome(held))
        settled = None if out[0] is FALSE else self.settle(position, out)
        return None if settled is None else self.gap(("after", position, settled))
