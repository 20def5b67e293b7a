"""Runs: from where the text is, draw tokens until it ends, as many as are asked for, or time is up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.workers import Artifact

from .distributions import Distribution, Noise
from .following import replay, text_of
from .sampling import Settings, draw, drawable
from .views import step_of, token_text

MAX_STEPS, RUN_SECONDS = 512, 10.0


@dataclass(frozen=True)
class Run:
    """`tokens`: drawn, in order. `why`: "end" by a stop token, "steps", "time", or "stuck" where none could be drawn.
    `illegal_at`: which of them, without the mask, was the first that isn't legal; None: all are.
    """

    tokens: list[int]
    why: str
    retained: list[float]
    illegal_at: int | None = None


def run_masked(
    artifact: Artifact, tokens: Sequence[int], distribution: Distribution, noise: Noise, settings: Settings, steps: int
) -> Run:
    """Draws under the mask."""
    deadline, written, retained = time.monotonic() + RUN_SECONDS, list(tokens), list[float]()
    matcher = replay(artifact, written).matcher
    why = "steps"
    while len(retained) < steps:
        if time.monotonic() > deadline:
            why = "time"
            break
        step = step_of(matcher, written, distribution, noise, settings)
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


def run_free(
    artifact: Artifact, tokens: Sequence[int], distribution: Distribution, settings: Settings, steps: int
) -> Run:
    """Draws without the mask, with the same numbers; then tells where it would have stopped it."""
    deadline, written = time.monotonic() + RUN_SECONDS, list(tokens)
    stops, why = frozenset(artifact.pack.stop_token_ids), "steps"
    while len(written) - len(tokens) < steps:
        if time.monotonic() > deadline:
            why = "time"
            break
        token = draw(drawable(distribution.speak(written).logits, settings), settings, len(written))
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
