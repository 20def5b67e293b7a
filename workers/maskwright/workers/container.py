"""The container that artifacts and vocabulary packs share: preamble, JSON header, aligned sections, checksum.

The format is `compiler/artifact/FORMAT.md`; this file is its reader and writer. A file is

    preamble   32 bytes: magic, major, minor, header length, required and optional feature bits
    header     JSON, at most `MAX_HEADER` bytes, with the section table
    sections   each begins at a multiple of 64, in the table's order, zero bytes between them
    trailer    SHA-256 of everything before it

A file's digest, its name, is SHA-256 over the whole file. The order of the reader's checks, each before
anything relies on it: length, magic, version, features, header length, checksum, header JSON, section table
(order, bounds, cover, padding), and for each section when it's read its codec and length. Cost: one pass of
SHA-256, and memory for the sections that are compressed. What sections mean isn't known here. Machines
that aren't little-endian aren't supported.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.workers.errors import ArtifactError
from maskwright.workers.specials import LAZY_CONTEXTS, SPECIAL_TOKENS

MAGIC = b"\x89MWA\r\n\x1a\n"
MAJOR, MINOR = 1, 0
REQUIRED_FEATURES = SPECIAL_TOKENS | LAZY_CONTEXTS
"""The required feature bits that this reader knows."""
PREAMBLE = struct.Struct("<8sHHIQQ")
ALIGN = 64
_PADDING = [bytes(n) for n in range(ALIGN)]
TRAILER = 32
MAX_HEADER = 1 << 18
MAX_SECTIONS = 256
MAX_INFLATED = 1 << 25
"""Bytes that all compressed sections of a file may declare together."""

DTYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "u8": np.uint64, "i4": np.int32}
_KINDS = {name: np.dtype(kind) for name, kind in DTYPES.items()}
_ITEM_BYTES = {name: kind.itemsize for name, kind in _KINDS.items()}
_ROW = (str, int, int, int, str, str)
_CODECS = frozenset(["raw", "zlib"])
_NAME = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_COMPRESS_FROM, _WORTH = 2048, 0.5
"""Inflating costs some 10 us, and 10 to 20 ns for each byte stored. Against compressing whatever shrinks, the
median artifact is a quarter larger and loads 8% faster, at p90 14% faster.
"""
LEVEL = 6
"""Of zlib: 9 takes seven times as long for 5% less."""

if sys.byteorder != "little":
    raise ImportError("masks and files are little-endian, and so must be the machine")

Buffer = bytes | bytearray | memoryview
Array = npt.NDArray[Any]


class Section(NamedTuple):
    """One row of the section table: bytes `offset .. offset + stored` of the file; `raw` is the length once
    inflated.
    """

    name: str
    offset: int
    stored: int
    raw: int
    codec: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Container:
    """A file whose preamble, checksum, header and section table have been checked."""

    buffer: memoryview
    header: Mapping[str, Any]
    sections: Mapping[str, Section]
    digest: str
    minor: int
    optional_features: int
    required_features: int = 0

    def offset(self, name: str) -> int | None:
        """Where a section begins, for error messages."""
        return self.sections[name].offset if name in self.sections else None

    def section(self, name: str) -> Section:
        """A section's row of the table. Raises ArtifactError when the section is missing."""
        section = self.sections.get(name)
        if section is None:
            raise ArtifactError(name, None, "the section is missing")
        return section

    def array(self, name: str) -> Array:
        """A section as a read-only one-dimensional array: a view of the file where it's stored raw.

        Raises ArtifactError when the section is missing or its compressed bytes don't hold what the table
        says.
        """
        section = self.section(name)
        # A native dtype, not "<": memoryviews index only native formats.
        kind = _KINDS[section.dtype]
        if section.codec == "raw":
            return np.frombuffer(self.buffer, kind, section.raw // kind.itemsize, section.offset)
        return np.frombuffer(_inflate(section, self.buffer[section.offset : section.offset + section.stored]), kind)

    def json(self, name: str) -> Any:
        """A section of dtype u1 as JSON. Raises ArtifactError when it isn't."""
        return parse_json(self.array(name).tobytes(), name, self.offset(name))


def _inflate(section: Section, data: memoryview) -> bytes:
    engine = zlib.decompressobj()
    try:
        # One byte of room beyond the declared length: the stream's end is seen, and a longer stream shows.
        out = engine.decompress(data, section.raw + 1)
    except zlib.error as error:
        raise ArtifactError(section.name, section.offset, f"not zlib data: {error}") from None
    if len(out) != section.raw or not engine.eof or engine.unused_data:
        raise ArtifactError(section.name, section.offset, f"doesn't inflate to the {section.raw} bytes declared")
    return out


# -- reading -------------------------------------------------------------------------------------------------


def read_container(data: Buffer) -> Container:
    """Checks a file up to its section table. `data` is kept, not copied. Raises ArtifactError."""
    buffer = memoryview(data).toreadonly().cast("B")
    minor, optional, required, header_end = _read_preamble(buffer)
    digest = _read_trailer(buffer)
    header = parse_json(bytes(buffer[PREAMBLE.size : header_end]), "header", PREAMBLE.size)
    if not isinstance(header, dict):
        raise ArtifactError("header", PREAMBLE.size, "isn't a JSON object")
    sections = _read_table(buffer, header, header_end)
    return Container(buffer, header, sections, digest, minor, optional, required)


def _read_preamble(buffer: memoryview) -> tuple[int, int, int, int]:
    if len(buffer) < PREAMBLE.size + TRAILER:
        raise ArtifactError("preamble", 0, f"the file has {len(buffer)} bytes, too few")
    magic, major, minor, length, required, optional = PREAMBLE.unpack_from(buffer)
    if magic != MAGIC:
        raise ArtifactError("preamble", 0, "not a Maskwright file")
    if major != MAJOR:
        raise ArtifactError("preamble", 8, f"format version {major}.{minor}; this reader knows {MAJOR}")
    if required & ~REQUIRED_FEATURES:
        raise ArtifactError(
            "preamble", 16, f"needs features that this reader lacks: bits {required & ~REQUIRED_FEATURES:#x}"
        )
    if length > MAX_HEADER or PREAMBLE.size + length + TRAILER > len(buffer):
        raise ArtifactError("preamble", 12, f"a header of {length} bytes doesn't fit")
    return minor, optional, required, PREAMBLE.size + length


def _read_trailer(buffer: memoryview) -> str:
    body, trailer = buffer[:-TRAILER], buffer[-TRAILER:]
    state = hashlib.sha256(body)
    if state.digest() != trailer:
        raise ArtifactError("trailer", len(body), "the checksum doesn't match")
    state.update(trailer)
    return state.hexdigest()


def parse_json(data: bytes, section: str, offset: int | None) -> Any:
    """JSON in UTF-8 without repeated keys or constants beyond the standard; anything else raises
    ArtifactError.
    """
    try:
        return _DECODER.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise ArtifactError(section, offset, f"not acceptable JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key is repeated")
    return out


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} isn't JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _read_table(buffer: memoryview, header: Mapping[str, Any], header_end: int) -> dict[str, Section]:
    rows = header.get("sections")
    if not isinstance(rows, list) or len(rows) > MAX_SECTIONS:
        raise ArtifactError("header", PREAMBLE.size, f"has no section table, or one of more than {MAX_SECTIONS}")
    out: dict[str, Section] = {}
    end, inflated, limit = header_end, 0, len(buffer) - TRAILER
    for section in map(Section._make if _are_rows(rows) else _read_row, rows):
        name, begin, stored, raw, codec, _ = section
        if name in out:
            raise ArtifactError(name, begin, "the section is there twice")
        padding = -end % ALIGN
        if begin != end + padding:
            raise ArtifactError(name, begin, f"should begin at {end + padding}")
        if begin + stored > limit:
            raise ArtifactError(name, begin, f"{stored} bytes reach beyond the file")
        if padding and buffer[end:begin].tobytes() != _PADDING[padding]:
            raise ArtifactError(name, end, "the padding before it isn't zero")
        end = begin + stored
        if codec == "zlib":
            inflated += raw
        out[name] = section
    if end != limit:
        raise ArtifactError("trailer", limit, f"sections end at {end}, the trailer begins at {limit}")
    if inflated > MAX_INFLATED:
        raise ArtifactError("header", PREAMBLE.size, f"sections inflate to {inflated} bytes, more than {MAX_INFLATED}")
    return out


