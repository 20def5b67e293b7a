"""The artifact: one source's automaton and masks, on top of its vocabulary pack.

Checks, in order: the container's, kind, pack and vocabulary (WrongVocabulary), the automaton (counts, ranges,
frames of moves, actions and returns), the mask rows, the contexts, the start. While loading, rows of moves are made
if they're few (machine.py); dense mask rows and ways (ways.py) come with use. What an artifact says never changes, and
it may be shared between threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from maskwright.workers.compose import Composer
from maskwright.workers.container import Buffer, Container, read_container
from maskwright.workers.errors import ArtifactError, PackNotFound, WrongVocabulary
from maskwright.workers.lazy import LazyContexts, read_factors
from maskwright.workers.machine import Machine
from maskwright.workers.pack import VocabularyPack, header_text, read_identity
from maskwright.workers.rows import RowPool
from maskwright.workers.specials import LAZY_CONTEXTS, SPECIAL_TOKENS
from maskwright.workers.tables import Automaton, Contexts, held_bytes, read_automaton, read_contexts, read_rows
from maskwright.workers.ways import Ways


class Artifact:
    """A checked artifact, ready for `Matcher`.

    digest: SHA-256 of the file, hex. vocab_size: the highest token id + 1. header: the file's JSON header
    (source, options, vocabulary, pack, compiler). pack: the vocabulary pack it runs on. has_specials: special tokens
    are symbols of its automaton.
    """

    __slots__ = (
        "__weakref__", "_container", "automaton", "context_frame", "context_push", "context_rows", "contexts",
        "digest", "empty_entries", "has_specials", "header", "lazy", "machine", "pack", "push_offset", "row_offset",
        "rows", "start", "vocab_size", "ways",
    )  # fmt: skip

    def __init__(self, container: Container, pack: VocabularyPack) -> None:
        _check_pack(container, pack)
        _check_origin(container)
        self._container, self.pack = container, pack
        self.header, self.digest = container.header, container.digest
        self.vocab_size = pack.vocab_size
        self.automaton: Automaton = read_automaton(container, pack.automaton)
        self.has_specials = bool(container.required_features & SPECIAL_TOKENS)
        held = pack.text_words | pack.special_words() if self.has_specials else pack.text_words
        rows = read_rows(container, pack.rows.n_rows, held)
        self.contexts: Contexts = read_contexts(container, self.automaton, rows.n_rows, pack.residuals)
        self.start: int = _read_start(container, self.automaton, self.contexts)
        self.machine = Machine(self.automaton, pack.machine)
        self.lazy = self._read_lazy(rows.n_rows)
        self.rows = RowPool(rows, pack.words, pack.rows, self.lazy or Composer(self.contexts, pack))
        self.row_offset: list[int] = self.contexts.row_offset.tolist()
        self.push_offset: list[int] = self.contexts.push_offset.tolist()
        self.context_rows: Sequence[int] = self.contexts.rows.data
        self.context_push: Sequence[int] = self.contexts.push.data
        self.context_frame: Sequence[int] = self.contexts.frame.tolist()
        controls = pack.automaton.all_frame_controls.data
        for frame in set(self.context_frame):
            if frame < pack.automaton.n_frames:
                self.machine.share(controls[frame], controls[frame + 1])
        if self.lazy is not None:
            self.lazy.bind(self.rows)
            self.row_offset, self.push_offset = self.lazy.row_offset, self.lazy.push_offset
            self.context_rows, self.context_push = self.lazy.rows, self.lazy.pushes
            self.context_frame = self.lazy.frames
        self.ways = Ways()
        # Entries of rows without a token, where the text can't end either: no compiler makes them.
        bare = ((rows.base == 0) & (rows.patch_start[1:] == rows.patch_start[:-1])).nonzero()[0]
        self.empty_entries: frozenset[int] = frozenset([0, *(2 * (bare + rows.first_row + 1)).tolist()])

    def _read_lazy(self, n_rows: int) -> LazyContexts | None:
        if not self._container.required_features & LAZY_CONTEXTS:
            return None
        first, root = self.pack.automaton.n_frames, int(self.contexts.frame[0])
        factors = read_factors(self._container, self.automaton, first, n_rows, root)
        return LazyContexts(factors, self.automaton, root, n_rows + 1)

    def enter(self, context: int, symbol: int) -> int:
        """The context of a symbol's callee where `context_push` has none yet; -1: there is none."""
        return -1 if self.lazy is None else self.lazy.enter(context, symbol)

    def entry(self, context: int, control: int) -> int:
        """A control's row entry in a context, as in `context_rows`, made where it isn't there yet; 0: never there."""
        entry = self.context_rows[self.row_offset[context] + control]
        return entry if entry or self.lazy is None else self.lazy.entry(context, control)

    @classmethod
    def from_bytes(cls, data: Buffer, pack: VocabularyPack) -> Artifact:
        """An artifact from the bytes of its file. Raises ArtifactError, WrongVocabulary."""
        return cls(read_container(data if isinstance(data, bytes) else bytes(data)), pack)

    @classmethod
    def load(cls, path: str | os.PathLike[str], pack: VocabularyPack | None = None) -> Artifact:
        """An artifact from its file.

        Without `pack` the pack is looked for by its digest: `<digest>.mwpack` beside the file, then in the
        cache directory (`$MASKWRIGHT_CACHE`, else `~/.cache/maskwright`) under `packs`. Raises ArtifactError,
        WrongVocabulary, PackNotFound, OSError.
        """
        path = Path(path)
        container = read_container(path.read_bytes())
        return cls(container, find_pack(container, path.parent) if pack is None else pack)

    @property
    def memory_size_bytes(self) -> int:
        """Memory that this artifact holds now, the pack apart: file, tables, lookup lists and the rows made so
        far. An estimate.
        """
        tables = held_bytes(self.automaton) + held_bytes(self.contexts)
        lists = 40 * (len(self.row_offset) + len(self.push_offset) + len(self.context_frame))
        made = self.machine.memory() + self.rows.memory() + self.ways.memory()
        return len(self._container.buffer) + tables + lists + made

    def frame_name(self, frame: int) -> tuple[str, str]:
        """A frame's name, and the pointer to the source that it comes from. Raises ArtifactError."""
        own = frame - self.pack.automaton.n_frames
        if own < 0:
            return _frame_name(self.pack.json_section("frame_names"), frame)
        return _frame_name(self._container.json("frame_names"), own)

    def section_sizes(self) -> list[tuple[str, int, int]]:
        """(name, bytes stored, bytes inflated) of each section, in the file's order."""
        return [(s.name, s.stored, s.raw) for s in self._container.sections.values()]

    def __repr__(self) -> str:
        return f"Artifact({self.digest[:12]}, {self.vocab_size} tokens)"


