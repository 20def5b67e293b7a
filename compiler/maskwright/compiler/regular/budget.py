"""What a construction may cost: a number of states and a point in time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded

DEFAULT_MAX_STATES = 200_000
CHECK_EVERY = 256


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds for one construction, and what to say when one is passed.

    max_states: states of any automaton built on the way, before minimisation.
    deadline: a `deadline.now` value, or None; `seconds` is what the caller allowed, for the message.
    stage, pointer, span: where the source stands, copied into `LimitExceeded`.
    """

    max_states: int = DEFAULT_MAX_STATES
    deadline: float | None = None
    seconds: float = 0.0
    stage: str = "regular"
    pointer: str | None = None
    span: tuple[int, int] | None = None

    def at(
        self, *, stage: str | None = None, span: tuple[int, int] | None = None, pointer: str | None = None
    ) -> Budget:
        """The same bounds for another place."""
        return replace(
            self,
            stage=stage or self.stage,
            span=self.span if span is None else span,
            pointer=self.pointer if pointer is None else pointer,
        )

    def check_states(self, states: int) -> None:
        """Raises LimitExceeded when an automaton has grown past `max_states`."""
        if states > self.max_states:
            raise self.exceeded("states", self.max_states, states)

    def check_time(self) -> None:
        """Raises LimitExceeded when the deadline has passed."""
        if self.deadline is not None and (at := now()) > self.deadline:
            raise self.exceeded("compile_seconds", self.seconds, self.seconds + at - self.deadline)

    def exceeded(self, name: str, limit: float, observed: float) -> LimitExceeded:
        return LimitExceeded(name, limit, observed, self.stage, pointer=self.pointer, span=self.span)


DEFAULT = Budget()
