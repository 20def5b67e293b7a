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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.tokens.beside import Beside
from maskwright.compiler.tokens.kernels import FALSE, TRUE
from maskwright.compiler.tokens.likeness import LEVELS
from maskwright.compiler.tokens.trie import RestTries, build_rest_tries
from maskwright.compiler.tokens.walk import Walked, Walker

if TYPE_CHECKING:
    from maskwright.compiler.tokens.likeness import Likeness
    from maskwright.compiler.tokens.merge_rests import MergedRests

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


MANY_CODES, MANY_CALLERS = 256, 8
"""From here on it pays to put a frame's codes into tries first."""
MUCH_LONGER = 3
"""Of so many rests one has to be asked for before they're all asked for."""


@dataclass(slots=True)
class Residuals:
    """`codes[f]`: the frame's residuals, sorted. `gather_of(s)`: where each entry of the callee's vector stands in the
    caller's, which is extended by [false, true]. `tries`: of a pack's frames, which many symbols call.

    The gathers of a pack's many symbols are made when they're first asked for.
    """

    codes: dict[int, I64] = field(default_factory=dict)
    tries: dict[int, RestTries] = field(default_factory=dict)
    gather: dict[int, I32] = field(default_factory=dict)
    make: Callable[[int], I32] | None = None

    def gather_of(self, symbol: int) -> I32:
        found = self.gather.get(symbol)
        if found is None:
            assert self.make is not None, f"symbol {symbol} has no gather"
            found = self.gather[symbol] = self.make(symbol)
        return found


def make_gather(a: ByteAutomaton, symbol: int, codes: dict[int, I64], walker: Walker) -> I32:
    """One symbol's gather where R is known."""
    sym = a.symbol(symbol)
    return places(codes[sym.caller], walker.worth(walker.returns(symbol), codes[sym.callee]))


def close_residuals(
    a: ByteAutomaton,
    walked: Mapping[int, Walked | Beside],
    walker: Walker,
    base: Residuals | None = None,
    check: Callable[[], None] = lambda: None,
    rests: MergedRests | None = None,
    likeness: Likeness | None = None,
) -> Residuals:
    """R and the gathers of the own frames and symbols of `a`, on top of the base's. `check` is called now and then, and
    may raise. With `rests`, those of `walked` are merged already, and what's left over is merged too. `likeness` of
    symbols spares questions to which a symbol answers as another one."""
    c = _Closure(a, walker, base or Residuals(), check, rests, likeness)
    for control, w in walked.items():
        c.add(a.frame_of(control), distinct(w.residual_codes))
    for f in range(a.first_frame, a.n_frames):
        c.add(f, np.arange(a.frame_info(f).verdicts, dtype=np.int64) * walker.tokens.n_suffixes)
    c.run()
    return c.finish()


class _Closure:
    def __init__(
        self,
        a: ByteAutomaton,
        walker: Walker,
        base: Residuals,
        check: Callable[[], None],
        rests: MergedRests | None,
        likeness: Likeness | None,
    ) -> None:
        self.a, self.walker, self.base, self.check, self.rests = a, walker, base, check, rests
        self.likeness = likeness
        self.found: dict[int, I64] = dict.fromkeys(range(a.first_frame, a.n_frames), NOTHING)
        self.pending: dict[int, I64] = {}
        self.callers: dict[int, list[int]] = {}
        self.values: dict[int, list[tuple[I64, I64]]] = {}
        for s in range(a.first_symbol, a.n_symbols):
            sym = a.symbol(s)
            self.callers.setdefault(sym.callee, []).append(s)
            self.values[s] = []

    def add(self, frame: int, codes: I64) -> None:
        """`codes` is sorted and without doubles."""
        new = codes[~contains(self.found[frame], codes)]
        if len(new):
            self.found[frame] = merge(self.found[frame], new)
            self.pending[frame] = merge(self.pending.get(frame, NOTHING), new)

    def run(self) -> None:
        for callee in sorted(self.callers):
            if callee < self.a.first_frame:
                self.pass_on(callee, self.base.codes[callee], self.base.tries.get(callee))
        while self.pending:
            frame = min(self.pending)
            self.pass_on(frame, self.pending.pop(frame))

    def pass_on(self, callee: int, codes: I64, tries: RestTries | None = None) -> None:
        callers = self.callers.get(callee, [])
        if tries is None and len(codes) >= MANY_CODES and len(callers) >= MANY_CALLERS:
            tries = build_rest_tries(codes, self.a.frame_info(callee).verdicts, self.walker.tokens)
        asked = _Asked(self, codes, tries)
        added = set[tuple[int, int]]()
        for s in callers:
            self.check()
            out, caller = asked.ask(s), self.a.symbol(s).caller
            self.values[s].append((codes, out))
            if (id(out), caller) not in added:
                added.add((id(out), caller))
                self.add(caller, distinct(out[out >= 0]))

    def finish(self) -> Residuals:
        """R of each called frame is cut to what some caller makes something of; a library's callers aren't known."""
        a, out = self.a, Residuals(dict(self.base.codes), make=self.base.gather_of)
        out.codes.update(self.found)
        for callee, symbols in self.callers.items():
            if callee >= a.first_frame and a.start is not None:
                out.codes[callee] = self.worth_something(symbols)
        for callee, symbols in self.callers.items():
            known = out.codes[callee]
            passes = [codes for codes, _ in self.values[symbols[0]]]
            kept = [contains(known, codes) for codes in passes]
            at = [np.searchsorted(known, codes[k]) for codes, k in zip(passes, kept, strict=True)]
            gathers: dict[tuple[int, ...], I32] = {}
            for s in symbols:
                caller = a.symbol(s).caller
                key = (caller, *(id(worth) for _, worth in self.values[s]))
                if key not in gathers:
                    value = np.full(len(known), FALSE, dtype=np.int64)
                    for k, where, (_, worth) in zip(kept, at, self.values[s], strict=True):
                        value[where] = worth[k]
                    gathers[key] = places(out.codes[caller], value)
                out.gather[s] = gathers[key]
        return out

    def worth_something(self, symbols: list[int]) -> I64:
        """One callee's codes that aren't false for all the symbols that call it, and those that ask for the end."""
        found = NOTHING
        for passes in zip(*(self.values[s] for s in symbols), strict=True):
            codes = passes[0][0]
            useful = codes % self.walker.tokens.n_suffixes == 0
            for worth in {id(worth): worth for _, worth in passes}.values():
                useful |= worth != FALSE
            found = merge(found, codes[useful])
        return found


