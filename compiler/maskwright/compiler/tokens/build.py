"""The token automaton's pipeline: byte automaton in, tables out.

    flatten   the automaton as arrays, on top of the pack's
    walk      each own control over the vocabulary: local mask and residuals
    rests     of rests that no return tells apart one is kept, where there are many
    close     the residuals of each frame, the gather of each symbol
    contexts  (frame, stack class) pairs, breadth-first from the start
    factors   instead of contexts and rows, where contexts are too many
    rows      a mask row for each control in each context, deduplicated, as differences

Everything after `walk` is proportional to what the schema adds; the pack's controls bring their rows along.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, bytes_after_return
from maskwright.compiler.diagnostics import LimitExceeded, out_of_time
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.beside import Base, Bases, Beside, BesideWalker
from maskwright.compiler.tokens.contexts import Context, Layout, find_contexts
from maskwright.compiler.tokens.factors import build_factors, may_be_lazy
from maskwright.compiler.tokens.machine import flatten
from maskwright.compiler.tokens.merge_rests import MergedRests, merge_rests
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.residuals import Residuals, close_residuals, places
from maskwright.compiler.tokens.rows import Row, RowStore
from maskwright.compiler.tokens.tables import (
    COMPOSED,
    NO_BASE,
    UNREACHED,
    AutomatonTables,
    ContextTables,
    TokenTables,
    starts,
)
from maskwright.compiler.tokens.walk import FINAL, NO_TOKENS, Follow, Walked, Walker

T = TypeVar("T")
U32 = npt.NDArray[np.uint32]

LARGE_MASK = 256
MANY_RESTS = 500_000
RESTS_A_RETURN = 20_000
"""Questions to symbols, in all and for each distinct return, before it pays to merge rests first: a question takes a
microsecond, to ask a return for all rests takes milliseconds.
"""
FEW = 64
COMPLETE_CONTEXTS = 4_000
"""Contexts that are stored where an artifact can do without; beyond, it ships factors."""
NO_ENTRIES: U32 = np.zeros(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class BuildStats:
    """Counts for the report; `mask_sizes`: legal tokens in each distinct mask row that isn't the pack's. `lazy`: there
    are factors instead of contexts, and rows are parts of masks."""

    contexts: int
    pairs: int
    mask_sizes: tuple[int, ...]
    seconds: dict[str, float]
    lazy: bool = False


def build_tokens(
    a: ByteAutomaton, prepared: PreparedVocabulary, limits: Limits, deadline: float | None = None
) -> tuple[TokenTables, BuildStats]:
    """The artifact's tables for `a`, which is minimised and stands on the prepared vocabulary's library.

    Raises LimitExceeded for `stack_classes`, `mask_bytes` and `compile_seconds`.
    """
    assert a.start is not None
    seconds: dict[str, float] = {}
    clock = _Clock(seconds, limits, deadline)
    automaton = clock.run("flatten", lambda: flatten(a, prepared.tables.automaton))
    walker = Walker(prepared.machine(automaton), prepared.tokens)
    walked = clock.run("walk", lambda: _walk_all(a, walker, clock))
    rests = clock.run("rests", lambda: _merge_many(a, walked, walker, clock))
    walked = {c: w.with_rests(rests) for c, w in walked.items()} if rests else walked
    residuals = clock.run(
        "close", lambda: close_residuals(a, walked, walker, prepared.residuals, lambda: clock.check("close"), rests)
    )
    layout, n_suffixes = Layout(prepared.tables.automaton, automaton), prepared.tokens.n_suffixes
    store = RowStore(prepared.vocab_size, len(prepared.tables.rows.row_base), limits, prepared.row_size)
    names = tuple((f.name, f.pointer) for f in a.frames)

    def find() -> list[Context] | None:
        if not may_be_lazy(a):
            return find_contexts(a, residuals, n_suffixes, layout, prepared.regions, limits, deadline)
        most = replace(limits, stack_classes=min(limits.stack_classes, COMPLETE_CONTEXTS))
        try:
            return find_contexts(a, residuals, n_suffixes, layout, prepared.regions, most, deadline)
        except LimitExceeded as error:
            if error.limit_name != "stack_classes":
                raise
            return None

    contexts = clock.run("contexts", find)
    if contexts is None:
        factors = clock.run(
            "factors", lambda: build_factors(a, walked, residuals, n_suffixes, store, lambda: clock.check("factors"))
        )
        row_tables = clock.run("patches", store.tables)
        start = a.frame_of(a.start)
        one = Context(start, np.zeros(0, dtype=np.uint8), bytearray())
        unreached = np.full(len(layout.controls_of(start)), UNREACHED, dtype=np.uint32)
        tables = TokenTables(
            automaton, row_tables, _context_tables(a, layout, [one], [unreached]), a.start, names, factors
        )
        return tables, BuildStats(0, 0, tuple(store.sizes), seconds, lazy=True)
    rows = _Rows(a, automaton, prepared, walked, residuals, layout, contexts, store)
    entries = clock.run("rows", lambda: rows.run(clock))
    row_tables = clock.run("patches", store.tables)
    context_tables = clock.run("tables", lambda: _context_tables(a, layout, contexts, entries))
    tables = TokenTables(automaton, row_tables, context_tables, a.start, names)
    pairs = int((context_tables.context_rows != UNREACHED).sum())
    return tables, BuildStats(len(contexts), pairs, tuple(store.sizes), seconds)


def follow_bytes(a: ByteAutomaton) -> dict[int, Follow]:
    """By own frame: bytes that some caller goes on with after each verdict; other rests are worth nothing."""
    out = {f: np.zeros((a.frame_info(f).verdicts, 256), dtype=np.bool_) for f in range(a.first_frame, a.n_frames)}
    for (frame, v), found in bytes_after_return(a, a.first_symbol).items():
        if frame in out:
            bits = np.frombuffer(found.to_bytes(32, "little"), dtype=np.uint8)
            out[frame][v] = np.unpackbits(bits, bitorder="little")
    return out


def _merge_many(
    a: ByteAutomaton, walked: dict[int, Walked | Beside], walker: Walker, clock: _Clock
) -> MergedRests | None:
    """The merged rests where closing what was walked would put many codes to many symbols."""
    callers = np.bincount([a.symbol(s).callee for s in range(a.first_symbol, a.n_symbols)], minlength=a.n_frames)
    most: dict[int, int] = {}
    for c, w in walked.items():
        f = a.frame_of(c)
        most[f] = max(most.get(f, 0), len(w.residual_codes))
    returns = {m for s in a.symbols for m in s.returns if m is not None}
    if sum(n * int(callers[f]) for f, n in most.items()) < max(MANY_RESTS, RESTS_A_RETURN * len(returns)):
        return None
    return merge_rests(a, walker, follow_bytes(a), lambda: clock.check("rests"))


class _Clock:
    """Times the passes and holds the deadline."""

    def __init__(self, seconds: dict[str, float], limits: Limits, deadline: float | None) -> None:
        self.seconds, self.limits, self.deadline = seconds, limits, deadline

    def run(self, name: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        out = work()
        self.seconds[name] = time.perf_counter() - begin
        self.check(name)
        return out

    def check(self, stage: str) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise out_of_time(self.limits.compile_seconds, self.deadline, stage)

    def watch(self, items: Iterable[T], stage: str) -> Iterator[T]:
        for i, item in enumerate(items):
            if i % 64 == 63:
                self.check(stage)
            yield item


def _walk_all(a: ByteAutomaton, walker: Walker, clock: _Clock) -> dict[int, Walked | Beside]:
    follow, rows = _follow_table(a)
    bases, out = Bases(a), dict[int, Walked | Beside]()
    alone: list[int] = []
    pairs: dict[int, Base] = {}
    for c in a.own_controls():
        if a.is_final(c):
            out[c] = FINAL
        elif base := bases.find(c):
            pairs[c] = base
        else:
            alone.append(c)
    parts = {c: rows[a.frame_of(c)] for c in a.own_controls()}
    walks = walker.walk_all(alone, follow, [parts[c] for c in alone])
    for c, walked in clock.watch(zip(alone, walks, strict=True), "walk"):
        out[c] = walked
    besides = BesideWalker(walker).walk_all([*pairs], [*pairs.values()], follow, [parts[c] for c in pairs])
    for c, beside in clock.watch(zip(pairs, besides, strict=True), "walk"):
        out[c] = beside
    return out


def _follow_table(a: ByteAutomaton) -> tuple[Follow, dict[int, tuple[int, int]]]:
    """`follow_bytes` of all frames below each other, and where each frame's begin and end."""
    by_frame = follow_bytes(a)
    bounds = starts(map(len, by_frame.values())).tolist()
    return np.concatenate([*by_frame.values()]), dict(zip(by_frame, itertools.pairwise(bounds), strict=True))