@functools.lru_cache(256)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _are_rows(rows: list[Any]) -> bool:
    """Whether `_read_row` accepts every row: the same rules, a column at a time."""
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {len(_ROW)}:
        return False
    names, offsets, stored, raw, codecs, dtypes = zip(*rows, strict=True)
    if any(set(map(type, column)) != {int} for column in (offsets, stored, raw)):
        return False
    if any(set(map(type, column)) != {str} for column in (names, codecs, dtypes)):
        return False
    if not all(map(_is_name, names)) or not _CODECS.issuperset(codecs) or not _ITEM_BYTES.keys() >= set(dtypes):
        return False
    if min(*offsets, *stored, *raw) < 0 or any(map(operator.mod, raw, map(_ITEM_BYTES.__getitem__, dtypes))):
        return False
    return all(codec == "zlib" or n == m for codec, n, m in zip(codecs, stored, raw, strict=True))


def _read_row(row: Any) -> Section:
    if type(row) is not list or tuple(map(type, row)) != _ROW:
        raise ArtifactError("header", PREAMBLE.size, "a row of the section table has a wrong form")
    section = Section._make(row)
    name, offset, stored, raw, codec, dtype = section
    if not _is_name(name):
        raise ArtifactError("header", PREAMBLE.size, "a section has an unacceptable name")
    item = _ITEM_BYTES.get(dtype)
    if item is None or codec not in _CODECS:
        raise ArtifactError(name, None, f"unknown codec {codec[:16]!r} or dtype {dtype[:16]!r}")
    if offset < 0 or stored < 0 or raw < 0:
        raise ArtifactError(name, None, "a negative offset or length")
    if codec == "raw" and raw != stored:
        raise ArtifactError(name, None, "stored raw, but its two lengths differ")
    if raw % item:
        raise ArtifactError(name, None, f"{raw} bytes aren't a whole number of {dtype}")
    return section


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


