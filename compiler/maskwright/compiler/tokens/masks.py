"""The mask row of each control in each context.

A control that was walked whole has the row of its local mask and of the residual tokens that the context accepts; one
that was walked beside a base of the pack has the base's row in the pushed context, with some tokens flipped. What a
context says of the residuals that a control asks for decides its row, so contexts that agree there share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.beside import NO_SYMBOL, Beside
from maskwright.compiler.tokens.clock import Clock
from maskwright.compiler.tokens.contexts import Context, Layout
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.residuals import Residuals, places
from maskwright.compiler.tokens.rows import Row, RowStore
from maskwright.compiler.tokens.tables import COMPOSED, NO_BASE, NO_ENTRIES, U32, UNREACHED, AutomatonTables, starts
from maskwright.compiler.tokens.walk import NO_TOKENS, Walked

LARGE_MASK = 256
FEW = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """What contexts, rows and factors are made of: the automaton, also as tables (`own`), on the prepared vocabulary;
    what was walked from each own control; the residuals that follow."""

    automaton: ByteAutomaton
    own: AutomatonTables
    prepared: PreparedVocabulary
    walked: Mapping[int, Walked | Beside]
    residuals: Residuals
    layout: Layout


class MaskRows:
    """The row entry (2 * row + may_end) of each control that's reached in a context. Rows go to `store`."""

    def __init__(self, parts: Parts, contexts: list[Context], store: RowStore) -> None:
        self.a, self.prepared, self.layout = parts.automaton, parts.prepared, parts.layout
        self.walked, self.residuals = parts.walked, parts.residuals
        self.contexts, self.store = contexts, store
        self.verdict = np.concatenate([parts.prepared.tables.automaton.verdict, parts.own.verdict])
        self.sources: dict[int, _Local | _Differing] = {}
        self.at: dict[int, npt.NDArray[np.int32]] = {}
        self.bases = {w.base.control for w in self.walked.values() if isinstance(w, Beside)}

    def build(self, clock: Clock) -> list[U32]:
        """By context [controls of its frame], UNREACHED where decoding can't be. Raises LimitExceeded for `mask_bytes`
        and `compile_seconds`."""
        by_frame: dict[int, list[int]] = {}
        for q, context in enumerate(self.contexts):
            by_frame.setdefault(context.frame, []).append(q)
        entries: list[U32] = [NO_ENTRIES] * len(self.contexts)
        for frame in clock.watch(sorted(by_frame), "rows"):
            numbers = by_frame[frame]
            for q, row in zip(numbers, self.entries(frame, numbers, clock), strict=True):
                entries[q] = row
        return entries

    def entries(self, frame: int, numbers: list[int], clock: Clock) -> U32:
        """[contexts, controls] of one frame."""
        controls = self.layout.controls_of(frame)
        part = slice(controls.start, controls.stop)
        reached = np.array([np.frombuffer(self.contexts[q].reached, dtype=np.uint8) for q in numbers]).astype(np.bool_)
        codes = self.residuals.codes[frame]
        ends = places(codes, np.arange(self.a.frame_info(frame).verdicts) * self.prepared.tokens.n_suffixes)
        at = np.append(ends, len(codes))[self.verdict[part]]  # verdict -1 takes the last place, false
        rows = np.full(reached.shape, COMPOSED, dtype=np.uint32)
        stored = reached & self.prepared.tables.hot[part].astype(np.bool_) if frame < self.a.first_frame else reached
        wanted = np.flatnonzero(stored.any(axis=0)).tolist()
        if frame >= self.a.first_frame:
            self.locate(codes, self.with_bases([controls[i] for i in wanted]))
        for i in clock.watch(wanted, "rows"):
            source = self.source(controls[i])
            for k in np.flatnonzero(stored[:, i]).tolist():
                rows[k, i] = source.row(self, numbers[k]).number
            if frame >= self.a.first_frame and controls[i] not in self.bases:
                del self.sources[controls[i]]
        may_end = np.array([self.contexts[q].vector[at] for q in numbers], dtype=np.uint32)
        return np.where(reached, 2 * rows + may_end, np.uint32(UNREACHED))

    def with_bases(self, controls: list[int]) -> list[int]:
        """Also the own controls beside which some of these were walked."""
        out = dict.fromkeys(controls)
        for c in controls:
            while isinstance(w := self.walked[c], Beside) and w.base.symbol == NO_SYMBOL:
                c = w.base.control
                out[c] = None
        return list(out)

    def locate(self, codes: npt.NDArray[np.int64], controls: list[int]) -> None:
        """The places of all residuals of one frame's controls, found in one search."""
        asked = [w.code if isinstance(w, Beside) else w.left_code for w in map(self.walked.__getitem__, controls)]
        at = places(codes, np.concatenate([np.zeros(0, dtype=np.int64), *asked]))
        bounds = starts(map(len, asked)).tolist()
        self.at = {c: at[low:high] for c, (low, high) in zip(controls, itertools.pairwise(bounds), strict=True)}

    def root_of(self, local: npt.NDArray[np.int32]) -> Row:
        """What rows with this local mask are differences from: nothing if it's small, else the mask as a row."""
        if len(local) > LARGE_MASK:
            made = self.store.add(NO_BASE, local)
            return Row(made.number, made.number, NO_TOKENS)
        return Row(-1, NO_BASE, local)

    def source(self, c: int) -> _Local | _Differing:
        found = self.sources.get(c)
        if found is None:
            found = self.sources[c] = self.own(c) if c >= self.a.first_control else self.packed(c)
        return found

    def own(self, c: int) -> _Local | _Differing:
        walked = self.walked[c]
        if isinstance(walked, Beside):
            return _Differing(self, c, walked)
        return _Local(self.root_of(np.sort(walked.local)), walked.left_token, self.at[c])

    def packed(self, c: int) -> _Local:
        number = int(self.prepared.tables.control_row[c])
        return _Local(Row(number, number, NO_TOKENS), *self.prepared.residual_tokens(c))


