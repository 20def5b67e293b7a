"""The tables of an artifact or a pack, decoded from sections and checked.

What the sections hold is `compiler/artifact/FORMAT.md`. Numbers are global: ids below the pack's counts are
the pack's, an artifact's own follow. Stored values avoid sentinels, so that they fit small dtypes:

    counts                     instead of starts; their sum must be the length of the array they divide
    verdict                    value + 1, 0 for none
    return_move                0: none, 2 * control + 1, 2 * action + 2
    row_base, context_push
    patch_flip, flip_step      differences from the one before, the first as it is
    edge_move                  2 * control, or 2 * action + 1
    context_rows               2 * (row + 1) + may_end, 0 for unreached

Every function raises ArtifactError at the first table that breaks a rule, with vectorised checks: time and
memory are linear in the section lengths. Together the rules guarantee that a matcher never indexes out of
range and never loops for ever: an edge consumes a byte and pushes a bounded number of symbols, a return shortens the
stack or pushes, which the matcher counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers.container import Array, Container
from maskwright.workers.errors import ArtifactError

I64 = npt.NDArray[np.int64]

AUTOMATON_SECTIONS = (
    "edge_count", "edge_low", "edge_high", "edge_move", "verdict", "frame_controls", "frame_symbols",
    "frame_verdicts", "action_count", "action_target", "action_push", "symbol_callee", "return_move",
)  # fmt: skip
ROW_SECTIONS = ("row_base", "patch_count", "patch_flip", "flip_step", "flip_bits")
CONTEXT_SECTIONS = ("context_frame", "context_rows", "context_push", "context_bits")
MAX_PUSHES = 4096
"""Symbols that one action may push."""
MAX_VERDICTS = 1 << 20
"""Verdicts of a frame: no automaton has as many controls. Lists are made of them."""
MAX_NUMBERS = 1 << 28
"""Controls, and actions: what a move can say (machine.py)."""
MAX_CHAIN = 16
"""Own rows that a row may be made of; a power of two."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """A byte automaton's own tables, and what all global ids up to and including its own map to (`all_*`)."""

    first_control: int
    first_action: int
    first_symbol: int
    n_controls: int  # global counts: the base's and the own
    n_actions: int
    n_symbols: int
    n_frames: int
    edge_start: I64  # [own controls + 1]
    edge_low: Array
    edge_high: Array
    edge_move: I64  # as stored
    verdict: Array  # [own controls] as stored: verdict + 1
    action_start: I64  # [own actions + 1]
    action_push: Array
    action_target: Array
    return_start: I64  # [own symbols + 1]
    return_move: I64  # a control, -1: none, -2 - action
    all_frame_controls: I64  # [frames + 1]
    all_frame_symbols: I64  # [frames + 1]
    all_frame_verdicts: I64  # [frames]
    all_symbol_frame: I64  # [symbols] the caller's
    all_symbol_callee: I64  # [symbols]

    def frame_of(self, control: int) -> int:
        """A control's frame. Cost: microseconds."""
        return int(self.all_frame_controls.searchsorted(control, "right")) - 1

    def control_frames(self) -> I64:
        """[controls] each one's frame, made anew."""
        counts = self.all_frame_controls[1:] - self.all_frame_controls[:-1]
        return np.arange(self.n_frames).repeat(counts)


@dataclass(frozen=True, slots=True)
class Rows:
    """Own mask rows as patches on earlier ones."""

    first_row: int
    n_rows: int
    base: I64  # [own rows] as stored: row + 1
    patch_start: I64
    patch_word: I64  # numpy indexes with these at twice the speed of smaller ones
    patch_xor: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Residuals:
    """Of each pack control the tokens that leave its frame: `token[start[c] : start[c + 1]]`, each with the
    place of its residual among the `counts[f]` of the control's frame.
    """

    counts: I64  # [frames]
    start: I64  # [controls + 1]
    token: Array
    place: Array
    packed: I64  # [frames + 1] bytes of a vector of bits; 0 for frames that aren't the pack's


