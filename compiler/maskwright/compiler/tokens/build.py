"""The token automaton's pipeline: byte automaton in, tables out.

    flatten   the automaton as arrays, on top of the pack's
    walk      each own control over the vocabulary: local mask and residuals, or how they differ from another's
    rests     of rests that no return tells apart one is kept, where there are many
    close     the residuals of each frame, the gather of each symbol
    contexts  (frame, stack class) pairs, breadth-first from the start
    factors   instead of contexts and rows, where contexts are too many
    rows      a mask row for each control in each context, deduplicated, as differences

Everything after `walk` is proportional to what the schema adds; the pack's controls bring their rows along.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from maskwright.compiler.automaton.ir import ByteAutomaton, bytes_after_return
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.beside import NO_SYMBOL, Base, Bases, Beside, BesideWalker
from maskwright.compiler.tokens.clock import Clock
from maskwright.compiler.tokens.contexts import Context, Layout, find_contexts
from maskwright.compiler.tokens.factors import build_factors, may_be_lazy
from maskwright.compiler.tokens.likeness import Likeness, choose_bases, classify, dense_controls
from maskwright.compiler.tokens.machine import flatten
from maskwright.compiler.tokens.masks import MaskRows, Parts
from maskwright.compiler.tokens.merge_rests import MergedRests, merge_rests
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.residuals import close_residuals
from maskwright.compiler.tokens.rows import RowStore
from maskwright.compiler.tokens.tables import (
    NO_ENTRIES,
    U32,
    UNREACHED,
    ContextTables,
    FactorTables,
    RowTables,
    TokenTables,
    starts,
)
from maskwright.compiler.tokens.walk import FINAL, Follow, Walked, Walker

MANY_RESTS = 500_000
RESTS_A_RETURN = 20_000
"""Questions to symbols, in all and for each distinct return, before it pays to merge rests first: a question takes a
microsecond, to ask a return for all rests takes milliseconds.
"""
DENSE_PART = 16
"""The part of the trie's nodes that a control's walk may visit before it's worth a search for one to walk it beside."""
MANY_DENSE = 3
"""Such controls of a frame before it's worth to find out which are alike."""
COMPLETE_CONTEXTS = 4_000
"""Contexts that are stored where an artifact can do without; beyond, it ships factors."""


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
    clock = Clock(limits, deadline)
    parts = _make_parts(a, prepared, clock)
    store = RowStore(prepared.vocab_size, len(prepared.tables.rows.row_base), limits, prepared.row_size)
    contexts = clock.run("contexts", lambda: _find_contexts(parts, limits, deadline))
    if contexts is None:
        return _build_lazy(parts, store, clock)
    return _build_complete(parts, contexts, store, clock)


def _make_parts(a: ByteAutomaton, prepared: PreparedVocabulary, clock: Clock) -> Parts:
    """The passes from `flatten` to `close`."""
    own = clock.run("flatten", lambda: flatten(a, prepared.tables.automaton))
    walker = Walker(prepared.machine(own), prepared.tokens)
    walked, likeness = clock.run("walk", lambda: _walk_all(a, walker, clock))
    rests = clock.run("rests", lambda: _merge_many(a, walked, walker, clock))
    walked = {c: w.with_rests(rests) for c, w in walked.items()} if rests else walked
    residuals = clock.run(
        "close",
        lambda: close_residuals(a, walked, walker, prepared.residuals, lambda: clock.check("close"), rests, likeness),
    )
    return Parts(a, own, prepared, walked, residuals, Layout(prepared.tables.automaton, own))


def _find_contexts(parts: Parts, limits: Limits, deadline: float | None) -> list[Context] | None:
    """All contexts; None where they're too many and the artifact can do without."""
    p, lazy = parts, may_be_lazy(parts.automaton)
    if lazy:
        limits = replace(limits, stack_classes=min(limits.stack_classes, COMPLETE_CONTEXTS))
    try:
        return find_contexts(
            p.automaton, p.residuals, p.prepared.tokens.n_suffixes, p.layout, p.prepared.regions, limits, deadline
        )
    except LimitExceeded as error:
        if not lazy or error.limit_name != "stack_classes":
            raise
        return None


def _build_complete(
    parts: Parts, contexts: list[Context], store: RowStore, clock: Clock
) -> tuple[TokenTables, BuildStats]:
    """A row for each control in each context."""
    entries = clock.run("rows", lambda: MaskRows(parts, contexts, store).build(clock))
    rows = clock.run("patches", store.tables)
    table = clock.run("tables", lambda: _context_tables(parts, contexts, entries))
    pairs = int((table.context_rows != UNREACHED).sum())
    return _tables(parts, rows, table), BuildStats(len(contexts), pairs, tuple(store.sizes), clock.seconds)


