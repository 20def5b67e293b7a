"""The vocabulary pack: the token table and what every artifact of one vocabulary shares.

A pack is made once for a vocabulary by the compiler. The worker reads the token table, the shared frames and
their mask rows; other sections (the compiler's token trie, suffix table and walks) are passed through by
`section` and not looked at here.

Checks, in order: the container's, kind and identity, the token table (offsets ascend and cover the bytes,
flags known, stop ids in range), the shared automaton, the rows, the entries. Loading from a path maps the
file: sections stored raw are views of the map. Packs are immutable and may be shared between threads.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.workers.container import Array, Buffer, Container, read_container
from maskwright.workers.errors import ArtifactError
from maskwright.workers.fingerprint import SPECIAL, TEXT, UNUSED, table_fingerprint
from maskwright.workers.machine import Machine
from maskwright.workers.rows import RowPool
from maskwright.workers.specials import spell_special
from maskwright.workers.tables import (
    Automaton,
    Residuals,
    empty_automaton,
    read_automaton,
    read_residuals,
    read_rows,
)

MAX_VOCABULARY = 1 << 22
MAX_STOPS = 256
MOST_STOP_SETS = 64
"""Sets of stop tokens that are remembered."""

_loaded: weakref.WeakValueDictionary[tuple[Any, ...], VocabularyPack] = weakref.WeakValueDictionary()
_loading = threading.Lock()


class Stops(NamedTuple):
    """What matchers want to know of their stop tokens. text: those that are text tokens too. bits: (word, bit) of each
    in a bitmask.
    """

    ids: frozenset[int]
    text: frozenset[int]
    bits: list[tuple[int, int]]


class VocabularyPack:
    """A checked vocabulary pack.

    fingerprint: of the whole token table, hex. digest: SHA-256 of the file, hex; artifacts name their pack by
    it. vocab_size: the highest token id + 1. stop_token_ids: the vocabulary's own. header: the file's JSON
    header.
    """

    __slots__ = (
        "__weakref__", "_blob", "_container", "_flags", "_offsets", "_places", "automaton", "control_row",
        "digest", "fingerprint", "header", "machine", "residuals", "rows", "stop_token_ids", "stops_cache",
        "text_words", "token_cache", "vocab_size",
    )  # fmt: skip

    def __init__(self, container: Container) -> None:
        self._container = container
        self.header, self.digest = container.header, container.digest
        self.fingerprint = read_identity(container, "pack")
        self._offsets, self._blob, self._flags = _read_tokens(container)
        _check_fingerprint(container, self.fingerprint, self._offsets, self._blob, self._flags)
        self._places = self._offsets.data
        self.vocab_size = len(self._flags)
        self.token_cache: list[bytes | None] = [None] * self.vocab_size
        self.stop_token_ids: tuple[int, ...] = _read_stop_ids(container, self.vocab_size)
        self.automaton: Automaton = read_automaton(container, empty_automaton())
        self.machine = Machine(self.automaton, None)
        self.text_words: npt.NDArray[np.uint32] = _flag_words(self._flags, TEXT, self.words)
        rows = read_rows(container, 0, self.text_words)
        self.rows = RowPool(rows, self.words, None)
        _check_ids(container, "control_row", self.automaton.n_controls, rows.n_rows)
        self.control_row = container.array("control_row")
        self.residuals: Residuals = read_residuals(container, self.automaton, self.vocab_size)
        self.stops_cache: dict[tuple[int, ...], Stops] = {}
        _check_ids(container, "entry_controls", None, self.automaton.n_controls)

    @classmethod
    def from_bytes(cls, data: Buffer) -> VocabularyPack:
        """A pack from the bytes of its file. Raises ArtifactError."""
        return cls(read_container(data if isinstance(data, bytes) else bytes(data)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VocabularyPack:
        """A pack from its file, which is mapped, not copied. A pack that's still in use isn't loaded again.

        The file must not be changed in place while the pack lives; files named by their digest never are.
        Raises ArtifactError, OSError.
        """
        with Path(path).open("rb") as file:
            stat = os.fstat(file.fileno())
            key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            with _loading:
                pack = _loaded.get(key)
                if pack is None:
                    if not stat.st_size:
                        raise ArtifactError("preamble", 0, "the file is empty")
                    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    pack = _loaded[key] = cls(read_container(memoryview(view)))
        return pack

    @property
    def words(self) -> int:
        """32-bit words of a bitmask row."""
        return (self.vocab_size + 31) // 32

    def section(self, name: str) -> Array:
        """A section as a read-only array, as it was written. Raises ArtifactError when there is none."""
        return self._container.array(name)

    def json_section(self, name: str) -> Any:
        """A section of JSON text as its value. Raises ArtifactError."""
        return self._container.json(name)

    def section_names(self) -> tuple[str, ...]:
        """All sections, in the file's order."""
        return tuple(self._container.sections)

    def token_bytes(self, token: int) -> bytes | None:
        """A text token's bytes; None for a special or unused id, and outside the vocabulary."""
        if not 0 <= token < self.vocab_size or self._flags[token] != TEXT:
            return None
        return self.text_bytes(token)

    def special_words(self) -> npt.NDArray[np.uint32]:
        """The bitmask of all special tokens, [words]."""
        return _flag_words(self._flags, SPECIAL, self.words)

    def special_text(self, token: int) -> str | None:
        """A special token's name; None for others."""
        if not 0 <= token < self.vocab_size or self._flags[token] != SPECIAL:
            return None
        return bytes(self._blob[self._places[token] : self._places[token + 1]]).decode(errors="replace")

    def text_bytes(self, token: int) -> bytes:
        """A text token's bytes, or a special token's symbol (specials.py), kept after the first call; the caller knows
        that it's one of them."""
        cached = self.token_cache[token]
        if cached is None:
            cached = bytes(self._blob[self._places[token] : self._places[token + 1]])
            if self._flags[token] == SPECIAL:
                cached = spell_special(token)
            self.token_cache[token] = cached
        return cached

    def stops(self, ids: tuple[int, ...]) -> Stops:
        """Of some stop tokens, remembered for the sets that are in use. Raises ValueError for ids outside the
        vocabulary.
        """
        found = self.stops_cache.get(ids)
        if found is None:
            if any(not 0 <= token < self.vocab_size for token in ids):
                raise ValueError(f"stop_token_ids {ids} aren't all ids below {self.vocab_size}")
            text = frozenset(token for token in ids if self.token_bytes(token) is not None)
            found = Stops(frozenset(ids), text, [(token >> 5, 1 << (token & 31)) for token in sorted(set(ids))])
            if len(self.stops_cache) >= MOST_STOP_SETS:
                self.stops_cache = {}
            self.stops_cache[ids] = found
        return found

    def __repr__(self) -> str:
        return f"VocabularyPack({self.digest[:12]}, {self.vocab_size} tokens)"


