"""What each place of a source costs: states, rows and bytes by JSON pointer.

A frame knows the place that caused it (`FrameInfo.pointer`), so its controls are that place's states. A mask row is
charged to the frame of the first control that uses it; rows and contexts of a pack's frame go to the frame that called
it first. Bytes are the table entries of all that, before packing, scaled so that the places add up to the artifact.

Frames that several places share (equal shapes are one frame) are charged to the place that was met first, so the sum is
right and what looks free may only have been paid for elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.tables import UNREACHED, ContextTables, TokenTables, lengths

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cost:
    """`pointer`: the place; `frames`: names of the frames it caused; `bytes`: its share of the artifact."""

    pointer: str
    frames: tuple[str, ...]
    states: int
    rows: int
    bytes: int


def cost_by_place(tables: TokenTables, pack_frames: int, pack_rows: int, artifact_bytes: int) -> tuple[Cost, ...]:
    """The costs in order of pointers. `pack_frames`, `pack_rows`: how many the pack holds."""
    owner = _owners(tables.contexts, pack_frames)
    states = lengths(tables.automaton.frame_controls)
    n = len(states)
    rows, weight = np.zeros(n, dtype=np.int64), _automaton_bytes(tables, n)
    for row, frame in _first_users(tables.contexts, owner, pack_rows):
        rows[frame] += 1
        weight[frame] += 8 + 8 * int(tables.rows.patch_start[row + 1] - tables.rows.patch_start[row])
    c = tables.contexts
    np.add.at(weight, owner, 4 * (lengths(c.row_start) + lengths(c.push_start)) + 12)
    return _by_pointer(tables.frame_names, states, rows, _shares(weight, artifact_bytes))


def costliest_place(a: ByteAutomaton) -> str | None:
    """The pointer with most states: what to name when something is too much and nothing else tells where."""
    states = Counter(a.frame_info(frame).pointer for frame in a.frame)
    return max(states, key=states.__getitem__, default=None)


def _automaton_bytes(tables: TokenTables, n: int) -> I64:
    """Edges and verdicts of each own frame's controls."""
    a = tables.automaton
    first = int(a.frame_controls[0])
    at = a.frame_controls.astype(np.int64) - first
    edges = a.edge_start.astype(np.int64)[at]
    weight: I64 = 6 * np.diff(edges) + 8 * np.diff(at) + 8
    assert len(weight) == n
    return weight


def _owners(c: ContextTables, pack_frames: int) -> I64:
    """[contexts] the own frame that each context is charged to: its own, or of the context that pushed it first."""
    frame = c.context_frame.astype(np.int64)
    from_context = np.repeat(np.arange(len(frame)), lengths(c.push_start))
    known = c.context_push != UNREACHED
    targets, first = np.unique(c.context_push[known], return_index=True)
    parent = np.zeros(len(frame), dtype=np.int64)
    parent[targets.astype(np.int64)] = from_context[known][first]
    out = np.zeros(len(frame), dtype=np.int64)
    for q, f in enumerate(frame.tolist()):
        at = q
        for _ in range(len(frame)):
            if frame[at] >= pack_frames or at == 0:
                break
            at = int(parent[at])
        out[q] = max(0, int(frame[at]) - pack_frames) if f < pack_frames else f - pack_frames
    return out


def _first_users(c: ContextTables, owner: I64, pack_rows: int) -> Iterable[tuple[int, int]]:
    """(own row, own frame) once for each own row that a context looks up."""
    row = c.context_rows >> 1
    own = (c.context_rows != UNREACHED) & (row >= pack_rows)
    # COMPOSED is larger than any number of rows.
    frame = np.repeat(owner, lengths(c.row_start))[own]
    numbers, first = np.unique(row[own], return_index=True)
    most = pack_rows + (1 << 30)
    return [(int(r) - pack_rows, int(f)) for r, f in zip(numbers, frame[first], strict=True) if r < most]


def _shares(weight: I64, whole: int) -> I64:
    """`whole` split in proportion to the weights, exactly."""
    edges = np.concatenate([[0], np.cumsum(weight)]).astype(np.float64)
    total = edges[-1] or 1.0
    return np.diff(np.rint(edges * whole / total)).astype(np.int64)


def _by_pointer(names: tuple[tuple[str, str], ...], states: I64, rows: I64, shares: I64) -> tuple[Cost, ...]:
    found: dict[str, Cost] = {}
    for (name, pointer), s, r, b in zip(names, states.tolist(), rows.tolist(), shares.tolist(), strict=True):
        before = found.get(pointer, Cost(pointer, (), 0, 0, 0))
        frames = before.frames if name in before.frames else (*before.frames, name)
        found[pointer] = Cost(pointer, frames, before.states + s, before.rows + r, before.bytes + b)
    return tuple(found[pointer] for pointer in sorted(found))
