"""The whole path over bytes: random automata written as pack and artifact, loaded by the worker, against brute force.

Half of the automata call library frames whose rows aren't stored but composed by the worker.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_token_tables import legal, run_bytes, usable

from maskwright.compiler.artifact.writer import (
    ArtifactMeta,
    PackMeta,
    VocabularyData,
    write_artifact,
    write_pack,
)
from maskwright.compiler.automaton.ir import initial, may_end
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.build import build_tokens
from maskwright.workers import Artifact, DeadEnd, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.fingerprint import vocabulary_fingerprint

STOP = "<stop>"


@pytest.mark.parametrize("seed", range(0, 180, 3))
@pytest.mark.parametrize("hot", [0, 1])
def test_the_matcher_agrees_with_brute_force(seed: int, hot: int) -> None:
    _, a, prepared, tokens = usable(seed)
    prepared.tables.hot[:] = hot
    stop = next((i for i, t in enumerate(tokens) if t is None), None)
    special = {} if stop is None else {stop: STOP}
    fingerprint = vocabulary_fingerprint(tokens, special)
    data = VocabularyData(tokens, special, list(special))
    pack = VocabularyPack.from_bytes(write_pack(prepared.tables, vocabulary=data, meta=PackMeta(fingerprint, "0")))
    tables, _ = build_tokens(a, prepared, Limits())
    meta = ArtifactMeta("regex", "00" * 32, "{}", fingerprint, pack.digest, "0")
    matcher = Matcher(Artifact.from_bytes(write_artifact(tables, meta=meta), pack))
    mask = allocate_token_bitmask(1, len(tokens))
    rng = random.Random(seed)
    for _ in range(5):
        matcher.reset()
        config = initial(a)
        for _ in range(10):
            want = np.array([legal(a, config, t) for t in tokens])
            if stop is not None:
                want[stop] = may_end(a, config)
            if not want.any():
                with pytest.raises(DeadEnd):
                    matcher.fill_next_token_bitmask(mask, 0)
                break
            matcher.fill_next_token_bitmask(mask, 0)
            got = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: len(tokens)].astype(bool)
            assert (got == want).all()
            assert matcher.is_accepting() == may_end(a, config)
            for t in range(len(tokens)):
                fork = matcher.fork()
                assert fork.accept_token(t) == want[t]
            choices = [i for i, t in enumerate(tokens) if want[i] and t]
            if not choices:
                break
            t = rng.choice(choices)
            assert matcher.accept_token(t)
            config = run_bytes(a, config, tokens[t] or b"")
