"""Random logits under the mask: what a model that knows nothing would write.

Each step draws standard normal logits, masks them, and takes the largest: a uniform draw from the
legal tokens. Left alone that rarely ends, because nearly every token is legal inside a string; so from
`wind_down` tokens on, tokens that close something (a quote, a bracket, a stop token) get a bonus that grows
by the step. The bonus changes which legal token is drawn, never which are legal.

Uses nothing but the worker runtime and numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from maskwright.workers import (
    Artifact,
    Matcher,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)

CLOSING = frozenset(b'"]},:')
"""Bytes that end a JSON string, key, number or container; a token of nothing else is one that closes."""
BONUS_PER_STEP = 0.25


class EmptyMask(Exception):
    """No token was legal and the text wasn't complete: the artifact is wrong. Holds the text so far."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        super().__init__(f"no token is legal after {text!r}")


@dataclass(frozen=True)
class Sample:
    """A text and its tokens. `finished`: a stop token ended it. `legal`: tokens allowed at each step."""

    text: str
    tokens: list[int]
    finished: bool
    legal: list[int]


class Sampler:
    """Draws texts of one artifact; equal seeds give equal texts. `step_seconds`: fill + accept, each."""

    def __init__(self, artifact: Artifact, seed: int, wind_down: int = 40) -> None:
        self._artifact, self._wind_down = artifact, wind_down
        self._random = np.random.default_rng(seed)
        self.step_seconds: list[float] = []
        self._stops = frozenset(artifact.pack.stop_token_ids)
        closing = [t for t in range(artifact.vocab_size) if CLOSING.issuperset(_spelling(artifact, t))]
        self._closing = np.array(sorted({*closing, *self._stops}), dtype=np.int64)

    def draw(self, max_tokens: int) -> Sample:
        """One text. Raises EmptyMask."""
        matcher, mask = Matcher(self._artifact), allocate_token_bitmask(1, self._artifact.vocab_size)
        text, tokens, legal = bytearray(), list[int](), list[int]()
        while len(tokens) < max_tokens and not matcher.is_terminated():
            logits = self._random.standard_normal((1, self._artifact.vocab_size), dtype=np.float32)
            logits[0, self._closing] += BONUS_PER_STEP * max(0, len(tokens) - self._wind_down)
            began = perf_counter()
            matcher.fill_next_token_bitmask(mask, 0)
            filled = perf_counter()
            apply_token_bitmask_inplace(logits, mask)
            token = int(logits[0].argmax())
            masked = perf_counter()
            if not matcher.accept_token(token):
                raise EmptyMask(bytes(text))
            self.step_seconds.append(perf_counter() - masked + filled - began)
            legal.append(int(np.isfinite(logits).sum()))
            tokens.append(token)
            text += self._artifact.pack.token_bytes(token) or b""
        return Sample(text.decode("utf-8", "replace"), tokens, matcher.is_terminated(), legal)


def _spelling(artifact: Artifact, token: int) -> bytes:
    """The token's bytes; for one that has none, a byte that closes nothing."""
    return artifact.pack.token_bytes(token) or b"\0"
