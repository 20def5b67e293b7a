"""The token automaton's pipeline: byte automaton in, tables out.

    flatten   the automaton as arrays, on top of the pack's
    walk      each own control over the vocabulary: local mask and residuals
    close     the residuals of each frame, the gather of each symbol
    contexts  (frame, stack class) pairs, breadth-first from the start
    rows      a mask row for each control in each context, deduplicated, as differences

Everything after `walk` is proportional to what the schema adds; the pack's controls bring their rows along.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, bytes_after_return
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.beside import Beside, BesideWalker, find_base
from maskwright.compiler.tokens.contexts import Context, find_contexts
from maskwright.compiler.tokens.machine import flatten
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
from maskwright.compiler.tokens.walk import FINAL, NO_TOKENS, Walked, Walker

T = TypeVar("T")

SUGGESTED = 3
LARGE_MASK = 256


@dataclass(frozen=True, slots=True)
class BuildStats:
    """Counts for the report; `mask_sizes`: legal tokens in each distinct mask row that isn't the pack's."""

    contexts: int
    pairs: int
    mask_sizes: tuple[int, ...]
    seconds: dict[str, float]


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
    residuals = clock.run(
        "close", lambda: close_residuals(a, walked, walker, prepared.residuals, lambda: clock.check("close"))
    )
    contexts = clock.run("contexts", lambda: find_contexts(a, residuals, prepared.tokens.n_suffixes, limits, deadline))
    store = RowStore(prepared.vocab_size, len(prepared.tables.rows.row_base), limits)
    rows = _Rows(a, prepared, walked, residuals, contexts, store)
    entries = clock.run("rows", lambda: rows.run(clock))
    context_tables = clock.run("tables", lambda: _context_tables(a, automaton, prepared, contexts, entries))
    sizes = clock.run("sizes", lambda: store.sizes(prepared.row))
    names = tuple((f.name, f.pointer) for f in a.frames)
    tables = TokenTables(automaton, store.tables(), context_tables, a.start, names)
    return tables, BuildStats(len(contexts), len(entries), tuple(sizes), seconds)


def follow_bytes(a: ByteAutomaton) -> dict[int, npt.NDArray[np.bool_]]:
    """By own frame, [256]: bytes that some caller goes on with after its return; other rests are worth nothing."""
    bits = dict.fromkeys(range(a.first_frame, a.n_frames), 0)
    for (frame, _), found in bytes_after_return(a, a.first_symbol).items():
        if frame in bits:
            bits[frame] |= found
    return {
        f: np.unpackbits(np.frombuffer(b.to_bytes(32, "little"), dtype=np.uint8), bitorder="little").view(np.bool_)
        for f, b in bits.items()
    }


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
            raise LimitExceeded("compile_seconds", self.limits.compile_seconds, self.limits.compile_seconds, stage)

    def watch(self, items: Sequence[T], stage: str) -> Iterator[T]:
        for i, item in enumerate(items):
            if i % 64 == 63:
                self.check(stage)
            yield item


def _walk_all(a: ByteAutomaton, walker: Walker, clock: _Clock) -> dict[int, Walked | Beside]:
    entries: dict[int, list[int]] = {}
    for c in a.base.entries.values() if a.base else ():
        entries.setdefault(a.frame_of(c), []).append(c)
    beside, follow = BesideWalker(walker), follow_bytes(a)
    out: dict[int, Walked | Beside] = {}
    for c in clock.watch(a.own_controls(), "walk"):
        if a.is_final(c):
            out[c] = FINAL
            continue
        base, may_follow = find_base(a, c, entries), follow[a.frame_of(c)]
        out[c] = beside.walk(c, base, may_follow) if base else walker.walk(c, may_follow)
    return out


class _Rows:
    """The row entry (2 * row + may_end) of each reached (context, control)."""

    def __init__(
        self,
        a: ByteAutomaton,
        prepared: PreparedVocabulary,
        walked: dict[int, Walked | Beside],
        residuals: Residuals,
        contexts: list[Context],
        store: RowStore,
    ) -> None:
        self.a, self.prepared, self.walked, self.residuals = a, prepared, walked, residuals
        self.contexts, self.store = contexts, store
        self.sources: dict[int, _Local | _Differing] = {}

    def run(self, clock: _Clock) -> dict[tuple[int, int], int]:
        where: dict[int, list[int]] = {}
        for q, context in enumerate(self.contexts):
            for c in context.reached:
                where.setdefault(c, []).append(q)
        entries: dict[tuple[int, int], int] = {}
        for c in clock.watch(sorted(where), "rows"):
            verdict, codes = self.a.verdict_of(c), self.residuals.codes[self.a.frame_of(c)]
            end = (
                int(places(codes, np.array([verdict * self.prepared.tokens.n_suffixes]))[0]) if verdict >= 0 else -2
            )  # false
            composed = c < self.a.first_control and not self.prepared.tables.hot[c]
            for q in where[c]:
                may_end = int(self.contexts[q].vector[end])
                entries[q, c] = 2 * (COMPOSED if composed else self.source(c).row(q).number) + may_end
            if c >= self.a.first_control:
                del self.sources[c]  # only the pack's controls are bases for later ones
        return entries

    def root_of(self, local: npt.NDArray[np.int32]) -> Row:
        """What rows with this local mask are differences from: nothing if it's small, else the mask as a row."""
        if len(local) > LARGE_MASK:
            made = self.store.add(NO_BASE, local, [])
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
        order = np.argsort(walked.left_token, kind="stable")
        at = places(self.residuals.codes[self.a.frame_of(c)], walked.left_code[order])
        return _Local(self, self.root_of(np.sort(walked.local)), walked.left_token[order], at)

    def packed(self, c: int) -> _Local:
        number = int(self.prepared.tables.control_row[c])
        return _Local(self, Row(number, number, NO_TOKENS), *self.prepared.residual_tokens(c))


