"""Regular languages: deterministic automata over characters (Unicode scalar values) and over bytes.

Everything returned is minimal, trimmed and canonically numbered: `a == b` decides whether two languages are equal.

Types (`dfa.py`; immutable, hashable)
    Dfa                     .transitions: for each state a tuple of (low, high, target), sorted, disjoint, merged
                            .accepting: frozenset of states; .labels[state]: 0 or -1; .n_states; the start is state 0
                            .alphabet: "chars" | "bytes"; .step(state, symbol) -> state | -1; .label(text) -> 0 | -1
    Classifier              the same, but .labels[state] is any int >= 0, or -1 for "no"; .label(text) -> int
    Budget(max_states=200_000, deadline=None, seconds=0.0, stage="regular", pointer=None, span=None)
                            deadline: a deadline.now value; .at(stage=, pointer=, span=) -> Budget

Every construction takes `budget: Budget = Budget()` last and raises `LimitExceeded` ("states", "compile_seconds").

Languages (`build.py`)
    NOTHING, EMPTY_STRING, ANY_STRING, ANY_CHAR, ANY_BYTES
    literal(text) · one_of(ranges) · strings(texts, budget) · length_range(low, high | None, budget)
    dfa_from_transitions(transitions, accepting, alphabet="chars", budget)
    classifier_from_transitions(transitions, labels, alphabet="chars", budget)
Operations (`algebra.py`)
    union(*dfas, budget=) · intersection(*dfas, budget=) · concatenate(*dfas, budget=)
    difference(a, b, budget) · complement(a, budget) · repeat(a, low, high | None, budget)
    combine(dfas, accept: tuple[bool, ...] -> bool, budget) -> Dfa       any Boolean function, one product
    classify(dfas, label: tuple[bool, ...] -> int, budget) -> Classifier  label < 0: "no"; dead ends are removed
    labelled(classifier, wanted: int -> bool, budget) -> Dfa · reclassify(classifier, int -> int, budget) -> Classifier
    is_empty(a) · is_universal(a) · accepts(a, text)
To bytes (`encode.py`)
    to_bytes(dfa | classifier, "utf8" | "json" | "json_canonical", budget)  same type, alphabet "bytes"
For people (`members.py`)
    shortest_members(a, n) · longest_member(a) -> int | None (unbounded) | -1 (empty) · distances_to_end(a)

Sets of code points are sorted tuples of inclusive ranges (`codepoints.py`).
"""

from maskwright.compiler.regular.algebra import (
    accepts,
    classify,
    combine,
    complement,
    concatenate,
    difference,
    intersection,
    is_empty,
    is_universal,
    labelled,
    reclassify,
    repeat,
    union,
)
from maskwright.compiler.regular.budget import Budget
from maskwright.compiler.regular.build import (
    ANY_BYTES,
    ANY_CHAR,
    ANY_STRING,
    EMPTY_STRING,
    NOTHING,
    classifier_from_transitions,
    dfa_from_transitions,
    length_range,
    literal,
    one_of,
    strings,
)
from maskwright.compiler.regular.dfa import Classifier, Dfa
from maskwright.compiler.regular.encode import Encoding, to_bytes
from maskwright.compiler.regular.members import distances_to_end, longest_member, shortest_members

__all__ = [
    "ANY_BYTES",
    "ANY_CHAR",
    "ANY_STRING",
    "EMPTY_STRING",
    "NOTHING",
    "Budget",
    "Classifier",
    "Dfa",
    "Encoding",
    "accepts",
    "classifier_from_transitions",
    "classify",
    "combine",
    "complement",
    "concatenate",
    "dfa_from_transitions",
    "difference",
    "distances_to_end",
    "intersection",
    "is_empty",
    "is_universal",
    "labelled",
    "length_range",
    "literal",
    "longest_member",
    "one_of",
    "reclassify",
    "repeat",
    "shortest_members",
    "strings",
    "to_bytes",
    "union",
]