def read_identity(container: Container, kind: str) -> str:
    """Checks a header's kind and returns its vocabulary fingerprint. Raises ArtifactError."""
    if container.header.get("kind") != kind:
        raise ArtifactError(
            "header", None, f"kind {str(container.header.get('kind'))[:32]!r} where {kind!r} is expected"
        )
    return header_text(container, "vocabulary")


def header_text(container: Container, name: str) -> str:
    """A string of the header. Raises ArtifactError when it isn't there."""
    value = container.header.get(name)
    if not isinstance(value, str):
        raise ArtifactError("header", None, f"{name!r} isn't a string")
    return value


def _read_tokens(container: Container) -> tuple[Array, memoryview, Array]:
    flags, offsets = container.array("token_flags"), container.array("token_offsets")
    blob = container.array("token_blob")
    if flags.dtype != np.uint8 or blob.dtype != np.uint8 or offsets.dtype != np.uint32:
        raise ArtifactError("token_flags", container.offset("token_flags"), "the token table has wrong dtypes")
    if not 0 < len(flags) <= MAX_VOCABULARY or int(flags.max()) > SPECIAL:
        raise ArtifactError(
            "token_flags", container.offset("token_flags"), "an unknown flag, or too few or too many tokens"
        )
    where = container.offset("token_offsets")
    if len(offsets) != len(flags) + 1 or offsets[0] != 0 or offsets[-1] != len(blob):
        raise ArtifactError("token_offsets", where, "doesn't cover the token bytes")
    if (offsets[1:] < offsets[:-1]).any():
        raise ArtifactError("token_offsets", where, "isn't ascending")
    empty = offsets[1:] == offsets[:-1]
    if (empty & (flags == TEXT)).any() or (~empty & (flags == UNUSED)).any():
        raise ArtifactError("token_offsets", where, "a text token has no bytes, or an unused id has some")
    return offsets, blob.data, flags


def _check_fingerprint(container: Container, stated: str, offsets: Array, blob: memoryview, flags: Array) -> None:
    found = table_fingerprint(flags, offsets[1:] - offsets[:-1], blob)
    if found != stated:
        raise ArtifactError("header", None, f"the token table's fingerprint is {found}, not {stated[:64]}")


def _flag_words(flags: Array, flag: int, words: int) -> npt.NDArray[np.uint32]:
    """The bitmask of all tokens with a flag, [words]."""
    bits = np.zeros(32 * words, np.uint8)
    bits[: len(flags)] = flags == flag
    return np.packbits(bits, bitorder="little").view(np.uint32)


def _read_stop_ids(container: Container, vocab_size: int) -> tuple[int, ...]:
    ids = container.array("stop_ids")
    if len(ids) > MAX_STOPS or any(not 0 <= i < vocab_size for i in ids.tolist()):
        raise ArtifactError("stop_ids", container.offset("stop_ids"), "too many, or outside the vocabulary")
    return tuple(ids.tolist())


def _check_ids(container: Container, name: str, length: int | None, below: int) -> None:
    ids = container.array(name)
    if ids.dtype.kind != "u" or (length is not None and len(ids) != length) or (len(ids) and int(ids.max()) >= below):
        raise ArtifactError(name, container.offset(name), f"isn't {'' if length is None else length} ids below {below}")
