"""The byte automaton's intermediate form.

A deterministic pushdown automaton over bytes, made of *frames*. A frame is a DFA over bytes; a control is a state
of one frame. A machine configuration is (control, stack of symbols). On byte b in control c:

1.  If c has an edge whose range holds b: push the edge's symbols in order (usually none or one), go to its target.
    An edge with symbols is a *call*: its target lies in the frame that the last symbol names (`callee`), and is the
    control which that frame is in after consuming b. So every byte is consumed by exactly one edge.
2.  Otherwise, if c is accepting (`verdict[c] >= 0`): *return*. Pop a symbol s, go to `symbols[s].returns[verdict]`
    (a `Move`: a control, possibly with symbols to push first), and try b again there.
3.  Otherwise the text is not a prefix of a member.

A control that is accepting and has no edge is *final*: it returns at once, before the next byte is seen. The text may
end when popping through accepting controls empties the stack in the root frame with a verdict of `accepting_verdicts`.

The form is deterministic by construction: ranges of one control are disjoint, and edges win over returns. So that
nothing is lost by that, no byte may be both an edge of an accepting control and a way on after its return (a number's
digits never follow a number); `verify` checks it.

`base`: controls and symbols below `base.n_controls` / `base.n_symbols` are those of an already finished automaton (the
frames that a vocabulary pack holds). They're called, never copied or changed; an automaton without base is complete
in itself.

After `specialise`, every configuration that can be reached can be completed: each return of an accepting control
reached in context is a move, never None. Token masks rely on this: a token is legal exactly when its bytes run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple


class Move(NamedTuple):
    """Push `pushes` (left to right, the last ends on top) and go to `target`."""

    target: int
    pushes: tuple[int, ...] = ()


class Edge(NamedTuple):
    """Bytes low..high (inclusive) consume and make the move."""

    low: int
    high: int
    move: Move


_edge = partial(tuple.__new__, Edge)


def make_edges(low: Iterable[int], high: Iterable[int], moves: Iterable[Move]) -> list[Edge]:
    """Edges from columns, without a call of Python's for each."""
    return list(map(_edge, zip(low, high, moves, strict=True)))


class Symbol(NamedTuple):
    """A return address: `returns[v]` is where the caller goes on when `callee` returns verdict v; None: it can't."""

    caller: int
    callee: int
    returns: tuple[Move | None, ...]


@dataclass(slots=True)
class FrameInfo:
    """`name` is for people; `pointer` is the place in the source that caused the frame (empty: the root, or that of
    whatever calls it); `verdicts` their number."""

    name: str
    pointer: str = ""
    verdicts: int = 1


@dataclass(slots=True)
class ByteAutomaton:
    """Controls are numbered from `base.n_controls` on, symbols from `base.n_symbols`, frames from `base.n_frames`.

    The lists hold only this automaton's own; `edges_of`, `verdict_of`, `frame_of`, `symbol` look through to the base.
    `start` is None for a library of frames (a pack's), whose `entries` name the control each frame starts in.
    """

    edges: list[tuple[Edge, ...]] = field(default_factory=list)
    verdict: list[int] = field(default_factory=list)
    frame: list[int] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    frames: list[FrameInfo] = field(default_factory=list)
    entries: dict[str, int] = field(default_factory=dict)
    start: int | None = None
    accepting_verdicts: frozenset[int] = frozenset({0})
    base: ByteAutomaton | None = None
    first_control: int = field(init=False)
    first_symbol: int = field(init=False)
    first_frame: int = field(init=False)
    columns: Any = field(init=False, default=None, repr=False, compare=False)
    """What `graph.py` makes of it, once it's asked."""

    def __post_init__(self) -> None:
        b = self.base  # finished, so its counts stay
        self.first_control, self.first_symbol, self.first_frame = (
            (b.n_controls, b.n_symbols, b.n_frames) if b else (0, 0, 0)
        )

    @property
    def n_controls(self) -> int:
        return self.first_control + len(self.edges)

    @property
    def n_symbols(self) -> int:
        return self.first_symbol + len(self.symbols)

    @property
    def n_frames(self) -> int:
        return self.first_frame + len(self.frames)

    def own_controls(self) -> range:
        return range(self.first_control, self.n_controls)

    def edges_of(self, control: int) -> tuple[Edge, ...]:
        n = self.first_control
        if control >= n:
            return self.edges[control - n]
        assert self.base is not None
        return self.base.edges_of(control)

    def verdict_of(self, control: int) -> int:
        n = self.first_control
        if control >= n:
            return self.verdict[control - n]
        assert self.base is not None
        return self.base.verdict_of(control)

    def frame_of(self, control: int) -> int:
        n = self.first_control
        if control >= n:
            return self.frame[control - n]
        assert self.base is not None
        return self.base.frame_of(control)

    def symbol(self, number: int) -> Symbol:
        n = self.first_symbol
        if number >= n:
            return self.symbols[number - n]
        assert self.base is not None
        return self.base.symbol(number)

    def frame_info(self, number: int) -> FrameInfo:
        n = self.first_frame
        if number >= n:
            return self.frames[number - n]
        assert self.base is not None
        return self.base.frame_info(number)

    def is_final(self, control: int) -> bool:
        return self.verdict_of(control) >= 0 and not self.edges_of(control)

    def find_edge(self, control: int, byte: int) -> Edge | None:
        for e in self.edges_of(control):
            if e.low <= byte <= e.high:
                return e
        return None


