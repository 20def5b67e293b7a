"""SGLang's grammar backend. Written for, and tested with, SGLang 0.5.23.

`MaskwrightGrammarBackend` finds artifacts in a source (`sources.py`) where others compile. SGLang has a registry of
backends: `install(source)` enters this one as "maskwright" (`--grammar-backend maskwright`), in the process where it's
called. SGLang calls `plugins.sglang` in each of its processes, which does so where environment variables say.

Requests: json_schema → json_schema ("$$ANY$$": any JSON value), regex → regex, ebnf → gbnf or lark; structural tags are
refused. A request without an artifact becomes SGLang's `InvalidGrammarObject` with the reason, which fails that
request alone; one that can't go on is ended by a stop token and logged (`endings.py`). Masks are bitmasks, applied by
the Triton kernel on CUDA; the logits' padding is masked too. Jump-forward tells the text that must follow; an engine
tokenises it again and calls `jump_and_retokenize`.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)

from maskwright.workers.adapters.endings import fill_or_end, log
from maskwright.workers.adapters.sources import ArtifactSource, check_tokenizer, grammar_kind
from maskwright.workers.matcher import Matcher
from maskwright.workers.tensors.masks import allocate_token_bitmask, apply_token_bitmask_inplace

NAME = "maskwright"
ANY = "$$ANY$$"
"""SGLang's key for any JSON value."""


class MaskwrightGrammar(BaseGrammarObject):  # type: ignore[misc]
    """One request's matcher, as SGLang drives it. `key` is the request's, for messages."""

    def __init__(self, matcher: Matcher, key: str = "", stats: GrammarStats | None = None) -> None:
        super().__init__()
        self.matcher, self.key = matcher, key
        self.grammar_stats = stats or GrammarStats()

    def accept_token(self, token: int) -> None:
        """Goes on by a token; nothing happens after a stop token. Raises ValueError for one that isn't legal."""
        if self.matcher.is_terminated():
            return
        self.current_token = token
        if not self.matcher.accept_token(token):
            raise ValueError(f"token {token} isn't legal after {self.matcher.accepted()} ({self.key})")

    def rollback(self, k: int) -> None:
        """Undoes the last k accepted tokens. Raises ValueError when there are fewer."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that mask nothing, in the CPU's memory: rows of requests without a grammar stay so."""
        pinned = str(device).startswith("cuda")
        size = max(vocab_size, self.matcher.vocab_size)
        return allocate_token_bitmask(batch_size, size, pin_memory=pinned).fill_(-1)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Where no token is legal the request is ended."""
        fill_or_end(self.matcher, vocab_mask, idx)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        apply_token_bitmask_inplace(logits, vocab_mask)

    def copy(self) -> MaskwrightGrammar:
        """A grammar at its start, for another request with the same key."""
        matcher = Matcher(self.matcher.artifact, self.matcher.stop_token_ids)
        return MaskwrightGrammar(matcher, self.key, GrammarStats(dispatch_type=self._dispatch(), is_cache_hit=True))

    def _dispatch(self) -> str | None:
        found: str | None = self.grammar_stats.dispatch_type
        return found

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """What must follow, if anything must."""
        text = self.matcher.find_jump_forward_string()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """The output's tokens have been replaced: goes back to where they differ, and on from there. Raises ValueError
        for a token that isn't legal.
        """
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)):
            if old_output_ids[same] != new_output_ids[same]:
                break
            same += 1
        self.matcher.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            if not self.matcher.accept_token(token):
                raise ValueError(f"token {token} isn't legal after {self.matcher.accepted()} ({self.key})")


class MaskwrightGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Finds the artifacts of requests in `source`. eos_token_ids: the model's; default the vocabulary's."""

    def __init__(
        self, source: ArtifactSource, tokenizer: Any = None, eos_token_ids: set[int] | list[int] | None = None
    ) -> None:
        super().__init__()
        self._source, self._tokenizer = source, tokenizer
        self._stops = None if not eos_token_ids else sorted(eos_token_ids)
        self._checked = tokenizer is None

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return self._find("json", "json_schema", "true" if key_string == ANY else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._find("regex", "regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._find("ebnf", grammar_kind(key_string), key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject("structural tags aren't supported: give a schema, pattern or grammar")

    def _find(self, dispatch: str, kind: str, text: str) -> BaseGrammarObject:
        """SGLang takes failures as objects, since it compiles in a pool."""
        try:
            artifact = self._source.find(kind, text)
            if not self._checked:
                check_tokenizer(self._tokenizer, artifact.pack)
                self._checked = True
            stops = None if self._stops is None else [t for t in self._stops if t < artifact.vocab_size]
            matcher = Matcher(artifact, stops or None)
        except Exception as error:
            log.error("%s request refused: %s", dispatch, error)
            return InvalidGrammarObject(str(error))
        return MaskwrightGrammar(matcher, text, GrammarStats(dispatch_type=dispatch))


def install(source: ArtifactSource) -> None:
    """Enters the backend as "maskwright" in SGLang's registry and among the choices of `--grammar-backend`, in this
    process.
    """

    def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None) -> BaseGrammarBackend:
        return MaskwrightGrammarBackend(source, tokenizer, eos_token_ids)

    register_grammar_backend(NAME, make)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
