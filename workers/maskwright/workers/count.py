"""How many texts complete a run: exact, or infinity.

The automaton is deterministic, so different texts are different runs. Over the graph of runs the count of a
(node, verdict) is a sum over edges (range width times what follows), one more for a control that is done, and a
sum over inner verdicts of products for a composite. Only what can be completed is counted, so a pair that depends
on itself has infinitely many.

A count that would have more than `MOST_BITS` bits is refused: nested pairs square it with each level.

Values are computed on demand (depth first, no recursion) and kept, per artifact. A pair that's met while it's
open closes a cycle; everything on a cycle sees infinity before it's closed itself.
"""

from __future__ import annotations

import math
import threading
import weakref

from maskwright.workers.artifact import Artifact
from maskwright.workers.costs import Key, artifact_costs
from maskwright.workers.graph import ending_verdicts

MOST_BITS = 1 << 22
"""Multiplying numbers of this size takes Python tenths of a second."""

Count = int | float
"""An exact int, or `math.inf`."""
Term = tuple[int, tuple[Key, ...]]
"""A factor and the pairs whose counts multiply it."""


class Counts:
    """Counts of completions of an artifact's nodes. bottom: for each verdict of the first frame 1 if the text may
    end with it, else 0.
    """

    __slots__ = ("_known", "bottom", "cheapest", "graph")

    def __init__(self, artifact: Artifact) -> None:
        costs = artifact_costs(artifact)
        self.graph, self.cheapest = costs.graph, costs.cheapest
        self.bottom: tuple[Count, ...] = tuple(int(e) for e in ending_verdicts(artifact, self.graph))
        self._known: dict[Key, Count] = {}

    def vector(self, node: int) -> list[tuple[int, Count]]:
        """(verdict, count) for each verdict that the node can return with."""
        return [(v, self.count(node, v)) for v in sorted(self.cheapest.costs(node))]

    def after(self, symbol: int, below: tuple[Count, ...]) -> tuple[Count, ...]:
        """For each verdict of a symbol's callee the completions once it has returned. `below`: the same for the
        caller's verdicts.
        """
        return tuple(
            0 if node is None else total([(n, below[v]) for v, n in self.vector(node)])
            for node in self.graph.returns[symbol]
        )

    def count(self, node: int, verdict: int) -> Count:
        """Texts that complete the node with a verdict that it can return with."""
        known = self._known
        todo: list[Key] = [(node, verdict)]
        open_: dict[Key, list[Term]] = {}
        while todo:
            key = todo[-1]
            if key not in known and key not in open_:
                terms = open_[key] = self._terms(key)
                pairs = [k for _, keys in terms for k in keys]
                todo.extend(k for k in pairs if k not in known and k not in open_)
                continue
            todo.pop()
            if key in open_:
                terms = open_.pop(key)
                known[key] = total([(factor, *(known.get(k, math.inf) for k in keys)) for factor, keys in terms])
        return known[node, verdict]

    def _terms(self, key: Key) -> list[Term]:
        node, verdict = key
        g, costs = self.graph, self.cheapest.costs
        if node >= 0:
            terms: list[Term] = [
                (high - low + 1, ((then, verdict),)) for low, high, then in g.edges[node] if verdict in costs(then)
            ]
            return [(1, ()), *terms] if g.verdict[node] == verdict else terms
        inner, symbol = g.composites[-1 - node]
        after = [(v, g.returns[symbol][v]) for v in costs(inner)]
        return [(1, ((inner, v), (then, verdict))) for v, then in after if then is not None and verdict in costs(then)]


def total(products: list[tuple[Count, ...]]) -> Count:
    """The sum of products, where 0 times infinity is 0. Raises OverflowError."""
    out: Count = 0
    for factors in products:
        if 0 in factors:
            continue
        if math.inf in factors:
            return math.inf
        if sum([int(f).bit_length() for f in factors]) > MOST_BITS:
            raise OverflowError(f"the number of completions has more than {MOST_BITS} bits")
        product: Count = 1
        for factor in factors:
            product *= factor
        out += product
    return out


_artifacts: weakref.WeakKeyDictionary[Artifact, Counts] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def artifact_counts(artifact: Artifact) -> Counts:
    """Made on first use."""
    with _making:
        found = _artifacts.get(artifact)
        if found is None:
            found = _artifacts[artifact] = Counts(artifact)
        return found
