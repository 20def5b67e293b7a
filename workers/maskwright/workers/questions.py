"""What a matcher tells: bounds, counts, what must follow, where it stands, why it's stuck.

These are `Matcher`'s public methods that only read its state; the work is in the modules named there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.workers.artifact import Artifact
from maskwright.workers.budget import Budget
from maskwright.workers.costs import NEVER
from maskwright.workers.count import artifact_counts, total
from maskwright.workers.errors import DeadEnd, DeadEndCause
from maskwright.workers.explain import (
    MOST_ALTERNATIVES,
    Explanation,
    Place,
    frames_around,
    instance_path,
    readable,
    unfinished_character,
)
from maskwright.workers.forced import Forced, fewest_tokens, tokens_within, whole_tokens
from maskwright.workers.specials import FIRST_MARK, SYMBOL
from maskwright.workers.spelling import spelling
from maskwright.workers.state import TERMINATED, Position, Stack, State

if TYPE_CHECKING:
    from maskwright.workers.matcher import Matcher


class Questions:
    """The part of `Matcher` that answers. What's declared here is the other part's."""

    __slots__ = ()
    _artifact: Artifact
    _budget: Budget | None
    _state: State
    _stop_text: frozenset[int]

    if TYPE_CHECKING:

        def _make_budget(self) -> Budget: ...
        def _walk(self, data: bytes, control: int, context: int, stack: Stack) -> Position | None: ...
        def accepted(self) -> tuple[int | bytes, ...]: ...
        def fork(self) -> Matcher: ...
        def is_accepting(self) -> bool: ...
        def is_terminated(self) -> bool: ...
        def text(self) -> bytes: ...
        def validate_tokens(self, tokens: Iterable[int], remaining: int | None = None) -> int: ...

    def min_tokens_to_finish(self) -> int | float:
        """A bound on the tokens that complete the text, the stop token included: no more are needed, if masks are
        filled with it as `remaining`. 0 after a stop token. `math.inf` where no completion is known, which takes
        stop tokens that are text.

        It's the least number within literals, and above the least where one token could close several frames.
        Cost: about a microsecond; the first call for an artifact takes 10 us or so for each of its controls.
        """
        control, _, stack, entry, _, _, _ = self._state
        if entry == TERMINATED:
            return 0
        least = (self._budget or self._make_budget()).least(control, stack)
        return least if least < NEVER else math.inf

    def completions_left(self) -> int | float:
        """How many texts complete the one so far, itself included if it's complete: an exact int, or `math.inf`.
        After a stop token it's 1. The int may have a million bits (`maxLength`), more than Python prints at once;
        raises OverflowError beyond 4 million (count.py).

        Cost: the first call for an artifact counts what can be reached from here, some ten microseconds an edge and
        the arithmetic of large numbers; later ones, the stack.
        """
        control, _, stack, entry, _, _, _ = self._state
        if entry == TERMINATED:
            return 1
        counts = artifact_counts(self._artifact)
        symbols = []
        while stack is not None:
            symbols.append(stack[0])
            stack = stack[2]
        rest = counts.bottom
        for symbol in reversed(symbols):
            rest = counts.after(symbol, rest)
        return total([(n, rest[v]) for v, n in counts.vector(control)])

    def expected_bytes(self) -> bytes:
        """The bytes that may follow, ascending; none after a stop token."""
        if self._state[3] == TERMINATED:
            return b""
        found = self._forced().expected(self._state[:3])
        return bytes(b for b in found if b < FIRST_MARK) if self._artifact.has_specials else found

    def _forced(self) -> Forced:
        return Forced(self._artifact, self._walk)

    def find_jump_forward_bytes(self) -> bytes:
        """The bytes that must follow, up to where there's a choice or the text may end. Cost: some ten
        microseconds a byte.
        """
        if self._state[3] == TERMINATED:
            return b""
        text = self._forced().text(self._state[:3])
        return text.split(SYMBOL, 1)[0] if self._artifact.has_specials else text

    def find_jump_forward_string(self) -> str:
        """The text that must follow, as far as it's whole characters; none where a character has begun already."""
        return whole_characters(self.find_jump_forward_bytes())

    def find_jump_forward_tokens(self, encode: Callable[[str], Sequence[int]] | None = None) -> list[int]:
        """Tokens for the text that must follow, to be put down without asking the model.

        Safe to tokenise again: they end before the first place from which a token of the vocabulary could reach
        beyond the forced text, so that none of the boundaries is one that the model might not have chosen
        (forced.py). `encode` cuts the forced text as your tokenizer does; without it, it's the fewest tokens, and so
        is the rest of a character that has begun. A character that isn't forced to its end isn't given to `encode`.
        Raises ValueError when `encode`'s tokens don't spell the text.
        """
        text = self.find_jump_forward_bytes()
        if not text:
            return []
        pack, spelled = self._artifact.pack, spelling(self._artifact.pack, self._stop_text)
        lead = begun_character(text) if encode else len(text)
        cut = fewest_tokens(text[:lead], spelled)
        if encode:
            whole = whole_characters(text[lead:])
            text = text[:lead] + whole.encode()
            if whole:
                cut += whole_tokens(encode(whole), pack.token_bytes, text[lead:])
        end = self._forced().safe_end(text, self._state[:3], spelled)
        tokens = tokens_within(cut, pack.token_bytes, text, end)
        return tokens[: self.validate_tokens(tokens)]

    def where(self) -> Place:
        """The place in the source where the sequence stands, for people. `explain` tells more."""
        stack = self._frames()
        return Place(*stack[-1], self.expected_bytes(), self.is_accepting())

    def explain(self) -> Explanation:
        """Where in the source the sequence stands and what may follow, for people and their tools."""
        stack, terminated = self._frames(), self.is_terminated()
        ahead, at = self._forced(), self._state[:3]
        ways = [] if terminated else ahead.alternatives(at, MOST_ALTERNATIVES)
        text = self.text()
        begun = unfinished_character(text)
        frame, pointer = stack[-1]
        return Explanation(
            pointer=pointer,
            frame=frame,
            stack=stack,
            expected=self.expected_bytes(),
            forced="" if terminated else self.find_jump_forward_string(),
            alternatives=tuple(readable(self._artifact, begun + way) for way in ways),
            may_end=self.is_accepting(),
            terminated=terminated,
            steps=len(self.accepted()),
            path=instance_path(text) if self._artifact.header["source"]["kind"] == "json_schema" else None,
        )

    def _frames(self) -> tuple[tuple[str, str], ...]:
        """(name, pointer) from the outermost frame to the innermost."""
        automaton, stack = self._artifact.automaton, self._state[2]
        numbers = [automaton.frame_of(self._state[0])]
        while stack is not None:
            numbers.append(int(automaton.all_symbol_frame[stack[0]]))
            stack = stack[2]
        return frames_around(self._artifact, numbers[::-1])

    def dead_end(self, cause: DeadEndCause, detail: str) -> DeadEnd:
        """The failure to raise when no token can be drawn here. Keep its prefix; don't try again."""
        a = self._artifact
        return DeadEnd(cause, detail, self.where(), self.accepted(), self.text(), a.pack.fingerprint, a.digest)

    def report_empty(self, width: int | None = None, kept: Sequence[int] | None = None) -> DeadEnd:
        """For a sampler whose distribution is empty though it applied the mask: finds the likely cause.

        width: columns of its logits. kept: the tokens that were left before or without the mask. Returns the
        DeadEnd to raise: the logits don't hold any legal token (another vocabulary), or legal ones were there
        and something outside took them away. Raises the DeadEnd of `fill_next_token_bitmask` when the mask itself
        is empty.
        """
        mask = np.zeros((1, self._artifact.pack.words), np.int32)
        self.fork().fill_next_token_bitmask(mask)
        legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if width is not None and legal[0] >= width:
            detail = f"the logits have {width} columns, the {len(legal)} legal tokens begin at {legal[0]}"
            return self.dead_end(DeadEndCause.VOCABULARY_MISMATCH, detail)
        detail = f"{len(legal)} tokens are legal (first {legal[:8].tolist()})"
        if kept is not None:
            both = np.intersect1d(legal, np.asarray(kept, np.int64))
            detail += f", {len(kept)} were kept outside, {len(both)} of them legal"
        return self.dead_end(DeadEndCause.OUTSIDE_TRUNCATION, detail)


def whole_characters(text: bytes) -> str:
    """The text up to the first byte that isn't of a whole character."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start].decode()


def begun_character(text: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    return next((i for i, byte in enumerate(text[:3]) if not 0x80 <= byte < 0xC0), min(len(text), 3))