def _build_lazy(parts: Parts, store: RowStore, clock: Clock) -> tuple[TokenTables, BuildStats]:
    """Factors, and a context of no rows that holds the start."""
    p, a = parts, parts.automaton
    assert a.start is not None
    frame = a.frame_of(a.start)
    factors = clock.run(
        "factors",
        lambda: build_factors(
            a, p.walked, p.residuals, p.prepared.tokens.n_suffixes, store, lambda: clock.check("factors")
        ),
    )
    rows = clock.run("patches", store.tables)
    one = Context(frame, np.zeros(0, dtype=np.uint8), bytearray())
    table = _context_tables(parts, [one], [np.full(len(p.layout.controls_of(frame)), UNREACHED, dtype=np.uint32)])
    return _tables(parts, rows, table, factors), BuildStats(0, 0, tuple(store.sizes), clock.seconds, lazy=True)


def _tables(parts: Parts, rows: RowTables, contexts: ContextTables, factors: FactorTables | None = None) -> TokenTables:
    a = parts.automaton
    assert a.start is not None
    return TokenTables(parts.own, rows, contexts, a.start, tuple((f.name, f.pointer) for f in a.frames), factors)


def follow_bytes(a: ByteAutomaton) -> dict[int, Follow]:
    """By own frame: bytes that some caller goes on with after each verdict; other rests are worth nothing."""
    out = {f: np.zeros((a.frame_info(f).verdicts, 256), dtype=np.bool_) for f in range(a.first_frame, a.n_frames)}
    for (frame, v), found in bytes_after_return(a, a.first_symbol).items():
        if frame in out:
            bits = np.frombuffer(found.to_bytes(32, "little"), dtype=np.uint8)
            out[frame][v] = np.unpackbits(bits, bitorder="little")
    return out


def _merge_many(
    a: ByteAutomaton, walked: dict[int, Walked | Beside], walker: Walker, clock: Clock
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


def _walk_all(a: ByteAutomaton, walker: Walker, clock: Clock) -> tuple[dict[int, Walked | Beside], Likeness]:
    follow, rows = _follow_table(a)
    bases, out = Bases(a), dict[int, Walked | Beside]()
    pairs: dict[int, Base] = {}
    for c in a.own_controls():
        if a.is_final(c):
            out[c] = FINAL
        elif base := bases.find(c):
            pairs[c] = base
    likeness = _find_relatives(a, walker, pairs)
    alone = [c for c in a.own_controls() if c not in out and c not in pairs]
    parts = {c: rows[a.frame_of(c)] for c in a.own_controls()}
    walks = walker.walk_all(alone, follow, [parts[c] for c in alone])
    for c, walked in clock.watch(zip(alone, walks, strict=True), "walk"):
        out[c] = walked
    besides = BesideWalker(walker, likeness).walk_all([*pairs], [*pairs.values()], follow, [parts[c] for c in pairs])
    for c, beside in clock.watch(zip(pairs, besides, strict=True), "walk"):
        out[c] = beside
    return out, likeness


def _find_relatives(a: ByteAutomaton, walker: Walker, pairs: dict[int, Base]) -> Likeness:
    """Adds to `pairs` the controls of which most of the vocabulary is asked and that are near to another one."""
    m, heights = walker.machine, walker.tokens.heights
    by_frame: dict[int, list[int]] = {}
    for c in dense_controls(m, heights, len(heights.level) // DENSE_PART).tolist():
        if c not in pairs and not a.is_final(c):
            by_frame.setdefault(a.frame_of(c), []).append(c)
    by_frame = {f: controls for f, controls in by_frame.items() if len(controls) >= MANY_DENSE}
    members = [c for c in a.own_controls() if a.frame_of(c) in by_frame]
    symbols = [s for s in range(a.first_symbol, a.n_symbols) if a.symbol(s).caller in by_frame]
    likeness = classify(m, np.array(members, dtype=np.int32), np.array(symbols, dtype=np.int32), a.first_symbol)
    for controls in by_frame.values():
        chosen = choose_bases(m, likeness, heights, np.array(controls, dtype=np.int32)).tolist()
        pairs |= {c: Base(controls[b], NO_SYMBOL) for c, b in zip(controls, chosen, strict=True) if b >= 0}
    return likeness


def _follow_table(a: ByteAutomaton) -> tuple[Follow, dict[int, tuple[int, int]]]:
    """`follow_bytes` of all frames below each other, and where each frame's begin and end."""
    by_frame = follow_bytes(a)
    bounds = starts(map(len, by_frame.values())).tolist()
    return np.concatenate([*by_frame.values()]), dict(zip(by_frame, itertools.pairwise(bounds), strict=True))


def _context_tables(parts: Parts, contexts: list[Context], entries: list[U32]) -> ContextTables:
    a, layout = parts.automaton, parts.layout
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