class Deferred:
    """A section of bytes of which any will do: it's inflated when it's first used, which most runs never do."""

    __slots__ = ("_array", "_container", "_name", "length")

    def __init__(self, container: Container, name: str) -> None:
        section = container.section(name)
        if section.dtype != "u1":
            raise ArtifactError(name, section.offset, f"dtype {section.dtype} where u1 is expected")
        self._container, self._name, self.length = container, name, section.raw
        self._array: Array | None = None

    def array(self) -> Array:
        """The section's bytes, kept. Raises ArtifactError when they don't inflate."""
        array = self._array
        if array is None:
            array = self._array = self._container.array(self._name)
        return array

    def memory(self) -> int:
        """Bytes held, of a view of the file too."""
        return 0 if self._array is None else self._array.nbytes


@dataclass(frozen=True, slots=True)
class Contexts:
    """Contexts; the value of control c in context q is `rows[row_offset[q] + c]`, that of symbol s
    `push[push_offset[q] + s]`.

    A value is 0 (never there) or 2 * row index + may_end; the row index is row + 1, and from `first_composed`
    on that of a composed row: `composed_context` and `composed_control` say of which. `bits[bits_start[q] :
    bits_start[q + 1]]` packs the residuals that context q, of a pack's frame, accepts.
    """

    frame: I64
    row_offset: I64
    push_offset: I64
    rows: npt.NDArray[np.uint32]
    push: Array  # as stored
    first_composed: int
    composed_context: I64
    composed_control: I64
    bits: Deferred
    bits_start: I64


def held_bytes(tables: Any) -> int:
    """Bytes of all arrays of a dataclass, of those that are views of a file too."""
    values = (getattr(tables, field.name) for field in fields(tables))
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


_NO_ARRAY: I64 = np.zeros(0, np.int64)


def empty_automaton() -> Automaton:
    """The base of an automaton that has none."""
    n, start = _NO_ARRAY, np.zeros(1, np.int64)
    counts = (0, 0, 0, 0, 0, 0, 0)
    return Automaton(*counts, start, n, n, n, n, start, n, n, start, n, start, start, n, n, n)


def starts_of(counts: Array) -> I64:
    """[len + 1] where each part begins, and the end of the last."""
    out = np.empty(len(counts) + 1, np.int64)
    out[0] = 0
    out[1:] = counts  # widened first: numpy adds up other dtypes in a buffer, at a third of the speed
    np.add.accumulate(out, out=out)
    return out


class Reader:
    """Sections of one container, with the checks that they share."""

    def __init__(self, container: Container) -> None:
        self.container = container

    def fail(self, name: str, reason: str) -> ArtifactError:
        return ArtifactError(name, self.container.offset(name), reason)

    def values(self, name: str, length: int | None = None, below: int | None = None) -> Array:
        """An unsigned section, of `length` values, each less than `below`."""
        array = self.container.array(name)
        if array.dtype.kind != "u" or array.itemsize > 4:
            raise self.fail(name, f"dtype {array.dtype} where u1, u2 or u4 is expected")
        if length is not None and len(array) != length:
            raise self.fail(name, f"{len(array)} values where {length} are expected")
        if below is not None:
            self.require_below(name, array, below)
        return array

    def require_below(self, name: str, array: Array, below: int) -> None:
        if len(array) and int(array.max()) >= below:
            raise self.fail(name, f"value {int(array.max())} isn't below {below}")

    def starts(self, name: str, counts: Array, total: int) -> I64:
        """Counts that must sum to `total`, as starts: [len + 1]."""
        starts = starts_of(counts)
        if starts[-1] != total:
            raise self.fail(name, f"counts sum to {starts[-1]}, not {total}")
        return starts

    def require(self, name: str, good: Any, reason: str) -> None:
        """Every element of `good` must be true; the first that isn't is named."""
        if not good.all():
            raise self.fail(name, f"entry {int(good.argmin())} {reason}")

    def require_ascending(self, name: str, values: Array, starts: I64, reason: str) -> None:
        """Within each part that `starts` divides them into, the values ascend."""
        if len(values) > 1:
            good = values[1:] > values[:-1]
            begins = starts[1:-1]  # a part's first value may be anything
            good[begins[(begins > 0) & (begins < len(values))] - 1] = True
            if not good.all():
                raise self.fail(name, f"entry {int(good.argmin()) + 1} {reason}")


