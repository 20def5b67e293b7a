"""A small bracket language with a pack, and its tables by brute force: nothing here shares code with the
compiler's passes.

The language, in frames (word and tree are the pack's):

    root = list "!"?
    list = "[" (item ("," item)*)? "]"          item = word | pair | list
    pair = tree ":" word                        the word may not end in d here
    tree = "(" tree* ")"
    word = [a-d]+                               verdict 1 when it ends in d, else 0

It has calls within the pack, calls that push two symbols, a return that's refused, returns that cascade, and
an end that can still go on. Contexts are stacks cut to their top `DEPTH` symbols: more than a token of
`LONGEST` bytes can look into.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from maskwright.compiler.artifact import ArtifactMeta, PackMeta, VocabularyData, write_artifact, write_pack
from maskwright.compiler.automaton.ir import (
    ByteAutomaton,
    Configuration,
    Edge,
    FrameInfo,
    Move,
    Symbol,
    initial,
    may_end,
    settle,
    step,
    verify,
)
from maskwright.compiler.tokens.tables import (
    NO_BASE,
    UNREACHED,
    AutomatonTables,
    ContextTables,
    PackTables,
    RowTables,
    TokenTables,
)
from maskwright.workers.container import file_digest
from maskwright.workers.fingerprint import vocabulary_fingerprint

DEPTH, LONGEST = 5, 4
ALPHABET = b"abcd()[],:!"
VOCAB_SIZE = 301


def _edges(*moves: tuple[str, int, tuple[int, ...]]) -> tuple[Edge, ...]:
    return tuple(sorted((Edge(ord(m[0][0]), ord(m[0][-1]), Move(m[1], m[2])) for m in moves), key=lambda e: e.low))


def pack_automaton() -> ByteAutomaton:
    """Frames 0 word (controls 0-2) and 1 tree (controls 3-5)."""
    word = _edges(("ac", 1, ()), ("d", 2, ()))
    return ByteAutomaton(
        edges=[word, word, word, _edges(("(", 4, ())), _edges(("(", 4, (0,)), (")", 5, ())), ()],
        verdict=[-1, 0, 1, -1, -1, 0],
        frame=[0, 0, 0, 1, 1, 1],
        symbols=[Symbol(1, 1, (Move(4),))],
        frames=[FrameInfo("word", "", 2), FrameInfo("tree")],
        entries={"word": 0, "tree": 3},
    )


def artifact_automaton() -> ByteAutomaton:
    """Frames 2 root (6-8), 3 list (9-12), 4 pair (13-16)."""
    item = [("ac", 1, (2,)), ("d", 2, (2,)), ("(", 4, (3, 5)), ("[", 9, (4,))]
    return ByteAutomaton(
        edges=[
            _edges(("[", 9, (1,))),
            _edges(("!", 8, ())),
            (),
            _edges(*item, ("]", 12, ())),
            _edges((",", 11, ()), ("]", 12, ())),
            _edges(*item),
            (),
            _edges(("(", 4, (5,))),
            _edges((":", 15, ())),
            _edges(("ac", 1, (6,)), ("d", 2, (6,))),
            (),
        ],
        verdict=[-1, 0, 0, -1, -1, -1, 0, -1, -1, -1, 0],
        frame=[2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4],
        symbols=[
            Symbol(2, 3, (Move(7),)),
            Symbol(3, 0, (Move(10), Move(10))),
            Symbol(3, 4, (Move(10),)),
            Symbol(3, 3, (Move(10),)),
            Symbol(4, 1, (Move(14),)),
            Symbol(4, 0, (Move(16), None)),
        ],
        frames=[FrameInfo("root", ""), FrameInfo("list", "/items"), FrameInfo("pair", "/items/pair")],
        start=6,
        base=pack_automaton(),
    )


def vocabulary() -> VocabularyData:
    """Single bytes, random strings over the alphabet, foreign bytes, unused and special ids."""
    rng = random.Random(7)
    table: list[bytes | None] = [bytes((b,)) for b in ALPHABET]
    seen = set(table)
    while len(table) < 280:
        token = bytes(rng.choice(ALPHABET) for _ in range(rng.randint(2, LONGEST)))
        if token not in seen:
            seen.add(token)
            table.append(token)
    table += [b"\xff\x00", b"ax", b"[ ", None, None]
    table += [None] * (VOCAB_SIZE - len(table))
    return VocabularyData(table, {299: "<pad>", 300: "<eos>", 290: ""}, [300])


# -- tables ------------------------------------------------------------------------------------------------


def flatten(a: ByteAutomaton, base: AutomatonTables | None) -> AutomatonTables:
    """The automaton's own part as arrays."""
    actions: list[Move] = []
    first_action = len(base.action_target) if base else 0

    def number(move: Move) -> int:
        if not move.pushes:
            return move.target
        if move not in actions:
            actions.append(move)
        return -2 - first_action - actions.index(move)

    edges = [(e.low, e.high, number(e.move)) for es in a.edges for e in es]
    frames = range(a.first_frame, a.n_frames)
    callers = [s.caller for s in a.symbols]
    returns = [[-1 if m is None else m.target for m in s.returns] for s in a.symbols]
    return AutomatonTables(
        edge_start=_starts(map(len, a.edges)),
        edge_low=np.array([e[0] for e in edges], np.uint8),
        edge_high=np.array([e[1] for e in edges], np.uint8),
        edge_move=np.array([e[2] for e in edges], np.int32),
        verdict=np.array(a.verdict, np.int32),
        frame_controls=_starts((a.frame.count(f) for f in frames), a.first_control),
        frame_symbols=_starts((callers.count(f) for f in frames), a.first_symbol),
        frame_verdicts=np.array([f.verdicts for f in a.frames], np.uint32),
        action_start=_starts(len(m.pushes) for m in actions),
        action_target=np.array([m.target for m in actions], np.uint32),
        action_push=np.array([s for m in actions for s in m.pushes], np.uint32),
        symbol_callee=np.array([s.callee for s in a.symbols], np.uint32),
        return_start=_starts(map(len, returns)),
        return_move=np.array([r for rs in returns for r in rs], np.int32),
    )


