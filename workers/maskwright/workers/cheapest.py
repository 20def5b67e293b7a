"""For each node and verdict the shortest bytes that complete it (Knuth, "A generalization of Dijkstra's
algorithm", 1977).

    control with verdict v     0 bytes to v
    control -b-> node          1 + the node's
    composite (inner, symbol)  inner to some w, and then what follows the symbol on w

The rules only add, so values are final in ascending order. Each value keeps the choice that made it: following
choices spells one shortest completion. A suffix of that completion is the choice of the place it begins at, so
the values along it descend by one a byte.

`usable` are the bytes that some token spells alone. An edge without one isn't taken: what's found can always be
spelled.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

from maskwright.workers.graph import Graph

Choice = tuple[int, int]
"""Of a control: the byte and the node that it leads to. Of a composite: the inner verdict and the node after the
return.
"""


class Cheapest:
    """Shortest completions over a graph, on top of its base's.

    `costs` tells the bytes for each verdict that a node can return with, `choice` how they go on.
    """

    __slots__ = ("_base", "_choice", "_cost", "graph")

    def __init__(self, graph: Graph, usable: bytes, base: Cheapest | None) -> None:
        self.graph, self._base = graph, base
        self._cost: dict[int, dict[int, int]] = {}
        self._choice: dict[tuple[int, int], Choice] = {}
        _Search(self, usable).run()

    def costs(self, node: int) -> dict[int, int]:
        """Verdict -> bytes."""
        g = self.graph
        own = node >= g.first_control or -1 - node >= g.first_composite
        if own or self._base is None:
            return self._cost.get(node, {})
        return self._base.costs(node)

    def choice(self, node: int, verdict: int) -> Choice | None:
        """How the shortest completion goes on; None when it's done."""
        g = self.graph
        own = node >= g.first_control or -1 - node >= g.first_composite
        if own or self._base is None:
            return self._choice.get((node, verdict))
        return self._base.choice(node, verdict)


class _Search:
    """Values become final in ascending order; what waits for them is relaxed then."""

    def __init__(self, found: Cheapest, usable: bytes) -> None:
        self._graph = found.graph
        self._found, self._cost, self._choice = found, found._cost, found._choice
        # [b]: the first usable byte from b on, 256 for none
        self._usable = [256] * 257
        for byte in range(255, -1, -1):
            self._usable[byte] = byte if usable[byte] else self._usable[byte + 1]
        self._callers: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # node -> (control, byte)
        self._outer: defaultdict[int, list[int]] = defaultdict(list)  # inner node -> composites
        self._waiting: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)  # -> (composite, w, cost)
        self._heap: list[tuple[int, int, int, int, int]] = []  # cost, node, verdict, choice

    def run(self) -> None:
        g, heap = self._graph, self._heap
        self._link()
        for control in range(g.first_control, len(g.edges)):
            if g.verdict[control] >= 0:
                heap.append((0, control, g.verdict[control], -1, 0))
        heapq.heapify(heap)
        while heap:
            cost, node, verdict, how, then = heapq.heappop(heap)
            costs = self._cost.setdefault(node, {})
            if verdict in costs:
                continue
            costs[verdict] = cost
            if how >= 0:
                self._choice[node, verdict] = (how, then)
            self._relax(node, verdict, cost)

    def _link(self) -> None:
        """Who waits for whom. What leads into the base is final already."""
        g = self._graph
        usable, callers = self._usable, self._callers
        for control in range(g.first_control, len(g.edges)):
            for low, high, node in g.edges[control]:
                if usable[low] <= high:
                    callers[node].append((control, usable[low]))
        for i in range(g.first_composite, len(g.composites)):
            self._outer[g.composites[i][0]].append(-1 - i)
        for node in {*self._callers, *self._outer}:
            if node < g.first_control and -1 - node < g.first_composite:
                for verdict, cost in self._found.costs(node).items():
                    self._relax(node, verdict, cost)

    def _relax(self, node: int, verdict: int, cost: int) -> None:
        heap, known = self._heap, self._cost
        for control, byte in self._callers.get(node, ()):
            if verdict not in known.get(control, ()):
                heapq.heappush(heap, (cost + 1, control, verdict, byte, node))
        for composite in self._outer.get(node, ()):
            symbol = self._graph.composites[-1 - composite][1]
            then = self._graph.returns[symbol][verdict]
            if then is not None:
                self._waiting[then].append((composite, verdict, cost))
                for last, more in self._found.costs(then).items():
                    heapq.heappush(heap, (cost + more, composite, last, verdict, then))
        for composite, inner, before in self._waiting.get(node, ()):
            heapq.heappush(heap, (before + cost, composite, verdict, inner, node))
