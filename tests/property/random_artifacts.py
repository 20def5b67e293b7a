"""Random automata written as pack and artifact and loaded by the worker, with what brute force needs beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from test_token_tables import usable

from maskwright.compiler.artifact.writer import ArtifactMeta, PackMeta, VocabularyData, write_artifact, write_pack
from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, step
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.build import build_tokens
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.fingerprint import vocabulary_fingerprint


@dataclass(frozen=True)
class Built:
    """tokens: the bytes of each id, None for the stop token (the last id) and unused ones."""

    automaton: ByteAutomaton
    tokens: list[bytes | None]
    artifact: Artifact

    @property
    def stop(self) -> int:
        return len(self.tokens) - 1


def built(seed: int) -> Built:
    """Every third seed calls frames of the pack."""
    _, a, prepared, tokens = usable(seed)
    tokens = [*tokens, None]
    stop = {len(tokens) - 1: "<stop>"}
    fingerprint = vocabulary_fingerprint(tokens, stop)
    data = VocabularyData(tokens, stop, list(stop))
    pack = VocabularyPack.from_bytes(write_pack(prepared.tables, vocabulary=data, meta=PackMeta(fingerprint, "0")))
    tables, _ = build_tokens(a, prepared, Limits())
    meta = ArtifactMeta("regex", "00" * 32, "{}", fingerprint, pack.digest, "0")
    return Built(a, tokens, Artifact.from_bytes(write_artifact(tables, meta=meta), pack))


def run(a: ByteAutomaton, config: Configuration | None, data: bytes) -> Configuration | None:
    for byte in data:
        config = step(a, config, byte) if config is not None else None
    return config


def legal(matcher: Matcher, remaining: int | None = None) -> list[int]:
    """The ids in the mask."""
    mask = allocate_token_bitmask(1, matcher.vocab_size)
    matcher.fill_next_token_bitmask(mask, 0, remaining)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