def _starts(lengths: Iterable[int], first: int = 0) -> np.ndarray:
    return (first + np.cumsum([0, *lengths])).astype(np.uint32)


class RowStore:
    """Rows as sets of tokens, each on the base that needs the fewest patches."""

    def __init__(self, rows: list[frozenset[int]]) -> None:
        self.rows, self.first = rows, len(rows)
        self.base: list[int] = []
        self.patches: list[list[tuple[int, int]]] = []

    def add(self, tokens: frozenset[int]) -> int:
        if tokens not in self.rows:
            options = [(len(_words(tokens)), NO_BASE)]
            options += [(len(_words(tokens ^ row)), i) for i, row in enumerate(self.rows)]
            base = min(options)[1]
            changed = _words(tokens if base == NO_BASE else tokens ^ self.rows[base])
            self.base.append(base)
            self.patches.append(sorted(changed.items()))
            self.rows.append(tokens)
        return self.rows.index(tokens)

    def tables(self) -> RowTables:
        flat = [p for patch in self.patches for p in patch]
        return RowTables(
            np.array(self.base, np.uint32),
            _starts(map(len, self.patches)),
            np.array([w for w, _ in flat], np.uint32),
            np.array([x for _, x in flat], np.uint32),
        )


def _words(tokens: frozenset[int]) -> dict[int, int]:
    out: dict[int, int] = {}
    for t in tokens:
        out[t >> 5] = out.get(t >> 5, 0) | 1 << (t & 31)
    return out


def run(a: ByteAutomaton, config: Configuration, data: bytes) -> Configuration | None:
    """The configuration after `data`."""
    at: Configuration | None = config
    for byte in data:
        at = step(a, at, byte) if at else None
    return at


def legal(a: ByteAutomaton, config: Configuration, table: list[bytes | None]) -> frozenset[int]:
    """The tokens whose bytes run. Every configuration of this language can be completed."""
    return frozenset(i for i, t in enumerate(table) if t and run(a, config, t) is not None)


