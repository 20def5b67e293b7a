"""Canonical form of a deterministic automaton: trim, minimise, merge symbol classes, number breadth first.

States above no real cycle are merged bottom-up; if there are others, the rest is Hopcroft's partition refinement
("An n log n algorithm for minimizing states in a finite automaton", 1971) on partial automata: every block starts
as a splitter, and later only the smaller half of a split is queued, as in Valmari and Lehtinen, "Efficient
minimization of DFAs with partial transition functions" (2008). Cost O(m log n) for m transitions.
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
    sources = _sources(rows)
    live = _live(labels, sources)
    if not live[0]:
        return (), ((),), (-1,)
    kept = [[(c, t) for c, t in row if live[t]] if live[s] else [] for s, row in enumerate(rows)]
    block = merge_bottom_up(kept, labels, live, sources)
    if any(yes and b < 0 for yes, b in zip(live, block, strict=True)):
        block = _refine_rest(kept, labels, live, block, budget)
    return _renumber(classes, kept, labels, block)


def _sources(rows: Sequence[Pairs]) -> list[list[int]]:
    sources: list[list[int]] = [[] for _ in rows]
    for s, row in enumerate(rows):
        for _, t in row:
            sources[t].append(s)
    return sources


def _live(labels: Sequence[int], sources: Sequence[Sequence[int]]) -> list[bool]:
    """States from which a label other than -1 can be reached."""
    live = [label >= 0 for label in labels]
    work = [s for s, yes in enumerate(live) if yes]
    while work:
        for s in sources[work.pop()]:
            if not live[s]:
                live[s] = True
                work.append(s)
    return live


SELF = -1
"""In a signature: the state itself."""
Signature = tuple[int, tuple[tuple[int, int], ...]]


def merge_bottom_up(
    rows: Sequence[Pairs], labels: Sequence[int], live: Sequence[bool], sources: Sequence[Sequence[int]]
) -> list[int]:
    """Blocks of the states from which no cycle but loops on single states can be reached; -1 for the others.

    Targets come before sources, and states with equal signatures are one block (Revuz, "Minimisation of acyclic
    deterministic automata in linear time", 1992). A state that behaves like its own looping target joins that.
    Among these states the blocks are exactly the classes of equivalent states. Cost: linear.
    """
    block = [-1] * len(rows)
    waiting = [sum(t != s for _, t in row) for s, row in enumerate(rows)]
    known: dict[Signature, int] = {}
    looping: dict[int, Signature] = {}
    work = [s for s, n in enumerate(waiting) if n == 0 and live[s]]
    for s in work:
        pairs = tuple(sorted([(c, SELF if t == s else block[t]) for c, t in rows[s]]))
        signature = (labels[s], pairs)
        b = known.get(signature)
        if b is None and looping:
            b = next((t for _, t in pairs if t in looping and _as_loop(signature, t) == looping[t]), None)
        if b is None:
            b = len(known)
            if any(t == SELF for _, t in pairs):
                looping[b] = signature
        known.setdefault(signature, b)
        block[s] = b
        for source in sources[s]:
            if source != s and live[source]:
                waiting[source] -= 1
                if waiting[source] == 0:
                    work.append(source)
    return block


def _as_loop(signature: Signature, block: int) -> Signature:
    return signature[0], tuple([(c, SELF if t == block else t) for c, t in signature[1]])


def _refine_rest(
    rows: Sequence[Pairs], labels: Sequence[int], live: Sequence[bool], block: Sequence[int], budget: Budget
) -> list[int]:
    """Hopcroft's refinement over the blocks found so far and the states that are in none."""
    first: dict[int, int] = {}
    of_state = [-1] * len(rows)
    chosen: list[int] = []
    for s, b in enumerate(block):
        if live[s]:
            n = first.get(b, -1) if b >= 0 else -1
            if n < 0:
                n = len(chosen)
                chosen.append(s)
                if b >= 0:
                    first[b] = n
            of_state[s] = n
    merged = [[(c, of_state[t]) for c, t in rows[s]] for s in chosen]
    found = refine(merged, [labels[s] for s in chosen], [True] * len(chosen), budget)
    return [found[n] if n >= 0 else -1 for n in of_state]


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
