"""Frames of strings and keys.

    free        any JSON string, any escapes, no lone surrogates: the library's `string`
    finite      what must hold leaves a finite set (enum, const): the canonical spellings as a minimal trie (DAWG)
    counted     only lengths (counts.py)
    judged      a product of languages over decoded characters (wide.py)
    guarded     as judged, but a watched set of strings is in play (`anyOf: [{enum}, {type: string}]`): the text
                must be spelled canonically until it differs from every member of the set, so that membership is
                decided by canonical spellings; what comes after may use any escape

Keys are canonical always. A key's frame is entered inside the key, after bytes that the object's trie of names
read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from typing import Any

from maskwright.compiler.automaton.explore import Call, Stay
from maskwright.compiler.regular import ANY_STRING, Classifier, Dfa, classify, to_bytes
from maskwright.compiler.regular.dfa import Automaton
from maskwright.compiler.schema.atoms import StringSet
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Kind, Space, conjuncts
from maskwright.compiler.schema.languages import Languages, atoms_of
from maskwright.compiler.schema.tables import Table
from maskwright.compiler.schema.truth import cases, decide

QUOTE = 0x22
PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
"""Characters that stand for themselves in one byte."""


def spell(text: str) -> bytes:
    """The canonical spelling with its closing quote, without the opening one."""
    return json.dumps(text, ensure_ascii=False)[1:].encode()


# -- tables ----------------------------------------------------------------------------------------


def body_table(body: Automaton, labels: list[Hashable], opening: bool) -> Table:
    """A byte automaton of a string's inside, closed by a quote; with `opening` also opened by one.

    `labels[i]` is the verdict where the automaton's label is i.
    """
    shift = 1 if opening else 0
    end: dict[Hashable, int] = {}
    rows: list[tuple[tuple[int, int, int], ...]] = [((QUOTE, QUOTE, shift),)] if opening else []
    first_end = shift + body.n_states
    for state, transitions in enumerate(body.transitions):
        row = [(low, high, t + shift) for low, high, t in transitions]
        if body.labels[state] >= 0:
            row.append((QUOTE, QUOTE, first_end + end.setdefault(labels[body.labels[state]], len(end))))
        rows.append(tuple(sorted(row)))
    rows += [()] * len(end)
    return Table(tuple(rows), (*([None] * first_end), *end))


@cache
def free_body(canonical: bool) -> Automaton:
    return to_bytes(ANY_STRING, "json_canonical" if canonical else "json")


def free_string() -> Table:
    return body_table(free_body(False), [()], True)


def free_key() -> Table:
    """A key's inside and closing quote; state 0 is the state between characters."""
    return body_table(free_body(True), [()], False)


def set_table(members: dict[bytes, Hashable]) -> Table:
    """The minimal acyclic table of spelled strings (each ends with its closing quote) with their labels."""
    trie: list[dict[int, int]] = [{}]
    labels: list[Hashable | None] = [None]
    for text, label in members.items():
        node = 0
        for byte in text:
            n = trie[node].setdefault(byte, len(trie))
            if n == len(trie):
                trie.append({})
                labels.append(None)
            node = n
        labels[node] = label
    block = [0] * len(trie)
    known: dict[Hashable, int] = {}
    for node in range(len(trie) - 1, -1, -1):  # children are numbered after their parents
        key = (labels[node], tuple(sorted((b, block[t]) for b, t in trie[node].items())))
        block[node] = known.setdefault(key, len(known))
    return _breadth_first(list(known), block[0])


def _breadth_first(keys: list[Any], root: int) -> Table:
    numbers, order = {root: 0}, [root]
    rows = []
    for b in order:
        row = []
        for byte, target in keys[b][1]:
            n = numbers.setdefault(target, len(order))
            if n == len(order):
                order.append(target)
            row.append((byte, byte, n))
        rows.append(tuple(row))
    return Table(tuple(rows), tuple(keys[b][0] for b in order))


def quoted(table: Table) -> Table:
    """The table with an opening quote before it."""
    rows = [tuple((a, b, t + 1) for a, b, t in row) for row in table.rows]
    return Table((((QUOTE, QUOTE, 1),), *rows), (None, *table.labels))


# -- judging ---------------------------------------------------------------------------------------


