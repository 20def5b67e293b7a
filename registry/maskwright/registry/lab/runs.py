"""Runs: from where the text is, draw tokens until it ends, as many as are asked for, or time is up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from maskwright.workers import Artifact

from .distributions import Distribution, Noise
from .following import replay, text_of
from .sampling import Settings, draw, drawable, everything
from .views import step_of, token_text

MAX_STEPS, RUN_SECONDS = 512, 20.0


@dataclass(frozen=True)
class Run:
    """`tokens`: drawn, in order. `why`: "end" by a stop token, "steps", "time", or "stuck" where none could be drawn.
    `illegal_at`: which of them, without the mask, was the first that isn't legal; None: all are.
    """

    tokens: list[int]
    why: str
    retained: list[float]
    illegal_at: int | None = None


@dataclass(frozen=True)
class Order:
    """Where a run begins, who speaks, how tokens are drawn, and how many at most; `budget` is of the whole text."""

    tokens: tuple[int, ...]
    distribution: Distribution
    noise: Noise
    settings: Settings
    steps: int
    budget: int = 0


def run_masked(artifact: Artifact, order: Order) -> Run:
    """Draws under the mask, within the budget."""
    tokens, settings = order.tokens, order.settings
    deadline, written, retained = time.monotonic() + RUN_SECONDS, list(tokens), list[float]()
    matcher = replay(artifact, written).matcher
    why = "steps"
    while len(retained) < order.steps:
        if time.monotonic() > deadline:
            why = "time"
            break
        step = step_of(matcher, written, order.distribution, order.noise, settings, order.budget)
        token = draw(step.drawn, settings, len(written))
        if token is None or not matcher.accept_token(token):
            why = "stuck"
            break
        retained.append(step.retained)
        written.append(token)
        if matcher.is_terminated():
            why = "end"
            break
    return Run(written[len(tokens) :], why, retained)


def run_free(artifact: Artifact, order: Order) -> Run:
    """Draws without the mask, with the same numbers, until the budget cuts it off; then tells where the mask would have
    stopped it.
    """
    tokens, settings = order.tokens, order.settings
    steps = min(order.steps, max(0, order.budget - len(tokens))) if order.budget else order.steps
    free = everything(artifact.vocab_size)
    deadline, written = time.monotonic() + RUN_SECONDS, list(tokens)
    stops, why = frozenset(artifact.pack.stop_token_ids), "steps"
    while len(written) - len(tokens) < steps:
        if time.monotonic() > deadline:
            why = "time"
            break
        token = draw(drawable(order.distribution.speak(written).logits, free, settings), settings, len(written))
        if token is None:
            why = "stuck"
            break
        written.append(token)
        if token in stops:
            why = "end"
            break
    taken = replay(artifact, written).taken
    return Run(written[len(tokens) :], why, [], None if taken == len(written) else max(0, taken - len(tokens)))


def run_json(artifact: Artifact, run: Run) -> dict[str, Any]:
    """A run for the page; `text` without what ended it."""
    return {
        "tokens": run.tokens,
        "pieces": [token_text(artifact, t) for t in run.tokens],
        "text": text_of(artifact, run.tokens).decode("utf-8", "replace"),
        "why": run.why,
        "retained": run.retained,
        "illegal_at": run.illegal_at,
    }
