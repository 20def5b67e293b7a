"""The token tables against the byte automaton: in every context that a run meets, the mask is exactly brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_frames import ALPHABET, RandomFrame, Table, random_table, random_tokens

from maskwright.compiler.automaton.explore import explore, explore_library
from maskwright.compiler.automaton.ir import ByteAutomaton, initial, may_end, step, verify
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens import beside, build
from maskwright.compiler.tokens.build import build_tokens
from maskwright.compiler.tokens.pack_tables import build_pack_tables
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.tables import NO_BASE, UNREACHED, TokenTables
from maskwright.compiler.tokens.trie import build_trie


class Runner:
    """The machine of `tables.py`, straight from its text, with rows expanded."""

    def __init__(self, a: ByteAutomaton, t: TokenTables, prepared: PreparedVocabulary) -> None:
        self.a, self.t, self.prepared = a, t, prepared
        self.pack = prepared.tables

    def row(self, number: int) -> np.ndarray:
        if number == NO_BASE:
            return np.zeros((self.prepared.vocab_size + 31) // 32, np.uint32)
        first = len(self.pack.rows.row_base)
        if number < first:
            return self.prepared.row(number)
        r, n = self.t.rows, number - first
        words = self.row(int(r.row_base[n])).copy()
        part = slice(int(r.patch_start[n]), int(r.patch_start[n + 1]))
        words[r.patch_word[part]] ^= r.patch_xor[part]
        return words

    def frame_start(self, frame: int, name: str) -> int:
        n = self.a.first_frame
        t = self.t.automaton if frame >= n else self.pack.automaton
        return int(getattr(t, name)[frame - n if frame >= n else frame])

    def entry(self, q: int, control: int) -> int:
        c = self.t.contexts
        at = int(c.row_start[q]) + control - self.frame_start(int(c.context_frame[q]), "frame_controls")
        value = int(c.context_rows[at])
        assert value != UNREACHED
        return value

    def push(self, q: int, s: int) -> int:
        c = self.t.contexts
        at = int(c.push_start[q]) + s - self.frame_start(int(c.context_frame[q]), "frame_symbols")
        value = int(c.context_push[at])
        assert value != UNREACHED
        return value

    def contexts(self, stack: tuple[int, ...]) -> int:
        q = 0
        for s in stack:
            q = self.push(q, s)
        return q


def legal(a: ByteAutomaton, config, token: bytes | None) -> bool:
    if not token:
        return False
    for b in token:
        config = step(a, config, b)
        if config is None:
            return False
    return True


def run_bytes(a: ByteAutomaton, config, token: bytes):
    for b in token:
        config = step(a, config, b)
        assert config is not None
    return config


def completable(a: ByteAutomaton, config, depth: int = 14) -> bool:
    """Whether some text leads to an end, by search (the liveness that specialise claims)."""
    seen, layer = {config}, [config]
    for _ in range(depth):
        if any(may_end(a, c) for c in layer):
            return True
        after = [step(a, c, b) for c in layer for b in ALPHABET]
        layer = [c for c in dict.fromkeys(after) if c is not None and c not in seen][:200]
        seen.update(layer)
    return any(may_end(a, c) for c in layer)


def usable(seed: int) -> tuple[ByteAutomaton, ByteAutomaton, PreparedVocabulary, list[bytes | None]]:
    """The first random automaton from this seed on that is well formed: (explored, minimised, vocabulary, tokens)."""
    rng = random.Random(seed)
    for _ in range(200):
        tokens = random_tokens(rng)
        library, table = ByteAutomaton(), random_table(rng)
        if seed % 3 == 0:
            flat = random_table(rng, flat=True)
            frames = {f"f{i}": RandomFrame(flat, i) for i in range(len(flat.rows))}
            library = minimise(specialise(explore_library(frames)))
            table = Table(table.rows, external=True)
        trie = build_trie(tokens)
        pack = build_pack_tables(library, trie, len(tokens))
        pack.hot[:] = 1
        try:
            raw = explore(RandomFrame(table, 0), library)
            a = minimise(specialise(raw))
        except (CompileError, ValueError):
            continue  # an empty language, or a table that breaks a rule of `explore`
        faults = verify(a)
        if not faults and len(a.edges) > 2:
            return raw, a, PreparedVocabulary(len(tokens), trie, library, pack, "test"), tokens
        assert all("may also follow" in fault for fault in faults)
    raise AssertionError("no usable automaton from this seed")


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.parametrize(("shared", "many"), [(64, build.MANY_RESTS), (1, build.MANY_RESTS), (1, 0)])
def test_masks_equal_brute_force(seed: int, shared: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "LEAST_SHARED_BYTES", shared)  # 1: every call of a library frame is walked beside it
    monkeypatch.setattr(build, "MANY_RESTS", many)  # 0: rests are always merged
    _raw, a, prepared, tokens = usable(seed)
    tables, _ = build_tokens(a, prepared, Limits())
    run = Runner(a, tables, prepared)
    rng = random.Random(seed)
    for _ in range(6):
        config = initial(a)
        for _ in range(12):
            control, stack = config
            entry = run.entry(run.contexts(stack), control)
            row = run.row(entry >> 1)
            want = [legal(a, config, tok) for tok in tokens]
            got = [bool(int(row[i >> 5]) >> (i & 31) & 1) for i in range(len(tokens))]
            assert got == want
            assert bool(entry & 1) == may_end(a, config)
            assert completable(a, config), "every configuration that's reached can be completed"
            choices = [tok for tok, ok in zip(tokens, want, strict=True) if ok]
            if not choices:
                break
            config = run_bytes(a, config, rng.choice(choices))


@pytest.mark.parametrize("seed", range(60))
def test_specialise_and_minimise_keep_the_language(seed: int) -> None:
    raw, a, _, _ = usable(seed)
    if verify(raw):
        return  # edges shadow returns before dead ones are cut: the raw automaton reads another language
    layer = [(initial(raw), initial(a))]
    for _ in range(7):
        after = []
        for old, new in layer[:60]:
            assert may_end(raw, old) == may_end(a, new)
            for b in ALPHABET:
                x, y = step(raw, old, b), step(a, new, b)
                assert (x is not None and completable(raw, x)) == (y is not None)
                if x is not None and y is not None:
                    after.append((x, y))
        layer = after
