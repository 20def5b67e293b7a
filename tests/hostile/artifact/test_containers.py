"""Files that break the container: every one is refused with a typed error, in bounded time and memory."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from typing import Any

import pytest
from damage import put_together, raw_file, resign, take_apart, with_header
from hypothesis import given
from hypothesis import strategies as st
from toy import toy

from maskwright.workers import Artifact, ArtifactError, VocabularyPack, WrongVocabulary, container
from maskwright.workers.container import MAX_HEADER, MAX_INFLATED, MAX_SECTIONS, read_container


@pytest.fixture(scope="module")
def pack() -> VocabularyPack:
    return VocabularyPack.from_bytes(toy().pack)


def refuse(data: bytes, section: str, reason: str) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        read_container(data)
    assert caught.value.section == section, str(caught.value)
    assert reason in caught.value.reason, str(caught.value)
    return caught.value


def test_every_truncation_is_refused() -> None:
    data = toy().artifact
    for n in range(len(data)):
        with pytest.raises(ArtifactError):
            read_container(data[:n])
        with pytest.raises(ArtifactError):
            read_container(resign(data[:n]) if n >= 32 else data[:n])


def test_truncated_packs_are_refused() -> None:
    data = toy().pack
    for n in [*range(200), *range(200, len(data), 4999), len(data) - 1]:
        with pytest.raises(ArtifactError):
            VocabularyPack.from_bytes(data[:n])


def test_every_flipped_bit_breaks_the_checksum() -> None:
    data = toy().artifact
    for i in range(len(data)):
        damaged = bytearray(data)
        damaged[i] ^= 1 << i % 8
        with pytest.raises(ArtifactError):
            read_container(bytes(damaged))


def test_bytes_after_the_end_are_refused() -> None:
    refuse(toy().artifact + b"\0", "trailer", "checksum")
    refuse(resign(toy().artifact + bytes(64)), "trailer", "sections end")


def preamble(**changes: int) -> bytes:
    fields = {"major": 1, "minor": 0, "length": None, "required": 0, "optional": 0} | changes
    data = toy().artifact
    length = struct.unpack_from("<I", data, 12)[0] if fields["length"] is None else fields["length"]
    numbers = (fields["major"], fields["minor"], length, fields["required"], fields["optional"])
    return resign(struct.pack("<8sHHIQQ", data[:8], *numbers) + data[32:])  # type: ignore[arg-type]


def test_versions_and_features() -> None:
    for major in (0, 2, 65535):
        assert refuse(preamble(major=major), "preamble", "format version").offset == 8
    for bit in (2, 3, 63):
        assert refuse(preamble(required=1 << bit), "preamble", "features").offset == 16
    # A newer minor version and unknown optional features are readable: that's their meaning.
    for data in (preamble(minor=7), preamble(optional=1 << 40)):
        assert read_container(data).header["kind"] == "artifact"


def test_header_lengths() -> None:
    for length in (len(toy().artifact), MAX_HEADER + 1, (1 << 32) - 1):
        assert refuse(preamble(length=length), "preamble", "doesn't fit").offset == 12
    refuse(preamble(length=0), "header", "JSON")
    refuse(preamble(length=100), "header", "JSON")


def test_another_magic() -> None:
    for head in (b"PK\x03\x04----", b"\x89MWA\n\x1a\n\n", bytes(8)):
        refuse(resign(head + toy().artifact[8:]), "preamble", "not a Maskwright file")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"\xff{}",
        b'{"sections":[],"sections":[]}',
        b'{"sections":NaN}',
        b"[" * 100_000,
        b'{"a":' * 40_000,
        b'{"sections":[],"n":' + b"9" * 5000 + b"}",
        b'{"sections":{}}',
        b'{"sections":[[]]}',
        b'{"sections":[null]}',
        json.dumps({"sections": [["a", 64, 0, 0, "raw", "u1"]] * (MAX_SECTIONS + 1)}).encode(),
    ],
)
def test_headers_that_are_not_headers(text: bytes) -> None:
    refuse(raw_file(text), "header", "")


def row(**changes: Any) -> list[Any]:
    return list(({"name": "a", "offset": 192, "stored": 4, "raw": 4, "codec": "raw", "dtype": "u1"} | changes).values())


def table(*rows: list[Any], body: bytes = b"\1\2\3\4", end: int = 192) -> bytes:
    """A file whose header ends at `end`, a multiple of 64 unless the test is about that."""
    text = json.dumps({"sections": list(rows)}, separators=(",", ":")).encode()
    assert len(text) <= end - 32
    return raw_file(text.ljust(end - 32), body)


def test_the_table_itself_is_accepted() -> None:
    assert read_container(table(row())).array("a").tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("bad", "section", "reason"),
    [
        (row(name="A"), "header", "name"),
        (row(name=""), "header", "name"),
        (row(name="a" * 65), "header", "name"),
        (row(name=7), "header", "form"),
        (row(offset=True), "header", "form"),
        (row(offset=192.0), "header", "form"),
        (row()[:5], "header", "form"),
        ([*row(), 1], "header", "form"),
        (row(codec="lzma"), "a", "codec"),
        (row(dtype="O8"), "a", "dtype"),
        (row(dtype="f4"), "a", "dtype"),
        (row(offset=-64), "a", "negative"),
        (row(stored=-1, raw=-1), "a", "negative"),
        (row(raw=-1, codec="zlib"), "a", "negative"),
        (row(raw=5), "a", "lengths differ"),
        (row(stored=3, raw=3, dtype="u2"), "a", "whole number"),
        (row(offset=191), "a", "should begin"),
        (row(offset=256), "a", "should begin"),
        (row(offset=1 << 70), "a", "should begin"),
        (row(stored=5, raw=5), "a", "beyond"),
        (row(stored=1 << 62, raw=1 << 62), "a", "beyond"),
        (row(stored=3, raw=3), "trailer", "sections end"),
        (row(raw=MAX_INFLATED + 1, codec="zlib"), "header", "inflate"),
    ],
)
def test_rows_of_the_section_table(bad: list[Any], section: str, reason: str) -> None:
    refuse(table(bad), section, reason)


CELLS = st.one_of(
    st.sampled_from(["a", "A", "", "raw", "zlib", "u1", "u4", "f4"]), st.integers(-2, 9), st.booleans(), st.none()
)
ROWS = st.one_of(
    st.lists(CELLS, max_size=7),
    st.builds(
        lambda **fields: row(**fields),
        name=st.sampled_from(["a", "b.c", "A"]),
        offset=st.integers(-1, 200),
        stored=st.sampled_from([-1, 3, 4, 4, 4, True]),
        raw=st.sampled_from([-1, 3, 4, 4, 4, 4.0]),
        codec=st.sampled_from(["raw", "raw", "zlib", "lzma"]),
        dtype=st.sampled_from(["u1", "u2", "u8", "x"]),
    ),
    CELLS,
)


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_rows_are_judged_together_as_one_by_one(rows: list[Any]) -> None:
    try:
        for one in rows:
            container._read_row(one)
    except ArtifactError:
        assert not container._are_rows(rows)
    else:
        assert container._are_rows(rows)


def test_overlaps_gaps_and_repeats() -> None:
    body = bytes(range(1, 5)) + bytes(60) + b"\5"
    second = row(name="b", offset=256, stored=1, raw=1)
    assert list(read_container(table(row(), second, body=body)).sections) == ["a", "b"]
    refuse(table(row(), row(name="b", offset=192), body=body), "b", "should begin")
    refuse(table(second, row(), body=body), "b", "should begin")
    refuse(table(row(), row(offset=256, stored=1, raw=1), body=body), "a", "twice")
    refuse(table(row(), second, body=bytes(4) + b"\1" + bytes(59) + b"\5"), "b", "padding")
    refuse(table(row(), end=190), "a", "beyond")
    assert read_container(table(row(), body=b"\0\0\1\2\3\4", end=190)).array("a").tolist() == [1, 2, 3, 4]


def inflating(packed: bytes, raw: int, dtype: str = "u1") -> bytes:
    return table(row(stored=len(packed), raw=raw, codec="zlib", dtype=dtype), body=packed)


def test_zlib_sections() -> None:
    packed = zlib.compress(bytes(1000))
    assert len(read_container(inflating(packed, 1000)).array("a")) == 1000
    damaged = bytes([*packed[:-1], packed[-1] ^ 1])
    for data in (
        inflating(packed, 999),
        inflating(packed, 1001),
        inflating(packed, 0),
        inflating(packed + b"x", 1000),
        inflating(packed[:-1], 1000),
        inflating(damaged, 1000),
        inflating(b"", 1000),
        inflating(b"not zlib", 1000),
        inflating(packed + packed, 2000),
    ):
        with pytest.raises(ArtifactError) as caught:
            read_container(data).array("a")
        assert caught.value.section == "a" and caught.value.offset == 192


def test_zlib_bombs_cost_no_more_than_they_declare() -> None:
    bomb = zlib.compress(bytes(1 << 27), 9)
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError):
            read_container(inflating(bomb, 1000)).array("a")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(bomb)
    refuse(inflating(bomb, 1 << 27), "header", "inflate")


# -- identity ----------------------------------------------------------------------------------------------


def test_the_wrong_kind_of_file(pack: VocabularyPack) -> None:
    with pytest.raises(ArtifactError, match="kind 'pack' where 'artifact'"):
        Artifact.from_bytes(toy().pack, pack)
    with pytest.raises(ArtifactError, match="kind 'artifact' where 'pack'"):
        VocabularyPack.from_bytes(toy().artifact)


@pytest.mark.parametrize("field", ["vocabulary", "pack"])
def test_an_artifact_of_another_pack(pack: VocabularyPack, field: str) -> None:
    header, sections = take_apart(toy().artifact)
    header[field] = "0" * 64
    with pytest.raises(WrongVocabulary) as caught:
        Artifact.from_bytes(put_together((header, sections)), pack)
    assert (caught.value.field, caught.value.expected) == (field, "0" * 64)
    assert caught.value.found in (pack.digest, pack.fingerprint)


@pytest.mark.parametrize("value", [None, 7, [], {}, ["x"]])
@pytest.mark.parametrize("field", ["kind", "vocabulary", "pack", "source", "options", "compiler", "start"])
def test_header_fields_of_a_wrong_type(pack: VocabularyPack, field: str, value: Any) -> None:
    header, sections = take_apart(toy().artifact)
    if field == "start" and value == 7:
        value = 10_000
    if field == "options" and value == {}:
        value = "{}"
    header[field] = value
    with pytest.raises(ArtifactError) as caught:
        Artifact.from_bytes(put_together((header, sections)), pack)
    assert caught.value.section == "header"


def test_a_pack_whose_fingerprint_is_not_its_table() -> None:
    header, sections = take_apart(toy().pack)
    sections["token_blob"][0] ^= 1
    with pytest.raises(ArtifactError, match="fingerprint"):
        VocabularyPack.from_bytes(put_together((header, sections)))


def test_spaces_in_the_header_are_harmless() -> None:
    data = with_header(toy().artifact, lambda text: json.dumps(json.loads(text), separators=(",", ":")).encode())
    assert read_container(data).header == read_container(toy().artifact).header
