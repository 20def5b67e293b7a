"""A loaded pack's tables in the compiler's own form: the inverse of `write_pack`.

The worker checks what it runs on; what only the compiler reads (residuals, entries, names) is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.tokens.tables import NO_BASE, AutomatonTables, PackTables, RowTables
from maskwright.workers.errors import ArtifactError
from maskwright.workers.pack import VocabularyPack

Array = npt.NDArray[Any]


def read_pack_tables(pack: VocabularyPack) -> PackTables:
    """The tables that `write_pack` was given. Raises ArtifactError where a section that only the compiler
    reads is damaged.
    """
    automaton = _automaton(pack)
    n_controls, n_frames = len(automaton.verdict), len(automaton.frame_verdicts)
    residuals = pack.residuals
    suffix = _ids(pack, "code_suffix", 1 << 32)
    names, entries = pack.json_section("entry_names"), pack.section("entry_controls")
    if not isinstance(names, list) or len(names) != len(entries) or not all(isinstance(n, str) for n in names):
        raise ArtifactError("entry_names", None, "isn't a name for each entry")
    return PackTables(
        automaton=automaton,
        rows=_rows(pack),
        control_row=pack.section("control_row").astype(np.uint32),
        code_start=_starts(pack, "code_count", n_frames, len(suffix)),
        code_verdict=_ids(pack, "code_verdict", 256, len(suffix)).astype(np.uint8),
        code_suffix=suffix.astype(np.uint32),
        residual_start=residuals.start.astype(np.uint32),
        residual_token=residuals.token.astype(np.uint32),
        residual_place=residuals.place.astype(np.uint32),
        hot=_ids(pack, "hot", 2, n_controls).astype(np.uint8),
        entry_names=tuple(names),
        entry_controls=entries.astype(np.uint32),
        frame_names=_frame_names(pack, n_frames),
    )


def _automaton(pack: VocabularyPack) -> AutomatonTables:
    a = pack.automaton
    move = a.edge_move
    return AutomatonTables(
        edge_start=a.edge_start.astype(np.uint32),
        edge_low=a.edge_low,
        edge_high=a.edge_high.astype(np.uint8),
        edge_move=np.where(move & 1, -2 - (move >> 1), move >> 1).astype(np.int32),
        verdict=a.verdict.astype(np.int32) - 1,
        frame_controls=a.all_frame_controls.astype(np.uint32),
        frame_symbols=a.all_frame_symbols.astype(np.uint32),
        frame_verdicts=a.all_frame_verdicts.astype(np.uint32),
        action_start=a.action_start.astype(np.uint32),
        action_target=a.action_target.astype(np.uint32),
        action_push=a.action_push.astype(np.uint32),
        symbol_callee=a.all_symbol_callee.astype(np.uint32),
        return_start=a.return_start.astype(np.uint32),
        return_move=a.return_move.astype(np.int32),
    )


def _rows(pack: VocabularyPack) -> RowTables:
    rows = pack.rows.tables
    return RowTables(
        row_base=np.where(rows.base == 0, NO_BASE, rows.base - 1).astype(np.uint32),
        patch_start=rows.patch_start.astype(np.uint32),
        patch_word=rows.patch_word.astype(np.uint32),
        patch_xor=rows.patch_xor,
    )


def _ids(pack: VocabularyPack, name: str, below: int, length: int | None = None) -> Array:
    ids = pack.section(name)
    if ids.dtype.kind != "u" or (length is not None and len(ids) != length) or (len(ids) and int(ids.max()) >= below):
        raise ArtifactError(name, None, f"isn't {'' if length is None else length} ids below {below}")
    return ids


def _starts(pack: VocabularyPack, name: str, length: int, total: int) -> npt.NDArray[np.uint32]:
    counts = _ids(pack, name, 1 << 32, length)
    starts = np.zeros(length + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    if starts[-1] != total:
        raise ArtifactError(name, None, f"counts sum to {starts[-1]}, not {total}")
    return starts.astype(np.uint32)


def _frame_names(pack: VocabularyPack, n_frames: int) -> tuple[tuple[str, str], ...]:
    names = pack.json_section("frame_names")
    if not isinstance(names, list) or len(names) != n_frames:
        raise ArtifactError("frame_names", None, f"isn't a list of {n_frames} entries")
    out = []
    for entry in names:
        if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(x, str) for x in entry):
            raise ArtifactError("frame_names", None, "an entry isn't a name and a pointer")
        out.append((entry[0], entry[1]))
    return tuple(out)
