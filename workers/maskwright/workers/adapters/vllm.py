"""vLLM v1: a structured-output backend and a logits processor. Written for, and tested with, vLLM 0.33.0.

**Backend.** `MaskwrightBackend` is a `StructuredOutputBackend` whose grammars are matchers over artifacts. vLLM has no
registry of backends: its manager makes the one that the configuration names, out of four. `install(source)` therefore
puts this one in the place of "guidance", with the check of requests that belongs to it, in the process where it's
called. vLLM calls `plugins.vllm` in each of its processes, which does so where environment variables say. Speculative
decoding works as with other backends: draft tokens are validated, masks filled along them, and rolled back.

**Logits processor.** `MaskwrightLogitsProcessor` needs no patch (`--logits-processors`), but runs in the worker, and
vLLM refuses it with speculative decoding. A request names its artifact in `SamplingParams.extra_args["maskwright"]`.

What a request's fields mean: json → json_schema, json_object → any JSON object, regex → regex, choice → a pattern of
the texts, grammar → gbnf or lark, structural_tag is refused. The request's stop tokens (`all_stop_token_ids`) are the
matcher's. vLLM applies masks before its temperature, top-k and top-p. Where a request can't go on it's ended by a stop
token and logged (`endings.py`): an exception would end the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm import sampling_params as vllm_params
from vllm.v1 import structured_output as manager
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.structured_output import backend_guidance
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from maskwright.workers.adapters.endings import fill_or_end, fill_stops, log
from maskwright.workers.adapters.sources import (
    ArtifactSource,
    check_tokenizer,
    choice_pattern,
    environment_source,
    grammar_kind,
)
from maskwright.workers.matcher import Matcher
from maskwright.workers.tensors.masks import allocate_token_bitmask, apply_token_bitmask_inplace

PLACE = "guidance"
"""The configuration's name of the backend whose place is taken."""
_FILL = -1  # a row that nobody fills masks nothing

_source: ArtifactSource | None = None


def structured_source(kind: StructuredOutputOptions, spec: str) -> tuple[str, str]:
    """(kind, source) as `ArtifactSource.find` takes them. Raises ValueError for what can't be compiled."""
    options = StructuredOutputOptions
    if kind == options.JSON:
        return "json_schema", spec
    if kind == options.JSON_OBJECT:
        return "json_schema", '{"type":"object"}'
    if kind == options.REGEX:
        return "regex", spec
    if kind == options.GRAMMAR:
        return grammar_kind(spec), spec
    if kind == options.CHOICE:
        return "regex", choice_pattern(json.loads(spec))
    raise ValueError(f"{kind.name} isn't supported: give a schema, pattern, grammar or choice")


class MaskwrightGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """One request's matcher, as vLLM drives it. A token that isn't legal changes nothing."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Goes on by tokens; what follows a stop token is ignored. False at the first that isn't legal."""
        for token in tokens:
            if self.matcher.is_terminated():
                break
            if not self.matcher.accept_token(token):
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix of tokens that would be accepted, a stop token included; nothing changes."""
        probe, accepted = self.matcher.fork(), list[int]()
        for token in tokens:
            if probe.is_terminated() or not probe.accept_token(token):
                break
            accepted.append(token)
        return accepted

    def rollback(self, num_tokens: int) -> None:
        """Undoes the last accepted tokens. Raises ValueError when there are fewer."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Where no token is legal the request is ended."""
        fill_or_end(self.matcher, bitmask, batch_index)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def reset(self) -> None:
        self.matcher.reset()


@dataclass
class MaskwrightBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Finds the artifacts of requests in `source`, by default the one that `install` was given."""

    source: ArtifactSource | None = None
    _widest: int = field(default=0, init=False, repr=False)
    _checked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self.source = self.source or _the_source()

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> MaskwrightGrammar:
        """A matcher for a request. Raises ValueError, and the errors of the source (ArtifactNotFound, SourceRefused),
        which fail this request; WrongVocabulary when the engine's tokenizer isn't the artifact's.
        """
        assert self.source is not None
        artifact = self.source.find(*structured_source(request_type, grammar_spec))
        if not self._checked and self.tokenizer is not None:
            check_tokenizer(self.tokenizer, artifact.pack)
            self._checked = True
        self._widest = max(self._widest, artifact.vocab_size)
        stops = None if stop_token_ids is None else sorted(t for t in stop_token_ids if t < artifact.vocab_size)
        return MaskwrightGrammar(Matcher(artifact, stops or None))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows that mask nothing: int32 [max_num_seqs, words]."""
        mask = allocate_token_bitmask(max_num_seqs, max(self.vocab_size, self._widest))
        return mask.fill_(_FILL)

    def destroy(self) -> None:
        self.source = None

    @staticmethod
    def is_tokenizer_supported(tokenizer: Any) -> bool:
        """vLLM asks this of the backend whose place is taken. `compile_grammar` checks the tokenizer."""
        return True


