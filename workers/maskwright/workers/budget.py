"""Token budgets: a run that keeps to its masks completes its text within the tokens that remain.

`least(control, stack)` bounds from above the tokens that complete a run, stop token included: the sum over the
stack of the bounds of costs.py, least over the verdicts. Where it isn't 0 some legal token leads to a place whose
bound is less by one. So if n tokens remain and the bound is at most n, the tokens after which it's at most n - 1
are some, and keeping to them keeps the invariant until the stop token. No more tokens than that are taken away.

What a mask costs depends on how far the end is:

    far        n - 1 >= `most` + the most that any token adds to it, wherever it begins: two look-ups. `most` is
               additive like `least`, with the greatest verdict of each frame
    near       n - 1 >= least + growth          the growth of `least` by the worst token from here, known from an
               earlier visit to the same control under the same symbols; another look-up
    close      otherwise the legal tokens are run (places.py) and their bounds compared, about 1 to 10 ms for a
               mask with most of a 128k vocabulary; the last few results are kept, since a run that lingers
               comes by the same place again

Growth belongs to the artifact, the rest to one matcher. Tokens that are stop tokens are no text here.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.costs import NEVER, Costs, artifact_costs
from maskwright.workers.graph import ending_verdicts
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.places import Places
from maskwright.workers.state import Stack

KEPT_RESULTS = 8
MANY = 20_000
"""Legal tokens from which on it's faster to run all that don't stay where they are."""
KEPT_STACKS = 1024
MOST_GROWTH = 1 << 40
"""A byte that adds more than this leaves only the exact ways of telling."""
KEPT_GROWTHS = 50_000

Level = tuple[Stack, tuple[int, ...], int, int]
"""Of a stack: itself, so that its id stays its own; for each verdict of the frame on top the bound once it has
returned; the sum of the symbols' `most`; its depth.
"""
GrowthKey = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Control, the symbols that tokens can pop, the bounds below them less their least."""


class Growth:
    """How much one token can add, shared by the matchers of an artifact. `base`: the pack's.

    far[control]: `most` of the control and the most that any one token adds to `most`, from any place; NEVER where
    returns push symbols, so that `most` isn't additive. fine: whether `refine` has nothing to add.
    """

    __slots__ = ("_costs", "_depth", "_known", "_symbols", "_tables", "far", "fine")

    def __init__(self, costs: Costs, base: Growth | None) -> None:
        self._costs = costs
        self._symbols: dict[int, int] = base._symbols.copy() if base else {}  # own ones are numbered the same elsewhere
        self._known: dict[GrowthKey, int] = {}
        self._depth: dict[int, int] = {}
        graph = costs.graph
        first = graph.first_control
        most = base._tables[0].copy() if base else []
        most += [costs.most(control) for control in range(first, len(graph.edges))]
        grows = base._tables[1].copy() if base else np.zeros(256, np.int64)
        for here, edges in zip(most[first:], graph.edges[first:], strict=True):
            for low, high, node in edges:
                more = (most[node] if node >= 0 else self.most(node)) - here
                if more > 0:
                    more = min(more, MOST_GROWTH)
                    np.maximum(grows[low : high + 1], more, out=grows[low : high + 1])
        self._tables: tuple[list[int], npt.NDArray[np.int64]] = (most, grows)
        pushing = any(node is not None and node < 0 for after in graph.returns for node in after)
        self.fine = pushing
        endless = pushing or (grows == MOST_GROWTH).any()
        token = NEVER if endless else costs.spelling.widest * int(grows.max())
        self.far = [m + token for m in most]

    def refine(self) -> list[int]:
        """`far` by what the bytes of any one token add together, not by the longest token and the worst byte. Cost:
        some milliseconds, once.
        """
        if not self.fine:
            most, grows = self._tables
            spelled = self._costs.spelling
            if not (grows == MOST_GROWTH).any():
                token = int(np.add.reduceat(grows[spelled.blob], spelled.begin).max(initial=0))
                self.far = [m + token for m in most]
            self.fine = True
        return self.far

    def symbol(self, symbol: int) -> int:
        """The most that runs after a symbol's callee has returned."""
        found = self._symbols.get(symbol)
        if found is None:
            after = [self._costs.most(node) for node in self._costs.graph.returns[symbol] if node is not None]
            found = self._symbols[symbol] = max(after, default=0)
        return found

    def most(self, node: int) -> int:
        """Of a node, additive."""
        composites, out = self._costs.graph.composites, 0
        while node < 0:
            node, symbol = composites[-1 - node]
            out += self.symbol(symbol)
        return out + self._costs.most(node)

    def key(self, control: int, stack: Stack, depth: int | None, down: Any) -> GrowthKey | None:
        """What growth at a place depends on. `depth`: symbols that tokens can pop; None: as known for the control."""
        depth = self._depth.get(control) if depth is None else max(depth, self._depth.get(control, 0))
        if depth is None:
            return None
        self._depth[control] = depth
        symbols = []
        for _ in range(depth):
            if stack is None:
                break
            symbols.append(stack[0])
            stack = stack[2]
        rest = down(stack)
        least = min(rest)
        return control, tuple(symbols), tuple([v - least if v < NEVER else NEVER for v in rest])

    def get(self, key: GrowthKey) -> int | None:
        return self._known.get(key)

    def put(self, key: GrowthKey, value: int) -> None:
        if len(self._known) >= KEPT_GROWTHS:
            self._known.clear()
        self._known[key] = value