class _Asked:
    """What symbols made of one pass's codes. A symbol that's alike to one that was asked before is asked only for the
    rests that are longer than they're alike for; equal answers are one array."""

    def __init__(self, closure: _Closure, codes: I64, tries: RestTries | None) -> None:
        self.c, self.codes, self.tries = closure, codes, tries
        t = closure.walker.tokens
        suffix = codes % t.n_suffixes
        self.length = np.maximum(t.suffix_end[suffix] - t.suffix_place[suffix], 1)  # the empty rest asks for a verdict
        self.longer: dict[int, npt.NDArray[np.intp]] = {}
        self.found: dict[tuple[int, int], I64] = {}
        """By level and class: the answers of the first one asked."""
        self.arrays: dict[int, list[I64]] = {}
        """By sum."""

    def ask(self, s: int) -> I64:
        likeness = self.c.likeness
        if likeness is None or s < likeness.first_symbol:
            return self.share(self.worth(s, self.codes, self.tries))
        classes = likeness.symbols[:, s - likeness.first_symbol].tolist()
        out: I64 | None = None
        for level in range(len(LEVELS) - 1, 0, -1):
            out = self.found.get((level, classes[level]))
            if out is not None:
                out = self.differing(s, level, out)
                break
        if out is None:
            out = self.share(self.worth(s, self.codes, self.tries))
        for level in range(1, len(LEVELS)):
            self.found.setdefault((level, classes[level]), out)
        return out

    def differing(self, s: int, level: int, like: I64) -> I64:
        """The answers of `s`, which are `like` for rests of at most LEVELS[level] bytes."""
        longer = self.longer.get(level)
        if longer is None:
            longer = self.longer[level] = np.flatnonzero(self.length > LEVELS[level])
        if MUCH_LONGER * len(longer) > len(self.codes):
            return self.share(self.worth(s, self.codes, self.tries))
        part = self.worth(s, self.codes[longer])
        if np.array_equal(part, like[longer]):
            return like
        out = like.copy()
        out[longer] = part
        return self.share(out)

    def share(self, out: I64) -> I64:
        """The first array that equals `out`. Of 41,000 symbols of a schema that bounds words and characters there are
        54 different ones of 130 KB."""
        known = self.arrays.setdefault(int(out.sum()), [])
        for array in known:
            if np.array_equal(array, out):
                return array
        known.append(out)
        return out

    def worth(self, s: int, codes: I64, tries: RestTries | None = None) -> I64:
        out = self.c.walker.worth(self.c.walker.returns(s), codes, tries)
        return out if self.c.rests is None else self.c.rests.apply(out)


NOTHING: I64 = np.zeros(0, dtype=np.int64)


def distinct(codes: I64) -> I64:
    """Sorted, without doubles."""
    if len(codes) < 2:
        return codes
    codes = np.sort(codes)
    first: npt.NDArray[np.bool_] = np.concatenate([np.ones(1, dtype=np.bool_), codes[1:] != codes[:-1]])
    return codes[first]


def contains(codes: I64, wanted: I64) -> npt.NDArray[np.bool_]:
    """Which of `wanted` are in the sorted `codes`."""
    if not len(codes) or not len(wanted):
        return np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    found: npt.NDArray[np.bool_] = codes[at] == wanted
    return found


def merge(codes: I64, new: I64) -> I64:
    """The union of sorted arrays that share nothing."""
    return np.sort(np.concatenate([codes, new])) if len(codes) else new


def places(codes: I64, wanted: I64) -> I32:
    """Where each wanted code stands in a vector over `codes` that ends with false, true; an unknown code is false."""
    n = len(codes)
    at = np.searchsorted(codes, wanted) if n else np.zeros(len(wanted), dtype=np.intp)
    known = codes[np.minimum(at, n - 1)] == wanted if n else np.zeros(len(wanted), dtype=np.bool_)
    return np.where(known, at, np.where(wanted == TRUE, n + 1, n)).astype(np.int32)
