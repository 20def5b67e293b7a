"""What must follow: texts without an alternative, and the tokens that may be put down for them.

A byte is forced where exactly one may follow and the text may not end. Its run is followed as long as that holds.

Tokens for a forced text ("jump-forward") must not change what the model would have seen: a tokenizer that is
given the whole text later, or a model that would have written it itself, may prefer a token that spans the end of
the forced text, together with what comes after. So tokens are only put down up to the first place in the forced
text from which some token of the vocabulary reaches beyond its end, and runs on there. What's left over is short
and is masked as usual, so that the model itself chooses the spanning token or the boundary. Inside, the forced
text is cut as the caller's `encode` cuts it, or else into the fewest tokens, the longest first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

from maskwright.workers.artifact import Artifact
from maskwright.workers.spelling import Spelling
from maskwright.workers.state import Position, Stack

Walk = Callable[[bytes, int, int, Stack], Position | None]
LONGEST = 1 << 16
"""Bytes of a forced text that are looked for."""


class Forced:
    """Looks ahead from positions of one artifact. `walk(data, control, context, stack)` is the matcher's."""

    __slots__ = ("_artifact", "_walk")

    def __init__(self, artifact: Artifact, walk: Walk) -> None:
        self._artifact, self._walk = artifact, walk

    def expected(self, position: Position, most: int = 256) -> bytes:
        """The bytes that may follow, ascending; no more than `most` are looked for."""
        control, context, stack = position
        out = bytearray()
        for byte in sorted(self._candidates(control, stack)):
            if self._walk(bytes((byte,)), control, context, stack) is not None:
                out.append(byte)
                if len(out) == most:
                    break
        return bytes(out)

    def _candidates(self, control: int, stack: Stack) -> set[int]:
        """The bytes of the control's edges, and of those that it returns to."""
        artifact, found = self._artifact, set[int]()
        machine = artifact.machine
        for _ in range(10_000):
            automaton = artifact.automaton if control >= artifact.automaton.first_control else artifact.pack.automaton
            own = control - automaton.first_control
            for edge in range(automaton.edge_start[own], automaton.edge_start[own + 1]):
                found.update(range(int(automaton.edge_low[edge]), int(automaton.edge_high[edge]) + 1))
            verdict = int(automaton.verdict[own]) - 1
            if verdict < 0 or stack is None:
                break
            symbol, context, stack = stack
            control = machine.returns[symbol][verdict]
            if control == -1:
                break
            if control < 0:
                pushes, control = machine.actions[-2 - control]
                for pushed in pushes:
                    stack = (pushed, context, stack)
        return found

    def text(self, position: Position, most: int = LONGEST) -> bytes:
        """The bytes that must follow, at most `most`. Cost: some ten microseconds a byte."""
        out, at = bytearray(), position
        while len(out) < most and not self._may_end(at):
            byte = self.expected(at, 2)
            after = self._walk(byte, *at) if len(byte) == 1 else None
            if after is None:
                break
            out += byte
            at = after
        return bytes(out)

    def _may_end(self, position: Position) -> bool:
        a = self._artifact
        return bool(a.entry(position[1], position[0]) & 1)

    def alternatives(self, position: Position, most: int) -> list[bytes]:
        """What each way on begins with, as far as it's forced; empty when there are more than `most`. A forced
        beginning that they share is part of each.
        """
        shared = self.text(position)
        at = self._walk(shared, *position)
        assert at is not None
        firsts = self.expected(at, most + 1) if not shared or not self._may_end(at) else b""
        if len(firsts) > most:
            return [shared] if shared else []
        out = []
        for byte in firsts:
            after = self._walk(bytes((byte,)), *at)
            assert after is not None
            out.append(shared + bytes((byte,)) + self.text(after, 200))
        return out or ([shared] if shared else [])

    def safe_end(self, text: bytes, position: Position, spelled: Spelling) -> int:
        """How much of a forced text may be put down as tokens: no token that begins before this place reaches
        beyond the text's end and is legal.
        """
        first = max(0, len(text) - spelled.widest + 1)
        for start in range(first, len(text)):
            at = self._walk(text[:start], *position)
            assert at is not None
            rest = text[start:]
            if any(self._walk(token, *at) is not None for token in spelled.beginning_with(rest)):
                return start
        return len(text)


def fewest_tokens(text: bytes, spelled: Spelling) -> list[int]:
    """Token ids that spell `text`, in the fewest tokens, the longest first; none where tokens can't."""
    n = len(text)
    best: list[tuple[int, int] | None] = [None] * n + [(0, 0)]
    for start in range(n - 1, -1, -1):
        for length in spelled.prefixes(text[start : start + spelled.widest]):
            rest = best[start + length]
            if rest is not None and ((found := best[start]) is None or rest[0] + 1 <= found[0]):
                best[start] = (rest[0] + 1, length)
    out, at = list[int](), 0
    while at < n and (step := best[at]) is not None:
        token = spelled.token(text[at : at + step[1]])
        assert token is not None
        out.append(token)
        at += step[1]
    return out


def whole_tokens(tokens: Iterable[int], spell: Callable[[int], bytes | None], text: bytes) -> list[int]:
    """The tokens. Raises ValueError when they don't spell `text`, TypeError for what isn't an integer."""
    out, at = [operator.index(token) for token in tokens], 0
    for token in out:
        data = spell(token)
        if data is None or not text.startswith(data, at):
            raise ValueError(f"token {token} doesn't spell the forced text at byte {at}")
        at += len(data)
    if at != len(text):
        raise ValueError(f"the tokens spell {at} bytes of {len(text)}")
    return out


def tokens_within(tokens: Sequence[int], spell: Callable[[int], bytes | None], text: bytes, end: int) -> list[int]:
    """The first of the tokens that lie within `text[:end]`, as far as they spell it."""
    out, at = list[int](), 0
    for token in tokens:
        data = spell(token) or b""
        at += len(data)
        if at > end or not text.startswith(data, at - len(data)):
            break
        out.append(token)
    return out
