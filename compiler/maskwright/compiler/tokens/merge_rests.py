"""Which rests of tokens no return of an automaton can tell apart: one stands for all of them.

A rest is what a token still has to read when it leaves a frame. There are 265,000 in Llama 3's vocabulary, and an
automaton that is left at white space or punctuation (a grammar) asks for most of them at each of its returns. But what
a return makes of " apple" and " pear" is mostly the same. So the controls to which returns of own symbols lead are run
over the trie of all rests. From such a control c, with nothing below, rest x is

    read            within what c pushes
    dead            after a byte or more
    (v, rest)       c's frame is left with verdict v after a byte or more, and a shorter rest remains
    none of these   its first byte isn't c's: it leaves unread with c's verdict, or dies if there's none

Rests that all those controls treat alike are merged; they're alike over any stack, by induction over the pops: a rest
that leaves unread meets the next return, and at the bottom every rest is dead. So controls with the same edges need one
run, those without an edge (the pops of a reduction) none, and those that no return reaches with a verdict needn't tell
dead from unread. A rest that no control reads a byte of is dropped. "Shorter rests are alike" begins as identity and
grows from round to round, each of which looks at one rest of each class only: every partition on the way is sound, so
the rounds may stop early.

What controls say of a rest is summed up as two 64-bit sums of mixed (control, answer) pairs, compared as 128 bits.

Measured: a SQL subset's 82 such controls leave about 600 of 264,856 rests. Cost: a trie walk for each of them, some
milliseconds where it takes everything; later rounds cost little.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge
from maskwright.compiler.tokens import kernels
from maskwright.compiler.tokens.kernels import FALSE
from maskwright.compiler.tokens.rests import DROPPED
from maskwright.compiler.tokens.tables import starts
from maskwright.compiler.tokens.trie import TokenTrie, Trie
from maskwright.compiler.tokens.walk import ANY_BYTE, Follow, Walker, arena_is_full

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

ROUNDS = 8


@dataclass(frozen=True, slots=True)
class MergedRests:
    """`stands_for` [suffixes]: the number of the rest that stands for each one, DROPPED where none can be read."""

    stands_for: I64

    def apply(self, codes: I64) -> I64:
        """Codes with the rest that stands for theirs; FALSE where it's dropped. FALSE and TRUE stay."""
        n = len(self.stands_for)
        rest = self.stands_for[codes % n]
        out: I64 = np.where(codes < 0, codes, np.where(rest == DROPPED, FALSE, codes - codes % n + rest))
        return out


def merge_rests(
    a: ByteAutomaton, walker: Walker, follow: Mapping[int, Follow], check: Callable[[], None] = lambda: None
) -> MergedRests:
    """The rests of the walker's vocabulary, merged for `a`. `follow`: as in `Walker.walk`, by own frame. `check` may
    raise."""
    t = walker.tokens
    places = _starts(a)
    stands_for = np.arange(t.n_suffixes, dtype=np.int64)
    classes = t.n_suffixes
    order, text, start = _sorted_rests(t)
    for _ in range(ROUNDS):
        kept = order[stands_for[order] == order]
        trie = Trie(*kernels.fill_trie(kept, text, start, t.longest), kept)
        total = np.zeros((2, t.n_suffixes), dtype=np.uint64)
        for control, mark_dead in places:
            check()
            if not kernels.sum_answers(
                walker.machine, trie, control, mark_dead, follow.get(a.frame_of(control), ANY_BYTE), stands_for,
                t.n_suffixes, t.suffix_of, t.suffix_place, walker.states[0], walker.states[1], walker.states[2],
                walker.arena[0], walker.arena[1], total,
            ):  # fmt: skip
                raise arena_is_full()
        stands_for = _merged(stands_for, kept, total)
        left = int((stands_for[kept] == kept).sum())
        if left == classes:
            break
        classes = left
    return MergedRests(stands_for)


def _starts(a: ByteAutomaton) -> list[tuple[int, bool]]:
    """One control for each set of edges among those that returns lead to, and whether one of its like has a verdict."""
    targets: set[int] = set()
    for s in range(a.first_symbol, a.n_symbols):
        targets.update(move.target for move in a.symbol(s).returns if move is not None)
    alike: dict[tuple[Edge, ...], tuple[int, bool]] = {}
    for c in sorted(targets):
        edges = a.edges_of(c)
        if edges:
            first, accepts = alike.get(edges, (c, False))
            alike[edges] = (first, accepts or a.verdict_of(c) >= 0)
    return list(alike.values())


def _sorted_rests(t: TokenTrie) -> tuple[I32, npt.NDArray[np.uint8], I32]:
    """All rests but the empty one in the order of their bytes, and their texts laid end to end."""
    lengths = (t.suffix_end - t.suffix_place).astype(np.int64)
    start = starts(lengths.tolist()).astype(np.int64)
    at = np.arange(int(start[-1]), dtype=np.int64) + np.repeat(t.suffix_place - start[:-1], lengths)
    text = t.text[at]
    data = text.tobytes()
    bounds = start.tolist()
    keys = [data[i:j] for i, j in itertools.pairwise(bounds)]
    order = np.array(sorted(range(1, len(keys)), key=keys.__getitem__), dtype=np.int32)
    return order, text, start.astype(np.int32)


def _merged(stands_for: I64, kept: I32, total: npt.NDArray[np.uint64]) -> I64:
    """The partition after a round: the kept rests by their sums, the others by the one that stood for them."""
    out = stands_for.copy()
    sums = np.ascontiguousarray(total[:, kept].T).view([("low", np.uint64), ("high", np.uint64)]).ravel()
    _, first, inverse = np.unique(sums, return_index=True, return_inverse=True)
    new = kept[first][inverse].astype(np.int64)
    new[(sums["low"] == 0) & (sums["high"] == 0)] = DROPPED
    out[kept] = new
    follows = stands_for >= 0
    out[follows] = out[stands_for[follows]]
    return out