def read_automaton(container: Container, base: Automaton) -> Automaton:
    """The automaton's own tables on top of `base`, checked. Raises ArtifactError."""
    read = Reader(container)
    verdict, low = read.values("verdict"), read.values("edge_low")
    edge_count = read.values("edge_count", len(verdict))
    edge_start = read.starts("edge_count", edge_count, len(low))
    push, callee = read.values("action_push"), read.values("symbol_callee")
    action_count = read.values("action_count")
    action_start = read.starts("action_count", action_count, len(push))
    frame_verdicts = read.values("frame_verdicts", below=MAX_VERDICTS)
    n_frames = base.n_frames + len(frame_verdicts)
    n_controls, n_symbols = base.n_controls + len(verdict), base.n_symbols + len(callee)
    n_actions = base.n_actions + len(action_count)
    if max(n_controls, n_actions) >= MAX_NUMBERS:
        raise read.fail("verdict", f"{n_controls} controls, {n_actions} actions: too many")
    if n_symbols and not n_controls:
        raise read.fail("symbol_callee", "there are symbols, but no control")
    read.require_below("symbol_callee", callee, n_frames)
    control_count = read.values("frame_controls", len(frame_verdicts))
    symbol_count = read.values("frame_symbols", len(frame_verdicts))
    controls = read.starts("frame_controls", control_count, len(verdict))
    symbols = read.starts("frame_symbols", symbol_count, len(callee))
    all_controls = np.concatenate((base.all_frame_controls, controls[1:] + base.n_controls))
    all_verdicts = np.concatenate((base.all_frame_verdicts, frame_verdicts))
    own_frames = np.arange(base.n_frames, n_frames)
    control_frame, caller = own_frames.repeat(control_count), own_frames.repeat(symbol_count)
    symbol_frame = np.concatenate((base.all_symbol_frame, caller))
    symbol_callee = np.concatenate((base.all_symbol_callee, callee))
    read.require_below("action_push", push, n_symbols)
    target = read.values("action_target", len(action_count), n_controls)
    action_frame = _check_actions(
        read, action_count, action_start, push, target, symbol_frame, symbol_callee, all_controls
    )
    if (verdict > frame_verdicts.repeat(control_count)).any():
        raise read.fail("verdict", "a verdict that its frame doesn't have")
    high = read.values("edge_high", len(low), 256)
    read.require("edge_low", low <= high, "is above its edge_high")
    _check_disjoint(read, edge_start, low, high)
    move = read.values("edge_move", len(low)).astype(np.int64)
    counts = all_verdicts[callee]
    return_start = starts_of(counts)
    back = read.values("return_move", int(return_start[-1])).astype(np.int64)
    targets = _Targets(read, base, control_frame, action_frame)
    targets.check("edge_move", move, control_frame.repeat(edge_count), 0)
    targets.check("return_move", back, caller.repeat(counts), 1)
    return Automaton(
        base.n_controls, base.n_actions, base.n_symbols, n_controls, n_actions, n_symbols, n_frames,
        edge_start, low, high, move, verdict, action_start, push, target, return_start,
        _decode_returns(back), all_controls, np.concatenate((base.all_frame_symbols, symbols[1:] + base.n_symbols)),
        all_verdicts, symbol_frame, symbol_callee,
    )  # fmt: skip


def _check_actions(
    read: Reader,
    sizes: Array,
    start: I64,
    push: Array,
    target: Array,
    symbol_frame: I64,
    symbol_callee: I64,
    frame_controls: I64,
) -> I64:
    """The symbols of each action chain from frame to callee, and its target is where they end. Returns each action's
    first frame.
    """
    if len(sizes) and (int(sizes.min()) < 1 or int(sizes.max()) > MAX_PUSHES):
        read.require("action_count", (sizes > 0) & (sizes <= MAX_PUSHES), f"isn't from 1 to {MAX_PUSHES}")
    frames, lands = symbol_frame[push], symbol_callee[push]
    if len(push) > len(sizes):
        chained = np.ones(len(push), bool)
        chained[1:] = frames[1:] == lands[:-1]
        chained[start[:-1]] = True
        read.require("action_push", chained, "isn't pushed in the frame that its symbol belongs to")
        frames, lands = frames[start[:-1]], lands[start[1:] - 1]
    inside = (frame_controls[lands] <= target) & (target < frame_controls[lands + 1])
    read.require("action_target", inside, "isn't in the frame that the last symbol calls")
    return frames


