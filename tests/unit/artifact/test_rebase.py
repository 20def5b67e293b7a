"""Rebased rows are the same rows, with fewer patches and short chains."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.compiler.artifact import rebase
from maskwright.compiler.artifact.rebase import rebase_rows
from maskwright.compiler.tokens.tables import NO_BASE, RowTables, starts
from maskwright.workers.tables import MAX_CHAIN

WORDS, FIRST = 300, 5


def dense_rows(t: RowTables) -> np.ndarray:
    """Every own row, on top of pack rows that are made up; bases are checked to be earlier."""
    out = np.zeros((len(t.row_base), WORDS), np.uint32)
    for i, base in enumerate(t.row_base.tolist()):
        if base == NO_BASE:
            row = np.zeros(WORDS, np.uint32)
        elif base < FIRST:
            row = np.random.default_rng(base).integers(0, 1 << 32, WORDS).astype(np.uint32)
        else:
            assert base < FIRST + i
            row = out[base - FIRST]
        words = t.patch_word[t.patch_start[i] : t.patch_start[i + 1]]
        assert (np.diff(words.astype(np.int64)) > 0).all()
        out[i] = row
        out[i][words] ^= t.patch_xor[t.patch_start[i] : t.patch_start[i + 1]]
    return out


def longest_chain(t: RowTables) -> int:
    chain: list[int] = []
    for base in t.row_base.tolist():
        chain.append(1 + (chain[base - FIRST] if FIRST <= base < NO_BASE else 0))
    return max(chain, default=0)


def random_rows(seed: int, n: int) -> RowTables:
    """Rows that are mostly small changes of a few far ones, but given on their roots; some on earlier own rows."""
    rng = np.random.default_rng(seed)
    patches: list[dict[int, int]] = []
    base: list[int] = []
    whole: list[dict[int, int]] = []
    root: list[int] = []
    for i in range(n):
        kind = rng.random()
        if i and kind < 0.8:
            like = int(rng.integers(max(0, i - 5), i))
            changed = {int(w): int(rng.integers(1, 1 << 32)) for w in rng.integers(0, WORDS, rng.integers(1, 8))}
            mine = dict(whole[like])
            for w, x in changed.items():
                mine[w] = mine.get(w, 0) ^ x
            mine = {w: x for w, x in mine.items() if x}
            root.append(root[like])
            whole.append(mine)
            if kind < 0.2:
                base.append(FIRST + like)
                patches.append(changed)
                continue
        else:
            root.append(int(rng.choice([NO_BASE, 0, 3])))
            whole.append({int(w): int(rng.integers(1, 1 << 32)) for w in rng.integers(0, WORDS, 200)})
        base.append(root[-1])
        patches.append(whole[-1])
    flat = [sorted(p.items()) for p in patches]
    return RowTables(
        np.array(base, np.uint32),
        starts(map(len, flat)),
        np.array([w for p in flat for w, _ in p], np.uint32),
        np.array([x for p in flat for _, x in p], np.uint32),
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_rows_are_the_same_with_fewer_patches(seed: int) -> None:
    t = random_rows(seed, 150)
    made = rebase_rows(t, FIRST)
    np.testing.assert_array_equal(dense_rows(made), dense_rows(t))
    assert len(made.patch_word) < 0.4 * len(t.patch_word)
    assert longest_chain(made) <= MAX_CHAIN
    assert [a.dtype for a in (made.row_base, made.patch_start, made.patch_word, made.patch_xor)] == ["uint32"] * 4


def test_long_chains_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 100
    t = RowTables(
        np.array([NO_BASE, *range(FIRST, FIRST + n - 1)], np.uint32),
        starts([1] * n),
        np.arange(n, dtype=np.uint32),
        np.ones(n, np.uint32),
    )
    for few in (rebase.FEW, 0):
        monkeypatch.setattr(rebase, "FEW", few)
        made = rebase_rows(t, FIRST)
        np.testing.assert_array_equal(dense_rows(made), dense_rows(t))
        assert longest_chain(made) <= MAX_CHAIN


def test_no_rows() -> None:
    empty = np.zeros(0, np.uint32)
    made = rebase_rows(RowTables(empty, np.zeros(1, np.uint32), empty, empty), FIRST)
    assert len(made.row_base) == len(made.patch_word) == 0 and made.patch_start.tolist() == [0]
