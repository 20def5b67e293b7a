"""Boolean and rational operations on automata over one alphabet.

Products (Rabin and Scott, 1959) run over tuples of states, concatenation and repetition over subsets. Both run over
a common refinement of the operands' symbol classes, so that a huge character class costs what a single character
does. Results are canonical. Every function raises LimitExceeded by its `budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from maskwright.compiler.regular.budget import DEFAULT, Budget
from maskwright.compiler.regular.build import EMPTY_STRING, NOTHING
from maskwright.compiler.regular.codepoints import BYTES, SCALARS, Ranges, partition, subtract, unite
from maskwright.compiler.regular.dfa import Alphabet, Automaton, Classifier, Dfa
from maskwright.compiler.regular.minimise import make_classifier, make_dfa
from maskwright.compiler.regular.subset import explore

DEAD = -1
NOTHING_READ = (-1, 0)
"""Marks the start of a chain that accepts the empty text; (0, 0) may also be met later on."""
Vector = tuple[int, ...]


def classify(dfas: Sequence[Dfa], label: Callable[[tuple[bool, ...]], int], budget: Budget = DEFAULT) -> Classifier:
    """A text's label is `label` of which of the languages hold it; a negative label is "no"."""
    alphabet, product = _product(dfas, label, budget)
    return make_classifier(*product, alphabet, budget)


def reclassify(classifier: Classifier, label: Callable[[int], int], budget: Budget = DEFAULT) -> Classifier:
    """The classifier with its labels mapped. "No" (-1) stays "no": texts that have left the automaton keep no label."""
    labels = [label(x) if x >= 0 else -1 for x in classifier.labels]
    return make_classifier(classifier.classes, classifier.rows, labels, classifier.alphabet, budget)


def combine(dfas: Sequence[Dfa], accept: Callable[[tuple[bool, ...]], bool], budget: Budget = DEFAULT) -> Dfa:
    """Any Boolean function of languages; it's asked once for each combination met."""
    alphabet, product = _product(dfas, lambda held: 0 if accept(held) else -1, budget)
    return make_dfa(*product, alphabet, budget)


def union(*dfas: Dfa, budget: Budget = DEFAULT) -> Dfa:
    """Texts in some operand; of none: nothing. Balanced pairing keeps the tuples short."""
    return _fold(dfas, any, budget) if dfas else NOTHING


def intersection(*dfas: Dfa, budget: Budget = DEFAULT) -> Dfa:
    """Texts in all operands, at least one of which must be given."""
    if not dfas:
        raise ValueError("the intersection of nothing has no alphabet")
    return _fold(dfas, all, budget)


def difference(one: Dfa, two: Dfa, budget: Budget = DEFAULT) -> Dfa:
    """Texts in the first and not in the second."""
    return combine([one, two], lambda held: held[0] and not held[1], budget)


def complement(dfa: Dfa, budget: Budget = DEFAULT) -> Dfa:
    """Texts over the alphabet that aren't in the language."""
    return combine([dfa], lambda held: not held[0], budget)


def labelled(classifier: Classifier, wanted: Callable[[int], bool], budget: Budget = DEFAULT) -> Dfa:
    """The texts whose label (0 or more) is wanted."""
    labels = [0 if x >= 0 and wanted(x) else -1 for x in classifier.labels]
    return make_dfa(classifier.classes, classifier.rows, labels, classifier.alphabet, budget)


def is_empty(automaton: Automaton) -> bool:
    """No text has a label. Constant time: automata are trimmed."""
    return automaton.labels[0] < 0 and not automaton.rows[0]


def is_universal(dfa: Dfa) -> bool:
    """Every text over the alphabet is in the language. Constant time: automata are minimal."""
    return dfa.n_states == 1 and dfa.labels[0] >= 0 and dfa.classes == (_alphabet_set(dfa.alphabet),)


def accepts(dfa: Dfa, text: str | bytes) -> bool:
    """Membership. Cost: linear in the text."""
    return dfa.label(text) >= 0


def concatenate(*dfas: Dfa, budget: Budget = DEFAULT) -> Dfa:
    """A text of the first, then one of the second, and so on; of none: the empty text."""
    result = EMPTY_STRING if not dfas else dfas[0]
    for dfa in dfas[1:]:
        result = _Chain([result, dfa], budget).dfa()
    return result


def repeat(dfa: Dfa, low: int, high: int | None, budget: Budget = DEFAULT) -> Dfa:
    """low..high texts of the language one after the other; `high` None: without end."""
    if low < 0 or (high is not None and high < low):
        raise ValueError(f"no repeat of {low} to {high}")
    if high == 0:
        return Dfa((), ((),), (0,), dfa.alphabet)
    if 0 in dfa.accepting:
        low = 0
    copies = max(low, 1) if high is None else high
    return _Chain([dfa] * copies, budget, least=low, loop=high is None).dfa()


def _alphabet_set(alphabet: Alphabet) -> Ranges:
    return SCALARS if alphabet == "chars" else BYTES