class StringJudge:
    """Frames for string formulas; memoised by the caller."""

    def __init__(self, space: Space, languages: Languages) -> None:
        self.space, self.languages = space, languages

    def members(self, must: Formula, watched: tuple[Formula, ...]) -> dict[str, tuple[bool, ...]] | None:
        """The finite set that `must` leaves and each member's verdict; None when it isn't plainly finite."""
        sets = _finite(must)
        if sets is None:
            return None
        verdicts = {s: self.languages.decide(must, watched, s) for s in sorted(sets)}
        return {s: v for s, v in verdicts.items() if v is not None}

    def finite(self, members: dict[str, tuple[bool, ...]]) -> Table:
        return quoted(set_table({spell(s): v for s, v in members.items()}))

    def classifier(
        self, must: Formula, watched: tuple[Formula, ...], pointer: str
    ) -> tuple[Classifier, list[tuple[bool, ...]]]:
        """Over characters: labels index the list of verdicts (the watched formulas' values, `must`
        holding)."""
        atoms = atoms_of((must, *watched))
        dfas, truths = self.languages_of(atoms, may_fail(must, watched))
        verdicts: dict[tuple[bool, ...], int] = {}

        def label(held: tuple[bool, ...]) -> int:
            found = decide(self.space, must, watched, cases(atoms, truths(held)))
            return -1 if found is None else verdicts.setdefault(found, len(verdicts))

        return classify(dfas, label, self.languages.budget(pointer)), list(verdicts)

    def languages_of(
        self, atoms: list[Formula], failing: set[Formula]
    ) -> tuple[list[Dfa], Callable[[tuple[bool, ...]], list[bool | None]]]:
        """The automata that decide the atoms, and the atoms' truths by which of them hold a text. Atoms that aren't in
        `failing` only help to hold: whether one possibly holds needn't be known."""
        possible = [self.languages.possible(a) if a in failing else None for a in atoms]
        dfas = [self.languages.dfa(a) for a in atoms] + [p for p in possible if p is not None]
        places = list(itertools.accumulate((p is not None for p in possible), initial=len(atoms)))

        def truths(held: tuple[bool, ...]) -> list[bool | None]:
            return [
                True if held[i] else None if possible[i] is not None and held[places[i]] else False
                for i in range(len(atoms))
            ]

        return dfas, truths

    def keys(self, languages: tuple[Formula, ...], pointer: str, must: Formula = TRUE) -> Table:
        """A key's inside, canonical, `must` holding for it; the verdict is the set of `languages` that hold it. Not
        opened by a quote."""
        classes, verdicts = self.classifier(must, languages, pointer)
        labels: list[Hashable] = [frozenset(f for f, h in zip(languages, v, strict=True) if h) for v in verdicts]
        return body_table(to_bytes(classes, "json_canonical", self.languages.budget(pointer)), labels, False)


def may_fail(must: Formula, watched: Iterable[Formula]) -> set[Formula]:
    """Atoms whose failing may matter: those under a negation or an exactly-one, or watched."""
    out = {a for w in watched for a in w.atoms}
    known: set[Formula] = set()
    work = [must]
    while work:
        f = work.pop()
        if f in known:
            continue
        known.add(f)
        if f.kind in (Kind.NOT, Kind.ONE):
            out.update(f.atoms)
        else:
            work += f.args
    return out


