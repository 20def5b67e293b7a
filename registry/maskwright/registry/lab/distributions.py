"""Where the next-token logits come from: a table of texts, seeded noise, or a real model (`model`).

All are functions of what was written alone, so that a view can be restored from a link, and undoing and stepping
again comes to the same place.

A table knows nothing about texts outside it. There, and where the mask leaves none of its mass, seeded noise speaks
instead, and `Spoken.source` says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from maskwright.workers import VocabularyPack

from .sampling import F64, NEVER

SPREAD = 3.0
"""Standard deviation of noise: large enough that a few tokens stand out among thousands."""
_WORD_REST = re.compile(r"[^\W_]*")


@dataclass(frozen=True)
class Spoken:
    """Logits of one step, float64 [vocab_size], `NEVER` for what's never said. `source` names what spoke: "table",
    "noise", "model". `toward` tells of some tokens how the word that they begin goes on.
    """

    logits: F64
    source: str
    toward: dict[int, str] = field(default_factory=dict)


class Distribution(Protocol):
    def speak(self, tokens: Sequence[int]) -> Spoken:
        """The logits after these tokens."""


class Noise:
    """Normal logits that depend on the seed and the tokens so far, and nothing else."""

    def __init__(self, vocab_size: int, seed: int) -> None:
        self._size, self._seed = vocab_size, seed

    def speak(self, tokens: Sequence[int]) -> Spoken:
        digest = hashlib.sha256(b"%d:" % self._seed + b",".join(b"%d" % t for t in tokens)).digest()
        random = np.random.default_rng(int.from_bytes(digest[:16], "big"))
        return Spoken(SPREAD * random.standard_normal(self._size), "noise")


class Spellings:
    """The token that a text goes on with: the longest one that it begins with. Built once for a vocabulary."""

    def __init__(self, pack: VocabularyPack) -> None:
        self._tokens: dict[bytes, int] = {}
        for token in range(pack.vocab_size):
            data = pack.token_bytes(token)
            if data is not None:
                self._tokens.setdefault(data, token)
        self._longest = max(map(len, self._tokens), default=0)

    def first(self, text: bytes) -> int | None:
        """None where no token fits."""
        for length in range(min(len(text), self._longest), 0, -1):
            token = self._tokens.get(text[:length])
            if token is not None:
                return token
        return None

    def split(self, text: bytes) -> list[int]:
        """The tokens of a text, longest first at each place, as far as it can be spelled."""
        tokens: list[int] = []
        while text and (token := self.first(text)) is not None:
            tokens.append(token)
            text = text[self._length(token, text) :]
        return tokens

    def _length(self, token: int, text: bytes) -> int:
        return next(n for n in range(min(len(text), self._longest), 0, -1) if self._tokens.get(text[:n]) == token)


class TextTable:
    """Weighted texts as a language model; `else_` speaks where no text of the table begins with what was written."""

    def __init__(
        self, rows: Sequence[tuple[float, str]], pack: VocabularyPack, spellings: Spellings, else_: Distribution
    ) -> None:
        self._rows = [(weight, text.encode()) for weight, text in rows]
        self._pack, self._spellings, self._else = pack, spellings, else_

    def speak(self, tokens: Sequence[int]) -> Spoken:
        written = b"".join(self._pack.token_bytes(t) or b"" for t in tokens)
        weights: dict[int, float] = {}
        toward: dict[int, str] = {}
        for weight, text in self._rows:
            if not text.startswith(written):
                continue
            rest = text[len(written) :]
            token = self._spellings.first(rest) if rest else next(iter(self._pack.stop_token_ids), None)
            if token is not None:
                weights[token] = weights.get(token, 0.0) + weight
                toward.setdefault(token, _rest_of_word(rest, self._pack.token_bytes(token) or b""))
        if not weights:
            return self._else.speak(tokens)
        logits = np.full(self._pack.vocab_size, NEVER)
        logits[list(weights)] = np.log(list(weights.values()))
        return Spoken(logits, "table", {t: rest for t, rest in toward.items() if rest})


def with_legal_mass(spoken: Spoken, legal: npt.NDArray[np.bool_], tokens: Sequence[int], noise: Distribution) -> Spoken:
    """What was spoken if any legal token can come by it, else noise."""
    if (spoken.logits[legal] > NEVER).any() or not legal.any():
        return spoken
    return noise.speak(tokens)


def _rest_of_word(rest: bytes, token: bytes) -> str:
    if not token or not rest.startswith(token) or not token[-1:].isalnum():
        return ""
    match = _WORD_REST.match(rest[len(token) :].decode("utf-8", "ignore"))
    return match[0] if match else ""