def _contexts(a: ByteAutomaton, rows: RowStore, table: list[bytes | None]) -> ContextTables:
    """Breadth first over cut stacks; a context's masks are those of the first stack that was cut to it."""
    numbers: dict[tuple[int, tuple[int, ...], bool], int] = {}
    stacks: list[tuple[int, tuple[int, ...]]] = []

    def context(frame: int, stack: tuple[int, ...]) -> int:
        key = (frame, stack[-DEPTH:], len(stack) <= DEPTH)
        if key not in numbers:
            numbers[key] = len(stacks)
            stacks.append((frame, stack))
        return numbers[key]

    context(a.frame_of(a.start or 0), ())
    context_rows: list[int] = []
    context_push: list[int] = []
    sizes: list[tuple[int, int]] = []
    for frame, stack in stacks:  # grows while it's read
        controls = [c for c in range(a.n_controls) if a.frame_of(c) == frame]
        symbols = [s for s in range(a.n_symbols) if a.symbol(s).caller == frame]
        sizes.append((len(controls), len(symbols)))
        for c in controls:
            if settle(a, (c, stack)) != (c, stack):
                context_rows.append(UNREACHED)
                continue
            row = rows.add(legal(a, (c, stack), table))
            context_rows.append(2 * row + may_end(a, (c, stack)))
        context_push.extend(context(a.symbol(s).callee, (*stack, s)) for s in symbols)
    return ContextTables(
        np.array([f for f, _ in stacks], np.uint32),
        _starts(c for c, _ in sizes),
        _starts(s for _, s in sizes),
        np.array(context_rows, np.uint32),
        np.array(context_push, np.uint32),
        np.zeros(sum(f < len(CODES) for f, _ in stacks), np.uint8),
    )


@dataclass(frozen=True)
class Toy:
    """The language's automaton, vocabulary, tables and files."""

    automaton: ByteAutomaton
    vocabulary: VocabularyData
    pack_tables: PackTables
    tables: TokenTables
    pack: bytes
    artifact: bytes


CODES = (((0, 0), (0, 1), (1, 70_000)), ((0, 0), (0, 3)))
"""(verdict, suffix) of each pack frame's residuals; at most eight, so that a context's bits are one byte."""

PACK_META = PackMeta("", "0.0.0")
EXTRA = {"trie_start": np.arange(70_000, dtype=np.uint32), "suffix_hash": np.arange(5, dtype=np.uint64)}


@functools.cache
def toy() -> Toy:
    """Built once."""
    a, words = artifact_automaton(), vocabulary()
    assert a.base is not None and not verify(a) and not verify(a.base)
    table = list(words.token_bytes)
    local = [frozenset(i for i, t in enumerate(table) if t and run(a.base, (c, ()), t)) for c in range(6)]
    store = RowStore([])
    control_row = [store.add(tokens) for tokens in local]
    pack_tables = PackTables(
        automaton=flatten(a.base, None),
        rows=store.tables(),
        control_row=np.array(control_row, np.uint32),
        residual_start=np.array([0, 0, 1, 3, 3, 3, 3], np.uint32),
        residual_token=np.array([20, 30, 31], np.uint32),
        residual_place=np.array([1, 2, 0], np.uint32),
        code_start=_starts(len(c) for c in CODES),
        code_verdict=np.array([v for c in CODES for v, _ in c], np.uint8),
        code_suffix=np.array([x for c in CODES for _, x in c], np.uint32),
        hot=np.ones(len(control_row), np.uint8),
        entry_names=("word", "tree"),
        entry_controls=np.array([0, 3], np.uint32),
        frame_names=(("word", ""), ("tree", "")),
    )
    rows = RowStore(list(store.rows))
    contexts = _contexts(a, rows, table)
    tables = TokenTables(
        automaton=flatten(a, pack_tables.automaton),
        rows=rows.tables(),
        contexts=contexts,
        start=6,
        frame_names=tuple((f.name, f.pointer) for f in a.frames),
    )
    fingerprint = vocabulary_fingerprint(table, words.special_texts)
    pack = write_pack(pack_tables, vocabulary=words, meta=PackMeta(fingerprint, "0.0.0"), extra=EXTRA)
    meta = ArtifactMeta("regex", "ab" * 32, '{"x":1}', fingerprint, file_digest(pack), "0.0.0")
    return Toy(a, words, pack_tables, tables, pack, write_artifact(tables, meta=meta))


def start(t: Toy) -> Configuration:
    """The configuration before any byte."""
    return initial(t.automaton)
