"""A byte DFA as the one frame of an automaton: how a regular expression enters the pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.compiler.automaton.explore import Stay
from maskwright.compiler.regular import Dfa


class DfaFrame:
    """Frame over a DFA with alphabet "bytes". Compared by identity: there is one per automaton."""

    name = "regex"
    pointer = ""

    def __init__(self, dfa: Dfa) -> None:
        assert dfa.alphabet == "bytes"
        self.dfa = dfa

    def start(self) -> int:
        return 0

    def transitions(self, state: int) -> Iterator[Stay]:
        for low, high, target in self.dfa.transitions[state]:
            yield Stay(low, high, target)

    def verdict(self, state: int) -> bool | None:
        return True if state in self.dfa.accepting else None

    def resume(self, continuation: object, verdict: object) -> int | None:
        raise AssertionError("a regular language calls nothing")
