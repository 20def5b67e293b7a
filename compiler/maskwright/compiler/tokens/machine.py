"""The byte automaton as flat arrays: one form for the kernels (dense moves), one for the artifact (`AutomatonTables`).

The dense moves of the pack's controls are made once per vocabulary and shared; an artifact adds its own beside them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, FrameInfo, Move, Symbol, make_edges
from maskwright.compiler.tokens.tables import NONE, AutomatonTables, lengths, starts

I32 = npt.NDArray[np.int32]
T = TypeVar("T")


class Machine(NamedTuple):
    """What the kernels run on. All indices are global but those of `own_moves`."""

    first_control: int
    base_moves: I32  # [pack controls, 256]
    own_moves: I32  # [own controls, 256]
    verdict: I32  # [controls]
    action_start: I32
    action_target: I32
    action_push: I32
    return_start: I32
    return_move: I32


def flatten(a: ByteAutomaton, base: AutomatonTables | None = None) -> AutomatonTables:
    """The own part of `a` as arrays. `a` must be laid out by `minimise`; `base` is its base, flattened."""
    first_action = len(base.action_target) if base else 0
    actions: dict[Move, int] = {}

    def number(m: Move | None) -> int:
        if m is None:
            return NONE
        if not m.pushes:
            return m.target
        return -2 - actions.setdefault(m, first_action + len(actions))

    for s in a.symbols:
        assert len(s.returns) == a.frame_info(s.callee).verdicts, "a return for each verdict of the callee"
    edges = [(e.low, e.high, number(e.move)) for es in a.edges for e in es]
    returns = [[number(m) for m in s.returns] for s in a.symbols]
    return AutomatonTables(
        edge_start=starts([len(es) for es in a.edges]),
        edge_low=np.array([e[0] for e in edges], dtype=np.uint8),
        edge_high=np.array([e[1] for e in edges], dtype=np.uint8),
        edge_move=np.array([e[2] for e in edges], dtype=np.int32),
        verdict=np.array(a.verdict, dtype=np.int32),
        frame_controls=_ranges(a.frame, a.first_frame, len(a.frames), a.first_control),
        frame_symbols=_ranges([s.caller for s in a.symbols], a.first_frame, len(a.frames), a.first_symbol),
        frame_verdicts=np.array([f.verdicts for f in a.frames], dtype=np.uint32),
        action_start=starts([len(m.pushes) for m in actions]),
        action_target=np.array([m.target for m in actions], dtype=np.uint32),
        action_push=np.array([s for m in actions for s in m.pushes], dtype=np.uint32),
        symbol_callee=np.array([s.callee for s in a.symbols], dtype=np.uint32),
        return_start=starts([len(r) for r in returns]),
        return_move=np.array([x for r in returns for x in r], dtype=np.int32),
    )


def _ranges(frames: list[int], first_frame: int, n_frames: int, first: int) -> npt.NDArray[np.uint32]:
    """Where each frame's contiguous members begin."""
    assert frames == sorted(frames), "the automaton is laid out frame by frame"
    counts = np.bincount(np.array(frames, dtype=np.int64) - first_frame, minlength=n_frames)
    return starts(counts.tolist()) + np.uint32(first)


def dense_moves(t: AutomatonTables) -> I32:
    """[own controls, 256] moves."""
    n = len(t.verdict)
    out = np.full((n, 256), NONE, dtype=np.int32)
    owner = np.repeat(np.arange(n), lengths(t.edge_start))
    for control, low, high, move in zip(
        owner.tolist(), t.edge_low.tolist(), t.edge_high.tolist(), t.edge_move.tolist(), strict=True
    ):
        out[control, low : high + 1] = move
    return out


def build_machine(own: AutomatonTables, base: AutomatonTables | None, base_moves: I32 | None) -> Machine:
    """The kernels' machine for `own` on top of `base`."""

    def joined(name: str) -> I32:
        mine: I32 = getattr(own, name).astype(np.int32)
        return np.concatenate([getattr(base, name).astype(np.int32), mine]) if base else mine

    def joinedstarts(name: str) -> I32:
        mine: I32 = getattr(own, name).astype(np.int32)
        if base is None:
            return mine
        theirs: I32 = getattr(base, name).astype(np.int32)
        return np.concatenate([theirs, mine[1:] + theirs[-1]])

    return Machine(
        first_control=len(base.verdict) if base else 0,
        base_moves=base_moves if base_moves is not None else np.zeros((0, 256), dtype=np.int32),
        own_moves=dense_moves(own),
        verdict=joined("verdict"),
        action_start=joinedstarts("action_start"),
        action_target=joined("action_target"),
        action_push=joined("action_push"),
        return_start=joinedstarts("return_start"),
        return_move=joined("return_move"),
    )


class _OnDemand(list[T]):
    """A list whose members are made when they're asked for, and kept: of a pack's thousands of controls compilations
    ask for few, and each object would be visited by every full collection. Asked by number, or all in order."""

    def __init__(self, make: Callable[[int], T], n: int) -> None:
        super().__init__([None] * n)  # type: ignore[list-item]
        self._make = make

    def __getitem__(self, i: Any) -> Any:
        found = super().__getitem__(i)
        if found is None:
            found = self._make(i)
            self[i] = found
        return found

    def __iter__(self) -> Iterator[T]:
        return map(self.__getitem__, range(len(self)))


def unflatten(
    t: AutomatonTables,
    names: Sequence[tuple[str, str]],
    entries: dict[str, int] | None = None,
    base: tuple[ByteAutomaton, AutomatonTables] | None = None,
) -> ByteAutomaton:
    """The automaton of tables, without a start: the inverse of `flatten`. `names`: (name, pointer) of each frame;
    `base`: what it stands on, as automaton and tables. Edges and symbols are made when they're asked for."""
    first_action = len(base[1].action_target) if base else 0

    @functools.cache
    def move(n: int) -> Move:
        if n >= 0:
            return Move(n)
        a = -2 - n - first_action
        pushes = t.action_push[int(t.action_start[a]) : int(t.action_start[a + 1])].tolist()
        return Move(int(t.action_target[a]), tuple(pushes))

    def edges(c: int) -> tuple[Edge, ...]:
        part = slice(int(t.edge_start[c]), int(t.edge_start[c + 1]))
        moves = map(move, t.edge_move[part].tolist())
        return tuple(make_edges(t.edge_low[part].tolist(), t.edge_high[part].tolist(), moves))

    def symbol(s: int) -> Symbol:
        returns = t.return_move[int(t.return_start[s]) : int(t.return_start[s + 1])].tolist()
        back = tuple(None if m == NONE else move(m) for m in returns)
        return Symbol(callers[s], int(t.symbol_callee[s]), back)

    out = ByteAutomaton(entries=dict(entries or {}), base=base[0] if base else None)
    frames = out.first_frame + np.arange(len(t.frame_verdicts))
    callers: list[int] = np.repeat(frames, lengths(t.frame_symbols)).tolist()
    out.edges, out.symbols = _OnDemand(edges, len(t.verdict)), _OnDemand(symbol, len(callers))
    out.verdict = t.verdict.tolist()
    out.frame = np.repeat(frames, lengths(t.frame_controls)).tolist()
    out.frames = [
        FrameInfo(name, pointer, int(v)) for (name, pointer), v in zip(names, t.frame_verdicts.tolist(), strict=True)
    ]
    return out