def _check_pack(container: Container, pack: VocabularyPack) -> None:
    fingerprint, digest = read_identity(container, "artifact"), header_text(container, "pack")
    if fingerprint != pack.fingerprint:
        raise WrongVocabulary("vocabulary", fingerprint, pack.fingerprint)
    if digest != pack.digest:
        raise WrongVocabulary("pack", digest, pack.digest)


def _check_origin(container: Container) -> None:
    """What the header tells about the source is for people and caches: only its form is checked."""
    source = container.header.get("source")
    if not isinstance(source, dict) or not all(isinstance(source.get(k), str) for k in ("kind", "digest")):
        raise ArtifactError("header", None, "'source' has no kind and digest")
    if not isinstance(container.header.get("options"), dict):
        raise ArtifactError("header", None, "'options' isn't an object")
    header_text(container, "compiler")


def _read_start(container: Container, automaton: Automaton, contexts: Contexts) -> int:
    start: Any = container.header.get("start")
    if type(start) is not int or not 0 <= start < automaton.n_controls:
        raise ArtifactError("header", None, "the start is no control")
    if automaton.frame_of(start) != contexts.frame[0]:
        raise ArtifactError("header", None, "the start isn't in the first context's frame")
    return start


def _frame_name(names: Any, number: int) -> tuple[str, str]:
    if not isinstance(names, list) or number >= len(names):
        raise ArtifactError("frame_names", None, f"has no entry {number}")
    entry = names[number]
    if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(x, str) for x in entry):
        raise ArtifactError("frame_names", None, f"entry {number} isn't a name and a pointer")
    return entry[0], entry[1]


def cache_directory() -> Path:
    """Where packs and artifacts are cached: `$MASKWRIGHT_CACHE`, else `~/.cache/maskwright`."""
    named = os.environ.get("MASKWRIGHT_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "maskwright"


def _pack_paths(digest: str, beside: Path) -> Iterator[Path]:
    yield beside / f"{digest}.mwpack"
    yield cache_directory() / "packs" / f"{digest}.mwpack"


def find_pack(container: Container, beside: Path) -> VocabularyPack:
    """The pack that an artifact names, from `beside` or the cache directory. Raises PackNotFound,
    ArtifactError.
    """
    digest = header_text(container, "pack")
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ArtifactError("header", None, "the pack's digest isn't 64 hexadecimal digits")
    paths = tuple(_pack_paths(digest, beside))
    for path in paths:
        if path.is_file():
            return VocabularyPack.load(path)
    raise PackNotFound(digest, tuple(map(str, paths)))
