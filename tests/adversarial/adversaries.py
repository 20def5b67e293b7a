"""Texts written under masks by adversaries: logits that want what a constrained run can least use.

Each adversary is a preference over the vocabulary, fixed for a run; a step draws noise, adds the preference, masks,
and takes the largest. None of them wants to stop. A run has two phases: `free` tokens under plain masks, then masks
with a budget of `min_tokens_to_finish() + slack`, under which it must end by a stop token in time.

    uniform      any legal token                      opening    brackets that open, none that close
    whitespace   white space, longest first           longest    the most bytes
    escapes      backslashes                          endless    nothing that closes a string or container
    digits       digits, as many as there are         crossing   tokens of many structural characters
    fragments    pieces of UTF-8 sequences            closing    whatever closes, shortest first
    rare         always the last id                   common     always the first
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

F32 = npt.NDArray[np.float32]
NOISE = 0.5
WEIGHT = 4.0


def _count(characters: bytes) -> Callable[[bytes], float]:
    return lambda b: sum(b.count(c) for c in characters)


def _share(characters: bytes) -> Callable[[bytes], float]:
    """Length of a token of these characters alone, less than nothing for others."""
    return lambda b: len(b) if not b.strip(characters) else -1.0


def _crossing(b: bytes) -> float:
    return sum(x != y for x, y in pairwise(b) if bytes((x,)) in b'{}[]",:' or bytes((y,)) in b'{}[]",:')


WANTS: dict[str, Callable[[bytes], float]] = {
    "uniform": lambda b: 0.0,
    "opening": lambda b: _count(b"[{")(b) - 3 * _count(b"]}")(b),
    "whitespace": _share(b" \t\n\r"),
    "longest": len,
    "escapes": _count(b"\\"),
    "endless": lambda b: -_count(b'"]}')(b),
    "digits": _share(b"0123456789"),
    "crossing": _crossing,
    "fragments": lambda b: 1.0 if _is_fragment(b) else 0.0,
    "closing": lambda b: 2 * _count(b'"]}')(b) / len(b),
}


def _is_fragment(b: bytes) -> bool:
    try:
        b.decode()
    except UnicodeDecodeError:
        return True
    return False


class Adversaries:
    """The preferences for one vocabulary, float32 [vocab_size] each, and noise to go with them."""

    def __init__(self, pack: VocabularyPack, seed: int) -> None:
        self.pack, self._random = pack, np.random.default_rng(seed)
        texts = [pack.token_bytes(t) for t in range(pack.vocab_size)]
        self.preferences: dict[str, F32] = {}
        for name, want in WANTS.items():
            self._add(name, np.array([0.0 if b is None else want(b) for b in texts], np.float32))
        self._add("rare", np.arange(pack.vocab_size, dtype=np.float32))
        self._add("common", -np.arange(pack.vocab_size, dtype=np.float32))
        self._noise: F32 = self._random.standard_normal(3 * pack.vocab_size, dtype=np.float32) * np.float32(NOISE)

    def _add(self, name: str, preference: F32) -> None:
        preference = preference * np.float32(WEIGHT)
        preference[list(self.pack.stop_token_ids)] = preference.min() - 100
        self.preferences[name] = preference

    def logits(self, name: str) -> F32:
        """A step's logits."""
        at = int(self._random.integers(2 * self.pack.vocab_size))
        return self.preferences[name] + self._noise[at : at + self.pack.vocab_size]


@dataclass(frozen=True)
class Written:
    """A run's text. `allowed`: tokens that its budget left it after the free ones. `ended`: by a stop token."""

    text: bytes
    tokens: list[int]
    free: int
    allowed: int
    ended: bool


class NoLegalToken(AssertionError):
    """A mask without tokens, or a masked token that isn't accepted."""


def write(artifact: Artifact, adversaries: Adversaries, name: str, free: int, slack: int) -> Written:
    """One run. Raises NoLegalToken, DeadEnd; ArtifactError when masks and automaton disagree."""
    matcher, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size)
    tokens: list[int] = []
    while len(tokens) < free and not matcher.is_terminated():
        matcher.fill_next_token_bitmask(mask)
        tokens.append(_step(matcher, mask, adversaries.logits(name), tokens))
    least = matcher.min_tokens_to_finish()
    assert math.isfinite(least)
    begun, allowed = len(tokens), int(least) + slack
    for remaining in range(allowed, 0, -1):
        if matcher.is_terminated():
            break
        matcher.fill_next_token_bitmask(mask, 0, remaining=remaining)
        tokens.append(_step(matcher, mask, adversaries.logits(name), tokens))
    text = b"".join(artifact.pack.token_bytes(t) or b"" for t in tokens)
    return Written(text, tokens, begun, allowed, matcher.is_terminated())


def _step(matcher: Matcher, mask: Any, logits: F32, tokens: list[int]) -> int:
    legal = np.unpackbits(mask.view(np.uint8)[0], bitorder="little")[: matcher.vocab_size]
    np.copyto(logits, -np.inf, where=legal == 0)
    token = int(logits.argmax())
    if not legal[token] or not matcher.accept_token(token):
        raise NoLegalToken(f"after {tokens}")
    return token


def plans(count: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """(adversary, free tokens, slack) of `count` runs: every adversary in turn, budgets from the least upwards."""
    choose = np.random.default_rng(seed)
    names = [*WANTS, "rare", "common"]
    for n in range(count):
        yield names[(n + seed) % len(names)], int(choose.choice([0, 0, 4, 20])), int(choose.choice([0, 1, 6, 30]))
