"""Matchers found by generated tokens, in any order."""

from __future__ import annotations

import random

import numpy as np
from samples import compiled, next_token

from maskwright.workers import Matcher, allocate_token_bitmask
from maskwright.workers.adapters.history import History


def test_what_is_found_is_a_matcher_that_accepted_the_tokens() -> None:
    artifact = compiled()["tree"]
    rng, mask = random.Random(1), allocate_token_bitmask(1, artifact.vocab_size)
    history = History(artifact, None, 12)
    runs = [()]
    for _ in range(250):
        tokens = rng.choice(runs[-40:])
        expected, legal = Matcher(artifact), True
        for t in tokens:
            legal = legal and (expected.is_terminated() or expected.accept_token(t))
        found = history.find(tokens)
        assert (found is not None) == legal
        if found is None:
            continue
        assert found.accepted() == expected.accepted() and found.is_terminated() == expected.is_terminated()
        again = allocate_token_bitmask(1, artifact.vocab_size)
        found.fill_next_token_bitmask(again)
        expected.fill_next_token_bitmask(mask)
        np.testing.assert_array_equal(again, mask)
        runs.append((*tokens, next_token(rng, expected, mask)))
        assert len(history._known) <= 12


def test_padding_after_a_stop_token_changes_nothing() -> None:
    artifact = compiled()["digits"]
    digit = next(t for t in range(artifact.vocab_size) if artifact.pack.token_bytes(t) == b"7")
    stop = artifact.pack.stop_token_ids[0]
    found = History(artifact, None, 8).find((digit, stop, 0, 0, digit))
    assert found is not None and found.is_terminated() and found.accepted() == (digit, stop)
    assert History(artifact, None, 8).find((stop, digit)) is None
