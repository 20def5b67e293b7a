"""A frame written as a graph: literal texts, choices between them, free text up to a trigger, and calls of
other frames.

Nodes are made with `GraphFrame.node`; the building methods add ways out of a node and never make two ways
for one byte (ValueError: a fault of the caller's data). Free text is any UTF-8; it's read with Knuth, Morris
and Pratt's automaton for the trigger beside one for the characters, so a trigger that overlaps itself costs
nothing more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from maskwright.compiler.automaton.explore import Call, Frame, Stay
from maskwright.compiler.regular import one_of, to_bytes
from maskwright.compiler.regular.codepoints import SCALARS


@dataclass(slots=True)
class Node:
    """Ways out by byte, frames that may be called, and whether the frame may end here."""

    ways: dict[int, int] = field(default_factory=dict)
    calls: list[tuple[Frame, int]] = field(default_factory=list)
    ends: bool = False


class GraphFrame:
    """Node 0 is the start. Compared by identity."""

    def __init__(self, name: str, pointer: str = "") -> None:
        self.name, self.pointer = name, pointer
        self.nodes: list[Node] = []
        self.node()

    # -- the frame -------------------------------------------------------------------------------------------

    def start(self) -> int:
        return 0

    def transitions(self, state: int) -> Iterator[Stay | Call]:
        node = self.nodes[state]
        run: tuple[int, int, int] | None = None
        for byte in sorted(node.ways):
            target = node.ways[byte]
            if run is not None and run[1] + 1 == byte and run[2] == target:
                run = (run[0], byte, target)
                continue
            if run is not None:
                yield Stay(*run)
            run = (byte, byte, target)
        if run is not None:
            yield Stay(*run)
        for frame, target in node.calls:
            yield Call(frame, target)

    def verdict(self, state: int) -> Hashable | None:
        return () if self.nodes[state].ends else None

    def resume(self, continuation: int, verdict: Any) -> int:
        return continuation

    # -- building --------------------------------------------------------------------------------------------

    def node(self, ends: bool = False) -> int:
        self.nodes.append(Node(ends=ends))
        return len(self.nodes) - 1

    def way(self, at: int, byte: int, target: int) -> None:
        if self.nodes[at].ways.setdefault(byte, target) != target:
            raise ValueError(f"{self.name}: two texts share byte {byte:#x} where they differ")

    def text(self, at: int, text: str | bytes) -> int:
        """The node after a literal; literals from one node share what they have in common."""
        for byte in text.encode() if isinstance(text, str) else text:
            ways = self.nodes[at].ways
            if byte not in ways:
                ways[byte] = self.node()
            at = ways[byte]
        return at

    def join(self, at: int, text: str | bytes, target: int) -> None:
        """A literal that ends at an existing node."""
        data = text.encode() if isinstance(text, str) else text
        if not data:
            raise ValueError(f"{self.name}: an empty text can't join two nodes")
        self.way(self.text(at, data[:-1]), data[-1], target)

    def call(self, at: int, frames: Sequence[Frame], target: int) -> None:
        """Any of the frames (they begin with different bytes), then the target."""
        self.nodes[at].calls.extend((frame, target) for frame in frames)

    def free(self, trigger: str | bytes, ends: bool, symbol: bytes = b"") -> tuple[int, int | None]:
        """A region of text that doesn't hold the trigger: its entry, and the node after the trigger.

        `ends`: the frame may end in it, at a character's end. An empty trigger: text without end, None. With `symbol`,
        a special token's, that leads on after any character, and the trigger can't be read.
        """
        return _Region(self, trigger.encode() if isinstance(trigger, str) else trigger, ends, symbol).build()


class _Region:
    """Nodes by (bytes of the trigger read, state in a character)."""

    def __init__(self, graph: GraphFrame, trigger: bytes, ends: bool, symbol: bytes) -> None:
        self.graph, self.trigger, self.ends, self.symbol = graph, trigger, ends, symbol
        self.characters = to_bytes(one_of(SCALARS), "utf8")
        self.places: dict[tuple[int, int], int] = {}
        self.work: list[tuple[int, int, int]] = []
        self.back = _borders(trigger)

    def build(self) -> tuple[int, int | None]:
        entry = self.place(0, 0)
        after = self.graph.node() if self.trigger else None
        while self.work:
            matched, inside, node = self.work.pop()
            if self.symbol and not inside:
                assert after is not None
                self.graph.join(node, self.symbol, after)
            for low, high, t in self.characters.transitions[inside]:
                for byte in range(low, high + 1):
                    self.read(node, matched, byte, 0 if t in self.characters.accepting else t, after)
        return entry, after

    def place(self, matched: int, inside: int) -> int:
        found = self.places.get((matched, inside))
        if found is None:
            found = self.places[matched, inside] = self.graph.node(self.ends and not inside)
            self.work.append((matched, inside, found))
        return found

    def read(self, node: int, matched: int, byte: int, inside: int, after: int | None) -> None:
        while matched and self.trigger[matched] != byte:
            matched = self.back[matched]
        if self.trigger and self.trigger[matched] == byte:
            matched += 1
        if after is not None and matched == len(self.trigger):
            if not self.symbol:
                self.graph.way(node, byte, after)
        else:
            self.graph.way(node, byte, self.place(matched, inside))


def _borders(word: bytes) -> list[int]:
    """For each length, the longest proper border of that prefix."""
    back = [0] * (len(word) + 1)
    k = 0
    for i in range(1, len(word)):
        while k and word[k] != word[i]:
            k = back[k]
        k += word[k] == word[i]
        back[i + 1] = k
    return back
