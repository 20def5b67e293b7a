"""One view of the page: everything that it shows for an artifact, a list of tokens and settings, and nothing more.

A view is a function of these, so a link that holds them restores it. Probabilities are floats; the number of
completions is exact, as decimal digits, since it's often too large for a float.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.workers import Artifact, Matcher

from .distributions import Distribution, Noise, Spoken, with_legal_mass
from .following import Mask, bytes_taken, completions, least_tokens, mask_of
from .sampling import F64, Settings, drawable, softmax

SHOWN_LIKELY, SHOWN_LEGAL, SHOWN_FOUND = 10, 12, 60
END = "end of text"
MAX_DIGITS = 4000
"""Of a number of completions; Python writes no longer ones unless it's told to."""


@dataclass(frozen=True)
class Row:
    """A token of the table. state: "legal", "masked", or "late": legal, but the budget wouldn't be kept.

    raw: probability without the mask; after: with it, renormalised; drawn: after temperature, top-k and top-p too.
    taken: bytes of an illegal token that could be followed. toward: how the word goes on that it begins.
    """

    token: int
    text: str
    state: str
    raw: float
    after: float
    drawn: float
    stop: bool = False
    taken: int | None = None
    toward: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields that say something."""
        silent = (None, "", False)
        return {name: value for name, value in vars(self).items() if not any(value is s for s in silent)}


@dataclass(frozen=True)
class Step:
    """A position's probabilities, [vocab_size] each."""

    spoken: Spoken
    mask: Mask
    raw: F64
    after: F64
    drawn: F64

    @property
    def retained(self) -> float:
        """The part of the raw mass that the mask leaves."""
        return float(self.raw[self.mask.legal].sum())


def step_of(
    matcher: Matcher,
    tokens: Sequence[int],
    distribution: Distribution,
    noise: Noise,
    settings: Settings,
    budget: int = 0,
) -> Step:
    """What may come after `tokens`, where `matcher` stands. `budget`: tokens of the whole text at most, 0 for any."""
    mask = mask_of(matcher, max(0, budget - len(tokens)) if budget else None)
    spoken = with_legal_mass(distribution.speak(tokens), mask.legal, tokens, noise)
    after = np.zeros_like(spoken.logits)
    after[mask.legal] = softmax(spoken.logits[mask.legal])
    return Step(spoken, mask, softmax(spoken.logits), after, drawable(spoken.logits, mask.bits, settings))


def token_text(artifact: Artifact, token: int) -> str:
    """A token for people: its text, bytes that aren't text escaped, a special token's name."""
    data = artifact.pack.token_bytes(token)
    if data is not None:
        return data.decode("utf-8", "backslashreplace")
    if token in artifact.pack.stop_token_ids:
        return END
    return artifact.pack.special_text(token) or f"token {token}"


def rows_of(matcher: Matcher, step: Step, search: str) -> list[Row]:
    """The likeliest tokens by either probability; or those with `search` in their text, the likeliest first."""
    artifact, legal = matcher.artifact, step.mask.legal
    if search:
        chosen = np.array(list(_found(artifact, search)), np.int64)
        shown = SHOWN_FOUND
    else:
        order = np.argsort(-step.raw, kind="stable")
        chosen = np.union1d(order[:SHOWN_LIKELY], order[legal[order]][:SHOWN_LEGAL])
        chosen = chosen[legal[chosen] | (step.raw[chosen] > 0)]  # what can't come and may not isn't worth a line
        shown = len(chosen)
    chosen = chosen[np.argsort(-step.raw[chosen], kind="stable")][:shown]
    return [_row(matcher, step, int(token)) for token in chosen]


def _found(artifact: Artifact, search: str) -> Iterator[int]:
    for token in range(artifact.vocab_size):
        if search in token_text(artifact, token):
            yield token


def _row(matcher: Matcher, step: Step, token: int) -> Row:
    artifact, mask = matcher.artifact, step.mask
    data = artifact.pack.token_bytes(token)
    state = "legal" if mask.legal[token] else "late" if mask.late[token] else "masked"
    return Row(
        token=token,
        text=token_text(artifact, token),
        state=state,
        raw=float(step.raw[token]),
        after=float(step.after[token]),
        drawn=float(step.drawn[token]),
        stop=token in artifact.pack.stop_token_ids,
        taken=bytes_taken(matcher, data) if state == "masked" and data is not None else None,
        toward=step.spoken.toward.get(token, ""),
    )


def figures_of(matcher: Matcher, step: Step, budget: int, written: int) -> dict[str, Any]:
    """The numbers above the table."""
    left = completions(matcher)
    return {
        "retained": step.retained,
        "legal": int(step.mask.legal.sum()),
        "late": int(step.mask.late.sum()),
        "completions": None if left is None else _digits(left),
        "least": least_tokens(matcher),
        "may_end": matcher.is_accepting(),
        "ended": matcher.is_terminated(),
        "remaining": max(0, budget - written) if budget else None,
        "short": step.mask.short,
    }


def _digits(number: int) -> str:
    """Decimal digits; of a number with more than `MAX_DIGITS` its size alone, as 10^n."""
    if number.bit_length() * 0.30103 > MAX_DIGITS:
        return f"10^{int(number.bit_length() * 0.30103)}"
    return str(number)


def place_of(matcher: Matcher) -> dict[str, Any]:
    """Where in the source and in the automaton the text is; the frames from the innermost out."""
    told = matcher.explain()
    return {
        "pointer": told.pointer,
        "frames": [{"name": name, "pointer": pointer} for name, pointer in reversed(told.stack)],
        "expected": _runs(told.expected),
        "forced": told.forced,
        "alternatives": list(told.alternatives),
    }


def _runs(values: bytes) -> list[list[int]]:
    """Neighbours as [first, last]."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return runs


def pieces_of(artifact: Artifact, tokens: Sequence[int]) -> list[dict[str, Any]]:
    """The text so far, token by token."""
    stops = artifact.pack.stop_token_ids
    return [{"token": t, "text": token_text(artifact, t), **({"stop": True} if t in stops else {})} for t in tokens]
