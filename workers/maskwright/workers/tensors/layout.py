"""Artifacts as flat arrays of fixed shape, for machines that index and don't search.

The worker's own form (dictionaries of moves, rows made when they're used) suits one CPU thread. Here everything that
a run can meet is expanded at once, and renumbered so that it's dense:

    moves[control, class]   what a control does on a byte; bytes that no control tells apart share a class. The last
                            class is the token's end: a final control returns there, others do nothing.
                            >= 0 a control; -1 no member goes on; -2 - 2 * a action a; -3 - 2 * v return with verdict v
    returns                 the move of a symbol for a verdict at return_start[symbol] + verdict, coded alike
    entries                 2 * row + may_end of a control in a context at row_offset[context] + control; 0: never
    pushes                  context + 1 of a symbol pushed in a context at push_offset[context] + symbol; 0: never
    rows                    masks with the stop tokens put in: row 0 is unused, 1 holds the stop tokens, 2 everything

Several artifacts of one vocabulary pack lie one behind the other, each with a start of its own, so that the sequences
of a batch may follow different ones. Equal rows are kept once.

Two bounds are found here, for machines whose loops can't depend on data: the most returns that chain on one byte
(the longest path over (frame, verdict); none when there's a cycle, as a right-recursive grammar has), and the greatest
height of the stack (the longest path over contexts; none for recursive sources). numpy only; time is linear in the
expanded tables, plus tens of microseconds for each row that's composed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import TablesRefused, WrongVocabulary
from maskwright.workers.masks import integers
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.tensors.bounds import longest_chain, longest_stack
from maskwright.workers.tensors.row_table import RowTable
from maskwright.workers.tensors.view import View, byte_classes, ids_between, token_table

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Layout:
    """The arrays of the module's docstring, for all artifacts together. int32 where nothing else is said.

    longest: bytes of the longest token in any row. chain: the most returns that chain on one byte, None: no bound.
    most_pushes: symbols that an action pushes at most. height: of the stack, None: no bound.
    """

    vocab_size: int
    class_of: I32  # [256]
    moves: I32  # [controls, classes]
    action_start: I32  # [actions + 2]: the last action is empty
    action_push: I32
    action_target: I32
    return_start: I32  # [symbols]
    returns: I32
    push_offset: I32  # [contexts]
    pushes: I32
    row_offset: I32  # [contexts]
    entries: I32
    rows: I32  # [rows, words], the bits
    is_stop: npt.NDArray[np.uint8]  # [vocab_size]
    token_start: I32  # [vocab_size + 1]
    token_bytes: npt.NDArray[np.uint8]
    starts: I32  # [artifacts, 3]: control, context, entry
    longest: int
    chain: int | None
    most_pushes: int
    height: int | None

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(x.nbytes for x in vars(self).values() if isinstance(x, np.ndarray))


@dataclass
class _Part:
    """One artifact's arrays, renumbered from the offsets on that the ones before it reached."""

    moves: I64
    action_start: I64
    action_push: I64
    action_target: I64
    return_start: I64
    returns: I64
    push_offset: I64
    pushes: I64
    row_offset: I64
    entries: I64
    start: tuple[int, int, int]
    chain: int | None
    height: int | None


@dataclass
class _Offsets:
    """How many controls, actions, symbols, returns and so on lie before a part."""

    control: int = 0
    action: int = 0
    pushed: int = 0
    symbol: int = 0
    move: int = 0
    context: int = 0
    push: int = 0
    entry: int = 0


def lay_out(artifacts: Sequence[Artifact], stop_token_ids: Iterable[int] | None, max_bytes: int) -> Layout:
    """The layout of artifacts of one pack. `stop_token_ids`: default the vocabulary's own.

    Raises WrongVocabulary for another pack, TablesRefused for lazy contexts and when the arrays would take more than
    `max_bytes`, ValueError for no artifact and stop tokens outside the vocabulary.
    """
    if not artifacts:
        raise ValueError("no artifact")
    pack = artifacts[0].pack
    for artifact in artifacts:
        if artifact.pack.digest != pack.digest:
            raise WrongVocabulary("pack", pack.digest, artifact.pack.digest)
        if artifact.lazy is not None:
            raise TablesRefused("lazy", None, None, artifact.digest)
    stops = sorted(set(integers(pack.stop_token_ids if stop_token_ids is None else stop_token_ids)))
    if any(not 0 <= t < pack.vocab_size for t in stops):
        raise ValueError(f"stop_token_ids {stops} aren't all ids below {pack.vocab_size}")
    views = [View(artifact) for artifact in artifacts]
    class_of = byte_classes(views)
    n_classes = int(class_of.max()) + 2
    size = 4 * n_classes * sum(view.n_controls for view in views)
    if size > max_bytes:
        raise TablesRefused("bytes", max_bytes, size, artifacts[0].digest)
    rows, offsets = RowTable(pack, stops, max_bytes - size), _Offsets()
    parts = [_part(view, class_of, n_classes, rows, offsets) for view in views]
    tokens = token_table(pack, specials=any(artifact.has_specials for artifact in artifacts))
    return _together(pack, parts, class_of, rows, stops, tokens)