# -- writing -------------------------------------------------------------------------------------------------


def write_container(
    header: Mapping[str, Any], sections: Iterable[tuple[str, Array]], *, compress: bool, required: int = 0
) -> bytes:
    """A file with these sections, in this order. The same arguments give the same bytes.

    header: JSON values, without "sections". sections: one-dimensional arrays of a dtype in `DTYPES`. With
    `compress`, a section of more than 2,048 bytes is stored by zlib where that saves more than half. Raises
    ValueError for what can't be written.
    """
    parts: list[tuple[str, bytes, int, str, str]] = []
    for name, array in sections:
        code = f"{array.dtype.kind}{array.dtype.itemsize}"
        if not _NAME.fullmatch(name) or array.ndim != 1 or code not in DTYPES:
            raise ValueError(f"section {name!r} of {array.dtype} with {array.ndim} dimensions can't be written")
        raw = np.ascontiguousarray(array).tobytes()
        stored, codec = _deflate(raw) if compress else (raw, "raw")
        parts.append((name, stored, len(raw), codec, code))
    if len({name for name, *_ in parts}) != len(parts) or len(parts) > MAX_SECTIONS:
        raise ValueError("section names repeat, or there are too many")
    return _assemble(dict(header), parts, required)


def _deflate(raw: bytes) -> tuple[bytes, str]:
    if len(raw) > _COMPRESS_FROM:
        packed = zlib.compress(raw, LEVEL)
        if len(packed) < _WORTH * len(raw):
            return packed, "zlib"
    return raw, "raw"


def _assemble(header: dict[str, Any], parts: list[tuple[str, bytes, int, str, str]], required: int) -> bytes:
    # Offsets depend on the header's length and stand in the header: repeat until it stays, growing only.
    length = 0
    while True:
        end, rows, gaps = PREAMBLE.size + length, [], []
        for name, stored, raw, codec, code in parts:
            offset = _aligned(end)
            gaps.append(offset - end)
            rows.append([name, offset, len(stored), raw, codec, code])
            end = offset + len(stored)
        text = json.dumps({**header, "sections": rows}, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        if len(text) <= length:
            break
        length = len(text)
    text = text.ljust(length)
    if length > MAX_HEADER:
        raise ValueError(f"the header has {length} bytes, more than {MAX_HEADER}")
    out = bytearray(PREAMBLE.pack(MAGIC, MAJOR, MINOR, length, required, 0))
    out += text
    for (_, stored, *_), gap in zip(parts, gaps, strict=True):
        out += bytes(gap)
        out += stored
    return bytes(out + hashlib.sha256(out).digest())


def file_digest(data: Buffer) -> str:
    """The name of a file: SHA-256 over all of it, in hex."""
    return hashlib.sha256(data).hexdigest()


def narrow(array: Array) -> Array:
    """The same non-negative values in the smallest of u1, u2, u4 that holds them. Raises ValueError when none
    does.
    """
    top = int(array.max()) if array.size else 0
    if top >= 1 << 32 or (array.size and int(array.min()) < 0):
        raise ValueError("a value doesn't fit into 32 bits")
    return array.astype(np.uint8 if top < 1 << 8 else np.uint16 if top < 1 << 16 else np.uint32)
