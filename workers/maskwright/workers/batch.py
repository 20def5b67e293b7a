"""Many sequences at once: one call fills their rows of a bitmask, one call accepts their tokens.

Sequences are independent, each with its own artifact; all artifacts are of one vocabulary, so that rows have one
width. A place in the batch may be empty, or skipped in a call: its row is left as it is. What a call does to a
sequence is exactly what `Matcher` does, and a sequence that fails doesn't stop the others; the loop is here so that
an engine crosses into it once a step.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import DeadEnd, WrongVocabulary
from maskwright.workers.masks import integers
from maskwright.workers.matcher import Matcher


class BatchMatcher:
    """Follows a batch of sequences.

    matchers: what each place starts with: a Matcher, an Artifact (for a new Matcher with `stop_token_ids`), or
    None for an empty place. Raises WrongVocabulary when they aren't all of one vocabulary.
    """

    __slots__ = ("_fingerprint", "_mask", "_matchers", "_stops", "_tails", "_views", "_words")

    def __init__(
        self, matchers: Iterable[Matcher | Artifact | None], stop_token_ids: Iterable[int] | None = None
    ) -> None:
        self._stops = None if stop_token_ids is None else tuple(stop_token_ids)
        self._fingerprint: str | None = None
        self._mask: object = None
        self._views: list[memoryview] = []
        self._words: list[npt.NDArray[np.uint32]] = []
        self._tails: list[memoryview] | None = None
        self._matchers: list[Matcher | None] = [self._checked(m) for m in matchers]

    def __len__(self) -> int:
        return len(self._matchers)

    def __getitem__(self, place: int) -> Matcher | None:
        """The sequence in a place, for what isn't asked of the whole batch (rollback, snapshot, explain)."""
        return self._matchers[place]

    def __setitem__(self, place: int, matcher: Matcher | Artifact | None) -> None:
        """Another sequence takes a place, or leaves it empty. Raises WrongVocabulary, IndexError."""
        self._matchers[place] = self._checked(matcher)
        self._mask = None  # the new one hasn't seen it

    def _checked(self, matcher: Matcher | Artifact | None) -> Matcher | None:
        if matcher is None:
            return None
        if isinstance(matcher, Artifact):
            matcher = Matcher(matcher, self._stops)
        if not isinstance(matcher, Matcher):
            raise TypeError(f"a place holds a Matcher, an Artifact or None, not {type(matcher).__name__}")
        fingerprint = matcher.artifact.pack.fingerprint
        if self._fingerprint is None:
            self._fingerprint = fingerprint
        if fingerprint != self._fingerprint:
            raise WrongVocabulary("vocabulary", self._fingerprint, fingerprint)
        return matcher

    def fill_next_token_bitmask(
        self,
        mask: Any,
        rows: Sequence[int | None] | None = None,
        remaining: Sequence[int | None] | int | None = None,
    ) -> dict[int, DeadEnd | ValueError]:
        """Writes each sequence's legal tokens into its row of `mask`, int32 [rows, words].

        rows: for each place its row, None to skip it; default: row i for place i. remaining: tokens that may still
        be drawn, for all or for each place (`Matcher.fill_next_token_bitmask`). Returns what went wrong by place: an
        empty mask, or a `remaining` that doesn't suffice; their rows hold no token. Raises TypeError or ValueError
        for another array, lists of another length and two sequences in one row, IndexError for a row that isn't there;
        nothing is written then. Cost: that of each fill.
        """
        matchers = self._matchers
        chosen = range(len(matchers)) if rows is None else _row_numbers(rows)
        budgets = remaining if isinstance(remaining, Sized) else [remaining] * len(matchers)
        if len(chosen) != len(matchers) or len(budgets) != len(matchers):
            raise ValueError(f"{len(matchers)} sequences, {len(chosen)} rows, {len(budgets)} budgets")
        if mask is not self._mask:
            self._bind(mask)
        height = len(self._views)
        for matcher, row in zip(matchers, chosen, strict=True):
            if matcher is not None and row is not None and not 0 <= row < height:
                raise IndexError(f"row {row} of {height}")
        failed: dict[int, DeadEnd | ValueError] = {}
        for place, (matcher, row, left) in enumerate(zip(matchers, chosen, budgets, strict=True)):
            if matcher is None or row is None:
                continue
            if matcher._mask is not mask:
                matcher._mask, matcher._views, matcher._words, matcher._tails = (
                    mask, self._views, self._words, self._tails
                )  # fmt: skip
            try:
                matcher.fill_next_token_bitmask(mask, row, left)
            except (DeadEnd, ValueError) as problem:
                failed[place] = problem
                self._clear(row)
        return failed

    def _bind(self, mask: Any) -> None:
        first = next((m for m in self._matchers if m is not None), None)
        if first is not None:
            first._bind(mask)
            self._views, self._words, self._tails, self._mask = first._views, first._words, first._tails, mask

    def _clear(self, row: int) -> None:
        for parts in (self._views, self._tails or []):
            if parts:
                parts[row][:] = memoryview(bytes(parts[row].nbytes)).cast("I")

    def accept_tokens(self, tokens: Sequence[int | None]) -> list[bool | None]:
        """Goes on by one token in each place; None skips a place. Returns for each whether its token was in the
        mask; what isn't changes nothing in its place. None for places that are skipped or empty. Raises ValueError
        for another number of tokens, TypeError for what isn't an integer, before anything changes.
        """
        if len(tokens) != len(self._matchers):
            raise ValueError(f"{len(self._matchers)} sequences, {len(tokens)} tokens")
        if not {type(t) for t in tokens} <= {int, type(None)}:
            tokens = [None if t is None else operator.index(t) for t in tokens]
        return [
            None if matcher is None or token is None else matcher.accept_token(token)
            for matcher, token in zip(self._matchers, tokens, strict=True)
        ]

    def rollback(self, steps: Sequence[int] | int) -> None:
        """Undoes the last steps: the same number in every place, or one for each (0 for empty ones). Raises
        ValueError, changing nothing, when a sequence has fewer; TypeError for what isn't an integer.
        """
        counts = integers(steps if isinstance(steps, Sized) else [steps] * len(self._matchers))
        if len(counts) != len(self._matchers):
            raise ValueError(f"{len(self._matchers)} sequences, {len(counts)} numbers of steps")
        pairs = [(m, n) for m, n in zip(self._matchers, counts, strict=True) if m is not None]
        before = [m._state for m, _ in pairs]
        try:
            for matcher, n in pairs:
                matcher.rollback(n)
        except ValueError:
            for (matcher, _), state in zip(pairs, before, strict=True):
                matcher._state = state
            raise

    def is_terminated(self) -> list[bool]:
        """Whether each sequence has accepted a stop token; an empty place has ended."""
        return [matcher is None or matcher.is_terminated() for matcher in self._matchers]

    def is_accepting(self) -> list[bool]:
        """Whether each text is complete so far; True for an empty place."""
        return [matcher is None or matcher.is_accepting() for matcher in self._matchers]


def _row_numbers(rows: Sequence[int | None]) -> Sequence[int | None]:
    """Rows as integers, each in one place at most. Raises TypeError, ValueError."""
    used = integers(row for row in rows if row is not None)
    if len(set(used)) != len(used):
        raise ValueError(f"{len(used)} sequences are to be written into {len(set(used))} rows")
    following = iter(used)
    return [None if row is None else next(following) for row in rows]