def _together(
    pack: VocabularyPack,
    parts: list[_Part],
    class_of: I64,
    rows: RowTable,
    stops: list[int],
    tokens: tuple[I64, npt.NDArray[np.uint8]],
) -> Layout:
    def joined(name: str) -> I32:
        return _padded(np.concatenate([getattr(part, name) for part in parts]))

    pushed = np.concatenate([part.action_push for part in parts])
    # One action more, which pushes nothing: indexed where there's none.
    starts = np.append(np.concatenate([part.action_start for part in parts]), [len(pushed), len(pushed)])
    is_stop = np.zeros(pack.vocab_size, np.uint8)
    is_stop[stops] = 1
    heights = [part.height for part in parts]
    chains = [part.chain for part in parts]
    offsets, blob = tokens
    legal = np.flatnonzero(np.unpackbits(rows.union().view(np.uint8), bitorder="little")[: pack.vocab_size])
    return Layout(
        vocab_size=pack.vocab_size,
        class_of=class_of.astype(np.int32),
        moves=np.concatenate([part.moves for part in parts]).astype(np.int32),
        action_start=starts.astype(np.int32),
        action_push=joined("action_push"),
        action_target=np.append(joined("action_target"), np.int32(0)),
        return_start=joined("return_start"),
        returns=joined("returns"),
        push_offset=joined("push_offset"),
        pushes=joined("pushes"),
        row_offset=joined("row_offset"),
        entries=joined("entries"),
        rows=rows.array().view(np.int32),
        is_stop=is_stop,
        token_start=offsets.astype(np.int32),
        token_bytes=blob,
        starts=np.array([part.start for part in parts], np.int32),
        longest=int((offsets[legal + 1] - offsets[legal]).max(initial=1)),
        chain=None if None in chains else max(c for c in chains if c is not None),
        most_pushes=int(np.diff(starts).max(initial=0)),
        height=None if None in heights else max(h for h in heights if h is not None),
    )


def _padded(array: I64) -> I32:
    """As int32, and never empty: what isn't used is still indexed."""
    return (array if len(array) else np.zeros(1, np.int64)).astype(np.int32)


# -- one artifact ----------------------------------------------------------------------------------------------------


def _part(view: View, class_of: I64, n_classes: int, rows: RowTable, offsets: _Offsets) -> _Part:
    used, action_local = _used_actions(view)
    all_start, all_push, all_target = view.actions()
    counts = all_start[used + 1] - all_start[used]
    # A symbol or target of an unused frame stands behind a push that's never made: any number will do.
    pushed = np.maximum(view.symbol_local[all_push[ids_between(all_start, used)]], 0) + offsets.symbol
    target = np.maximum(view.control_local[all_target[used]], 0) + offsets.control
    moves = _moves(view, class_of, n_classes, action_local, offsets)
    return_start, returns = _returns(view, action_local, offsets)
    part = _Part(
        moves=moves,
        action_start=offsets.pushed + np.cumsum(counts) - counts,
        action_push=pushed,
        action_target=target,
        return_start=return_start,
        returns=returns,
        chain=_chain(view, moves, returns, target, offsets),
        **_contexts(view, rows, offsets),
    )
    offsets.control += len(moves)
    offsets.action += len(used)
    offsets.pushed += len(pushed)
    offsets.symbol += len(view.symbols)
    offsets.move += len(returns)
    offsets.context += len(part.row_offset)
    offsets.push += len(part.pushes)
    offsets.entry += len(part.entries)
    return part


