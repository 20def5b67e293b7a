"""A pack's tables: every control of the library walked over the whole vocabulary, once.

The library's frames are JSON's own (free strings, numbers, any value, white space, bounded strings). Rests that can't
matter where these are called are dropped, and rests that no caller can tell apart are one (`rests.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, step
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.machine import build_machine, flatten
from maskwright.compiler.tokens.residuals import close_residuals, places
from maskwright.compiler.tokens.rests import DROPPED, any_rests, inside_rests, lexical_rests
from maskwright.compiler.tokens.rows import RowStore
from maskwright.compiler.tokens.tables import NO_BASE, PackTables, starts
from maskwright.compiler.tokens.trie import TokenTrie
from maskwright.compiler.tokens.walk import FINAL, Walked, Walker

NO_LIMITS = Limits(mask_bytes=1 << 40)

SAMPLES = (
    b'{"name": "x", "n": [1, -2.5e+3, true, false, null, {"k": "v"}, [], {}]}',
    b'{"a":[1,{"b":"c"}],"d":{}}',
    b'[[1, "a"], {"b": 0.25}, true, null, "x"]',
    b'[0,{"a":1},"b"]',
    b'"a"',
    b'a"',
    b"-10.25E-7",
    b"12.5e3",
    b"0.5",
    b" ",
    b"true",
    b"false",
    b"null",
)
"""What decoding mostly passes through: the controls that these texts meet are hot."""

Progress = Callable[[int, int], None]


def build_pack_tables(
    library: ByteAutomaton,
    tokens: TokenTrie,
    vocab_size: int,
    progress: Progress | None = None,
    *,
    followed: Mapping[tuple[int, int], str] | None = None,
) -> PackTables:
    """Walks each control of the library. `progress(done, all)` is called now and then.

    `followed`: for returns (frame, verdict) after which not everything may follow what does: "json" or "string".
    """
    automaton = flatten(library)
    walker = Walker(build_machine(automaton, None, None), tokens)
    sift = _Sift(library, tokens, followed or {})
    store = RowStore(vocab_size, limits=NO_LIMITS)
    control_row, left = [], []
    for c in library.own_controls():
        w = FINAL if library.is_final(c) else walker.walk(c)
        left.append(sift.sift(c, w))
        control_row.append(store.add(NO_BASE, np.sort(w.local)).number)
        if progress and c % 64 == 0:
            progress(c, len(library.edges))
    walked = dict(enumerate(left))
    codes = close_residuals(library, walked, walker).codes
    frame_codes = [codes[f] for f in range(len(library.frames))]
    place = [places(codes[library.frame_of(c)], w.left_code) for c, w in walked.items()]
    return PackTables(
        automaton=automaton,
        rows=store.tables(),
        control_row=np.array(control_row, dtype=np.uint32),
        code_start=starts(map(len, frame_codes)),
        code_verdict=(_joined(frame_codes) // tokens.n_suffixes).astype(np.uint8),
        code_suffix=(_joined(frame_codes) % tokens.n_suffixes).astype(np.uint32),
        residual_start=starts(len(w.left_token) for w in left),
        residual_token=_joined([w.left_token for w in left]).astype(np.uint32),
        residual_place=_joined(place).astype(np.uint32),
        hot=hot_controls(library),
        entry_names=tuple(library.entries),
        entry_controls=np.array(list(library.entries.values()), dtype=np.uint32),
        frame_names=tuple((f.name, f.pointer) for f in library.frames),
    )


class _Sift:
    """Drops the residuals that can't matter, and lets one rest stand for all that are the same."""

    def __init__(self, library: ByteAutomaton, tokens: TokenTrie, followed: Mapping[tuple[int, int], str]) -> None:
        self.library, self.n, self.followed = library, tokens.n_suffixes, followed
        self.every = any_rests(tokens)
        self.rests = {"json": lexical_rests(tokens), "string": inside_rests(tokens)} if followed else {}

    def sift(self, control: int, w: Walked) -> Walked:
        verdict, suffix = w.left_code // self.n, w.left_code % self.n
        rest = self.every[suffix]
        frame = self.library.frame_of(control)
        for v in range(self.library.frame_info(frame).verdicts):
            if (frame, v) in self.followed:
                here = verdict == v
                rest[here] = self.rests[self.followed[frame, v]][suffix[here]]
        keep = rest != DROPPED
        return _by_token(w.local, w.left_token[keep], verdict[keep] * self.n + rest[keep])


def _by_token(local: npt.NDArray[np.int32], token: npt.NDArray[np.int32], code: npt.NDArray[np.int64]) -> Walked:
    order = np.argsort(token, kind="stable")
    return Walked(local, token[order], code[order])


def _joined(parts: Sequence[npt.NDArray[np.integer[Any]]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def hot_controls(library: ByteAutomaton) -> npt.NDArray[np.uint8]:
    """[controls]: 1 where reading the sample texts from some entry passes through, frames it calls included."""
    out = np.zeros(library.n_controls, dtype=np.uint8)
    for entry in library.entries.values():
        for text in SAMPLES:
            config: Configuration | None = (entry, ())
            for byte in text:
                config = step(library, config, byte) if config else None
                if config is None:
                    break
                out[config[0]] = 1
        out[entry] = 1
    return out
