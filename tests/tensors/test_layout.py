"""Artifacts laid out flat, without torch: the arrays are walked one by one and compared with `Matcher`."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from samples import compiled, next_token, random_artifact, real_artifacts, symbols_artifact, toy_artifact

from maskwright.compiler import Compiler, Vocabulary
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, DeadEnd, Matcher, VocabularyPack, WrongVocabulary, allocate_token_bitmask
from maskwright.workers.errors import TablesRefused
from maskwright.workers.tensors.layout import Layout, lay_out

MAX = 1 << 28


class Walker:
    """One sequence over a layout, straight from the definition of its arrays; counts what its bounds bound."""

    def __init__(self, layout: Layout, artifact: int) -> None:
        self.l = layout
        self.control, self.context, self.entry = layout.starts[artifact].tolist()
        self.stack: list[tuple[int, int]] = []
        self.chain = self.highest = 0

    def mask(self) -> np.ndarray:
        return self.l.rows[self.entry >> 1]

    def accept(self, token: int) -> bool:
        if not 0 <= token < self.l.vocab_size or not self.mask()[token >> 5] >> (token & 31) & 1:
            return False
        if self.l.is_stop[token] and self.entry & 1:
            self.entry = 3
            return True
        data = self.l.token_bytes[self.l.token_start[token] : self.l.token_start[token + 1]].tolist()
        for byte in [*data, None]:
            column = self.l.moves.shape[1] - 1 if byte is None else int(self.l.class_of[byte])
            self.step(column, last=byte is None)
        self.entry = int(self.l.entries[self.l.row_offset[self.context] + self.control])
        assert self.entry
        return True

    def step(self, column: int, last: bool) -> None:
        move, chained = int(self.l.moves[self.control, column]), 0
        while move < -1 and move & 1:
            if last and not self.stack:
                return
            symbol, self.context = self.stack.pop()
            self.follow(int(self.l.returns[self.l.return_start[symbol] + (-3 - move) // 2]))
            chained += 1
            self.chain = max(self.chain, chained)
            move = int(self.l.moves[self.control, column])
        if not last:
            self.follow(move)

    def follow(self, move: int) -> None:
        if move >= 0:
            self.control = move
            return
        assert move != -1
        action = (-2 - move) // 2
        for symbol in self.l.action_push[self.l.action_start[action] : self.l.action_start[action + 1]].tolist():
            self.stack.append((symbol, self.context))
            self.context = int(self.l.pushes[self.l.push_offset[self.context] + symbol]) - 1
            assert self.context >= 0
        self.highest = max(self.highest, len(self.stack))
        self.control = int(self.l.action_target[action])


def compare(artifacts: list[Artifact], steps: int, stops: tuple[int, ...] | None = None) -> Layout:
    layout = lay_out(artifacts, stops, MAX)
    for number, artifact in enumerate(artifacts):
        rng, matcher = random.Random(number), Matcher(artifact, stops)
        mask, walker = allocate_token_bitmask(1, artifact.vocab_size), Walker(layout, number)
        for _ in range(steps):
            try:
                matcher.fill_next_token_bitmask(mask, 0)
            except DeadEnd:
                assert not walker.mask().any()
                break
            np.testing.assert_array_equal(walker.mask(), mask[0])
            token = next_token(rng, matcher, mask)
            assert walker.accept(token) == matcher.accept_token(token)
            if matcher.is_terminated():
                assert walker.entry == 3
                matcher.reset()
                walker.stack.clear()
                walker.control, walker.context, walker.entry = layout.starts[number].tolist()
            assert layout.chain is None or walker.chain <= layout.chain
            assert layout.height is None or walker.highest <= layout.height
    return layout


def test_the_toy_language() -> None:
    layout = compare([toy_artifact()], 300)
    assert layout.height is None and layout.most_pushes == 2
    assert layout.chain is not None and layout.chain >= 2


@pytest.mark.parametrize("seed", range(0, 45, 3))
@pytest.mark.parametrize("hot", [0, 1])
def test_random_automata(seed: int, hot: int) -> None:
    compare([random_artifact(seed, hot)], 60)


def test_compiled_sources_side_by_side() -> None:
    layout = compare(list(compiled().values()), 120)
    assert len(layout.starts) == len(compiled())
    assert len({row.tobytes() for row in layout.rows[3:]}) == len(layout.rows) - 3


def test_real_schemas(shared: Path) -> None:
    artifacts = real_artifacts(shared, 60)
    assert artifacts
    compare(artifacts, 60)


def test_stop_tokens_are_bound_when_tables_are_laid_out() -> None:
    flat = compiled()["flat"]
    brace = next(t for t in range(flat.vocab_size) if flat.pack.token_bytes(t) == b"}")
    compare([flat, compiled()["any"]], 150, (brace, flat.vocab_size - 1))


def test_special_tokens_as_symbols() -> None:
    layout = compare([symbols_artifact()], 200)
    assert layout.longest == 9
    text, stop = symbols_artifact(), symbols_artifact().pack.stop_token_ids[0]
    compare([text], 100, (stop, stop - 1))


def test_bounds() -> None:
    found = {name: lay_out([artifact], None, MAX) for name, artifact in compiled().items()}
    assert found["digits"].height == 0 and found["digits"].chain == 0 and found["digits"].most_pushes == 0
    assert found["flat"].height is not None and found["flat"].height >= 1 and found["flat"].chain is not None
    assert found["tree"].height is None
    assert found["tree"].chain is not None and found["tree"].chain <= 3
    longest = max(len(compiled()["any"].pack.token_bytes(t) or b"") for t in range(found["any"].vocab_size))
    assert found["any"].longest <= longest
    together = lay_out(list(compiled().values()), None, MAX)
    assert together.height is None and together.longest == max(layout.longest for layout in found.values())


def test_too_large_is_refused() -> None:
    artifact = compiled()["tree"]
    needed = lay_out([artifact], None, MAX)
    for limit in (0, 1000, needed.moves.nbytes + needed.rows.nbytes - 1):
        with pytest.raises(TablesRefused) as refused:
            lay_out([artifact], None, limit)
        assert refused.value.reason == "bytes" and refused.value.limit is not None
        assert refused.value.observed is not None and refused.value.observed > refused.value.limit
        assert artifact.digest in str(refused.value) and "bytes" in str(refused.value)
    lay_out([artifact], None, needed.moves.nbytes + needed.rows.nbytes)


def test_lazy_contexts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MANY_RESTS", 0)
    monkeypatch.setattr(build, "RESTS_A_RETURN", 0)
    monkeypatch.setattr(build, "COMPLETE_CONTEXTS", 1)
    vocabulary = Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), b"((", None], {257: "<stop>"}, [257])
    data = Compiler(vocabulary).compile_lark('start: "(" start ")" | "x" start "y" | "z"').to_bytes()
    artifact = Artifact.from_bytes(data, VocabularyPack.from_bytes(vocabulary.pack_bytes()))
    assert artifact.lazy is not None
    with pytest.raises(TablesRefused) as refused:
        lay_out([artifact], None, MAX)
    assert refused.value.reason == "lazy" and artifact.digest in str(refused.value)


def test_one_pack_and_real_stop_tokens() -> None:
    with pytest.raises(WrongVocabulary):
        lay_out([toy_artifact(), compiled()["any"]], None, MAX)
    with pytest.raises(ValueError, match="no artifact"):
        lay_out([], None, MAX)
    for bad in (-1, toy_artifact().vocab_size):
        with pytest.raises(ValueError, match="stop_token_ids"):
            lay_out([toy_artifact()], [bad], MAX)
