"""Where a list of tokens leads in an artifact: the matcher there, and its mask in the forms that the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.workers import Artifact, Matcher, allocate_token_bitmask

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Replay:
    """`matcher` has taken `taken` tokens; fewer than were given where the next one isn't legal."""

    matcher: Matcher
    taken: int


def replay(artifact: Artifact, tokens: Iterable[int]) -> Replay:
    """Cost: microseconds a token."""
    matcher, taken = Matcher(artifact), 0
    for token in tokens:
        if not matcher.accept_token(token):
            break
        taken += 1
    return Replay(matcher, taken)


def legal_tokens(matcher: Matcher) -> Flags:
    """Which tokens may come next, [vocab_size]."""
    mask = allocate_token_bitmask(1, matcher.vocab_size)
    matcher.fill_next_token_bitmask(mask, 0)
    return np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: matcher.vocab_size].astype(np.bool_)


def bytes_taken(matcher: Matcher, data: bytes) -> int:
    """How many of the bytes can be followed; all but the last of an illegal token, at most."""
    taken = 0
    for length in range(1, len(data) + 1):
        if matcher.fork().accept_string(data[:length]):
            taken = length
    return taken


def text_of(artifact: Artifact, tokens: Sequence[int]) -> bytes:
    """What the tokens spell; special ones spell nothing."""
    return b"".join(artifact.pack.token_bytes(token) or b"" for token in tokens)