def _fold(dfas: Sequence[Dfa], accept: Callable[[tuple[bool, ...]], bool], budget: Budget) -> Dfa:
    todo = list(dfas)
    while len(todo) > 1:
        todo = [combine(todo[i : i + 2], accept, budget) for i in range(0, len(todo), 2)]
    return todo[0]


def _refine(dfas: Sequence[Automaton]) -> tuple[list[Ranges], list[dict[int, int]], list[dict[int, list[int]]]]:
    """Joint classes; for each operand the joint class -> own class map, and its inverse."""
    owners = [(i, c) for i, d in enumerate(dfas) for c in range(len(d.classes))]
    cells = partition([dfas[i].classes[c] for i, c in owners])
    own: list[dict[int, int]] = [{} for _ in dfas]
    joint: list[dict[int, list[int]]] = [{} for _ in dfas]
    for j, (_, members) in enumerate(cells):
        for m in members:
            i, c = owners[m]
            own[i][j] = c
            joint[i].setdefault(c, []).append(j)
    return [ranges for ranges, _ in cells], own, joint


def _common_alphabet(dfas: Sequence[Automaton]) -> Alphabet:
    # Automata without transitions fit any alphabet.
    found = {d.alphabet for d in dfas if d.classes} or {d.alphabet for d in dfas[:1]}
    if len(found) != 1:
        raise ValueError("automata over characters and over bytes can't be combined")
    return found.pop()


def _product(
    dfas: Sequence[Dfa], label: Callable[[tuple[bool, ...]], int], budget: Budget
) -> tuple[Alphabet, tuple[list[Ranges], list[list[tuple[int, int]]], list[int]]]:
    if not dfas:
        raise ValueError("a product needs an automaton")
    alphabet = _common_alphabet(dfas)
    classes, _, joint = _refine(dfas)
    dead = (DEAD,) * len(dfas)
    labels: dict[tuple[bool, ...], int] = {}

    def label_of(state: Vector) -> int:
        held = tuple(s >= 0 and d.labels[s] >= 0 for s, d in zip(state, dfas, strict=True))
        if held not in labels:
            labels[held] = max(label(held), -1)
        return labels[held]

    live_dead = label_of(dead) >= 0
    if live_dead:
        rest = _rest(classes, alphabet)
        if rest:
            classes.append(rest)

    def successors(state: Vector) -> Iterator[tuple[int, Vector]]:
        found: dict[int, list[int]] = {j: [DEAD] * len(dfas) for j in range(len(classes))} if live_dead else {}
        for i, s in enumerate(state):
            if s >= 0:
                for c, target in dfas[i].rows[s]:
                    for j in joint[i][c]:
                        if j not in found:
                            found[j] = [DEAD] * len(dfas)
                        found[j][i] = target
        return ((j, tuple(v)) for j, v in found.items())

    keys, rows = explore((0,) * len(dfas), successors, budget)
    return alphabet, (classes, rows, [label_of(k) for k in keys])


def _rest(classes: Sequence[Ranges], alphabet: Alphabet) -> Ranges:
    return subtract(_alphabet_set(alphabet), unite(*classes))


class _Chain:
    """Copies of automata one after the other, determinised by subsets of (copy, state)."""

    def __init__(self, parts: Sequence[Dfa], budget: Budget, least: int | None = None, loop: bool = False) -> None:
        self.alphabet = _common_alphabet(parts)
        self.parts, self.budget, self.loop = parts, budget, loop
        self.least = len(parts) if least is None else least
        self.classes, self.own, self.joint = _refine([*{id(p): p for p in parts}.values()])
        self.kind = {id(p): k for k, p in enumerate({id(p): p for p in parts}.values())}

    def dfa(self) -> Dfa:
        start = self.close({(0, 0)})
        if self.least == 0:
            start |= {NOTHING_READ}
        keys, rows = explore(start, self.successors, self.budget)
        return make_dfa(self.classes, rows, [0 if self.ends(k) else -1 for k in keys], self.alphabet, self.budget)

    def close(self, states: set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """Add the start of the next copy wherever one may end."""
        work = list(states)
        while work:
            copy, s = work.pop()
            if self.parts[copy].labels[s] >= 0:
                following = copy + 1
                if following == len(self.parts):
                    if not self.loop:
                        continue
                    following = copy
                if (following, 0) not in states:
                    states.add((following, 0))
                    work.append((following, 0))
        return frozenset(states)

    def successors(self, key: frozenset[tuple[int, int]]) -> Iterator[tuple[int, frozenset[tuple[int, int]]]]:
        found: dict[int, set[tuple[int, int]]] = {}
        for copy, s in key - {NOTHING_READ}:
            part = self.parts[copy]
            joint = self.joint[self.kind[id(part)]]
            for c, target in part.rows[s]:
                for j in joint[c]:
                    found.setdefault(j, set()).add((copy, target))
        return ((j, self.close(states)) for j, states in found.items())

    def ends(self, key: frozenset[tuple[int, int]]) -> bool:
        if NOTHING_READ in key:
            return True
        return any(copy + 1 >= self.least and self.parts[copy].labels[s] >= 0 for copy, s in key)
