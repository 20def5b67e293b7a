"""An artifact as one automaton: the frames that it uses, of the pack's and its own.

A pack has frames for every purpose; those of them that have a context in the artifact are used, others can't be met.
Used controls and symbols get dense local ids, in the order of the global ones, so that a frame's stay contiguous.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.specials import LENGTH, spell_special
from maskwright.workers.tables import Automaton

I64 = npt.NDArray[np.int64]


class View:
    """An artifact's used frames, with the pack's and its own tables behind one face.

    frames: those that have a context, ascending. control_local, symbol_local: global ids to dense ones, -1 for those of
    other frames.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        a: Automaton = artifact.automaton
        self.a, self.base = a, artifact.pack.automaton
        self.frames: I64 = np.unique(artifact.contexts.frame).astype(np.int64)
        self.controls = ids_between(a.all_frame_controls, self.frames)
        self.symbols = ids_between(a.all_frame_symbols, self.frames)
        self.n_controls = len(self.controls)
        self.control_local = _inverse(self.controls, a.n_controls)
        self.symbol_local = _inverse(self.symbols, a.n_symbols + 1)  # a frame without symbols may begin at the end
        self.frame_local = _inverse(self.frames, a.n_frames)
        own = self.controls >= a.first_control
        self.own_controls = self.controls[own] - a.first_control
        self.base_controls = self.controls[~own]

    def edges(self) -> tuple[I64, I64, I64, I64]:
        """(local control, low, high, move as stored) of each edge of a used control."""
        found = []
        for automaton, controls in ((self.base, self.base_controls), (self.a, self.own_controls)):
            where = ids_between(automaton.edge_start, controls)
            counts = automaton.edge_start[controls + 1] - automaton.edge_start[controls]
            local = self.control_local[np.repeat(controls + automaton.first_control, counts)]
            low, high = automaton.edge_low[where], automaton.edge_high[where]
            found.append((local, low.astype(np.int64), high.astype(np.int64), automaton.edge_move[where]))
        return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]

    def verdicts(self) -> I64:
        """[controls] verdict + 1, 0 for none."""
        parts = (self.base.verdict[self.base_controls], self.a.verdict[self.own_controls])
        return np.concatenate(parts).astype(np.int64)

    def actions(self) -> tuple[I64, I64, I64]:
        """Of all actions, the pack's first: starts in the list of pushes [+ 1], pushes, targets; global ids."""
        base, a = self.base, self.a
        start = np.concatenate([base.action_start[:-1], a.action_start + base.action_start[-1]])
        push = np.concatenate([base.action_push, a.action_push]).astype(np.int64)
        return start, push, np.concatenate([base.action_target, a.action_target]).astype(np.int64)

    def returns(self) -> tuple[I64, I64]:
        """Of all symbols: starts [+ 1], moves as `Automaton.return_move` has them."""
        base, a = self.base, self.a
        start = np.concatenate([base.return_start[:-1], a.return_start + base.return_start[-1]])
        return start, np.concatenate([base.return_move, a.return_move])


def token_table(pack: VocabularyPack, *, specials: bool) -> tuple[I64, npt.NDArray[np.uint8]]:
    """Where each token's bytes begin [+ 1], and the bytes. `specials`: special tokens are spelled as symbols, which
    rows may hold (`specials.py`); else they're names that no automaton reads.
    """
    offsets, blob = pack.section("token_offsets").astype(np.int64), np.array(pack.section("token_blob"), np.uint8)
    if not specials:
        return offsets, blob
    special = np.flatnonzero(np.unpackbits(pack.special_words().view(np.uint8), bitorder="little"))
    parts, lengths, at = list[npt.NDArray[np.uint8]](), np.diff(offsets), 0
    for token in special.tolist():
        parts += [blob[at : offsets[token]], np.frombuffer(spell_special(token), np.uint8)]
        at = int(offsets[token + 1])
    lengths[special] = LENGTH
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([*parts, blob[at:]])


def ids_between(starts: I64, of: I64) -> I64:
    """The ids from starts[i] to starts[i + 1], for each i in `of`."""
    counts = starts[of + 1] - starts[of]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    out: I64 = np.arange(total) + np.repeat(starts[of] - (ends - counts), counts)
    return out


def _inverse(ids: I64, n: int) -> I64:
    out = np.full(n, -1, np.int64)
    out[ids] = np.arange(len(ids))
    return out


def byte_classes(views: list[View]) -> I64:
    """The class of each byte, [256]: a class begins where some edge begins or has ended."""
    begins = np.zeros(257, np.int64)
    for view in views:
        _, low, high, _ = view.edges()
        begins[low] = 1
        begins[high + 1] = 1
    begins[0] = 0
    return np.cumsum(begins[:256])
