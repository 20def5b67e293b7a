"""Where a list of tokens leads in an artifact: the matcher there, and its mask in the forms that the page shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.workers import Artifact, Matcher, allocate_token_bitmask
from maskwright.workers.errors import DeadEnd

from .sampling import I32
from .tasks import Layer

Flags = npt.NDArray[np.bool_]
ACCEPTED = "Does the constraint accept it?"


@dataclass(frozen=True)
class Replay:
    """`matcher` has taken `taken` tokens; fewer than were given where the next one isn't legal."""

    matcher: Matcher
    taken: int


@dataclass(frozen=True)
class Mask:
    """What may come next: `bits` int32 [words], `legal` [vocab_size]. `late`: what the constraint allows and the budget
    doesn't. `short`: the text can't be finished in the budget any more, so it wasn't looked at.
    """

    bits: I32
    legal: Flags
    late: Flags
    short: bool = False


def replay(artifact: Artifact, tokens: Iterable[int]) -> Replay:
    """Cost: microseconds a token."""
    matcher, taken = Matcher(artifact), 0
    for token in tokens:
        if not matcher.accept_token(token):
            break
        taken += 1
    return Replay(matcher, taken)


def mask_of(matcher: Matcher, remaining: int | None) -> Mask:
    """`remaining`: tokens that may still be drawn, the one that ends the text included; None: any number."""
    bits = _filled(matcher, None)
    legal = _flags(bits, matcher.vocab_size)
    none = np.zeros_like(legal)
    if remaining is None or matcher.is_terminated():
        return Mask(bits, legal, none)
    if matcher.min_tokens_to_finish() > remaining:
        return Mask(bits, legal, none, short=True)
    kept = _filled(matcher, remaining)
    in_time = _flags(kept, matcher.vocab_size)
    return Mask(kept, in_time, legal & ~in_time)


def _filled(matcher: Matcher, remaining: int | None) -> I32:
    """The row; empty where nothing may come: at the end of a text, in a vocabulary without stop tokens."""
    bits = allocate_token_bitmask(1, matcher.vocab_size)
    try:
        matcher.fill_next_token_bitmask(bits, 0, remaining)
    except DeadEnd:
        bits[:] = 0
    row: I32 = bits[0]
    return row


def least_tokens(matcher: Matcher) -> int | None:
    """How many tokens are enough to finish the text, with the one that ends it; None where no number is known."""
    least = matcher.min_tokens_to_finish()
    return None if least == math.inf else int(least)


def completions(matcher: Matcher) -> int | None:
    """How many texts complete this one; None: without bound."""
    count = matcher.completions_left()
    return None if count == math.inf else int(count)


def bytes_taken(matcher: Matcher, data: bytes) -> int:
    """How many bytes of a token can be followed."""
    taken = 0
    for length in range(1, len(data) + 1):
        if matcher.fork().accept_string(data[:length]):
            taken = length
    return taken


def follow_text(artifact: Artifact, text: str) -> Layer:
    """What the artifact's own automaton says of a whole text, whatever its tokens."""
    matcher = Matcher(artifact)
    if not matcher.accept_string(text):
        return Layer("automaton", ACCEPTED, "no")
    ended = matcher.is_accepting()
    return Layer("automaton", ACCEPTED, "yes" if ended else "no", () if ended else ("it isn't complete",))


def text_of(artifact: Artifact, tokens: Sequence[int]) -> bytes:
    """What the tokens spell; special ones spell nothing."""
    return b"".join(artifact.pack.token_bytes(token) or b"" for token in tokens)


def _flags(bits: I32, size: int) -> Flags:
    return np.unpackbits(bits.view(np.uint8), bitorder="little")[:size].astype(np.bool_)