def _contexts(view: View, rows: RowTable, offsets: _Offsets) -> dict[str, Any]:
    """What depends on contexts. The value of global control c in context q is at row_offset[q] + c; local ids of a
    frame are contiguous as the global ones are, so another offset serves them. Symbols alike.
    """
    a, contexts, start = view.a, view.artifact.contexts, view.artifact.start
    frame = contexts.frame.astype(np.int64)
    entries = rows.entries(view.artifact)
    control = a.all_frame_controls[frame]
    symbol, n_symbols = a.all_frame_symbols[frame], np.diff(a.all_frame_symbols)[frame]
    pushes = contexts.push.astype(np.int64)
    control_step = control - view.control_local[control] - offsets.control
    symbol_step = symbol - view.symbol_local[symbol] - offsets.symbol
    entry = int(entries[contexts.row_offset[0] + start])
    return {
        "push_offset": contexts.push_offset + symbol_step + offsets.push,
        "pushes": np.where(pushes > 0, pushes + offsets.context, 0),
        "row_offset": contexts.row_offset + control_step + offsets.entry,
        "entries": entries,
        "start": (int(view.control_local[start]) + offsets.control, offsets.context, entry),
        "height": longest_stack(contexts.push_offset + symbol, n_symbols, pushes),
    }


def _used_actions(view: View) -> tuple[I64, I64]:
    """The actions that a used control or symbol makes, ascending, and their local ids."""
    _, _, _, stored = view.edges()
    start, move = view.returns()
    made = move[ids_between(start, view.symbols)]
    used = np.unique(np.concatenate([stored[stored & 1 == 1] >> 1, -2 - made[made < -1]]))
    local = np.full(view.a.n_actions, -1, np.int64)
    local[used] = np.arange(len(used))
    return used, local


def _moves(view: View, class_of: I64, n_classes: int, action_local: I64, offsets: _Offsets) -> I64:
    local, low, high, stored = view.edges()
    verdicts = view.verdicts()
    table = np.repeat((-1 - 2 * verdicts)[:, None], n_classes, axis=1)
    has_edge = np.zeros(len(table), bool)
    has_edge[local] = True
    table[has_edge, -1] = -1
    number, is_action = stored >> 1, stored & 1 == 1
    control = view.control_local[np.where(is_action, 0, number)] + offsets.control
    action = action_local[np.where(is_action, number, 0)] + offsets.action if len(action_local) else control
    value = np.where(is_action, -2 - 2 * action, control)
    first, counts = class_of[low], class_of[high] - class_of[low] + 1
    column = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    table[np.repeat(local, counts), column] = np.repeat(value, counts)
    return table


def _returns(view: View, action_local: I64, offsets: _Offsets) -> tuple[I64, I64]:
    """return_start, returns of the used symbols."""
    all_start, all_move = view.returns()
    counts = all_start[view.symbols + 1] - all_start[view.symbols]
    move = all_move[ids_between(all_start, view.symbols)]
    control = view.control_local[np.maximum(move, 0)] + offsets.control
    action = action_local[np.maximum(-2 - move, 0)] + offsets.action if len(action_local) else control
    coded = np.where(move >= 0, control, np.where(move == -1, -1, -2 - 2 * action))
    return offsets.move + np.cumsum(counts) - counts, coded


def _chain(view: View, moves: I64, returns: I64, action_target: I64, offsets: _Offsets) -> int | None:
    """The bound on chained returns; a node is a (frame, verdict) of a used frame."""
    a = view.a
    verdicts = a.all_frame_verdicts[view.frames]
    first = np.cumsum(verdicts) - verdicts
    frame = view.frame_local[a.control_frames()[view.controls]]
    node = first[frame][:, None] + np.where((moves < -1) & (moves & 1 == 1), (-3 - moves) >> 1, 0)
    callee = a.all_symbol_callee[view.symbols]
    counts = a.all_frame_verdicts[callee]
    place = np.arange(len(returns)) - np.repeat(np.cumsum(counts) - counts, counts)
    local = np.repeat(view.frame_local[callee], counts)
    target = np.where(returns >= 0, returns, -1)
    acts = returns < -1
    target[acts] = action_target[(-2 - returns[acts]) // 2 - offsets.action]
    target = np.where(target >= 0, target - offsets.control, -1)
    used = local >= 0
    return longest_chain(moves, node, (first[local] + place)[used], target[used], int(verdicts.sum()))
