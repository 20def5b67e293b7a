"""Upper bounds on the tokens that complete a run, additive over the stack, each with a token that pays for it.

`tokens(node, v)` is how many tokens complete a node with verdict v. It's defined along the shortest bytes
(cheapest.py), cut into tokens that don't reach beyond the frame's end:

    tokens(c, v) = 0                                     where c is done with v
    tokens(c, v) = 1 + min over the prefixes t of the shortest completion that are tokens, of what's left after t:
                   the sum over the nodes that still run then

What's left after t has fewer bytes, so the definition is sound in ascending order of bytes. From it follows the
invariant that budgets rest on: in every place whose bound isn't 0 some token leads to a place whose bound is
less by one. Within literals the bound is the least number of tokens; it's above the least where a token closes
several frames at once, and where a longer text takes fewer tokens.

`most(node)` bounds `tokens` over all verdicts that a node can still return with: one number that's additive
whatever the verdicts turn out to be.

Values are computed on demand (no recursion) and kept, per artifact and set of stop tokens that are text, which
are no text then. Threads that race compute equal values twice.
"""

from __future__ import annotations

import threading
import weakref

from maskwright.workers.artifact import Artifact
from maskwright.workers.cheapest import Cheapest
from maskwright.workers.graph import Graph, artifact_graph, pack_graph
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.spelling import Spelling, spelling

NEVER = 1 << 60
"""Stands for "no completion"; sums of it stay above it and far below what overflows 64 bits."""

Key = tuple[int, int]
Running = tuple[Key, ...]
"""Nodes with the verdict each returns with, in the order they run."""


class Costs:
    """The bounds of one graph. `base`: those of the pack's."""

    __slots__ = ("__weakref__", "_most", "_tokens", "_vectors", "base", "cheapest", "graph", "spelling")

    def __init__(self, graph: Graph, spelled: Spelling, base: Costs | None) -> None:
        self.graph, self.spelling, self.base = graph, spelled, base
        self.cheapest: Cheapest = Cheapest(graph, spelled.usable, base.cheapest if base else None)
        self._tokens: dict[Key, int] = {}
        self._vectors: dict[int, tuple[Key, ...]] = {}
        self._most: dict[int, int] = {}

    def vector(self, node: int) -> tuple[Key, ...]:
        """(verdict, tokens) for each verdict that the node can return with, ascending."""
        found = self._vectors.get(node)
        if found is None:
            if self._is_base(node):
                found = self.base.vector(node)  # type: ignore[union-attr]
            else:
                found = tuple([(v, self.tokens(node, v)) for v in sorted(self.cheapest.costs(node))])
            self._vectors[node] = found
        return found

    def most(self, node: int) -> int:
        """The most that any verdict costs; 0 for a node that can't be completed."""
        found = self._most.get(node)
        if found is None:
            found = self._most[node] = max([t for _, t in self.vector(node)], default=0)
        return found

    def after(self, symbol: int, below: tuple[int, ...]) -> tuple[int, ...]:
        """For each verdict of a symbol's callee the tokens to finish once it has returned. `below`: the same for the
        caller's verdicts.
        """
        return tuple(
            NEVER if node is None else min((t + below[v] for v, t in self.vector(node)), default=NEVER)
            for node in self.graph.returns[symbol]
        )

    def tokens(self, node: int, verdict: int) -> int:
        """The bound for a verdict that the node can return with."""
        known = self._tokens
        found = known.get((node, verdict))
        if found is not None:
            return found
        todo: list[Key] = [(node, verdict)]
        begun: dict[Key, list[Running]] = {}
        while todo:
            key = todo[-1]
            if key not in known and self._is_base(key[0]):
                known[key] = self.base.tokens(*key)  # type: ignore[union-attr]
            elif key not in known:
                if key not in begun:
                    begun[key] = self._options(key)
                missing = [k for running in begun[key] for k in running if k not in known]
                if missing:
                    todo.extend(missing)
                    continue
                takes = key[0] >= 0 and self.cheapest.choice(*key) is not None
                # Inside a special token's symbol no token begins.
                least = min([sum([known[k] for k in running]) for running in begun.pop(key)], default=NEVER)
                known[key] = takes + least
            todo.pop()
        return known[node, verdict]

    def _is_base(self, node: int) -> bool:
        return self.base is not None and node < self.graph.first_control and -1 - node < self.graph.first_composite

    def _options(self, key: Key) -> list[Running]:
        """What may still run after one token; of a composite, its parts."""
        node, verdict = key
        choice = self.cheapest.choice(node, verdict)
        if choice is None:
            return [()]
        if node < 0:
            return [((self.graph.composites[-1 - node][0], choice[0]), (choice[1], verdict))]
        text, places = self._shortest(key)
        return [places[n - 1] for n in self.spelling.prefixes(text)]

    def _shortest(self, key: Key) -> tuple[bytes, list[Running]]:
        """The shortest completion as far as a token could reach, and what still runs after each byte."""
        composites, choice = self.graph.composites, self.cheapest.choice
        text, places, most = bytearray(), list[Running](), 2
        running = [key]  # the next to run comes last
        while running and len(text) < most:
            node, verdict = running.pop()
            how = choice(node, verdict)
            if how is None:
                continue
            if node < 0:
                running += [(how[1], verdict), (composites[-1 - node][0], how[0])]
                continue
            text.append(how[0])
            running.append((how[1], verdict))
            places.append(tuple(running))
            if len(text) == 2:
                most = self.spelling.longest(bytes(text))
        return bytes(text), places


_Sets = dict[tuple[frozenset[int], bool], Costs]
_packs: weakref.WeakKeyDictionary[VocabularyPack, _Sets] = weakref.WeakKeyDictionary()
_artifacts: weakref.WeakKeyDictionary[Artifact, dict[frozenset[int], Costs]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def artifact_costs(artifact: Artifact, without: frozenset[int] = frozenset()) -> Costs:
    """The bounds of an artifact where the text tokens `without` are stop tokens; made on first use.

    Cost: some milliseconds at the median of real schemas, about 2 us an edge; for the pack 40 ms, once.
    """
    with _making:
        mine = _artifacts.setdefault(artifact, {})
        found = mine.get(without)
        if found is None:
            key = (without, artifact.has_specials)
            spelled = spelling(artifact.pack, *key)
            packs = _packs.setdefault(artifact.pack, {})
            base = packs.get(key)
            if base is None:
                base = packs[key] = Costs(pack_graph(artifact.pack), spelled, None)
            found = mine[without] = Costs(artifact_graph(artifact), spelled, base)
        return found