def validate_request(sampling_params: Any, tokenizer: Any = None) -> None:
    """vLLM's check of a request before it's queued: that its kind is one of ours and its JSON can be read. Whether
    there's an artifact is found out by `compile_grammar`. Raises ValueError.
    """
    asked = sampling_params.structured_outputs
    if asked is None:
        return
    if asked.structural_tag is not None:
        raise ValueError("structural_tag isn't supported: give a schema, pattern, grammar or choice")
    if isinstance(asked.json, str):
        json.loads(asked.json)
    if asked.choice is not None:
        choice_pattern(asked.choice)


def install(source: ArtifactSource) -> None:
    """Puts `MaskwrightBackend` in the place of vLLM's "guidance" backend, in this process. Configure
    `structured_outputs_config={"backend": "guidance"}`.
    """
    global _source
    _source = source
    manager.GuidanceBackend = backend_guidance.GuidanceBackend = MaskwrightBackend
    backend_guidance.validate_guidance_grammar = validate_request
    vllm_params._get_llg_tokenizer = lambda tokenizer: None  # made for the check that isn't made any more


def _the_source() -> ArtifactSource:
    """What `install` was given, or what the environment names. Raises ValueError for neither."""
    global _source
    _source = _source or environment_source()
    if _source is None:
        raise ValueError("no source of artifacts: call install(source), or set MASKWRIGHT_ARTIFACTS")
    return _source


# -- logits processor ----------------------------------------------------------------------------------------------


@dataclass
class _Request:
    """A request's matcher (None: it can't go on), its stop tokens, the list that vLLM appends its tokens to, and how
    many of them the matcher has seen.
    """

    matcher: Matcher | None
    stops: list[int]
    output: list[int]
    seen: int = 0

    def follow(self) -> None:
        while self.matcher is not None and self.seen < len(self.output):
            token = self.output[self.seen]
            if not self.matcher.is_terminated() and not self.matcher.accept_token(token):
                log.error("request ended: token %d was taken although the mask doesn't hold it", token)
                self.matcher = None
            self.seen += 1

    def fill(self, mask: torch.Tensor, row: int) -> None:
        if self.matcher is None or fill_or_end(self.matcher, mask, row) is not None:
            fill_stops(self.stops, mask, row)


class MaskwrightLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Masks the requests whose `extra_args["maskwright"]` names an artifact: a name or digest, or {kind: source} with a
    kind of `ArtifactSource.find`.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ValueError for an `extra_args["maskwright"]` that's neither a text nor one kind with its source, and
        for one that has no artifact, so that a request is refused before it's queued.
        """
        asked = asked_artifact(sampling_params)
        if asked is not None:
            try:
                _the_source().find(*asked)
            except LookupError as error:
                raise ValueError(str(error)) from error

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._source, self._pin = _the_source(), is_pin_memory
        self._requests: dict[int, _Request] = {}
        self._mask: torch.Tensor | None = None

    def is_argmax_invariant(self) -> bool:
        """False: the most probable token may be illegal."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follows requests that come, go and move, and the tokens that they've got since the last step."""
        process_dict_updates(self._requests, batch_update, self._begin)
        for request in self._requests.values():
            request.follow()

    def _begin(self, params: Any, prompt: list[int] | None, output: list[int]) -> _Request | None:
        asked = asked_artifact(params)
        if asked is None:
            return None
        stops = sorted(params.all_stop_token_ids)
        try:
            artifact = self._source.find(*asked)
        except Exception as error:  # vLLM's worker would end, and every request with it
            if not stops:
                raise
            log.error("request ended: %s", error)
            return _Request(None, stops, output)
        matcher = Matcher(artifact, [t for t in stops if t < artifact.vocab_size] or None)
        return _Request(matcher, list(matcher.stop_token_ids), output)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Masks the rows of constrained requests, in place. logits: [requests, columns]."""
        if not self._requests:
            return logits
        rows = sorted(self._requests)
        if self._mask is None or self._mask.shape[0] < len(logits):
            self._mask = allocate_token_bitmask(len(logits), logits.shape[1], pin_memory=self._pin)
        for row in rows:
            self._requests[row].fill(self._mask, row)
        mask = self._mask[: len(logits)].to(logits.device, non_blocking=True)
        apply_token_bitmask_inplace(logits, mask, indices=rows)
        return logits


def asked_artifact(params: Any) -> tuple[str, str] | None:
    """(kind, source) that a request's extra arguments ask for. Raises ValueError."""
    asked = (params.extra_args or {}).get("maskwright")
    if asked is None:
        return None
    if isinstance(asked, str):
        return "artifact", asked
    if isinstance(asked, dict) and len(asked) == 1:
        kind, source = next(iter(asked.items()))
        text = source if isinstance(source, str) else json.dumps(source)
        if kind in ("json_schema", "regex", "lark", "gbnf", "tools", "artifact"):
            return kind, text
    raise ValueError('extra_args["maskwright"] is an artifact\'s name or digest, or {kind: source}')