class _Rows:
    """The row entry (2 * row + may_end) of each control that's reached in a context."""

    def __init__(
        self,
        a: ByteAutomaton,
        own: AutomatonTables,
        prepared: PreparedVocabulary,
        walked: dict[int, Walked | Beside],
        residuals: Residuals,
        layout: Layout,
        contexts: list[Context],
        store: RowStore,
    ) -> None:
        self.a, self.prepared, self.walked, self.residuals = a, prepared, walked, residuals
        self.layout, self.contexts, self.store = layout, contexts, store
        self.verdict = np.concatenate([prepared.tables.automaton.verdict, own.verdict])
        self.sources: dict[int, _Local | _Differing] = {}
        self.at: dict[int, npt.NDArray[np.int32]] = {}

    def run(self, clock: _Clock) -> list[U32]:
        """By context [controls of its frame], UNREACHED where decoding can't be."""
        by_frame: dict[int, list[int]] = {}
        for q, context in enumerate(self.contexts):
            by_frame.setdefault(context.frame, []).append(q)
        entries: list[U32] = [NO_ENTRIES] * len(self.contexts)
        for frame in clock.watch(sorted(by_frame), "rows"):
            numbers = by_frame[frame]
            for q, row in zip(numbers, self.entries(frame, numbers, clock), strict=True):
                entries[q] = row
        return entries

    def entries(self, frame: int, numbers: list[int], clock: _Clock) -> U32:
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
            self.locate(codes, [controls[i] for i in wanted])
        for i in clock.watch(wanted, "rows"):
            source = self.source(controls[i])
            for k in np.flatnonzero(stored[:, i]).tolist():
                rows[k, i] = source.row(numbers[k]).number
            if frame >= self.a.first_frame:
                del self.sources[controls[i]]  # only the pack's controls are bases for later ones
        may_end = np.array([self.contexts[q].vector[at] for q in numbers], dtype=np.uint32)
        return np.where(reached, 2 * rows + may_end, np.uint32(UNREACHED))

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
        return _Local(self, self.root_of(np.sort(walked.local)), walked.left_token, self.at[c])

    def packed(self, c: int) -> _Local:
        number = int(self.prepared.tables.control_row[c])
        return _Local(self, Row(number, number, NO_TOKENS), *self.prepared.residual_tokens(c))


