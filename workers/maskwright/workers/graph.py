"""The automaton as a graph of runs: what costs and counts of completions are computed on.

A *node* is something that runs and then returns from its frame with a verdict:

    control        a control c >= 0: from c on until c's frame returns
    composite      -1 - i: (inner, symbol): run `inner` until its frame returns with a verdict v, then go on from
                   what `symbol` has for v. An action that pushes s1 .. sk and goes to t is ((t, sk), .. s1).

So every move of the automaton is one node, and a function of (node, verdict) that adds or multiplies along runs
is a fixpoint over three rules: a control with verdict v is done; a control takes a byte and becomes the edge's
node; a composite is its inner part and then a return. Composites are shared by content. A pack's graph is made
once; an artifact's stands on it.

Nodes are made from checked tables, so indices are in range. Nothing here depends on tokens.
"""

from __future__ import annotations

import threading
import weakref

from maskwright.workers.artifact import Artifact
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.tables import Automaton

Edge = tuple[int, int, int]
"""First byte, last byte, the node that goes on."""


class Graph:
    """Nodes and edges of an automaton on top of its base's.

    edges[c]: the edges of control c. verdict[c]: its verdict, -1 for none. final[c]: it returns before a byte is
    seen. composites[i]: (inner, symbol) of node -1 - i. returns[s][v]: the node that follows, or None.
    first_control, first_composite, first_symbol: where the own ones begin.
    """

    __slots__ = (
        "__weakref__", "_number", "composites", "edges", "final", "first_composite", "first_control", "first_symbol",
        "frame", "returns", "verdict",
    )  # fmt: skip

    def __init__(self, automaton: Automaton, base: Graph | None) -> None:
        a = automaton
        self.edges: list[tuple[Edge, ...]] = list(base.edges) if base else []
        self.verdict: list[int] = list(base.verdict) if base else []
        self.composites: list[tuple[int, int]] = list(base.composites) if base else []
        self.returns: list[tuple[int | None, ...]] = list(base.returns) if base else []
        self._number: dict[tuple[int, int], int] = dict(base._number) if base else {}
        self.first_control, self.first_symbol = a.first_control, a.first_symbol
        self.first_composite = len(self.composites)
        self.frame: list[int] = a.control_frames().tolist()
        self._add(a)
        self.final = [v >= 0 and not e for v, e in zip(self.verdict, self.edges, strict=True)]

    def _add(self, a: Automaton) -> None:
        self.verdict += [int(v) - 1 for v in a.verdict.tolist()]
        starts, push, target = a.action_start.tolist(), a.action_push.tolist(), a.action_target.tolist()
        actions: dict[int, int] = {}

        def action(number: int) -> int:
            node = actions.get(number)
            if node is None:
                own = number - a.first_action
                node = target[own]
                for symbol in reversed(push[starts[own] : starts[own + 1]]):
                    node = self.composite(node, symbol)
                actions[number] = node
            return node

        moves = [m >> 1 if not m & 1 else action(m >> 1) for m in a.edge_move.tolist()]
        edges = list(zip(a.edge_low.tolist(), a.edge_high.tolist(), moves, strict=True))
        first = a.edge_start.tolist()
        self.edges += [tuple(edges[first[i] : first[i + 1]]) for i in range(len(first) - 1)]
        returns: list[int | None] = [
            None if m == -1 else m if m >= 0 else action(-2 - m) for m in a.return_move.tolist()
        ]
        first = a.return_start.tolist()
        self.returns += [tuple(returns[first[i] : first[i + 1]]) for i in range(len(first) - 1)]

    def composite(self, inner: int, symbol: int) -> int:
        """The node that runs `inner` and returns through `symbol`."""
        key = (inner, symbol)
        node = self._number.get(key)
        if node is None:
            self.composites.append(key)
            node = self._number[key] = -len(self.composites)
        return node


_packs: weakref.WeakKeyDictionary[VocabularyPack, Graph] = weakref.WeakKeyDictionary()
_artifacts: weakref.WeakKeyDictionary[Artifact, Graph] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def pack_graph(pack: VocabularyPack) -> Graph:
    """The pack's graph, made on first use. Cost: a few milliseconds, once."""
    with _making:
        return _pack_graph(pack)


def _pack_graph(pack: VocabularyPack) -> Graph:
    graph = _packs.get(pack)
    if graph is None:
        graph = _packs[pack] = Graph(pack.automaton, None)
    return graph


def artifact_graph(artifact: Artifact) -> Graph:
    """The artifact's graph, made on first use. Cost: linear in its edges, about a microsecond each."""
    with _making:
        graph = _artifacts.get(artifact)
        if graph is None:
            graph = _artifacts[artifact] = Graph(artifact.automaton, _pack_graph(artifact.pack))
        return graph


def ending_verdicts(artifact: Artifact, graph: Graph) -> list[bool]:
    """For each verdict that a control of the first frame has, up to the highest, whether the text may end with it.
    (The frame's number of verdicts isn't bounded by what a file holds.)
    """
    frame = graph.frame[artifact.start]
    first, last = artifact.automaton.all_frame_controls[frame : frame + 2].tolist()
    rows, offset = artifact.context_rows, artifact.row_offset[0]
    ends = {graph.verdict[c] for c in range(first, last) if rows[offset + c] & 1}
    return [v in ends for v in range(1 + max(graph.verdict[first:last], default=-1))]