class _Local:
    """Rows of a control that was walked whole: its local mask and the residuals that the context accepts."""

    def __init__(self, rows: _Rows, root: Row, token: npt.NDArray[np.int32], at: npt.NDArray[np.int32]) -> None:
        """`token`: residual tokens, ascending; `at`: the place of each one's residual in the frame's vector."""
        self.rows, self.root, self.token, self.at = rows, root, token, at
        self.known: dict[bytes, Row] = {}
        self.near: list[Row] = []

    def row(self, q: int) -> Row:
        bits = self.rows.contexts[q].vector[self.at]
        key = bits.tobytes()
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.make(self.token[bits.view(np.bool_)])
        return found

    def make(self, more: npt.NDArray[np.int32]) -> Row:
        root = self.root
        if root.root == NO_BASE:
            made = self.rows.store.add(NO_BASE, np.sort(np.concatenate([root.flipped, more])), self.near)
        elif len(more):
            made = self.rows.store.add(root.root, more, self.near)
        else:
            return root
        if len(self.near) < SUGGESTED:
            self.near.append(made)
        return made


class _Differing:
    """Rows of a control that was walked beside a base: the base's row in the pushed context, with some bits flipped."""

    def __init__(self, rows: _Rows, c: int, walked: Beside) -> None:
        self.rows, self.base = rows, walked.base
        a, codes = rows.a, rows.residuals.codes
        by_token = np.argsort(walked.token, kind="stable")
        self.token = walked.token[by_token]
        self.at = places(codes[a.frame_of(c)], walked.code[by_token])
        self.base_at = places(codes[a.frame_of(walked.base.control)], walked.base_code[by_token])

    def row(self, q: int) -> Row:
        contexts = self.rows.contexts
        pushed = contexts[q].pushes[self.base.symbol]
        differs = contexts[q].vector[self.at] != contexts[pushed].vector[self.base_at]
        base = self.rows.source(self.base.control).row(pushed)
        if not differs.any():
            return base
        return self.rows.store.add(base.number, self.token[differs], [])


def _context_tables(
    a: ByteAutomaton,
    own: AutomatonTables,
    prepared: PreparedVocabulary,
    contexts: list[Context],
    entries: dict[tuple[int, int], int],
) -> ContextTables:
    pack = prepared.tables.automaton
    rows, pushes = [np.zeros(0, dtype=np.uint32)], [np.zeros(0, dtype=np.uint32)]
    bits = [np.zeros(0, dtype=np.uint8)]
    for q, context in enumerate(contexts):
        t, f = (own, context.frame - a.first_frame) if context.frame >= a.first_frame else (pack, context.frame)
        low, high = int(t.frame_controls[f]), int(t.frame_controls[f + 1])
        row = np.full(high - low, UNREACHED, dtype=np.uint32)
        for c in context.reached:
            row[c - low] = entries[q, c]
        rows.append(row)
        low, high = int(t.frame_symbols[f]), int(t.frame_symbols[f + 1])
        push = np.full(high - low, UNREACHED, dtype=np.uint32)
        for s, target in context.pushes.items():
            push[s - low] = target
        pushes.append(push)
        if context.frame < a.first_frame:
            bits.append(np.packbits(context.vector[:-2], bitorder="little"))
    return ContextTables(
        context_frame=np.array([c.frame for c in contexts], dtype=np.uint32),
        row_start=starts(map(len, rows[1:])),
        push_start=starts(map(len, pushes[1:])),
        context_rows=np.concatenate(rows),
        context_push=np.concatenate(pushes),
        context_bits=np.concatenate(bits),
    )