# -- running -------------------------------------------------------------------------------------------------------

Configuration = tuple[int, tuple[int, ...]]


def initial(a: ByteAutomaton) -> Configuration:
    """The configuration before any byte."""
    assert a.start is not None
    return (a.start, ())


def settle(a: ByteAutomaton, config: Configuration) -> Configuration | None:
    """Returns at once from final controls while the stack isn't empty; None (before `specialise`) for a dead end."""
    control, stack = config
    while stack and a.is_final(control):
        popped = _pop(a, control, stack)
        if popped is None:
            return None
        control, stack = popped
    return control, stack


def step(a: ByteAutomaton, config: Configuration, byte: int) -> Configuration | None:
    """The configuration after one byte, None when no member continues with it."""
    control, stack = config
    while (edge := a.find_edge(control, byte)) is None:
        if not stack or a.verdict_of(control) < 0:
            return None
        popped = _pop(a, control, stack)
        if popped is None:
            return None
        control, stack = popped
    return settle(a, (edge.move.target, stack + edge.move.pushes))


def may_end(a: ByteAutomaton, config: Configuration) -> bool:
    """Whether the text read so far is a member."""
    control, stack = config
    while stack:
        popped = _pop(a, control, stack) if a.verdict_of(control) >= 0 else None
        if popped is None:
            return False
        control, stack = popped
    return a.verdict_of(control) in a.accepting_verdicts


def accepts(a: ByteAutomaton, text: bytes) -> bool:
    """Whether `text` is a member: the byte path, the reference for everything built on top."""
    config: Configuration | None = initial(a)
    for byte in text:
        config = step(a, config, byte) if config else None
        if config is None:
            return False
    return config is not None and may_end(a, config)


def _pop(a: ByteAutomaton, control: int, stack: tuple[int, ...]) -> Configuration | None:
    move = a.symbol(stack[-1]).returns[a.verdict_of(control)]
    return None if move is None else (move.target, stack[:-1] + move.pushes)


# -- printer -------------------------------------------------------------------------------------------------------


def show(a: ByteAutomaton) -> str:
    """A text form for golden tests and for people: frames, their controls, edges, returns."""
    out = [f"start {a.start} accepting {sorted(a.accepting_verdicts)}"]
    for number in range(a.first_frame, a.n_frames):
        info = a.frame_info(number)
        out.append(f"frame {number} {info.name}" + (f" from {info.pointer}" if info.pointer else ""))
        for c in a.own_controls():
            if a.frame_of(c) == number:
                mark = f" verdict {a.verdict_of(c)}" if a.verdict_of(c) >= 0 else ""
                out.append(f"  {c}{mark}")
                out.extend(f"    {_show_bytes(e.low, e.high)} -> {_show_move(e.move)}" for e in a.edges_of(c))
    for s in range(a.first_symbol, a.n_symbols):
        sym = a.symbol(s)
        moves = ", ".join(f"{v}: {_show_move(m) if m else 'none'}" for v, m in enumerate(sym.returns))
        out.append(f"symbol {s}: frame {sym.caller} calls frame {sym.callee}, on {moves}")
    return "\n".join(out) + "\n"


def _show_move(m: Move) -> str:
    return "".join(f"push {s}, " for s in m.pushes) + str(m.target)


def _show_bytes(low: int, high: int) -> str:
    def one(b: int) -> str:
        return repr(chr(b)) if 32 < b < 127 else f"{b:02x}"

    return one(low) if low == high else f"{one(low)}-{one(high)}"


