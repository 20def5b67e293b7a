"""Texts for differential tests against lark: random derivations from its rules, mutations, all short texts."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput

from maskwright.compiler.automaton.ir import (
    ByteAutomaton,
    Configuration,
    accepts,
    initial,
    may_end,
    settle,
    step,
)
from maskwright.compiler.grammar import GrammarOptions, build_grammar
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regular import shortest_members


@dataclass
class Case:
    """A grammar in both forms."""

    lark: Any
    automaton: ByteAutomaton

    def disagreements(self, texts: Iterator[str] | list[str]) -> tuple[list[tuple[str, bool]], int]:
        """Texts that lark and the automaton judge differently, with lark's verdict; and how many lark accepts."""
        bad, accepted = [], 0
        for text in texts:
            wanted = self.parses(text)
            accepted += wanted
            if accepts(self.automaton, text.encode()) != wanted:
                bad.append((text, wanted))
        return bad, accepted

    def parses(self, text: str) -> bool:
        try:
            self.lark.parse(text)
        except UnexpectedInput:
            return False
        return True


def make_case(grammar: str, options: GrammarOptions | None = None) -> Case:
    return Case(Lark(grammar, parser="lalr", lexer="contextual"), build_grammar(grammar, options).automaton)


def exhaustive(pieces: str | list[str], most: int) -> Iterator[str]:
    """Every text of at most `most` pieces."""
    for n in range(most + 1):
        for chosen in itertools.product(pieces, repeat=n):
            yield "".join(chosen)


class Deriver:
    """Random derivations from lark's compiled rules; terminals are spelled from their patterns' shortest members."""

    def __init__(self, lark: Any, rng: random.Random, gaps: tuple[str, ...] = ("",)) -> None:
        self.rng, self.gaps = rng, gaps
        self.rules: dict[str, list[list[Any]]] = {}
        for rule in lark.rules:
            self.rules.setdefault(rule.origin.name, []).append(list(rule.expansion))
        self.spellings = {
            t.name: shortest_members(compile_pattern(t.pattern.to_regexp(), "python"), 12) for t in lark.terminals
        }
        self.height = self.heights()

    def heights(self) -> dict[str, int]:
        height = dict.fromkeys(self.rules, 10**6)
        changed = True
        while changed:
            changed = False
            for name, expansions in self.rules.items():
                best = min(1 + max((self.height_of(s, height) for s in e), default=0) for e in expansions)
                if best < height[name]:
                    height[name], changed = best, True
        return height

    def height_of(self, symbol: Any, height: dict[str, int]) -> int:
        return 0 if symbol.is_term else height[symbol.name]

    def derive(self, start: str, depth: int) -> str:
        """A text of the rule; below `depth` the expansions that end soonest are taken."""
        out: list[str] = []
        work: list[tuple[Any, int]] = [(start, depth)]
        while work:
            symbol, left = work.pop()
            name = symbol if isinstance(symbol, str) else symbol.name
            if not isinstance(symbol, str) and symbol.is_term:
                out += [self.rng.choice(self.spellings[name]), self.rng.choice(self.gaps)]
                continue
            expansions = self.rules[name]
            if left <= 0:
                costs = [max((self.height_of(s, self.height) for s in e), default=0) for e in expansions]
                expansions = [e for e, c in zip(expansions, costs, strict=True) if c == min(costs)]
            chosen = self.rng.choice(expansions)
            work.extend((s, left - 1) for s in reversed(chosen))
        return "".join(out)


def mutate(text: str, rng: random.Random, pieces: list[str]) -> str:
    """One small change."""
    i = rng.randrange(len(text) + 1)
    kind = rng.random()
    if kind < 0.3:
        return text[:i] + text[i + 1 :]
    if kind < 0.6:
        return text[:i] + rng.choice(pieces) + text[i:]
    if kind < 0.75:
        return text[:i] + rng.choice(pieces) + text[i + 1 :]
    if kind < 0.9:
        j = rng.randrange(len(text) + 1)
        return text[: min(i, j)] + text[max(i, j) :]
    return text[:i]


def finish(a: ByteAutomaton, config: Configuration, most: int = 20_000) -> bytes | None:
    """Some bytes after which the text may end, searched from short stacks first; None within `most` configurations."""
    heap: list[tuple[int, int, Configuration, bytes]] = [(0, 0, config, b"")]
    seen = {config}
    while heap and len(seen) < most:
        _, _, config, path = heapq.heappop(heap)
        if may_end(a, config):
            return path
        for after, byte in _ways(a, config):
            if after not in seen:
                seen.add(after)
                heapq.heappush(heap, (len(path) + 8 * len(after[1]), len(seen), after, path + bytes((byte,))))
    return None


def _ways(a: ByteAutomaton, config: Configuration) -> Iterator[tuple[Configuration, int]]:
    """One byte for each thing that may come next, returns included."""
    tried = 0
    current: Configuration | None = config
    while current is not None:
        control, stack = current
        for e in a.edges_of(control):
            for byte in range(e.low, e.high + 1):
                if not tried >> byte & 1 and (after := step(a, config, byte)) is not None:
                    yield after, byte
                    break
            tried |= (1 << e.high + 1) - (1 << e.low)
        if not stack or a.verdict_of(control) < 0:
            return
        move = a.symbol(stack[-1]).returns[a.verdict_of(control)]
        current = None if move is None else settle(a, (move.target, stack[:-1] + move.pushes))


def random_run(a: ByteAutomaton, rng: random.Random, most: int) -> list[Configuration]:
    """Configurations of a run over random bytes that may follow."""
    out = [initial(a)]
    for _ in range(most):
        ways = list(_ways(a, out[-1]))
        if not ways:
            break
        out.append(rng.choice(ways)[0])
    return out
