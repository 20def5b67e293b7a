"""Which rests of tokens no return of an automaton can tell apart: one stands for all of them.

A rest is what a token still has to read when it leaves a frame. There are 265,000 in Llama 3's vocabulary, and an
automaton that is left at white space or punctuation (a grammar) asks for most of them at each of its returns. But what
a return makes of " apple" and " pear" is mostly the same. So each distinct return move m of the automaton's own
symbols is run over the trie of all rests, and rest x gets from it

    FALSE        it can't be read, or what's left can't go on anywhere after the verdict
    TRUE         it's read within what m pushes
    (v, SELF)    the frame that m leads to is left with verdict v before a byte is read
    (v, rest)    it's left with verdict v, and a shorter rest remains

Rests with the same answers from all moves are merged, whatever the stack: by induction over the pops, FALSE and TRUE
agree, and what remains is the pair itself or a pair of equal shorter rests. "Equal" begins as identity and grows from
round to round, each of which looks at one rest of each class only: every partition on the way is sound, so the rounds
may stop early. Rests that every move refuses are dropped.

The answers of a rest are summed up as two 64-bit sums of mixed (move, answer) pairs, compared as 128 bits.

A sample of a SQL grammar: 264,856 rests become a few hundred classes. Cost: a trie walk for each distinct move, 1 ms
where it takes everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens import kernels
from maskwright.compiler.tokens.kernels import FALSE
from maskwright.compiler.tokens.rests import DROPPED
from maskwright.compiler.tokens.tables import NONE, starts
from maskwright.compiler.tokens.trie import TokenTrie, Trie
from maskwright.compiler.tokens.walk import Follow, Walker, arena_is_full

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
    """Of the returns of `a`'s own symbols. `follow`: as in `Walker.walk`, by own frame. `check` may raise."""
    t = walker.tokens
    moves = _moves(a, walker)
    stands_for = np.arange(t.n_suffixes, dtype=np.int64)
    classes = t.n_suffixes
    order, text, start = _sorted_rests(t)
    for _ in range(ROUNDS):
        kept = order[stands_for[order] == order]
        trie = Trie(*kernels.fill_trie(kept, text, start, t.longest), kept)
        total = np.zeros((2, t.n_suffixes), dtype=np.uint64)
        for number, (move, frame) in enumerate(moves):
            check()
            if not kernels.sum_answers(
                walker.machine, trie, move, number, follow[frame], stands_for, t.n_suffixes,
                t.suffix_of, t.suffix_place, *walker.states, *walker.arena, total,
            ):  # fmt: skip
                raise arena_is_full()
        stands_for = _merged(stands_for, kept, total)
        left = int((stands_for[kept] == kept).sum())
        if left == classes:
            break
        classes = left
    return MergedRests(stands_for)


def _moves(a: ByteAutomaton, walker: Walker) -> list[tuple[int, int]]:
    """Distinct return moves of own symbols, each with the frame that it goes on in."""
    found: dict[int, int] = {}
    for s in range(a.first_symbol, a.n_symbols):
        for move in walker.returns(s).tolist():
            if move != NONE:
                found[move] = a.symbol(s).caller
    return sorted(found.items())


def _sorted_rests(t: TokenTrie) -> tuple[I32, npt.NDArray[np.uint8], I32]:
    """All rests but the empty one in the order of their bytes, and their texts laid end to end."""
    lengths = (t.suffix_end - t.suffix_place).astype(np.int64)
    start = starts(lengths.tolist()).astype(np.int64)
    at = np.arange(int(start[-1]), dtype=np.int64) + np.repeat(t.suffix_place - start[:-1], lengths)
    text = t.text[at]
    data = text.tobytes()
    bounds = start.tolist()
    keys = [data[i:j] for i, j in zip(bounds, bounds[1:], strict=False)]
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
