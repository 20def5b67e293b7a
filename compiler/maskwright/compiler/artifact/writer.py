"""From tables to the bytes of an artifact or a vocabulary pack; the format is FORMAT.md beside this file.

Tables are rewritten into the stored forms (counts instead of starts, no sentinels, the smallest dtype) and
handed to `maskwright.workers.container`, which the reader shares. The same tables and metadata give the same
bytes. The writer checks only that tables can be expressed; whether they're right is the reader's judgement
(`Artifact.from_bytes`), which runs on every file that's used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.tokens.tables import (
    COMPOSED,
    NO_BASE,
    UNREACHED,
    AutomatonTables,
    ContextTables,
    FactorTables,
    PackTables,
    RowTables,
    TokenTables,
)
from maskwright.workers.container import narrow, write_container
from maskwright.workers.fingerprint import SPECIAL, TEXT, UNUSED
from maskwright.workers.specials import LAZY_CONTEXTS, SPECIAL_TOKENS

Array = npt.NDArray[Any]
Named = tuple[str, Array]


@dataclass(frozen=True, slots=True)
class ArtifactMeta:
    """What an artifact's header says about its origin. Digests are SHA-256 in hex; `options` is
    `CompileOptions.canonical()`.
    """

    source_kind: str
    source_digest: str
    options: str
    vocabulary_fingerprint: str
    pack_digest: str
    compiler_version: str


@dataclass(frozen=True, slots=True)
class PackMeta:
    """What a pack's header says. `options` names what the shared frames depend on, as compact JSON."""

    vocabulary_fingerprint: str
    compiler_version: str
    options: str = "{}"


@dataclass(frozen=True, slots=True)
class VocabularyData:
    """The token table. `token_bytes[i]`: exact bytes, None for special and unused ids; `special_texts`: names
    of special tokens.

    The length of `token_bytes` is the vocabulary's size, the highest id + 1.
    """

    token_bytes: Sequence[bytes | None]
    special_texts: Mapping[int, str]
    stop_token_ids: Sequence[int]


def write_artifact(tables: TokenTables, *, meta: ArtifactMeta, specials: bool = False) -> bytes:
    """The artifact's file. Raises ValueError when a value doesn't fit the format. Cost: zlib, about 20 MB/s."""
    header = {
        "kind": "artifact",
        "source": {"kind": meta.source_kind, "digest": meta.source_digest},
        "options": json.loads(meta.options),
        "vocabulary": meta.vocabulary_fingerprint,
        "pack": meta.pack_digest,
        "compiler": meta.compiler_version,
        "start": int(tables.start),
    }
    sections = [
        *_automaton_sections(tables.automaton),
        *_row_sections(tables.rows),
        *_context_sections(tables.contexts),
        *(_factor_sections(tables.factors) if tables.factors else ()),
        ("frame_names", _json_section([list(pair) for pair in tables.frame_names])),
    ]
    required = (SPECIAL_TOKENS if specials else 0) | (LAZY_CONTEXTS if tables.factors else 0)
    return write_container(header, sections, compress=True, required=required)


def write_pack(
    tables: PackTables,
    *,
    vocabulary: VocabularyData,
    meta: PackMeta,
    extra: Mapping[str, Array] | None = None,
) -> bytes:
    """The pack's file. `extra`: further one-dimensional sections, kept with their dtype (u1, u2, u4, u8, i4).
    Nothing is compressed, so that all of it can be mapped. Raises ValueError when a value doesn't fit the
    format.
    """
    header = {
        "kind": "pack",
        "vocabulary": meta.vocabulary_fingerprint,
        "options": json.loads(meta.options),
        "compiler": meta.compiler_version,
    }
    sections = [
        *_vocabulary_sections(vocabulary),
        *_automaton_sections(tables.automaton),
        *_row_sections(tables.rows),
        ("control_row", narrow(tables.control_row)),
        ("residual_count", narrow(_counts(tables.residual_start))),
        ("residual_token", narrow(tables.residual_token)),
        ("residual_place", narrow(tables.residual_place)),
        ("code_count", narrow(_counts(tables.code_start))),
        ("code_verdict", tables.code_verdict.astype(np.uint8)),
        ("code_suffix", narrow(tables.code_suffix)),
        ("hot", tables.hot.astype(np.uint8)),
        ("entry_controls", narrow(tables.entry_controls)),
        ("entry_names", _json_section(list(tables.entry_names))),
        ("frame_names", _json_section([list(pair) for pair in tables.frame_names])),
        *sorted((extra or {}).items()),
    ]
    return write_container(header, sections, compress=False)


