"""The finished tables, as arrays: what the artifact and the pack hold and what the worker runs on.

Numbering. Controls, symbols, frames, actions and rows are numbered from the pack's counts on: id < pack count is the
pack's, the rest is the artifact's own. Controls of a frame are contiguous, symbols that a frame pushes are contiguous.

A *move* is an int32: >= 0 a control; NONE (-1) no move; <= -2 action number -2 - move, which pushes symbols, then goes
to its target. Returns are controls or NONE.

A *context* is a frame together with what its stack says about masks: (frame, stack class). The worker's state is
(control, context, stack of (symbol, context of the caller)):

    push symbol s in context q   ->  context_push[push_start[q] + s - frame_symbols[frame]]
    pop                          ->  the context saved in the stack entry
    mask of control c in q       ->  context_rows[row_start[q] + c - frame_controls[frame]]

A row entry is 2 * row + may_end, or UNREACHED for a control that q's frame can't be in. Context 0 is the start's. Row
COMPOSED isn't stored: it's the pack's row of that control with the bits of those residual tokens whose residual the
context accepts, and the worker makes it on first use. The compiler stores the rows of the pack's controls that
decoding meets often, and leaves the others (inside long white space, counted strings, escapes) to be composed.
A mask row is a base row (the pack's, an earlier own one, or row NO_BASE: all zero) with 32-bit words xor-ed. Bit t %
32 of word t // 32 is token t. Rows hold text tokens only: stop tokens are the worker's, by may_end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NONE = -1
UNREACHED = 0xFFFFFFFF
NO_BASE = 0xFFFFFFFF
COMPOSED = 0x7FFFFFFE

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
NO_ENTRIES: U32 = np.zeros(0, dtype=np.uint32)
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class AutomatonTables:
    """The byte automaton. `n` own controls, `f` frames, `s` symbols, `a` actions; ids inside are global."""

    edge_start: U32  # [n + 1] into the edge arrays
    edge_low: U8  # [edges], disjoint and ascending within a control
    edge_high: U8  # [edges]
    edge_move: I32  # [edges]
    verdict: I32  # [n], -1: not accepting
    frame_controls: U32  # [f + 1], global control numbers: frame i holds frame_controls[i] .. frame_controls[i + 1] - 1
    frame_symbols: U32  # [f + 1], global symbol numbers
    frame_verdicts: U32  # [f]
    action_start: U32  # [a + 1] into action_push
    action_target: U32  # [a]
    action_push: U32  # symbols, the last ends on top
    symbol_callee: U32  # [s] global frame numbers
    return_start: U32  # [s + 1] into return_move
    return_move: I32  # [verdicts of each callee], a control or NONE


@dataclass(frozen=True, slots=True)
class RowTables:
    """Distinct mask rows. A base is a smaller global row number, or NO_BASE."""

    row_base: U32  # [r]
    patch_start: U32  # [r + 1]
    patch_word: U32  # [patches], ascending within a row
    patch_xor: U32  # [patches]


@dataclass(frozen=True, slots=True)
class ContextTables:
    """Contexts and what they look up."""

    context_frame: U32  # [q] global frame numbers
    row_start: U32  # [q + 1] into context_rows; entry count is the frame's number of controls
    push_start: U32  # [q + 1] into context_push; entry count is the frame's number of symbols
    context_rows: U32  # 2 * global row + may_end, or UNREACHED
    context_push: U32  # context, or UNREACHED for a symbol never pushed in q
    context_bits: (
        U8  # for each context of a pack's frame which of the frame's residuals it accepts, packed, bit i of byte i // 8
    )


@dataclass(frozen=True, slots=True)
class FactorTables:
    """What contexts and rows are made of where there are too many to store; see `factors.py`."""

    codes: U32  # [f] residuals of each own frame
    gather: U32  # for each own symbol and residual of its callee a place in the caller's vector, then false, true
    end: U32  # [n] the place that asks for the end + 1, 0: none
    base: U32  # [n] row + 1 of the local mask, 0: empty
    group_start: U32  # [n + 1]
    group_place: U32
    group_row: U32  # row + 1
    start: U32  # the vector of context 0, without false, true


@dataclass(frozen=True, slots=True)
class TokenTables:
    """An artifact's own tables. `start` is a global control, in context 0. With `factors` that is the only context."""

    automaton: AutomatonTables
    rows: RowTables
    contexts: ContextTables
    start: int
    frame_names: tuple[tuple[str, str], ...]  # (name, source pointer) by own frame
    factors: FactorTables | None = None


@dataclass(frozen=True, slots=True)
class PackTables:
    """A vocabulary pack's tables: frames without a start, and each control's walk over the vocabulary.

    A frame's residuals are `code_*[code_start[f] : code_start[f + 1]]`, ascending by (verdict, suffix): all that a
    stack can say about masks in the frame is which of them it accepts. Those of control c,
    `residual_*[residual_start[c] : residual_start[c + 1]]`, are tokens, ascending, that leave c's frame;
    `residual_place` is the place among the frame's residuals. `hot` marks the controls whose rows artifacts store.
    """

    automaton: AutomatonTables
    rows: RowTables
    control_row: U32  # [n] each control's local mask
    code_start: U32  # [f + 1]
    code_verdict: U8
    code_suffix: U32  # numbers of the suffix table; 0 asks whether the text may end
    residual_start: U32  # [n + 1]
    residual_token: U32
    residual_place: U32
    hot: U8  # [n]
    entry_names: tuple[str, ...]
    entry_controls: U32
    frame_names: tuple[tuple[str, str], ...]


def starts(lengths: Iterable[int]) -> U32:
    """[n + 1] offsets of n parts with these lengths."""
    out = np.zeros(1, dtype=np.int64)
    return np.concatenate([out, np.cumsum(np.fromiter(lengths, dtype=np.int64))]).astype(np.uint32)


def lengths(offsets: U32) -> npt.NDArray[np.int64]:
    """[n] lengths of the parts between n + 1 offsets: the inverse of `starts`."""
    wide = offsets.astype(np.int64)
    return wide[1:] - wide[:-1]
