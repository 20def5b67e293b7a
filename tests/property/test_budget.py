"""Budgets, counts of completions and drafts on random automata, against brute force.

What's checked of `min_tokens_to_finish`: it's no less than the true least number of tokens; masks with `remaining`
hold exactly the tokens after which it still suffices; and runs that draw from them, by chance or by the worst
choice, end in time.
"""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from random_artifacts import Built, built, legal, run

from maskwright.compiler.automaton.ir import Configuration, initial, may_end, step
from maskwright.workers import Matcher, budget

SEEDS = range(0, 90, 2)


def least_tokens(b: Built, start: Configuration, most: int) -> int | None:
    """By breadth first search over configurations, the stop token included."""
    layer = {start}
    for n in range(1, most + 1):
        if any(may_end(b.automaton, c) for c in layer):
            return n
        after = {run(b.automaton, c, t) for c in layer for t in b.tokens if t}
        layer = {c for c in after if c is not None}
        if len(layer) > 1500:
            return None
    return most + 1


def _step(b: Built, m: Matcher, config: Configuration, rng: random.Random) -> Configuration | None:
    """Any legal token, for both; None where only the end is left."""
    choices = [t for t in legal(m) if t != b.stop]
    if not choices:
        return None
    token = rng.choice(choices)
    assert m.accept_token(token)
    after = run(b.automaton, config, b.tokens[token] or b"")
    assert after is not None
    return after


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_is_no_less_than_the_least(seed: int) -> None:
    b, rng = built(seed), random.Random(seed)
    m, config = Matcher(b.artifact), initial(b.automaton)
    for _ in range(6):
        bound = m.min_tokens_to_finish()
        least = least_tokens(b, config, int(bound))
        assert least is None or least <= bound
        if may_end(b.automaton, config):
            assert bound == 1
        after = _step(b, m, config, rng)
        if after is None:
            break
        config = after


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("many", [0, 1000])
def test_masks_keep_exactly_what_can_be_finished(seed: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MANY", many)  # 0: as if most of the vocabulary were legal everywhere
    b, rng = built(seed), random.Random(seed)
    m = Matcher(b.artifact)
    for _ in range(8):
        bound, free = m.min_tokens_to_finish(), legal(m)
        bounds = {}
        for t in free:
            fork = m.fork()
            assert fork.accept_token(t)
            bounds[t] = fork.min_tokens_to_finish()
        assert min(bounds.values()) <= bound - 1
        for remaining in (bound, bound + 1, bound + rng.randint(2, 5), 10_000):
            assert legal(m, remaining) == [t for t in free if bounds[t] <= remaining - 1]
        with pytest.raises(ValueError, match=f"{bound - 1} tokens remain, finishing takes up to {bound}"):
            legal(m, bound - 1)
        choices = [t for t in free if t != b.stop]
        if not choices:
            break
        assert m.accept_token(rng.choice(choices))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("extra", [0, 1, 7, 40])
def test_runs_end_in_time(seed: int, extra: int) -> None:
    b, rng = built(seed), random.Random(seed)
    m = Matcher(b.artifact)
    for worst in (False, True):
        m.reset()
        remaining = m.min_tokens_to_finish() + extra
        while not m.is_terminated():
            assert remaining > 0
            choices = legal(m, remaining)
            token = rng.choice(choices)
            if worst:
                token = max(choices, key=lambda t: (_after(m, t), len(b.tokens[t] or b"")))
            assert m.accept_token(token)
            remaining -= 1


def _after(m: Matcher, token: int) -> int | float:
    fork = m.fork()
    assert fork.accept_token(token)
    return fork.min_tokens_to_finish()


@pytest.mark.parametrize("seed", range(60))
def test_completions_are_counted(seed: int) -> None:
    b, rng = built(seed), random.Random(seed)
    m, config = Matcher(b.artifact), initial(b.automaton)
    for _ in range(4):
        count, endless = count_texts(b, config)
        if count is not None:
            assert m.completions_left() == (math.inf if endless else count)
        after = _step(b, m, config, rng)
        if after is None:
            break
        config = after


def count_texts(b: Built, start: Configuration, longest: int = 40) -> tuple[int | None, bool]:
    """(texts of at most `longest` bytes, whether longer ones go on); None when there are too many configurations.
    Every configuration can be completed, so a language is finite when its configurations run out.
    """
    count, layer = 0, Counter({start: 1})
    for _ in range(longest):
        count += sum(n for c, n in layer.items() if may_end(b.automaton, c))
        after: Counter[Configuration] = Counter()
        for config, n in layer.items():
            for byte in b"abc":
                there = step(b.automaton, config, byte)
                if there is not None:
                    after[there] += n
        if not after:
            return count, False
        if len(after) > 400:
            return None, True
        layer = after
    return count, True
