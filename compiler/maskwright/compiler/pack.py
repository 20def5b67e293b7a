"""The vocabulary pack: built once for a vocabulary, kept on disk by fingerprint, read back for compiling.

    build_pack(vocabulary)   the pack's file as bytes: from the cache, or built (seconds for 128k tokens)
    prepare(vocabulary)      what compilations against this vocabulary share, read from those bytes

The cache folder is `$MASKWRIGHT_CACHE` or `~/.cache/maskwright`; in its `packs` folder a pack lies as
`<digest>.mwpack`, where workers look for it too, and `<key>.digest` names the pack of a (fingerprint, compiler
version, frames) key. Files appear complete or not at all; a damaged one is built again. A folder that can't be
written to only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.compiler.artifact.reader import read_pack_tables
from maskwright.compiler.artifact.writer import PackMeta, VocabularyData, write_pack
from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.automaton.spell import cut_unspellable
from maskwright.compiler.collection import loaded
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import followed_by, library_frames
from maskwright.compiler.tokens.machine import unflatten
from maskwright.compiler.tokens.pack_tables import Progress, build_pack_tables
from maskwright.compiler.tokens.prepared import PreparedVocabulary, spellable_bytes
from maskwright.compiler.tokens.trie import TokenTrie, Trie, build_trie
from maskwright.compiler.version import COMPILER_VERSION, build_id
from maskwright.workers import VocabularyPack
from maskwright.workers.errors import ArtifactError

if TYPE_CHECKING:
    from maskwright.compiler.vocabulary import Vocabulary

log = logging.getLogger(__name__)
WHITESPACE_BOUND = CompileOptions.max_whitespace
FORMATS = ("date", "date-time", "email", "hostname", "ipv4", "time", "uri", "uri-reference", "uuid")
"""String formats that schemas use most: their frames are the pack's. Measured for Llama 3.1: the pack grows from 21 to
26 MB and takes 3 s longer to build; an object with one e-mail address fell from 3.2 s and 318 kB to 12 ms and 5 kB.
"""
PACK_OPTIONS = {"max_whitespace": WHITESPACE_BOUND, "formats": list(FORMATS)}
KEPT = 4

_prepared: OrderedDict[str, PreparedVocabulary] = OrderedDict()
_preparing = threading.Lock()


def cache_folder() -> Path:
    """Where packs are kept."""
    root = os.environ.get("MASKWRIGHT_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "maskwright") / "packs"


def build_pack(vocabulary: Vocabulary, progress: Progress | None = None) -> bytes:
    """The pack's file. The same vocabulary and compiler version give the same bytes."""
    folder, key = cache_folder(), _key(vocabulary)
    cached = _read_cached(folder, key)
    if cached is not None:
        return cached
    data = _build(vocabulary, progress)
    with contextlib.suppress(OSError):
        digest = hashlib.sha256(data).hexdigest()
        _write_whole(folder / f"{digest}.mwpack", data)
        _write_whole(folder / f"{key}.digest", digest.encode())
    return data


def prepare(vocabulary: Vocabulary, progress: Progress | None = None) -> PreparedVocabulary:
    """What compilations share; the last few vocabularies are kept in memory."""
    with _preparing:
        found = _prepared.get(vocabulary.fingerprint)
        if found is None:
            found = _prepared[vocabulary.fingerprint] = read_pack(build_pack(vocabulary, progress))
            loaded()
        _prepared.move_to_end(vocabulary.fingerprint)
        while len(_prepared) > KEPT:
            _prepared.popitem(last=False)
        return found


def read_pack(data: bytes) -> PreparedVocabulary:
    """From the pack's bytes. Raises ArtifactError when they're damaged."""
    pack = VocabularyPack.from_bytes(data)
    tables = read_pack_tables(pack)

    def section(name: str, dtype: type = np.int32):  # type: ignore[no-untyped-def]
        return np.ascontiguousarray(pack.section(name).astype(dtype))

    trie = Trie(
        section("trie_byte", np.uint8),
        section("trie_depth"),
        section("trie_end"),
        section("trie_token_start"),
        section("trie_order"),
    )
    longest = int(trie.depth.max(initial=0))
    tokens = TokenTrie(
        trie,
        section("token_blob", np.uint8),
        section("token_offsets"),
        section("suffix_of"),
        section("suffix_place"),
        section("suffix_end"),
        longest,
    )
    entries = dict(zip(tables.entry_names, tables.entry_controls.tolist(), strict=True))
    library = unflatten(tables.automaton, tables.frame_names, entries)
    return PreparedVocabulary(pack.vocab_size, tokens, library, tables, pack.digest)


def _build(vocabulary: Vocabulary, progress: Progress | None) -> bytes:
    log.info("building the vocabulary pack of %s", vocabulary.fingerprint[:12])
    special = {i: vocabulary.special_text(i) or "" for i in sorted(vocabulary.special_ids)}
    tokens = build_trie(vocabulary.tokens, special)
    frames = library_frames(WHITESPACE_BOUND, FORMATS)
    library, _ = cut_unspellable(specialise(explore_library(frames)), spellable_bytes(tokens))
    library = minimise(library)
    tables = build_pack_tables(library, tokens, vocabulary.size, progress, followed=followed_by(library))
    t = tokens.trie
    extra: dict[str, npt.NDArray[Any]] = {
        "trie_byte": t.byte,
        "trie_depth": t.depth,
        "trie_end": t.end,
        "trie_token_start": t.token_start,
        "trie_order": t.order,
        "suffix_of": tokens.suffix_of,
        "suffix_place": tokens.suffix_place,
        "suffix_end": tokens.suffix_end,
    }
    return write_pack(
        tables,
        vocabulary=VocabularyData(vocabulary.tokens, special, vocabulary.stop_token_ids),
        meta=PackMeta(vocabulary.fingerprint, COMPILER_VERSION, json.dumps(PACK_OPTIONS)),
        extra=extra,
    )


def _key(vocabulary: Vocabulary) -> str:
    stops = ",".join(map(str, vocabulary.stop_token_ids))
    text = f"{vocabulary.fingerprint}\n{build_id()}\n{WHITESPACE_BOUND}\n{stops}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read_cached(folder: Path, key: str) -> bytes | None:
    try:
        digest = (folder / f"{key}.digest").read_text()
        data = (folder / f"{digest}.mwpack").read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ArtifactError("file", 0, "its digest isn't its name")
        VocabularyPack.from_bytes(data)
    except (OSError, ValueError, ArtifactError) as problem:
        if not isinstance(problem, FileNotFoundError):
            log.warning("the cached pack can't be used: %s", problem)
        return None
    return data


def _write_whole(path: Path, data: bytes) -> None:
    """Visible complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
