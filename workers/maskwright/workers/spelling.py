"""Which byte strings are tokens, for code that spells texts: jump-forward and the token budget.

Tokens are grouped by their first two bytes with one sort of numpy; a group's byte strings are made when they're
asked for. A text can be spelled by a token when some id with these bytes isn't used as a stop token. For code that
runs all tokens at once, their bytes are laid out by position.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.workers.fingerprint import SPECIAL, TEXT
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.specials import FIRST_MARK, LENGTH, spell_special

Group = tuple[dict[bytes, int], int]
"""Byte strings that share their first two bytes -> the lowest id, and the length of the longest."""


KEPT = 8
"""Sets of stop tokens that are text, per pack, and sets of bytes, per spelling; few are in use."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Some tokens, longest first. columns[p]: byte p of those that have one, uint8."""

    ids: npt.NDArray[np.int64]
    columns: tuple[npt.NDArray[np.uint8], ...]


class Spelling:
    """The tokens of a pack by their bytes. `without`: ids that don't count, since they're stop tokens. `specials`:
    special tokens count, by their symbols (specials.py), and text tokens with bytes that symbols are made of don't.
    The pack itself isn't kept.

    usable: 256 flags, whether some token is exactly that byte, or a symbol holds it. offsets, lengths: of all ids in
    `blob`. begin: where those that have bytes or a name are stored.
    by_length: text ids that count, longest first. widest: the length of the longest.
    """

    __slots__ = (
        "_alone", "_columns", "_counted", "_groups", "_ids", "_keys", "_stored", "_whole", "begin", "blob", "by_length",
        "lengths", "offsets", "usable", "widest",
    )  # fmt: skip

    def __init__(self, pack: VocabularyPack, without: frozenset[int] = frozenset(), specials: bool = False) -> None:
        flags = pack.section("token_flags")
        self.blob: npt.NDArray[np.uint8] = pack.section("token_blob")
        self.offsets: npt.NDArray[np.int64] = pack.section("token_offsets").astype(np.int64)
        self.lengths: npt.NDArray[np.int64] = np.diff(self.offsets)
        self.begin = self.offsets[:-1][self.lengths > 0]
        self._stored, self._whole = len(self.blob), self.lengths > 0
        self._counted: npt.NDArray[np.bool_] = flags == TEXT
        self._counted[sorted(without)] = False
        if specials:
            self._add_specials(flags)
        ids = np.flatnonzero(self._counted)
        self.widest = int(self.lengths[ids].max(initial=0))
        self.by_length = ids[np.argsort(-self.lengths[ids], kind="stable")]
        first = self.blob[self.offsets[ids]].astype(np.int64)
        long = self.lengths[ids] > 1
        second = np.zeros(len(ids), np.int64)
        second[long] = self.blob[self.offsets[ids[long]] + 1] + 1
        key = first * 257 + second
        order = np.argsort(key, kind="stable")
        self._ids, self._keys = ids[order], key[order]
        self._groups: dict[int, Group] = {}
        self._columns: dict[bytes, Columns] = {}
        single = np.zeros(256, np.uint8)
        single[first[~long]] = 1
        self._alone: bytes = single.tobytes()
        if specials:
            single[FIRST_MARK:] = 1
        self.usable: bytes = single.tobytes()

    def _add_specials(self, flags: npt.NDArray[np.uint8]) -> None:
        marked = np.zeros(len(flags), bool)
        marked[self._whole] = np.maximum.reduceat(self.blob, self.begin) >= FIRST_MARK
        self._counted &= ~marked
        ids = np.flatnonzero(flags == SPECIAL)
        symbols = b"".join(spell_special(token) for token in ids.tolist())
        self.offsets, self.lengths = self.offsets.copy(), self.lengths.copy()
        self.offsets[ids] = len(self.blob) + LENGTH * np.arange(len(ids))
        self.lengths[ids] = LENGTH
        self.blob = np.concatenate([self.blob, np.frombuffer(symbols, np.uint8)])
        self._counted[ids] = True

    def sort(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those that count, longest first."""
        counted = tokens[self._counted[tokens]]
        return counted[np.argsort(-self.lengths[counted], kind="stable")]

    def columns(self, stay: bytes) -> Columns:
        """The tokens that aren't wholly made of the bytes flagged in `stay` (256 flags), longest first, by columns. The
        last few are kept.
        """
        found = self._columns.get(stay)
        if found is None:
            stored = self.blob[: self._stored]
            leaves = np.zeros(len(self.lengths), bool)
            leaves[self._whole] = np.minimum.reduceat(np.frombuffer(stay, np.uint8)[stored], self.begin) == 0
            leaves |= self.offsets[:-1] >= self._stored  # symbols
            ids = self.by_length[leaves[self.by_length]]
            begin, lengths = self.offsets[ids], self.lengths[ids]
            longer = [int(np.searchsorted(-lengths, -p, "left")) for p in range(int(lengths.max(initial=0)))]
            while len(self._columns) >= KEPT:
                self._columns.pop(next(iter(self._columns)))
            found = Columns(ids, tuple([self.blob[begin[:n] + p] for p, n in enumerate(longer)]))
            self._columns[stay] = found
        return found

    def _group(self, first: int, second: int) -> Group:
        key = first * 257 + second
        group = self._groups.get(key)
        if group is None:
            start, end = np.searchsorted(self._keys, [key, key + 1])
            found: dict[bytes, int] = {}
            for token in self._ids[start:end].tolist():
                begin = self.offsets[token]
                found.setdefault(self.blob[begin : begin + self.lengths[token]].tobytes(), token)
            group = self._groups[key] = (found, max(map(len, found), default=0))
        return group

    def longest(self, text: bytes) -> int:
        """No token that begins with the first two bytes of `text` is longer."""
        return max(self._group(text[0], text[1] + 1)[1], 1) if len(text) > 1 else 1

    def token(self, text: bytes) -> int | None:
        """The lowest id of the token that is exactly `text`."""
        return self._group(text[0], text[1] + 1 if len(text) > 1 else 0)[0].get(text)

    def prefixes(self, text: bytes) -> Iterator[int]:
        """Lengths of the prefixes of `text` that are tokens, ascending."""
        if text and self._alone[text[0]]:
            yield 1
        if len(text) > 1:
            found, longest = self._group(text[0], text[1] + 1)
            for n in range(2, min(longest, len(text)) + 1):
                if text[:n] in found:
                    yield n

    def beginning_with(self, text: bytes) -> Iterator[bytes]:
        """The tokens longer than `text` that begin with it; `text` isn't empty."""
        seconds = range(1, 257) if len(text) == 1 else (text[1] + 1,)
        for second in seconds:
            for token in self._group(text[0], second)[0]:
                if len(token) > len(text) and token.startswith(text):
                    yield token


_made: weakref.WeakKeyDictionary[VocabularyPack, dict[tuple[frozenset[int], bool], Spelling]] = (
    weakref.WeakKeyDictionary()
)
_making = threading.Lock()


def spelling(pack: VocabularyPack, without: frozenset[int] = frozenset(), specials: bool = False) -> Spelling:
    """Made on first use, about 20 ms for 128k tokens, and kept with the pack."""
    with _making:
        of_pack = _made.setdefault(pack, {})
        found = of_pack.get((without, specials))
        if found is None:
            while len(of_pack) >= KEPT:
                of_pack.pop(next(iter(of_pack)))
            found = of_pack[without, specials] = Spelling(pack, without, specials)
        return found
