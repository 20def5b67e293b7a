"""Stored rows are the rows that were described, with few patches and short chains."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens import likeness, rows
from maskwright.compiler.tokens.rows import Row, RowStore
from maskwright.compiler.tokens.tables import NO_BASE, RowTables
from maskwright.workers.tables import MAX_CHAIN

VOCAB, FIRST = 9_601, 5
WORDS = (VOCAB + 31) // 32


def pack_row(number: int) -> np.ndarray:
    """A row below FIRST, as booleans by token."""
    return np.random.default_rng(number).random(VOCAB) < 0.3


def stored_rows(t: RowTables) -> np.ndarray:
    """Every own row as words; bases are checked to be earlier."""
    out = np.zeros((len(t.row_base), WORDS), np.uint32)
    for i, base in enumerate(t.row_base.tolist()):
        if base == NO_BASE:
            row = np.zeros(WORDS, np.uint32)
        elif base < FIRST:
            row = words_of(pack_row(base))
        else:
            assert base < FIRST + i
            row = out[base - FIRST]
        words = t.patch_word[t.patch_start[i] : t.patch_start[i + 1]]
        assert (np.diff(words.astype(np.int64)) > 0).all()
        out[i] = row
        out[i][words] ^= t.patch_xor[t.patch_start[i] : t.patch_start[i + 1]]
    return out


def words_of(tokens: np.ndarray) -> np.ndarray:
    padded = np.zeros(32 * WORDS, np.uint8)
    padded[:VOCAB] = tokens
    return np.packbits(padded, bitorder="little").view("<u4")


def chains(t: RowTables) -> list[int]:
    """The number of own rows that each row is made of."""
    chain: list[int] = []
    for base in t.row_base.tolist():
        chain.append(1 + (chain[base - FIRST] if FIRST <= base < NO_BASE else 0))
    return chain


def described(seed: int, n: int) -> tuple[RowStore, list[np.ndarray]]:
    """Rows that are mostly small changes of a few far ones, described by their roots: empty, the pack's, own rows."""
    rng = np.random.default_rng(seed)
    store = RowStore(VOCAB, FIRST, size_of=lambda number: int(pack_row(number).sum()))
    made: list[Row] = []
    whole: list[np.ndarray] = []

    def content(number: int) -> np.ndarray:
        if number == NO_BASE:
            return np.zeros(VOCAB, bool)
        return pack_row(number) if number < FIRST else whole[number - FIRST]

    while len(whole) < n:
        if made and rng.random() < 0.8:
            like = made[int(rng.integers(max(0, len(made) - 5), len(made)))]
            root, flipped = like.root, np.setxor1d(like.flipped, rng.integers(0, VOCAB, rng.integers(1, 8)))
        else:
            root = int(rng.choice([NO_BASE, 0, 3, *(r.number for r in made[:3] if r.root == NO_BASE)]))
            flipped = np.unique(rng.integers(0, VOCAB, 2_000))
        base = content(root)
        row = store.add(root, flipped.astype(np.int32), int((~base[flipped]).sum() - base[flipped].sum()))
        if row.number == FIRST + len(whole):
            now = base.copy()
            now[flipped] ^= True
            whole.append(now)
            made.append(row)
    return store, whole


@pytest.mark.parametrize("seed", range(12))
def test_stored_rows_are_those_described(seed: int) -> None:
    store, whole = described(seed, 150)
    t = store.tables()
    np.testing.assert_array_equal(stored_rows(t), np.array([words_of(row) for row in whole]))
    assert store.sizes == [int(row.sum()) for row in whole]
    assert len(t.patch_word) < 0.4 * sum(len(np.unique(r.flipped >> 5)) for r in store.rows)
    assert max(chains(t)) <= MAX_CHAIN
    assert [a.dtype for a in (t.row_base, t.patch_start, t.patch_word, t.patch_xor)] == ["uint32"] * 4


def test_chains_stay_within_what_the_format_allows() -> None:
    """The longest there can be: rows on each other's neighbours, then local masks walked beside each other, then a row
    of the last one's control in a context.
    """
    store, rng = RowStore(VOCAB, FIRST), np.random.default_rng(3)
    tokens = np.unique(rng.integers(0, VOCAB, 6_000))
    for _ in range(3 * rows.MAX_DEPTH):
        tokens = np.setxor1d(tokens, rng.integers(0, VOCAB, 40))
        store.add(NO_BASE, tokens.astype(np.int32))
    deepest = FIRST + int(np.argmax(chains(store.tables())))
    for _ in range(likeness.MAX_DEPTH + 1):
        deepest = store.add(deepest, np.sort(rng.choice(VOCAB, 3, replace=False)).astype(np.int32)).number
    assert max(chains(store.tables())) == rows.MAX_DEPTH + 1 + likeness.MAX_DEPTH + 1 == MAX_CHAIN


def test_equal_descriptions_are_one_row() -> None:
    store = RowStore(VOCAB, FIRST)
    one = store.add(NO_BASE, np.array([1, 2], np.int32))
    assert store.add(NO_BASE, np.array([1, 2], np.int32)) is one
    assert store.add(0, np.array([1, 2], np.int32)).number == one.number + 1


def test_rows_are_limited() -> None:
    store = RowStore(VOCAB, FIRST, Limits(mask_bytes=4 * WORDS))
    store.add(NO_BASE, np.array([1], np.int32))
    with pytest.raises(LimitExceeded, match="mask_bytes"):
        store.add(NO_BASE, np.array([2], np.int32))


def test_no_rows() -> None:
    t = RowStore(VOCAB, FIRST).tables()
    assert len(t.row_base) == len(t.patch_word) == 0 and t.patch_start.tolist() == [0]
