"""The distinct mask rows of artifacts, with the stop tokens put in.

What `Matcher` does at each step is done once for each row: where the text may end the stop tokens' bits are set,
elsewhere those of stop tokens that are text are cleared. Equal rows are kept once, found by their bytes. The first
three are fixed: `NO_ROW` (so that no entry is 0), `STOP_ROW` (stop tokens alone: after a stop token) and `FREE_ROW`
(the whole vocabulary: a sequence without an artifact). A row of an artifact may be empty, too: where only a token goes
on that is a stop token.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import TablesRefused
from maskwright.workers.pack import VocabularyPack

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

NO_ROW, STOP_ROW, FREE_ROW = 0, 1, 2


class RowTable:
    """Rows of one pack, at most `max_bytes` of them."""

    def __init__(self, pack: VocabularyPack, stops: list[int], max_bytes: int) -> None:
        self._words, self._max_bytes = pack.words, max_bytes
        self._rows: list[U32] = []
        self._numbers: dict[bytes, int] = {}
        self._stops = _bitmask(stops, pack.words)
        self._hidden = self._stops & pack.text_words
        self._symbols = np.zeros(pack.words, np.uint32)
        everything = _bitmask(range(pack.vocab_size), pack.words)
        self._rows += [np.zeros(pack.words, np.uint32), self._stops, everything]

    def entries(self, artifact: Artifact) -> I64:
        """`Contexts.rows` with numbers of this table: 2 * row + may_end, 0 where there's none. Raises TablesRefused."""
        if artifact.has_specials:
            self._symbols = artifact.pack.special_words()
        stored, where = np.unique(artifact.contexts.rows, return_inverse=True)
        entries = [0 if value == 0 else self._entry(artifact, int(value)) for value in stored.tolist()]
        return np.array(entries, np.int64)[where]

    def _entry(self, artifact: Artifact, stored: int) -> int:
        row = np.empty(self._words, np.uint32)
        artifact.rows.fill(row.data, row, stored >> 1)
        row = row | self._stops if stored & 1 else row & ~self._hidden
        key = row.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._rows)
            self._rows.append(row)
            if 4 * self._words * len(self._rows) > self._max_bytes:
                raise TablesRefused("bytes", self._max_bytes, 4 * self._words * len(self._rows), artifact.digest)
        return 2 * number + (stored & 1)

    def array(self) -> U32:
        """[rows, words]"""
        return np.stack(self._rows)

    def union(self) -> U32:
        """The tokens that some row of an artifact holds and whose bytes are read, [words]."""
        held: U32 = np.bitwise_or.reduce(self._rows[FREE_ROW + 1 :], initial=0, dtype=np.uint32, axis=0)
        return held & ~(self._stops & ~self._symbols)


def _bitmask(tokens: object, words: int) -> U32:
    bits = np.zeros(32 * words, np.uint8)
    bits[np.array(list(tokens), np.int64)] = 1  # type: ignore[call-overload]
    return np.packbits(bits, bitorder="little").view(np.uint32)
