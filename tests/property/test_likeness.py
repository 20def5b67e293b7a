"""Controls alike for h bytes answer all texts of at most h bytes alike; walks beside each other find what whole
walks find."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from random_frames import ALPHABET, RandomFrame, random_table

from maskwright.compiler.automaton.explore import explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regex_frames import DfaFrame
from maskwright.compiler.regular import to_bytes
from maskwright.compiler.tokens import build
from maskwright.compiler.tokens.beside import Beside, without_base
from maskwright.compiler.tokens.clock import Clock
from maskwright.compiler.tokens.kernels import FALSE, TRUE
from maskwright.compiler.tokens.likeness import LEVELS, classify, measure_heights
from maskwright.compiler.tokens.machine import build_machine, flatten
from maskwright.compiler.tokens.trie import build_trie
from maskwright.compiler.tokens.walk import Walked, Walker

LONGEST = 5
TEXTS = [bytes(t) for n in range(1, LONGEST + 1) for t in itertools.product(ALPHABET, repeat=n)]


def walker_of(a: ByteAutomaton) -> Walker:
    return Walker(build_machine(flatten(a), None, None), build_trie(TEXTS))


def answers(w: Walked) -> np.ndarray:
    out = np.full(len(TEXTS), FALSE, dtype=np.int64)
    out[w.local] = TRUE
    out[w.left_token] = w.left_code
    return out


def random_automaton(seed: int) -> ByteAutomaton:
    try:
        return minimise(specialise(explore(RandomFrame(random_table(random.Random(seed), states=6), 0))))
    except (CompileError, ValueError):
        pytest.skip("no text, or an entry that accepts")


@pytest.mark.parametrize("seed", range(60))
def test_alike_is_alike(seed: int) -> None:
    a = random_automaton(seed)
    walker = walker_of(a)
    controls = np.array([c for c in a.own_controls() if not a.is_final(c)], dtype=np.int32)
    likeness = classify(walker.machine, controls, np.arange(a.n_symbols, dtype=np.int32), 0)
    length = np.array([len(t) for t in TEXTS])
    found = {int(c): answers(walker.walk(int(c))) for c in controls}
    for level, h in enumerate(LEVELS[: LONGEST + 1]):
        for c in controls.tolist():
            first = int(likeness.controls[level, c])
            assert (found[c][length <= h] == found[first][length <= h]).all(), (level, c, first)


PATTERNS = ["[ab]{2,40}c", "(a|bc){3,9}(ab|ca){0,20}", "([ab]*c){1,12}", "a{0,9}b{0,9}c[ab]{1,9}c", "(ab?c?){5,30}"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_walks_beside_each_other_find_what_whole_walks_find(pattern: str) -> None:
    dfa = to_bytes(compile_pattern(pattern, mode="full"), "utf8")
    a = minimise(specialise(explore(DfaFrame(dfa))))
    walker = walker_of(a)
    follow = build.follow_bytes(a)
    walked, _ = build._walk_all(a, walker, Clock(Limits(), None))
    assert sum(isinstance(w, Beside) for w in walked.values()) > len(walked) // 3
    for c, w in walked.items():
        if isinstance(w, Beside):
            assert len(w.token) < len(TEXTS) // 2
            assert (answers(without_base(walked, c)) == answers(walker.walk(c, follow[a.frame_of(c)]))).all()


def test_heights() -> None:
    trie = build_trie([b"a", b"abcabc", b"abd", b"b"]).trie
    heights = measure_heights(trie)
    at = {trie.byte[1:].tobytes(): heights.level[1:].tolist()}
    assert at == {b"abcabcdb": [5, 4, 3, 2, 1, 0, 0, 0]}
    below = {b: heights.beyond[ord(b), :6].tolist() for b in "abc"}
    assert below == {"a": [7, 7, 6, 6, 6, 0], "b": [0] * 6, "c": [0] * 6}