def without(span: tuple[int, int], bytes_: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The span's parts between some bytes of it."""
    low, high = span
    for byte in sorted(bytes_):
        if low < byte:
            yield low, byte - 1
        low = byte + 1
    if low <= high:
        yield low, high


def string_sets(f: Formula) -> Iterator[Formula]:
    return (a for a in f.atoms if isinstance(a.payload, StringSet))


def _finite(must: Formula, known: dict[Formula, frozenset[str] | None] | None = None) -> frozenset[str] | None:
    """A finite superset of what `must` leaves, when an enum stands in it plainly: alone or in every
    branch."""
    known = {} if known is None else known
    if must not in known:
        found = [f for c in conjuncts(must) if (f := _finite_part(c, known)) is not None]
        known[must] = min(found, key=len, default=None)
    return known[must]


def _finite_part(c: Formula, known: dict[Formula, frozenset[str] | None]) -> frozenset[str] | None:
    if isinstance(c.payload, StringSet):
        return c.payload.values
    if c.kind not in (Kind.OR, Kind.ONE):
        return None
    branches = [_finite(a, known) for a in c.args]
    if any(b is None for b in branches):
        return None
    return frozenset(s for b in branches if b is not None for s in b)


# -- guarded ---------------------------------------------------------------------------------------


class GuardedFrame:
    """A string judged against sets that aren't all of it.

    States: ("quote",) · ("in", trie node, mode, state of the judge) while the bytes begin a member's spelling
    or finish a character that left it · ("out", state of the judge) · ("end", verdict). The judge is the byte
    automaton of the other atoms over all escapes; `guard` is the canonical automaton, which decides where a
    character ends.
    """

    def __init__(self, judge: StringJudge, must: Formula, watched: tuple[Formula, ...], pointer: str) -> None:
        self.name, self.pointer, self.judge = "string", pointer, judge
        self.must, self.watched = must, watched
        found = {a: None for f in (must, *watched) for a in string_sets(f)}
        self.sets = sorted(found, key=lambda a: a.number)
        self.trie = _Trie({spell(s): s for a in self.sets for s in a.payload.values})  # type: ignore[attr-defined]
        self.guard = free_body(True)
        self._steps: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
        self._others()

    def _others(self) -> None:
        """The classifier of the other atoms; labels index their truths, kept where some membership could
        still do."""
        space, languages = self.judge.space, self.judge.languages
        self.others = [a for a in atoms_of((self.must, *self.watched)) if a not in self.sets]
        dfas, truths = self.judge.languages_of(self.others, may_fail(self.must, self.watched))
        values: dict[tuple[bool | None, ...], int] = {}

        def label(held: tuple[bool, ...]) -> int:
            found = tuple(truths(held))
            ways = cases(self.others, found)
            if all(space.assign(self.must, known) is FALSE for known in ways):
                return -1
            return values.setdefault(found, len(values))

        budget = languages.budget(self.pointer)
        made = classify(dfas, label, budget) if dfas else classify([ANY_STRING], lambda _: 0, budget)
        self.values = list(values) or [()]
        self.body = to_bytes(made, "json", budget)

    def start(self) -> tuple[Any, ...]:
        return ("quote",)

    def transitions(self, state: tuple[Any, ...]) -> Iterable[Stay | Call]:
        if state[0] == "quote":
            return [Stay(QUOTE, QUOTE, ("in", 0, 0, 0))]
        if state[0] == "end":
            return []
        if state[0] == "out":
            return list(self._out(state[1]))
        return list(self._in(*state[1:]))

    def _out(self, body: int) -> Iterator[Stay]:
        for low, high, target in self.body.transitions[body]:
            yield Stay(low, high, ("out", target))
        yield from self._close(body, None)

    def _in(self, node: int | None, guard: int, body: int) -> Iterator[Stay]:
        """One byte at a time: both automata and the trie step together. What follows a leaf differs
        anyhow."""
        if guard == 0 and node is not None and not self.trie.edges[node]:
            for low, high, target in self.body.transitions[body]:
                yield Stay(low, high, ("out", target))
            yield from self._close(body, self.trie.ends.get(node))
            return
        children = self.trie.edges[node] if node is not None else {}
        for low, high, after, target in self._both(guard, body):
            inside = [b for b in children if low <= b <= high]
            for byte in inside:
                yield Stay(byte, byte, ("in", children[byte], after, target))
            left = ("out", target) if after == 0 else ("in", None, after, target)
            for a, b in without((low, high), inside):
                yield Stay(a, b, left)
        if guard == 0:
            yield from self._close(body, None if node is None else self.trie.ends.get(node))

    def _both(self, guard: int, body: int) -> list[tuple[int, int, int, int]]:
        """Ranges that both automata read, with their next states."""
        found = self._steps.get((guard, body))
        if found is None:
            found = [
                (max(low, a), min(high, b), after, target)
                for low, high, after in self.guard.transitions[guard]
                for a, b, target in self.body.transitions[body]
                if max(low, a) <= min(high, b)
            ]
            self._steps[guard, body] = found
        return found

    def _close(self, body: int, member: str | None) -> Iterator[Stay]:
        label = self.body.labels[body]
        if label < 0:
            return
        held = [member in a.payload.values for a in self.sets]  # type: ignore[attr-defined]
        ways = cases([*self.others, *self.sets], [*self.values[label], *held])
        verdict = decide(self.judge.space, self.must, self.watched, ways)
        if verdict is not None:
            yield Stay(QUOTE, QUOTE, ("end", verdict))

    def verdict(self, state: tuple[Any, ...]) -> Hashable | None:
        return state[1] if state[0] == "end" else None

    def resume(self, continuation: Any, verdict: Any) -> None:
        raise TypeError("calls nothing")


class _Trie:
    """Spelled strings without their closing quote: edges by node, and the string that ends at a node."""

    def __init__(self, members: dict[bytes, str]) -> None:
        self.edges: list[dict[int, int]] = [{}]
        self.ends: dict[int, str] = {}
        for text, member in members.items():
            node = 0
            for byte in text[:-1]:
                n = self.edges[node].setdefault(byte, len(self.edges))
                if n == len(self.edges):
                    self.edges.append({})
                node = n
            self.ends[node] = member