class _Local:
    """Rows of a control that was walked whole: its local mask and the residuals that the context accepts."""

    def __init__(self, rows: _Rows, root: Row, token: npt.NDArray[np.int32], at: npt.NDArray[np.int32]) -> None:
        """`token`: residual tokens; `at`: the place of each one's residual in the frame's vector."""
        self.rows, self.root, self.token, self.at = rows, root, token, at
        self.asked = np.flatnonzero(np.bincount(at)) if len(at) > FEW else at
        """Places that some token asks for: what the context says there decides the row."""
        self.known: dict[bytes, Row] = {}

    def row(self, q: int) -> Row:
        vector = self.rows.contexts[q].vector
        key = vector[self.asked].tobytes()
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.make(self.token[vector[self.at].view(np.bool_)])
        return found

    def make(self, more: npt.NDArray[np.int32]) -> Row:
        root = self.root
        if root.root == NO_BASE:
            return self.rows.store.add(NO_BASE, np.sort(np.concatenate([root.flipped, more])))
        return self.rows.store.add(root.root, np.sort(more)) if len(more) else root


class _Differing:
    """Rows of a control that was walked beside a base: the base's row in the pushed context, with some bits flipped."""

    def __init__(self, rows: _Rows, c: int, walked: Beside) -> None:
        self.rows, self.base = rows, walked.base
        self.token = walked.token
        self.at = rows.at[c]
        self.base_at = places(rows.residuals.codes[rows.a.frame_of(walked.base.control)], walked.base_code)

    def row(self, q: int) -> Row:
        contexts = self.rows.contexts
        pushed = contexts[q].pushes[self.base.symbol]
        here = contexts[q].vector[self.at]
        differs = here != contexts[pushed].vector[self.base_at]
        base = self.rows.source(self.base.control).row(pushed)
        n = int(np.count_nonzero(differs))
        if not n:
            return base
        gain = 2 * int(np.count_nonzero(here[differs])) - n
        return self.rows.store.add(base.number, np.sort(self.token[differs]), gain)


def _context_tables(a: ByteAutomaton, layout: Layout, contexts: list[Context], entries: list[U32]) -> ContextTables:
    pushes, bits = [NO_ENTRIES], [np.zeros(0, dtype=np.uint8)]
    for context in contexts:
        symbols = layout.symbols_of(context.frame)
        push = np.full(len(symbols), UNREACHED, dtype=np.uint32)
        for s, target in context.pushes.items():
            push[s - symbols.start] = target
        pushes.append(push)
        if context.frame < a.first_frame:
            bits.append(np.packbits(context.vector[:-2], bitorder="little"))
    return ContextTables(
        context_frame=np.array([c.frame for c in contexts], dtype=np.uint32),
        row_start=starts(map(len, entries)),
        push_start=starts(map(len, pushes[1:])),
        context_rows=np.concatenate([NO_ENTRIES, *entries]),
        context_push=np.concatenate(pushes),
        context_bits=np.concatenate(bits),
    )
