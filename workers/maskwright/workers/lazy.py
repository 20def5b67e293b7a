"""Contexts made as they're met: for grammars with more stack classes than a table should hold.

What a stack can say about masks is which residuals (rests of tokens that leave a frame) it accepts: a vector of bits
over the residuals of the frame on top. An artifact with feature bit 1 ships the factors instead of the table:

    gather     for each symbol and each residual of the frame it calls: false, true, or a residual of the caller's frame
    base       for each control the row of the tokens that stay in its frame
    groups     for each control pairs (residual, row): these tokens are legal where the stack accepts the residual
    end        for each control the residual that asks whether the text may end

Pushing a symbol is one gather; the vector is looked up among those met before, as in a lazy DFA. A row is the base with
the groups' rows that hold or-ed in, made on first use, shared by controls' equal answers, and kept like other rows.
Both are exact: masks equal those of the complete table.

Contexts live as long as the artifact. All numbers are checked when it's loaded; a lock guards what is added, and what's
published is complete, so readers need none.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.workers.container import Container
from maskwright.workers.rows import RowPool
from maskwright.workers.tables import Automaton, Reader, held_bytes

Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Factors:
    """`counts[f]`: residuals of own frame f. `gather[gather_start[s] : gather_start[s + 1]]`: of own symbol s; a value
    is a place in the caller's vector, which ends with false, true. `end`: place, or that of false. Groups of own
    control c: `group_place`, `group_row` from `group_start[c]` on. `start`: the vector of context 0.
    """

    counts: Array
    gather_start: Array
    gather: Array
    end: Array
    base: Array
    group_start: Array
    group_place: Array
    group_row: Array
    start: npt.NDArray[np.uint8]


def read_factors(container: Container, a: Automaton, first_frame: int, n_rows: int, root: int) -> Factors:
    """The factors, checked against the automaton, whose frames from `first_frame` on are its own, and the rows.
    `root` is context 0's frame. Raises ArtifactError.
    """
    read = Reader(container)
    n_frames, n_controls = a.n_frames - first_frame, a.n_controls - a.first_control
    counts = read.values("lazy_codes", n_frames).astype(np.int64)
    caller = a.all_symbol_frame[a.first_symbol :] - first_frame
    callee = a.all_symbol_callee[a.first_symbol :] - first_frame
    read.require("lazy_codes", callee >= 0, "is missing: a symbol calls a pack's frame")
    if root < first_frame:
        raise read.fail("lazy_codes", "the start is in a pack's frame")
    gather_start = np.concatenate([[0], np.cumsum(counts[callee])]).astype(np.int64)
    gather = read.values("lazy_gather", int(gather_start[-1])).astype(np.int64)
    room = np.repeat(counts[caller] + 2, counts[callee])
    read.require("lazy_gather", gather < room, "is no place of its caller's vector")
    control_room = counts[a.control_frames()[a.first_control :] - first_frame]
    end = read.values("lazy_end", n_controls).astype(np.int64)
    read.require("lazy_end", end <= control_room, "is no place of its frame's vector")
    base = read.values("lazy_base", n_controls, n_rows + 1).astype(np.int64)
    group_place = read.values("lazy_group_place").astype(np.int64)
    group_start = read.starts("lazy_group_count", read.values("lazy_group_count", n_controls), len(group_place))
    read.require(
        "lazy_group_place",
        group_place < np.repeat(control_room, np.diff(group_start)),
        "is no place of its frame's vector",
    )
    group_row = read.values("lazy_group_row", len(group_place), n_rows + 1).astype(np.int64)
    start = read.values("lazy_start", int(counts[root - first_frame]), 2).astype(np.uint8)
    return Factors(counts, gather_start, gather, end, base, group_start, group_place, group_row, start)


class LazyContexts:
    """The contexts of one artifact, and the composer of its rows (see compose.py). Its lists grow."""

    def __init__(self, factors: Factors, automaton: Automaton, root: int, first_composed: int) -> None:
        self.factors, self.automaton, self.first_composed = factors, automaton, first_composed
        self.count = 0
        self.frames: list[int] = []
        self.vectors: list[npt.NDArray[np.uint8]] = []
        self.rows: list[int] = []
        self.pushes: list[int] = []
        self.row_offset: list[int] = []
        self.push_offset: list[int] = []
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._made: list[tuple[int, npt.NDArray[np.int64]]] = []
        self._known: dict[tuple[int, bytes], int] = {}
        self._lock = threading.Lock()
        self._pool: RowPool | None = None
        with self._lock:
            self._context(root, np.concatenate([factors.start, np.array([0, 1], np.uint8)]))

    def bind(self, pool: RowPool) -> None:
        """The pool that the rows are in; makes the entries of context 0."""
        self._pool = pool
        a, root = self.automaton, self.frames[0]
        for control in range(int(a.all_frame_controls[root]), int(a.all_frame_controls[root + 1])):
            self.entry(0, control)

    def enter(self, context: int, symbol: int) -> int:
        """The context in which a symbol's callee runs when it's pushed in `context`. Cost: microseconds."""
        a, f = self.automaton, self.factors
        own = symbol - a.first_symbol
        gather = f.gather[f.gather_start[own] : f.gather_start[own + 1]]
        vector = np.empty(len(gather) + 2, np.uint8)
        np.take(self.vectors[context], gather, out=vector[:-2])
        vector[-2], vector[-1] = 0, 1
        with self._lock:
            found = self._context(int(a.all_symbol_callee[symbol]), vector)
            self.pushes[self.push_offset[context] + symbol] = found + 1
        return found

    def _context(self, frame: int, vector: npt.NDArray[np.uint8]) -> int:
        key = (frame, vector.tobytes())
        found = self._numbers.get(key)
        if found is None:
            a = self.automaton
            self.frames.append(frame)
            self.vectors.append(vector)
            first, end = int(a.all_frame_controls[frame]), int(a.all_frame_controls[frame + 1])
            self.row_offset.append(len(self.rows) - first)
            self.rows.extend([0] * (end - first))
            first, end = int(a.all_frame_symbols[frame]), int(a.all_frame_symbols[frame + 1])
            self.push_offset.append(len(self.pushes) - first)
            self.pushes.extend([0] * (end - first))
            found = self._numbers[key] = len(self.frames) - 1
        return found

    def entry(self, context: int, control: int) -> int:
        """The row entry (2 * row index + may_end) of a control of the context's frame."""
        f, own = self.factors, control - self.automaton.first_control
        vector = self.vectors[context]
        may_end = int(vector[f.end[own] - 1]) if f.end[own] else 0
        part = slice(f.group_start[own], f.group_start[own + 1])
        holds = vector[f.group_place[part]]
        assert self._pool is not None
        with self._lock:
            key = (own, holds.tobytes())
            index = self._known.get(key)
            if index is None:
                self._made.append((own, f.group_row[part][holds.view(np.bool_)]))
                self._pool.dense.append(None)
                index = self._known[key] = self.first_composed + len(self._made) - 1
            value = 2 * index + may_end
            self.rows[self.row_offset[context] + control] = value
        return value

    def memory(self) -> int:
        """Bytes of the factors and of the contexts made so far. An estimate."""
        with self._lock:
            vectors = sum(2 * v.nbytes + 350 for v in self.vectors)  # once as the key that it's found by
            made = zip(self._known, self._made, strict=True)
            known = sum(len(holds) + 8 * len(rows) + 450 for (_, holds), (_, rows) in made)
            return held_bytes(self.factors) + vectors + known + 40 * (len(self.rows) + len(self.pushes))

    # -- rows ------------------------------------------------------------------------------------------------

    def base_index(self, number: int) -> int:
        """The index of the row that a made row stands on."""
        return int(self.factors.base[self._made[number][0]])

    def compose(self, number: int, base: memoryview) -> memoryview:
        """A made row, dense, on its base."""
        assert self._pool is not None
        words = np.array(base)
        for index in self._made[number][1].tolist():
            words |= np.frombuffer(self._pool.expand(index), np.uint32)
        return words.data
