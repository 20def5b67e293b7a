"""Which residuals matter in which frame, and what each symbol makes of them.

R(F), the residuals of frame F, is the least set with
    what F's controls leave to the stack,
    (v, end) for each verdict v of F, "may the text end here?",
    for each symbol s that F pushes, what s leaves of R(callee of s) to F's own stack.

All that a stack can say about masks in F is which members of R(F) it accepts: a vector of bits. Pushing s maps it to
the callee's vector by a gather: entry i of R(callee) is false, true, or an entry of R(F). The pack's part is closed in
itself and computed once per vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.beside import Beside
from maskwright.compiler.tokens.kernels import FALSE, TRUE
from maskwright.compiler.tokens.walk import Walked, Walker

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class Residuals:
    """By frame its sorted codes; by symbol the gather from its caller's vector (extended by [false, true])."""

    codes: dict[int, I64] = field(default_factory=dict)
    gather: dict[int, I32] = field(default_factory=dict)


def close_residuals(
    a: ByteAutomaton, walked: Mapping[int, Walked | Beside], walker: Walker, base: Residuals | None = None
) -> Residuals:
    """R and the gathers of the own frames and symbols of `a`, on top of the base's."""
    c = _Closure(a, walker, base or Residuals())
    for control, w in walked.items():
        c.add(a.frame_of(control), np.unique(w.residual_codes).tolist())
    for f in range(a.first_frame, a.n_frames):
        c.add(f, [v * walker.tokens.n_suffixes for v in range(a.frame_info(f).verdicts)])
    c.run()
    return c.finish()


class _Closure:
    def __init__(self, a: ByteAutomaton, walker: Walker, base: Residuals) -> None:
        self.a, self.walker, self.base = a, walker, base
        self.found: dict[int, set[int]] = defaultdict(set)
        self.pending: dict[int, list[int]] = defaultdict(list)
        self.callers: dict[int, list[int]] = defaultdict(list)
        self.returns: dict[int, I32] = {}
        self.values: dict[int, list[tuple[I64, I64]]] = defaultdict(list)
        for s in range(a.first_symbol, a.n_symbols):
            sym = a.symbol(s)
            self.callers[sym.callee].append(s)
            self.returns[s] = np.array([-1 if m is None else m.target for m in sym.returns], dtype=np.int32)

    def add(self, frame: int, codes: Iterable[int]) -> None:
        new = [c for c in codes if c not in self.found[frame]]
        self.found[frame].update(new)
        self.pending[frame].extend(new)

    def run(self) -> None:
        for callee in sorted(self.callers):
            if callee < self.a.first_frame:
                self.pass_on(callee, self.base.codes[callee])
        while self.pending:
            frame, codes = self.pending.popitem()
            if codes:
                self.pass_on(frame, np.array(codes, dtype=np.int64))

    def pass_on(self, callee: int, codes: I64) -> None:
        for s in self.callers[callee]:
            out = self.walker.worth(self.returns[s], codes)
            self.values[s].append((codes, out))
            left = out[out >= 0]
            if len(left):
                self.add(self.a.symbol(s).caller, np.unique(left).tolist())

    def finish(self) -> Residuals:
        a, out = self.a, Residuals(dict(self.base.codes), dict(self.base.gather))
        for f in range(a.first_frame, a.n_frames):
            out.codes[f] = np.array(sorted(self.found[f]), dtype=np.int64)
        for s in range(a.first_symbol, a.n_symbols):
            sym = a.symbol(s)
            callee, caller = out.codes[sym.callee], out.codes[sym.caller]
            value = np.full(len(callee), FALSE, dtype=np.int64)
            for codes, worth in self.values[s]:
                value[np.searchsorted(callee, codes)] = worth
            out.gather[s] = places(caller, value)
        return out


def places(codes: I64, wanted: I64) -> I32:
    """Where each wanted code stands in a vector over `codes` that ends with false, true; an unknown code is false."""
    at = np.searchsorted(codes, wanted)
    known = at < len(codes)
    known[known] = codes[at[known]] == wanted[known]
    at[~known] = len(codes)
    at[wanted == TRUE] = len(codes) + 1
    return at.astype(np.int32)
