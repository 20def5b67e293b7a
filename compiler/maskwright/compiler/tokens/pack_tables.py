"""A pack's tables: every control of the library walked over the whole vocabulary, once.

The library's frames are JSON's own (free strings, numbers, any value, white space, bounded strings), and they're only called
where JSON goes on. So a residual whose rest isn't the beginning of JSON lexemes is dropped here: after white space
alone there are 50,000 tokens that go on with a letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.machine import build_machine, flatten
from maskwright.compiler.tokens.rows import Row, RowStore
from maskwright.compiler.tokens.tables import NO_BASE, PackTables, starts
from maskwright.compiler.tokens.trie import TokenTrie
from maskwright.compiler.tokens.walk import Walked, Walker

_STRING = rb'"(?:[^"\\\x00-\x1f]|\\.)*'
LEXEMES = re.compile(
    rb"(?:[\s,:\[\]{}]|" + _STRING + rb'"|-?[0-9][0-9.eE+-]*|true|false|null)*'
    rb"(?:" + _STRING + rb"\\?|-|t|tr|tru|f|fa|fal|fals|n|nu|nul)?",
    re.DOTALL,
)
NEAR, CLOSE = 4, 4096
"""A control's row is stored as a difference from one of the last few rows that aren't of a very different size."""
NO_LIMITS = Limits(mask_bytes=1 << 40)

Progress = Callable[[int, int], None]


def build_pack_tables(
    library: ByteAutomaton,
    tokens: TokenTrie,
    vocab_size: int,
    progress: Progress | None = None,
    *,
    keep_all: bool = False,
) -> PackTables:
    """Walks each control of the library. `progress(done, all)` is called now and then.

    `keep_all` keeps every residual: for libraries that are called where something else than JSON goes on.
    """
    automaton = flatten(library)
    follow = np.ones(256, dtype=np.bool_) if keep_all else _follow()
    walker = Walker(build_machine(automaton, None, None), tokens, follow)
    lexical = np.ones(tokens.n_suffixes, dtype=np.bool_) if keep_all else _lexical_suffixes(tokens)
    store = RowStore(vocab_size, limits=NO_LIMITS)
    control_row, left = [], []
    near: list[Row] = []
    for c in library.own_controls():
        w = walker.walk(c)
        keep = lexical[w.left_code % tokens.n_suffixes]
        left.append(Walked(w.local, w.left_token[keep], w.left_code[keep]))
        row = store.add(NO_BASE, np.sort(w.local), [r for r in near if abs(len(r.flipped) - len(w.local)) < CLOSE])
        near = [row, *near[: NEAR - 1]]
        control_row.append(row.number)
        if progress and c % 64 == 0:
            progress(c, len(library.edges))
    code = np.concatenate([np.zeros(0, dtype=np.int64), *(w.left_code for w in left)])
    return PackTables(
        automaton=automaton,
        rows=store.tables(),
        control_row=np.array(control_row, dtype=np.uint32),
        residual_start=starts(len(w.left_token) for w in left),
        residual_token=np.concatenate([np.zeros(0, np.uint32), *(w.left_token.astype(np.uint32) for w in left)]),
        residual_suffix=(code % tokens.n_suffixes).astype(np.uint32),
        residual_verdict=(code // tokens.n_suffixes).astype(np.uint8),
        entry_names=tuple(library.entries),
        entry_controls=np.array(list(library.entries.values()), dtype=np.uint32),
        frame_names=tuple((f.name, f.pointer) for f in library.frames),
    )


def _follow() -> npt.NDArray[np.bool_]:
    """First bytes of JSON lexemes."""
    out = np.zeros(256, dtype=np.bool_)
    out[list(b' \t\n\r,:[]{}"-0123456789tfn')] = True
    return out


def _lexical_suffixes(tokens: TokenTrie) -> npt.NDArray[np.bool_]:
    follow = _follow()
    out = np.zeros(tokens.n_suffixes, dtype=np.bool_)
    starts = tokens.text[np.minimum(tokens.suffix_place, max(0, len(tokens.text) - 1))] if len(tokens.text) else None
    if starts is None:
        return out
    for n in np.flatnonzero(follow[starts]).tolist():
        out[n] = LEXEMES.fullmatch(tokens.suffix(n)) is not None
    out[0] = True
    return out