@dataclass(frozen=True, slots=True)
class _Result:
    """The bounds after some legal tokens, the greatest of all, and the one after each of the others. `stack` is kept
    so that its id stays its own.
    """

    stack: Stack
    tokens: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
    greatest: int
    others: int


class Budget:
    """Bounds along one sequence. `without`: stop tokens that are text; `end`: tokens that end a complete text."""

    __slots__ = ("_costs", "_far", "_growth", "_results", "_stacks")

    def __init__(self, artifact: Artifact, without: frozenset[int], end: int) -> None:
        self._costs, self._growth = artifact_costs(artifact, without), artifact_growth(artifact, without)
        ends = ending_verdicts(artifact, self._costs.graph)
        bottom: Level = (None, tuple(end if may_end else NEVER for may_end in ends), end, 0)
        self._stacks: dict[int, Level] = {id(None): bottom}
        self._far: list[int] = self._growth.far
        self._results: dict[tuple[int, int], _Result] = {}

    def least(self, control: int, stack: Stack) -> int:
        """The bound; NEVER or more where no completion is known."""
        rest = self._level(stack)[1]
        return min([t + rest[v] for v, t in self._costs.vector(control)], default=NEVER)

    def is_far(self, control: int, stack: Stack, left: int) -> bool:
        """Whether every legal token leaves a bound of at most `left`, told by sums alone."""
        level = self._stacks.get(id(stack)) or self._level(stack)
        if left >= level[2] + self._far[control]:
            return True
        if not self._growth.fine:
            self._growth.refine()
        self._far = self._growth.far
        return left >= level[2] + self._far[control]

    def is_near(self, control: int, stack: Stack, left: int) -> bool:
        """The same, told by what's known of the place."""
        key = self._growth.key(control, stack, None, self._down)
        growth = self._growth.get(key) if key else None
        return growth is not None and left >= self.least(control, stack) + growth

    def keep(self, words: npt.NDArray[np.uint32], control: int, stack: Stack, left: int) -> None:
        """Takes away the text tokens of a mask row, [words], after which the bound is above `left`."""
        key = (control, id(stack))
        result = self._results.get(key)
        if result is None:
            while len(self._results) >= KEPT_RESULTS:
                self._results.pop(next(iter(self._results)))
            result = self._results[key] = self._after(words, control, stack)
        if result.greatest <= left:
            return
        if result.others > left:
            kept = np.zeros(32 * len(words), np.uint8)
            kept[result.tokens[result.bounds <= left]] = 1
        else:
            kept = np.ones(32 * len(words), np.uint8)
            kept[result.tokens[result.bounds > left]] = 0
        words &= np.packbits(kept, bitorder="little").view(np.uint32)

    def _after(self, words: npt.NDArray[np.uint32], control: int, stack: Stack) -> _Result:
        """The bounds after the tokens of a mask row; noted as growth."""
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        places, least = Places(self._costs, control, stack), self.least(control, stack)
        tokens = np.flatnonzero(bits)
        if len(tokens) < MANY:
            tokens, others = self._costs.spelling.sort(tokens), 0
            bounds = places.bounds(places.run(tokens), self._down)
        else:
            tokens, numbers = places.run_all()
            legal = bits[tokens] != 0
            tokens, others = tokens[legal], least
            bounds = places.bounds(numbers[legal], self._down)
        greatest = max(int(bounds.max(initial=0)), others)
        growth = self._growth.key(control, stack, places.depth, self._down)
        if growth is not None:
            self._growth.put(growth, greatest - least)
        return _Result(stack, tokens, bounds, greatest, others)

    def _down(self, stack: Stack) -> tuple[int, ...]:
        return self._level(stack)[1]

    def _level(self, stack: Stack) -> Level:
        known = self._stacks
        found = known.get(id(stack))
        if found is None:
            new = []
            while stack is not None and id(stack) not in known:
                new.append(stack)
                stack = stack[2]
            at = known[id(stack)]
            if len(known) > KEPT_STACKS + 4 * at[3]:
                bottom = known[id(None)]
                known.clear()
                known[id(None)] = bottom
            for stack in reversed(new):
                symbol = stack[0]
                at = (stack, self._costs.after(symbol, at[1]), at[2] + self._growth.symbol(symbol), at[3] + 1)
                known[id(stack)] = at
            found = at
        return found


_Sets = dict[tuple[frozenset[int], bool], Growth]
_growths: weakref.WeakKeyDictionary[Artifact, dict[frozenset[int], Growth]] = weakref.WeakKeyDictionary()
_packs: weakref.WeakKeyDictionary[VocabularyPack, _Sets] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def artifact_growth(artifact: Artifact, without: frozenset[int]) -> Growth:
    """Made on first use, about 20 us a control; kept with the artifact."""
    costs = artifact_costs(artifact, without)
    with _making:
        mine = _growths.setdefault(artifact, {})
        found = mine.get(without)
        if found is None:
            packs, key = _packs.setdefault(artifact.pack, {}), (without, artifact.has_specials)
            base = packs.get(key)
            if base is None and costs.base is not None:
                base = packs[key] = Growth(costs.base, None)
            found = mine[without] = Growth(costs, base)
        return found