class _Local:
    """Rows of a control that was walked whole: its local mask and the residuals that the context accepts.

    Sources are told whose they are: were the rows in them, each would hold itself until a collection.
    """

    def __init__(self, root: Row, token: npt.NDArray[np.int32], at: npt.NDArray[np.int32]) -> None:
        """`token`: residual tokens; `at`: the place of each one's residual in the frame's vector."""
        self.root, self.token, self.at = root, token, at
        self.asked = np.flatnonzero(np.bincount(at)) if len(at) > FEW else at
        """Places that some token asks for: what the context says there decides the row."""
        self.known: dict[bytes, Row] = {}

    def row(self, rows: MaskRows, q: int) -> Row:
        vector = rows.contexts[q].vector
        key = vector[self.asked].tobytes()
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.make(rows.store, self.token[vector[self.at].view(np.bool_)])
        return found

    def make(self, store: RowStore, more: npt.NDArray[np.int32]) -> Row:
        root = self.root
        if root.root == NO_BASE:
            return store.add(NO_BASE, np.sort(np.concatenate([root.flipped, more])))
        return store.add(root.root, np.sort(more)) if len(more) else root


class _Differing:
    """Rows of a control that was walked beside a base: the base's row in the pushed context, with some bits flipped."""

    def __init__(self, rows: MaskRows, c: int, walked: Beside) -> None:
        self.base = walked.base
        self.token = walked.token
        self.at = rows.at[c]
        self.base_at = places(rows.residuals.codes[rows.a.frame_of(walked.base.control)], walked.base_code)

    def row(self, rows: MaskRows, q: int) -> Row:
        contexts = rows.contexts
        pushed = q if self.base.symbol == NO_SYMBOL else contexts[q].pushes[self.base.symbol]
        here = contexts[q].vector[self.at]
        differs = here != contexts[pushed].vector[self.base_at]
        base = rows.source(self.base.control).row(rows, pushed)
        n = int(np.count_nonzero(differs))
        if not n:
            return base
        gain = 2 * int(np.count_nonzero(here[differs])) - n
        return rows.store.add(base.number, np.sort(self.token[differs]), gain)