def _check_disjoint(read: Reader, start: I64, low: Array, high: Array) -> None:
    """A control's edges are bytes in ascending disjoint ranges."""
    good = np.empty(len(low), bool)
    good[1:] = low[1:] > high[:-1]
    begins = start[:-1]
    good[begins[begins < len(low)]] = True
    read.require("edge_low", good, "isn't above the edge before it")


class _Targets:
    """What edges and returns may lead to: for each own control c at 2 * c + 1, for each own action a at 2 * a + 2, the
    frame that it belongs to; -1 for what is the base's, or isn't there, which the ends stand for.
    """

    def __init__(self, read: Reader, base: Automaton, control_frame: I64, action_frame: I64) -> None:
        self._read = read
        self._ends = (base.n_controls + len(control_frame), base.n_actions + len(action_frame))
        self._first = min(base.n_controls, base.n_actions)
        self._frame = np.full(2 * (max(self._ends) - self._first) + 2, -1, np.int64)
        for odd, begin, frames in ((0, base.n_controls, control_frame), (1, base.n_actions, action_frame)):
            at = 2 * (begin - self._first) + odd + 1
            self._frame[at : at + 2 * len(frames) : 2] = frames

    def check(self, name: str, stored: I64, frame: I64, skip: int) -> None:
        """Values below `skip` lead nowhere; others, less `skip`, lead into the frame they come from."""
        found = self._frame.take(stored - (2 * self._first + skip - 1), mode="clip") == frame
        if skip:
            found |= stored == 0
        if not found.all():
            raise self._fail(name, stored, int(found.argmin()), skip)

    def _fail(self, name: str, stored: I64, at: int, skip: int) -> ArtifactError:
        number = (int(stored[at]) - skip) >> 1
        exists = number < self._ends[(int(stored[at]) - skip) & 1]
        where = "leaves its frame without a call" if not skip else "isn't in the caller's frame"
        return self._read.fail(name, f"entry {at} {where if exists else 'names no control or action'}")


def _decode_returns(stored: I64) -> I64:
    """As moves: a control, -1: none, -2 - action. Stored as 2 * control + 1, 0, 2 * action + 2."""
    half = stored >> 1
    return np.where(stored & 1, half, -1 - half)


def read_rows(container: Container, first_row: int, held: npt.NDArray[np.uint32]) -> Rows:
    """The rows' own tables. `held`: the bitmask of the tokens that rows may hold. Raises
    ArtifactError.
    """
    read = Reader(container)
    base = read.values("row_base").astype(np.int64)
    read.require("row_base", base <= np.arange(first_row, first_row + len(base)), "isn't an earlier row")
    _check_chains(read, base, first_row)
    word, xor = _read_flips(read, held)
    flip, start = _read_patches(read, len(base), len(word))
    word, xor = word[flip], xor[flip]
    read.require_ascending("patch_flip", word, start, "isn't above the word before it")
    return Rows(first_row, first_row + len(base), base, start, word, xor)


def _read_flips(read: Reader, held: npt.NDArray[np.uint32]) -> tuple[I64, npt.NDArray[np.uint32]]:
    """The distinct (word, bits) pairs that patches are made of, words ascending."""
    word = starts_of(read.values("flip_step"))[1:]
    if len(word) and int(word[-1]) >= len(held):
        raise read.fail("flip_step", f"steps to word {int(word[-1])} of {len(held)}")
    bits = read.values("flip_bits", len(word)).astype(np.uint32, copy=False)
    read.require("flip_bits", (bits & ~held[word]) == 0, "holds a token that isn't text or a symbol")
    return word, bits


def _read_patches(read: Reader, n_rows: int, n_flips: int) -> tuple[I64, I64]:
    """For each patch its flip, and where each row's patches begin."""
    step, count = read.values("patch_flip"), read.values("patch_count", n_rows)
    start = read.starts("patch_count", count, len(step))
    total = starts_of(step)
    flip = total[1:]
    flip -= total[start[:-1]].repeat(count)
    if len(flip) and int(flip.max()) >= n_flips:
        raise read.fail("patch_flip", f"names flip {int(flip.max())} of {n_flips}")
    return flip, start


