"""Automata of simple languages: literals, large sets of strings, strings by length, hand-made tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from maskwright.compiler.regular.budget import CHECK_EVERY, DEFAULT, Budget
from maskwright.compiler.regular.codepoints import BYTES, SCALARS, Ranges, intersect, normalise, partition
from maskwright.compiler.regular.dfa import Alphabet, Classifier, Dfa
from maskwright.compiler.regular.minimise import make_classifier, make_dfa, number_states

NOTHING = Dfa((), ((),), (-1,))
"""No text at all."""
EMPTY_STRING = Dfa((), ((),), (0,))
"""The empty text alone."""
ANY_STRING = Dfa((SCALARS,), (((0, 0),),), (0,))
"""Every text of Unicode scalar values."""
ANY_CHAR = Dfa((SCALARS,), (((0, 1),), ()), (-1, 0))
"""Every text of one character."""
ANY_BYTES = Dfa((BYTES,), (((0, 0),),), (0,), "bytes")
"""Every byte string."""


def literal(text: str | bytes) -> Dfa:
    """One text. Surrogates are never in a text, so a literal that holds one is the empty language."""
    return strings([text], alphabet="bytes" if isinstance(text, bytes) else "chars")


def one_of(ranges: Ranges, alphabet: Alphabet = "chars") -> Dfa:
    """Every text of one symbol from a set; symbols outside the alphabet are dropped."""
    return make_dfa([_inside(ranges, alphabet)], [[(0, 1)], []], [-1, 0], alphabet)


def strings(texts: Iterable[str | bytes], budget: Budget = DEFAULT, alphabet: Alphabet = "chars") -> Dfa:
    """A finite set of texts, as the minimal acyclic automaton.

    Built bottom-up from sorted input, sharing equal suffixes at once (Daciuk, Mihov, Watson and Watson, "Incremental
    construction of minimal acyclic finite-state automata", 2000). Cost: linear in the characters.
    """
    words = sorted({_symbols(t) for t in texts} - {None}, key=lambda w: w or ())
    return _Trie(budget).build([w for w in words if w is not None], alphabet)


def length_range(low: int, high: int | None, budget: Budget = DEFAULT) -> Dfa:
    """Texts of low..high code points; `high` None: without end. Empty when high < low."""
    if high is not None and high < low:
        return NOTHING
    last = low if high is None else high
    budget.check_states(last + 1)
    rows = [((0, n + 1),) for n in range(last)]
    loop = () if high is not None else ((0, last),)
    labels = tuple(0 if n >= low else -1 for n in range(last + 1))
    # A chain like this is minimal and numbered breadth first already.
    return Dfa((SCALARS,) if last or high is None else (), (*rows, loop), labels)


def dfa_from_transitions(
    transitions: Sequence[Iterable[tuple[int, int, int]]],
    accepting: Iterable[int],
    alphabet: Alphabet = "chars",
    budget: Budget = DEFAULT,
) -> Dfa:
    """A canonical `Dfa` from (low, high, target) lists; start 0. Raises ValueError when a state's ranges overlap."""
    good = frozenset(accepting)
    classes, rows = _cut(transitions, alphabet)
    return make_dfa(classes, rows, [0 if s in good else -1 for s in range(len(rows))], alphabet, budget)


def classifier_from_transitions(
    transitions: Sequence[Iterable[tuple[int, int, int]]],
    labels: Sequence[int],
    alphabet: Alphabet = "chars",
    budget: Budget = DEFAULT,
) -> Classifier:
    """As `dfa_from_transitions`, with a label for every state (-1: no)."""
    classes, rows = _cut(transitions, alphabet)
    return make_classifier(classes, rows, labels, alphabet, budget)


def _cut(
    transitions: Sequence[Iterable[tuple[int, int, int]]], alphabet: Alphabet
) -> tuple[list[Ranges], list[list[tuple[int, int]]]]:
    """Classes and rows for range lists: the partition by all (state, target) range sets."""
    sets: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for s, row in enumerate(transitions):
        found = sorted(row)
        for one, two in itertools.pairwise(found):
            if two[0] <= one[1]:
                raise ValueError(f"state {s}: two transitions share symbol {two[0]}")
        for low, high, target in found:
            if not 0 <= target < len(transitions):
                raise ValueError(f"state {s}: no state {target}")
            sets.setdefault((s, target), []).append((low, high))
    edges = list(sets)
    cells = partition([_inside(tuple(sets[e]), alphabet) for e in edges])
    rows: list[list[tuple[int, int]]] = [[] for _ in transitions]
    for c, (_, owners) in enumerate(cells):
        for i in owners:
            rows[edges[i][0]].append((c, edges[i][1]))
    return [ranges for ranges, _ in cells], rows


def _inside(ranges: Ranges, alphabet: Alphabet) -> Ranges:
    return intersect(normalise(ranges), SCALARS if alphabet == "chars" else BYTES)


def _symbols(text: str | bytes) -> tuple[int, ...] | None:
    if isinstance(text, bytes):
        return tuple(text)
    codes = tuple(map(ord, text))
    return None if any(0xD800 <= c <= 0xDFFF for c in codes) else codes


class _Trie:
    """The path of the last word, open; everything left of it, closed and shared."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.known: dict[tuple[bool, tuple[tuple[int, int], ...]], int] = {}
        self.rows: list[tuple[tuple[int, int], ...]] = []
        self.labels: list[int] = []

    def build(self, words: Sequence[tuple[int, ...]], alphabet: Alphabet) -> Dfa:
        path: list[list[tuple[int, int]]] = [[]]
        ends = [False]
        last: tuple[int, ...] = ()
        for n, word in enumerate(words):
            common = 0
            for a, b in zip(last, word, strict=False):
                if a != b:
                    break
                common += 1
            self.close(path, ends, last, common)
            path += [[] for _ in range(len(word) - common)]
            ends += [False] * (len(word) - common)
            ends[-1] = True
            last = word
            if not n % CHECK_EVERY:
                self.budget.check_states(len(self.rows))
                self.budget.check_time()
        self.close(path, ends, last, 0)
        root = self.node(ends[0], path[0])
        self.budget.check_states(len(self.rows))
        return self.finish(root, alphabet)

    def close(self, path: list[list[tuple[int, int]]], ends: list[bool], last: tuple[int, ...], depth: int) -> None:
        while len(path) > depth + 1:
            node = self.node(ends.pop(), path.pop())
            path[-1].append((last[len(path) - 1], node))

    def node(self, end: bool, row: list[tuple[int, int]]) -> int:
        key = (end, tuple(row))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.rows)
            self.rows.append(key[1])
            self.labels.append(0 if end else -1)
        return found

    def finish(self, root: int, alphabet: Alphabet) -> Dfa:
        """Number breadth first and merge classes; the states are distinct already."""
        symbols = sorted({c for row in self.rows for c, _ in row})
        index = {c: i for i, c in enumerate(symbols)}
        rows = [[(index[c], t) for c, t in row] for row in self.rows]
        classes = [((c, c),) for c in symbols]
        return Dfa(*number_states(classes, rows, self.labels, root), alphabet)
