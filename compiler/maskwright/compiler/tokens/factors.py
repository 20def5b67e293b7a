"""The lazy form of the token automaton: factors instead of contexts (`maskwright.workers.lazy` tells what they are).

Some grammars have more stack classes than a table should hold: each way in which brackets may be closed by one token
multiplies them, while decoding meets few. For those the artifact ships what contexts and rows are made of: the gather
of each symbol over the merged residuals, and for each control its local row and, by residual, the row of the tokens
that leave with it. Rows are shared by content. Measured with a SQL grammar of 25 rules and Llama 3.1's vocabulary:
19 s to compile, an artifact of 390 KB, and in the worker 82 µs at the median for a step that meets something new, at
most 0.5 ms. Only automata that call no frame of the pack can have this form, since a pack's gathers are in no file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.beside import Beside, without_base
from maskwright.compiler.tokens.residuals import Residuals, places
from maskwright.compiler.tokens.rows import RowStore
from maskwright.compiler.tokens.tables import NO_BASE, U32, FactorTables, starts
from maskwright.compiler.tokens.walk import Walked

I32 = npt.NDArray[np.int32]


def may_be_lazy(a: ByteAutomaton) -> bool:
    """Whether no symbol calls a frame of the pack."""
    assert a.start is not None
    symbols = range(a.first_symbol, a.n_symbols)
    return a.frame_of(a.start) >= a.first_frame and all(a.symbol(s).callee >= a.first_frame for s in symbols)


def build_factors(
    a: ByteAutomaton,
    walked: Mapping[int, Walked | Beside],
    residuals: Residuals,
    n_suffixes: int,
    store: RowStore,
    check: Callable[[], None],
) -> FactorTables:
    """The factors; their rows go to `store`. `check` is called now and then, and may raise."""
    b = _Builder(store)
    base, counts, group_place, group_row, end = [], [], [], [], []
    for c in a.own_controls():
        check()
        w = without_base(walked, c)
        codes = residuals.codes[a.frame_of(c)]
        base.append(b.row(np.sort(w.local)))
        found = b.groups(w.left_token, places(codes, w.left_code), len(codes))
        counts.append(len(found))
        group_place += [place for place, _ in found]
        group_row += [row for _, row in found]
        v = a.verdict_of(c)
        at = int(places(codes, np.array([v * n_suffixes]))[0]) if v >= 0 else len(codes)
        end.append(at + 1 if at < len(codes) else 0)
    return FactorTables(
        codes=_array([len(residuals.codes[f]) for f in range(a.first_frame, a.n_frames)]),
        gather=np.concatenate([_array([]), *(residuals.gather[s].astype(np.uint32) for s in _symbols(a))]),
        end=_array(end),
        base=_array(base),
        group_start=starts(counts),
        group_place=_array(group_place),
        group_row=_array(group_row),
        start=_start(a, residuals, n_suffixes),
    )


def _symbols(a: ByteAutomaton) -> range:
    return range(a.first_symbol, a.n_symbols)


def _array(values: list[int]) -> U32:
    return np.array(values, dtype=np.uint32)


def _start(a: ByteAutomaton, residuals: Residuals, n_suffixes: int) -> U32:
    """The vector of the start's context: the text may end with an accepting verdict."""
    assert a.start is not None
    codes = residuals.codes[a.frame_of(a.start)]
    vector = np.zeros(len(codes) + 2, dtype=np.uint32)
    vector[places(codes, np.array([v * n_suffixes for v in sorted(a.accepting_verdicts)], dtype=np.int64))] = 1
    return vector[:-2]


class _Builder:
    """Rows by content; a row's index is its number + 1, 0 the empty one."""

    def __init__(self, store: RowStore) -> None:
        self.store = store

    def row(self, tokens: I32) -> int:
        if not len(tokens):
            return 0
        return self.store.add(NO_BASE, tokens).number + 1

    def groups(self, token: I32, at: I32, n_codes: int) -> list[tuple[int, int]]:
        """(place, row) of the tokens by the place of their residual; those that no stack accepts are left out."""
        order = np.lexsort((token, at))
        token, at = token[order], at[order]
        cuts = np.flatnonzero(np.diff(at)) + 1
        bounds = [0, *cuts.tolist(), len(at)]
        out = []
        for i, j in itertools.pairwise(bounds):
            if i < j and at[i] < n_codes:
                out.append((int(at[i]), self.row(token[i:j])))
        return out