def _vocabulary_sections(vocabulary: VocabularyData) -> Iterator[Named]:
    table = [b"" if b is None else bytes(b) for b in vocabulary.token_bytes]
    flags = np.array([TEXT if b else UNUSED for b in table], np.uint8)
    for token, text in vocabulary.special_texts.items():
        if flags[token] == TEXT:
            raise ValueError(f"token {token} is special and has bytes")
        flags[token], table[token] = SPECIAL, text.encode("utf-8", "surrogatepass")
    offsets = np.zeros(len(table) + 1, np.uint32)
    np.cumsum([len(b) for b in table], out=offsets[1:], dtype=np.uint32)
    yield "token_offsets", offsets
    yield "token_blob", np.frombuffer(b"".join(table), np.uint8)
    yield "token_flags", flags
    yield "stop_ids", np.array(sorted(set(vocabulary.stop_token_ids)), np.uint32)


def _automaton_sections(t: AutomatonTables) -> Iterator[Named]:
    yield "edge_count", narrow(_counts(t.edge_start))
    yield "edge_low", t.edge_low.astype(np.uint8)
    yield "edge_high", t.edge_high.astype(np.uint8)
    yield "edge_move", narrow(_stored_moves(t.edge_move))
    yield "verdict", narrow(_plus_one(t.verdict))
    yield "frame_controls", narrow(_counts(t.frame_controls))
    yield "frame_symbols", narrow(_counts(t.frame_symbols))
    yield "frame_verdicts", narrow(t.frame_verdicts)
    yield "action_count", narrow(_counts(t.action_start))
    yield "action_target", narrow(t.action_target)
    yield "action_push", narrow(t.action_push)
    yield "symbol_callee", narrow(t.symbol_callee)
    yield "return_move", narrow(_stored_returns(t.return_move))


def _row_sections(t: RowTables) -> Iterator[Named]:
    yield "row_base", narrow(np.where(t.row_base == NO_BASE, 0, t.row_base.astype(np.int64) + 1))
    yield "patch_count", narrow(_counts(t.patch_start))
    pairs = t.patch_word.astype(np.uint64) << np.uint64(32) | t.patch_xor.astype(np.uint64)
    flips, number = np.unique(pairs, return_inverse=True)
    begins = t.patch_start[:-1][t.patch_start[:-1] < len(pairs)]
    steps = np.diff(number.astype(np.int64), prepend=0)
    steps[begins] = number[begins]
    yield "patch_flip", narrow(steps)
    yield "flip_step", narrow(np.diff((flips >> np.uint64(32)).astype(np.int64), prepend=0))
    yield "flip_bits", (flips & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _context_sections(t: ContextTables) -> Iterator[Named]:
    yield "context_frame", narrow(t.context_frame)
    yield (
        "context_rows",
        narrow(_stored_entries(t.context_rows)),
    )
    yield "context_bits", t.context_bits.astype(np.uint8)
    yield (
        "context_push",
        narrow(np.where(t.context_push == UNREACHED, 0, t.context_push.astype(np.int64) + 1)),
    )


def _factor_sections(t: FactorTables) -> Iterator[Named]:
    yield "lazy_codes", narrow(t.codes)
    yield "lazy_start", narrow(t.start)
    yield "lazy_gather", narrow(t.gather)
    yield "lazy_end", narrow(t.end)
    yield "lazy_base", narrow(t.base)
    yield "lazy_group_count", narrow(_counts(t.group_start))
    yield "lazy_group_place", narrow(t.group_place)
    yield "lazy_group_row", narrow(t.group_row)


def _counts(starts: Array) -> Array:
    counts: Array = np.diff(starts.astype(np.int64))
    return counts


def _plus_one(values: Array) -> Array:
    return values.astype(np.int64) + 1


def _stored_returns(moves: Array) -> Array:
    """0: none, 2 * control + 1, 2 * action + 2."""
    wide = moves.astype(np.int64)
    return np.where(wide >= 0, 2 * wide + 1, np.where(wide == -1, 0, 2 * (-2 - wide) + 2))


def _stored_moves(moves: Array) -> Array:
    """2 * control, or 2 * action + 1. A missing edge isn't stored, so NONE can't occur."""
    wide = moves.astype(np.int64)
    if (wide == -1).any():
        raise ValueError("an edge has no move")
    return np.where(wide >= 0, 2 * wide, 2 * (-2 - wide) + 1)


def _stored_entries(entries: Array) -> Array:
    """0: unreached; 2 + may_end: composed; else 2 * (row + 2) + may_end."""
    wide = entries.astype(np.int64)
    stored = np.where(wide >> 1 == COMPOSED, 2 + (wide & 1), wide + 4)
    return np.where(wide == UNREACHED, 0, stored)


def _json_section(value: Any) -> Array:
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), np.uint8)