def _check_chains(read: Reader, base: I64, first_row: int) -> None:
    """No row stands on more than `MAX_CHAIN` own rows, itself included: four doublings of "its base" leave
    the own rows.
    """
    n = len(base)
    ancestor = np.full(n + 1, n)
    ancestor[:n] = base
    ancestor[:n] -= 1 + first_row
    ancestor[ancestor < 0] = n
    for _ in range(MAX_CHAIN.bit_length() - 1):
        ancestor = ancestor[ancestor]
    read.require("row_base", ancestor[:n] == n, f"stands on more than {MAX_CHAIN} rows")


def read_residuals(container: Container, automaton: Automaton, vocab_size: int) -> Residuals:
    """A pack's residual tokens. That they're text is checked where a row is composed: there are millions, and few
    are ever used. Raises ArtifactError.
    """
    read = Reader(container)
    counts = read.values("code_count", automaton.n_frames).astype(np.int64)
    token = read.values("residual_token", below=vocab_size)
    start = read.starts("residual_count", read.values("residual_count", automaton.n_controls), len(token))
    place = read.values("residual_place", len(token))
    used = np.flatnonzero(start[1:] > start[:-1])
    if len(used):
        good = np.maximum.reduceat(place, start[used]) < counts[automaton.control_frames()[used]]
        read.require("residual_place", good, "isn't among its frame's residuals")
    return Residuals(counts, start, token, place, np.append((counts + 7) >> 3, 0))


def read_contexts(container: Container, automaton: Automaton, n_rows: int, residuals: Residuals) -> Contexts:
    """The contexts, checked against the automaton and the rows. Raises ArtifactError."""
    read = Reader(container)
    frame = read.values("context_frame", below=automaton.n_frames).astype(np.int64)
    if not len(frame):
        raise read.fail("context_frame", "there is no context")
    stored = read.values("context_rows", below=2 * (n_rows + 2))
    controls, symbols, after = automaton.all_frame_controls, automaton.all_frame_symbols, frame + 1
    first_control, first_symbol = controls[frame], symbols[frame]
    row_start = _implied_starts(read, "context_rows", controls[after] - first_control, len(stored))
    rows, context, composed = _read_entries(read, stored, frame, row_start, n_rows, len(residuals.counts))
    push = read.values("context_push", below=len(frame) + 1)
    push_counts = symbols[after] - first_symbol
    push_start = _implied_starts(read, "context_push", push_counts, len(push))
    row_offset, push_offset = row_start[:-1] - first_control, push_start[:-1] - first_symbol
    symbol = np.arange(len(push))
    symbol -= push_offset.repeat(push_counts)
    # The last frame answers for 0, never pushed.
    good = frame[push.astype(np.int64) - 1] == automaton.all_symbol_callee[symbol]
    good |= push == 0
    read.require("context_push", good, "isn't a context of the frame that its symbol calls")
    bits = Deferred(container, "context_bits")
    bits_start = _implied_starts(read, "context_bits", residuals.packed.take(frame, mode="clip"), bits.length)
    return Contexts(
        frame, row_offset, push_offset, rows, push,
        n_rows + 1, context, composed - row_offset[context], bits, bits_start,
    )  # fmt: skip


def _read_entries(
    read: Reader, stored: Array, frame: I64, start: I64, n_rows: int, n_composing: int
) -> tuple[npt.NDArray[np.uint32], I64, I64]:
    """The contexts' row entries with the indices of composed rows; of each composed one the context and the place.
    Frames below `n_composing` have such.
    """
    rows = stored.astype(np.uint32)
    low = (rows < 4).nonzero()[0]
    values = rows[low]
    # 1 would be an end without a row: the writer has no such value.
    if (values == 1).any():
        raise read.fail("context_rows", f"entry {int(low[values == 1][0])} is neither unreached nor a row")
    is_composed = values > 1
    composed = low[is_composed]
    context = start.searchsorted(composed, "right") - 1
    read.require("context_rows", frame[context] < n_composing, "is composed of no residuals")
    rows -= np.uint32(2)
    rows[low] = 0
    rows[composed] = np.arange(2 * (n_rows + 1), 2 * (n_rows + 1 + len(composed)), 2) + (values[is_composed] & 1)
    return rows, context, composed


def _implied_starts(read: Reader, name: str, counts: I64, total: int) -> I64:
    starts = starts_of(counts)
    if starts[-1] != total:
        raise read.fail(name, f"{total} values where the contexts' frames need {starts[-1]}")
    return starts
