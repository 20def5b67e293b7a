"""Canonical form of a deterministic automaton: trim, minimise, merge symbol classes, number breadth first.

Minimisation is Hopcroft's partition refinement ("An n log n algorithm for minimizing states in a finite automaton",
1971) on partial automata: every block starts as a splitter, and later only the smaller half of a split is queued,
as in Valmari and Lehtinen, "Efficient minimization of DFAs with partial transition functions" (2008). Cost O(m log
n) for m transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskwright.compiler.regular.budget import CHECK_EVERY, DEFAULT, Budget
from maskwright.compiler.regular.codepoints import Ranges, normalise
from maskwright.compiler.regular.dfa import Alphabet, Classifier, Dfa, Row

Pairs = Sequence[tuple[int, int]]
Table = tuple[tuple[Ranges, ...], tuple[Row, ...], tuple[int, ...]]


def make_dfa(
    classes: Sequence[Ranges],
    rows: Sequence[Pairs],
    labels: Sequence[int],
    alphabet: Alphabet = "chars",
    budget: Budget = DEFAULT,
) -> Dfa:
    """A canonical `Dfa` from any table whose start is state 0 and whose labels are -1 or 0."""
    return Dfa(*canonical(classes, rows, labels, budget), alphabet)


def make_classifier(
    classes: Sequence[Ranges],
    rows: Sequence[Pairs],
    labels: Sequence[int],
    alphabet: Alphabet = "chars",
    budget: Budget = DEFAULT,
) -> Classifier:
    """A canonical `Classifier` from any table whose start is state 0."""
    return Classifier(*canonical(classes, rows, labels, budget), alphabet)


def canonical(
    classes: Sequence[Ranges], rows: Sequence[Pairs], labels: Sequence[int], budget: Budget = DEFAULT
) -> Table:
    """The canonical table of the same labelling. Classes must be disjoint; a row has each class at most once."""
    live = _live(rows, labels)
    if not live[0]:
        return (), ((),), (-1,)
    kept = [[(c, t) for c, t in row if live[t]] if live[s] else [] for s, row in enumerate(rows)]
    block = refine(kept, labels, live, budget)
    return _renumber(classes, kept, labels, block)


def _live(rows: Sequence[Pairs], labels: Sequence[int]) -> list[bool]:
    """States from which a label other than -1 can be reached."""
    sources: list[list[int]] = [[] for _ in rows]
    for s, row in enumerate(rows):
        for _, t in row:
            sources[t].append(s)
    live = [label >= 0 for label in labels]
    work = [s for s, yes in enumerate(live) if yes]
    while work:
        for s in sources[work.pop()]:
            if not live[s]:
                live[s] = True
                work.append(s)
    return live


def refine(rows: Sequence[Pairs], labels: Sequence[int], live: Sequence[bool], budget: Budget = DEFAULT) -> list[int]:
    """The coarsest congruence on live states, as a block number for every state (dead ones: -1)."""
    members, block = _first_blocks(rows, labels, live)
    sources: list[dict[int, list[int]]] = [{} for _ in rows]
    for s, row in enumerate(rows):
        for c, t in row:
            sources[t].setdefault(c, []).append(s)
    work = list(range(len(members)))
    queued = [True] * len(members)
    ticks = 0
    while work:
        splitter = work.pop()
        queued[splitter] = False
        by_class: dict[int, list[int]] = {}
        for t in members[splitter]:
            for c, found in sources[t].items():
                if c in by_class:
                    by_class[c] += found
                else:
                    by_class[c] = found[:]
        ticks += 1
        if not ticks % CHECK_EVERY:
            budget.check_time()
        for found in by_class.values():
            _split(found, members, block, work, queued)
    return block


def _first_blocks(
    rows: Sequence[Pairs], labels: Sequence[int], live: Sequence[bool]
) -> tuple[list[set[int]], list[int]]:
    """Blocks by label and by the set of classes that lead on: both are invariants of the language."""
    names: dict[tuple[object, ...], int] = {}
    block = [-1] * len(rows)
    members: list[set[int]] = []
    for s, row in enumerate(rows):
        if live[s]:
            key = (labels[s], frozenset(c for c, _ in row))
            b = names.setdefault(key, len(names))
            block[s] = b
            if b == len(members):
                members.append(set())
            members[b].add(s)
    return members, block


def _split(found: list[int], members: list[set[int]], block: list[int], work: list[int], queued: list[bool]) -> None:
    """Split every block that `found` (predecessors of a splitter on one class) meets but doesn't fill."""
    touched: dict[int, list[int]] = {}
    for s in found:
        b = block[s]
        if b in touched:
            touched[b].append(s)
        else:
            touched[b] = [s]
    for b, hit in touched.items():
        whole = members[b]
        if len(hit) == len(whole):
            continue
        inside = set(hit)
        whole -= inside
        new = len(members)
        # The larger part keeps the number: renumbering costs the smaller half.
        if len(inside) > len(whole):
            members[b], inside = inside, whole
        members.append(inside)
        for s in inside:
            block[s] = new
        work.append(new)
        queued.append(True)
        # If b was queued both parts are now; if not, queueing the smaller part is enough.


def _renumber(
    classes: Sequence[Ranges], rows: Sequence[Pairs], labels: Sequence[int], block: Sequence[int], start: int = 0
) -> Table:
    """One state per block, breadth first; classes with equal columns merged, ordered by least symbol."""
    first: dict[int, int] = {}
    for s, b in enumerate(block):
        if b >= 0:
            first.setdefault(b, s)
    merged, class_of = _merge_classes(classes, rows, block, first, start)
    number = {block[start]: 0}
    queue = [block[start]]
    out_rows: list[Row] = []
    out_labels: list[int] = []
    for b in queue:
        s = first[b]
        row: dict[int, int] = {}
        for c, t in rows[s]:
            row[class_of[c]] = block[t]
        pairs = sorted(row.items())
        for _, t in pairs:
            if t not in number:
                number[t] = len(queue)
                queue.append(t)
        out_rows.append(tuple((c, number[t]) for c, t in pairs))
        out_labels.append(labels[s])
    return merged, tuple(out_rows), tuple(out_labels)


def number_states(classes: Sequence[Ranges], rows: Sequence[Pairs], labels: Sequence[int], start: int) -> Table:
    """The canonical table when all states are live and known to be pairwise different."""
    if labels[start] < 0 and not rows[start]:
        return (), ((),), (-1,)
    return _renumber(classes, rows, labels, range(len(rows)), start)


def _merge_classes(
    classes: Sequence[Ranges], rows: Sequence[Pairs], block: Sequence[int], first: dict[int, int], start: int
) -> tuple[tuple[Ranges, ...], dict[int, int]]:
    reached = _reachable(rows, block, first, start)
    columns: dict[int, list[tuple[int, int]]] = {}
    for b in reached:
        for c, t in rows[first[b]]:
            columns.setdefault(c, []).append((b, block[t]))
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for c, column in columns.items():
        groups.setdefault(tuple(column), []).append(c)
    united = [(normalise(r for c in group for r in classes[c]), group) for group in groups.values()]
    united.sort()
    return tuple(r for r, _ in united), {c: i for i, (_, group) in enumerate(united) for c in group}


def _reachable(rows: Sequence[Pairs], block: Sequence[int], first: dict[int, int], start: int) -> Iterable[int]:
    seen = {block[start]}
    queue = [block[start]]
    for b in queue:
        for _, t in rows[first[b]]:
            if block[t] not in seen:
                seen.add(block[t])
                queue.append(block[t])
    return queue
