"""A `LogitsProcessor` for Hugging Face's `generate()`: greedy, sampling, beams, assisted; batches with left padding.

`generate()` calls a processor at each step with all tokens of all rows, prompt included. The width at the first call is
the prompt's (padding included); what's beyond it has been generated. Rows are found by their generated tokens
(`history.py`), since beam search reorders them. Processors given to `generate()` run before its temperature, top-k,
top-p and min-p, which is the order that a mask needs.

A row whose tokens weren't all legal can only come from outside: beam search fills up its beams with impossible ones
when there are fewer legal tokens than beams. Such a row is masked entirely. When every row is like that, DeadEnd is
raised.

Not here: encoder outputs or several decoder prompts of different width in one batch without padding, which `generate()`
hasn't either; continuous batching (`generate_batch`), whose processors see no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from transformers import LogitsProcessor

from maskwright.workers.adapters.history import History
from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import DeadEnd, DeadEndCause, WrongVocabulary
from maskwright.workers.matcher import Matcher
from maskwright.workers.tensors.masks import allocate_token_bitmask, apply_token_bitmask_inplace

KEPT = 16
"""Positions of each row that are remembered."""


class MaskwrightLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Masks the tokens that an artifact doesn't allow.

    artifacts: one for all prompts of the batch, or one for each, None for a prompt that's free. stop_token_ids: default
    the vocabulary's; they should be the model's `eos_token_id`s, or `generate()` doesn't see the end. max_new_tokens:
    as given to `generate()`; when given, every text is complete within it (`Matcher.fill_next_token_bitmask`). Raises
    WrongVocabulary when artifacts differ in it, ValueError for no artifact and stop tokens outside the vocabulary.

    One object serves one `generate()` at a time; call `reset()` before the next.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        artifacts: Artifact | Sequence[Artifact | None],
        *,
        stop_token_ids: Iterable[int] | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.artifacts = [artifacts] if isinstance(artifacts, Artifact) else list(artifacts)
        if not self.artifacts:
            raise ValueError("no artifact")
        used = [a for a in self.artifacts if a is not None]
        for artifact in used[1:]:
            if artifact.pack.fingerprint != used[0].pack.fingerprint:
                raise WrongVocabulary("vocabulary", used[0].pack.fingerprint, artifact.pack.fingerprint)
        self._vocab_size = used[0].vocab_size if used else 0
        self.max_new_tokens = max_new_tokens
        self._stops = None if stop_token_ids is None else tuple(stop_token_ids)
        for artifact in used[:1]:
            Matcher(artifact, self._stops)  # they're checked now, not in the middle of a generation
        self._shared = isinstance(artifacts, Artifact)
        self._prompt: int | None = None
        self._histories: list[History | None] = []
        self._mask: torch.Tensor | None = None

    def reset(self) -> None:
        """Forgets the last `generate()`."""
        self._prompt, self._histories, self._mask = None, [], None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """Masked scores, a new tensor. input_ids: [rows, width]. scores: a float type, [rows, columns].

        Raises ValueError when the rows don't divide among the artifacts, or for another `generate()` without `reset()`,
        or for `max_new_tokens` that don't suffice; DeadEnd when there's no token to choose from.
        """
        rows, width = input_ids.shape
        if self._prompt is None:
            self._begin(rows, width)
        assert self._prompt is not None
        if width < self._prompt or rows != len(self._histories):
            raise ValueError(
                f"{rows} rows of {width} tokens, begun with {len(self._histories)} of {self._prompt}: "
                "call reset() before another generate()"
            )
        generated = [tuple(tokens) for tokens in input_ids[:, self._prompt :].tolist()]
        out = scores.clone()
        constrained = [i for i, history in enumerate(self._histories) if history is not None]
        if constrained:
            mask = self._fill(generated, scores.shape[1]).to(out.device, non_blocking=True)
            columns = min(scores.shape[1], self._vocab_size)
            apply_token_bitmask_inplace(out, mask, vocab_size=columns, indices=constrained)
        return out

    def _begin(self, rows: int, width: int) -> None:
        """Row i belongs to prompt i // (rows / prompts): `generate()` repeats prompts for beams and for sequences that
        it returns. Rows of one prompt share a history.
        """
        prompts = rows if self._shared else len(self.artifacts)
        if rows % prompts:
            raise ValueError(f"{rows} rows don't divide among {prompts} artifacts")
        each, kept = rows // prompts, KEPT * rows
        made = [None if a is None else History(a, self._stops, kept) for a in self.artifacts]
        self._histories = [made[0 if self._shared else i // each] for i in range(rows)]
        self._prompt = width

    def _fill(self, generated: list[tuple[int, ...]], columns: int) -> torch.Tensor:
        mask = self._allocate(len(generated))
        live = False
        for i, (history, tokens) in enumerate(zip(self._histories, generated, strict=True)):
            if history is None:
                live = True
                continue
            matcher = history.find(tokens)
            if matcher is None:
                mask[i] = 0
                continue
            live = True
            left = None if self.max_new_tokens is None else self.max_new_tokens - len(tokens)
            matcher.fill_next_token_bitmask(mask, i, None if matcher.is_terminated() else left)
            if columns < matcher.vocab_size and not _any_below(mask[i], columns):
                raise matcher.report_empty(columns)
        if not live:
            raise self._dead(generated)
        return mask

    def _dead(self, generated: list[tuple[int, ...]]) -> DeadEnd:
        """Every row has a token that wasn't legal: told of the first, up to there."""
        history = self._histories[0]
        assert history is not None
        matcher = history.start.fork()
        for token in generated[0]:
            if not matcher.accept_token(token):
                detail = f"token {token} was chosen although the mask doesn't hold it"
                return matcher.dead_end(DeadEndCause.OUTSIDE_TRUNCATION, detail)
        raise AssertionError("a row that's dead has a token that isn't legal")

    def _allocate(self, rows: int) -> torch.Tensor:
        if self._mask is None:
            self._mask = allocate_token_bitmask(rows, self._vocab_size)
        return self._mask


def _any_below(row: torch.Tensor, columns: int) -> bool:
    """Whether a mask row, int32 [words], has a token below `columns`."""
    whole, rest = divmod(columns, 32)
    return bool(row[:whole].any()) or bool(int(row[whole]) & ((1 << rest) - 1))
