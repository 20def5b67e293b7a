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

from .distributions import F64, Distribution, Noise, Spoken, with_legal_mass
from .following import Flags, bytes_taken, legal_tokens
from .sampling import Settings, drawable, softmax
from .tokenizers import Tokenizer

SHOWN_LIKELY, SHOWN_FOUND = 16, 60
END = "end of text"


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
    legal: Flags
    raw: F64
    after: F64
    drawn: F64

    @property
    def retained(self) -> float:
        """The part of the raw mass that the mask leaves."""
        return float(self.raw[self.legal].sum())


def step_of(
    matcher: Matcher, tokens: Sequence[int], distribution: Distribution, noise: Noise, settings: Settings
) -> Step:
    """What may come after `tokens`, where `matcher` stands."""
    legal = legal_tokens(matcher)
    spoken = with_legal_mass(distribution.speak(tokens), legal, tokens, noise)
    masked = np.where(legal, spoken.logits, -np.inf)
    return Step(spoken, legal, softmax(spoken.logits), softmax(masked), drawable(masked, settings))


def token_text(artifact: Artifact, token: int) -> str:
    """A token for people: its text, bytes that aren't text escaped, a special token's name."""
    data = artifact.pack.token_bytes(token)
    if data is not None:
        return data.decode("utf-8", "backslashreplace")
    if token in artifact.pack.stop_token_ids:
        return END
    return artifact.pack.special_text(token) or f"token {token}"


def rows_of(tokenizer: Tokenizer, matcher: Matcher, artifact: Artifact, step: Step, search: str) -> list[Row]:
    """The likeliest tokens by either probability; or those with `search` in their text, the likeliest first."""
    if search:
        chosen = np.array(list(_found(artifact, search)), np.int64)
        chosen = chosen[np.argsort(-step.raw[chosen], kind="stable")][:SHOWN_FOUND]
    else:
        order = np.argsort(-step.raw, kind="stable")
        legal = order[step.legal[order]]
        chosen = np.union1d(order[:SHOWN_LIKELY], legal[:SHOWN_LIKELY])
        chosen = chosen[np.argsort(-step.raw[chosen], kind="stable")]
        # Of tokens that can't come and may not, none is worth a line.
        chosen = chosen[step.legal[chosen] | (step.raw[chosen] > 0)]
    return [_row(matcher, artifact, step, int(token)) for token in chosen]


def _found(artifact: Artifact, search: str) -> Iterator[int]:
    for token in range(artifact.vocab_size):
        if search in token_text(artifact, token):
            yield token


def _row(matcher: Matcher, artifact: Artifact, step: Step, token: int) -> Row:
    data = artifact.pack.token_bytes(token)
    legal = bool(step.legal[token])
    return Row(
        token=token,
        text=token_text(artifact, token),
        state="legal" if legal else "masked",
        raw=float(step.raw[token]),
        after=float(step.after[token]),
        drawn=float(step.drawn[token]),
        stop=token in artifact.pack.stop_token_ids,
        taken=None if legal or data is None else bytes_taken(matcher, data),
        toward=step.spoken.toward.get(token, ""),
    )


def figures_of(matcher: Matcher, step: Step) -> dict[str, Any]:
    """The numbers above the table."""
    return {
        "retained": step.retained,
        "legal": int(step.legal.sum()),
        "may_end": matcher.is_accepting(),
        "ended": matcher.is_terminated(),
    }


def place_of(artifact: Artifact, matcher: Matcher) -> dict[str, Any]:
    """Where in the source and in the automaton the text is; the frames from the innermost out."""
    place = matcher.where()
    return {
        "pointer": place.pointer,
        "expected": _runs(place.expected),
        "frames": [{"name": place.frame, "pointer": place.pointer}],
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
    return [
        {"token": t, "text": token_text(artifact, t), **({"stop": True} if t in stops else {})} for t in tokens
    ]