# -- verifier ------------------------------------------------------------------------------------------------------


def verify(a: ByteAutomaton) -> list[str]:
    """Every fault of form: ranges, targets, frames, symbols. An empty list means that the automaton is well formed."""
    faults = [*_control_faults(a), *_symbol_faults(a), *_start_faults(a)]
    return faults or list(_shadow_faults(a))


def _control_faults(a: ByteAutomaton) -> Iterator[str]:
    if not len(a.edges) == len(a.verdict) == len(a.frame):
        yield "edges, verdict and frame differ in length"
        return
    for c in a.own_controls():
        if not a.first_frame <= a.frame_of(c) < a.n_frames:
            yield f"control {c} is in no frame"
            continue
        if a.verdict_of(c) >= a.frame_info(a.frame_of(c)).verdicts:
            yield f"control {c} has a verdict its frame doesn't know"
        last = -1
        for e in a.edges_of(c):
            if not last < e.low <= e.high <= 255:
                yield f"control {c}: range {e.low}..{e.high} is out of order"
            last = e.high
            yield from _move_faults(a, e.move, a.frame_of(c), f"control {c}")


def _move_faults(a: ByteAutomaton, m: Move, frame: int, where: str) -> Iterator[str]:
    for s in m.pushes:
        if not 0 <= s < a.n_symbols:
            yield f"{where}: no symbol {s}"
            return
        if a.symbol(s).caller != frame:
            yield f"{where}: symbol {s} belongs to frame {a.symbol(s).caller}, pushed in frame {frame}"
        frame = a.symbol(s).callee
    if not 0 <= m.target < a.n_controls:
        yield f"{where}: no control {m.target}"
    elif a.frame_of(m.target) != frame:
        yield f"{where}: target {m.target} is in frame {a.frame_of(m.target)}, not {frame}"


def _symbol_faults(a: ByteAutomaton) -> Iterator[str]:
    for s in range(a.first_symbol, a.n_symbols):
        sym = a.symbol(s)
        if not 0 <= sym.callee < a.n_frames or not a.first_frame <= sym.caller < a.n_frames:
            yield f"symbol {s} names no frame"
            continue
        verdicts = a.frame_info(sym.callee).verdicts
        if len(sym.returns) != verdicts:
            yield f"symbol {s} has {len(sym.returns)} returns, its frame has {verdicts} verdicts"
        for m in sym.returns:
            if m is not None:
                yield from _move_faults(a, m, sym.caller, f"symbol {s}")


def _start_faults(a: ByteAutomaton) -> Iterator[str]:
    for name, c in a.entries.items():
        if not 0 <= c < a.n_controls:
            yield f"entry {name} names no control"
    if a.start is not None and not 0 <= a.start < a.n_controls:
        yield "the start is no control"


def _shadow_faults(a: ByteAutomaton) -> Iterator[str]:
    """Accepting controls whose edges take a byte that some caller would go on with after the return."""
    after = bytes_after_return(a)
    for c in range(a.n_controls):
        shared = _byte_set(a, c) & after.get((a.frame_of(c), a.verdict_of(c)), 0)
        if shared:
            byte = (shared & -shared).bit_length() - 1
            yield f"control {c}: byte {_show_bytes(byte, byte)} goes on and may also follow its return"


def _byte_set(a: ByteAutomaton, control: int) -> int:
    return sum((1 << e.high + 1) - (1 << e.low) for e in a.edges_of(control))


def bytes_after_return(a: ByteAutomaton, first_symbol: int = 0) -> dict[tuple[int, int], int]:
    """(frame, verdict) -> the bytes, as bits, that can follow its return, through further returns too.

    Frames that nothing calls aren't in it. `first_symbol`: look only at symbols from this one on.
    """
    targets: dict[tuple[int, int], set[int]] = {}
    for s in range(first_symbol, a.n_symbols):
        for v, m in enumerate(a.symbol(s).returns):
            if m is not None:
                targets.setdefault((a.symbol(s).callee, v), set()).add(m.target)
    out = dict.fromkeys(targets, 0)
    changed = True
    while changed:
        changed = False
        for key, controls in targets.items():
            bits = out[key]
            for c in controls:
                bits |= _byte_set(a, c) | out.get((a.frame_of(c), a.verdict_of(c)), 0)
            if bits != out[key]:
                out[key], changed = bits, True
    return out
