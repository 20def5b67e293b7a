"""Every form of a row is the same row: patched, dense and composed, by fill, by bit and by definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from damage import put_together, resign, take_apart
from toy import toy

from maskwright.workers import Artifact, ArtifactError, VocabularyPack, container, rows
from maskwright.workers.container import narrow, read_container

WORDS = 10


def load(pack: VocabularyPack) -> Artifact:
    return Artifact.from_bytes(toy().artifact, pack)


def by_definition(artifact: Artifact) -> np.ndarray:
    """All stored rows by index, one xor after the other."""
    out = [np.zeros(WORDS, np.uint32)]
    for tables in (artifact.pack.rows.tables, artifact.rows.tables):
        for i, base in enumerate(tables.base.tolist()):
            row = out[base].copy()
            for at in range(tables.patch_start[i], tables.patch_start[i + 1]):
                row[tables.patch_word[at]] ^= tables.patch_xor[at]
            out.append(row)
    return np.array(out)


@pytest.mark.parametrize("most", [0, 2, 8, 1000])
@pytest.mark.parametrize("backwards", [False, True])
def test_rows_are_what_they_are_defined_to_be(monkeypatch: pytest.MonkeyPatch, most: int, backwards: bool) -> None:
    monkeypatch.setattr(rows, "FEW_WORDS", most)
    artifact = load(VocabularyPack.from_bytes(toy().pack))
    expected = by_definition(artifact)
    order = range(len(expected))[:: -1 if backwards else 1]
    for _ in range(3):  # patched, kept, copied
        for index in order:
            row = np.full(WORDS, 0xFFFFFFFF, np.uint32)
            artifact.rows.fill(row.data, row, index)
            np.testing.assert_array_equal(row, expected[index])
            bits = [artifact.rows.bit(index, token) for token in range(artifact.vocab_size)]
            assert bits == [int(row[t >> 5]) >> (t & 31) & 1 for t in range(artifact.vocab_size)]


def test_bits_without_fill() -> None:
    artifact = load(VocabularyPack.from_bytes(toy().pack))
    expected = by_definition(artifact)
    for index in range(len(expected)):
        for token in (0, 7, 100, 279, 300):
            bit = int(expected[index][token >> 5]) >> (token & 31) & 1
            assert artifact.rows.bit(index, token) == bit
    for index in range(len(expected)):
        assert artifact.rows.expand(index).tolist() == expected[index].tolist()


def composed(
    tokens: list[int], bits: int | None = None, after: Callable[[bytes], bytes] = bytes
) -> tuple[Artifact, list[tuple[int, int]]]:
    """The toy with all rows of the pack's frames composed, and other residual tokens; (context, control) of each. bits:
    what all bytes of `context_bits` are. after: what's done to the file.
    """
    header, sections = take_apart(toy().pack)
    sections["residual_token"] = narrow(np.array(tokens))
    pack = VocabularyPack.from_bytes(put_together((header, sections)))
    header, sections = take_apart(toy().artifact)
    header["pack"] = pack.digest
    entries = sections["context_rows"].astype(np.uint32)
    start, made = 0, []
    counts = {0: 3, 1: 3, 2: 3, 3: 4, 4: 4}
    for q, frame in enumerate(sections["context_frame"].tolist()):
        for c in range(counts[frame]):
            if frame < 2 and entries[start + c]:
                entries[start + c] = 2 + (entries[start + c] & 1)
                made.append((q, 3 * frame + c))
        start += counts[frame]
    sections["context_rows"] = narrow(entries)
    places = np.arange(len(sections["context_bits"])).astype(np.uint8)
    sections["context_bits"] = places if bits is None else np.full_like(places, bits)
    return Artifact.from_bytes(after(put_together((header, sections), compress=bits is not None)), pack), made


def test_composed_rows_are_the_local_mask_and_the_accepted_residual_tokens() -> None:
    tokens = [20, 30, 31]
    artifact, made = composed(tokens)
    pack, contexts = artifact.pack, artifact.contexts
    assert len(made) > 20 and list(contexts.composed_context) == [q for q, _ in made]
    start, place = pack.section("residual_count").cumsum(), pack.section("residual_place")
    for n, (q, control) in enumerate(made):
        assert contexts.composed_control[n] == control
        expected = np.array(pack.rows.expand(int(pack.section("control_row")[control]) + 1))
        bits = int(contexts.bits.array()[contexts.bits_start[q]])
        for at in range(start[control - 1] if control else 0, start[control]):
            if bits >> int(place[at]) & 1:
                expected[tokens[at] >> 5] |= np.uint32(1 << (tokens[at] & 31))
        row = np.zeros(WORDS, np.uint32)
        artifact.rows.fill(row.data, row, contexts.first_composed + n)
        np.testing.assert_array_equal(row, expected)


def test_bits_are_inflated_when_a_row_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_COMPRESS_FROM", 0)
    monkeypatch.setattr(container, "_WORTH", 1)

    def damage(data: bytes) -> bytes:
        section = read_container(data).sections["context_bits"]
        assert section.codec == "zlib"
        last = section.offset + section.stored - 1
        return resign(data[:last] + bytes([data[last] ^ 1]) + data[last + 1 :])

    artifact, made = composed([20, 30, 31], bits=7)
    before = artifact.memory_size_bytes
    assert artifact.contexts.bits.memory() == 0
    for n in range(len(made)):
        artifact.rows.expand(artifact.contexts.first_composed + n)
    assert artifact.contexts.bits.memory() == artifact.contexts.bits.length > 0
    assert artifact.memory_size_bytes >= before + artifact.contexts.bits.length
    artifact, made = composed([20, 30, 31], bits=7, after=damage)
    refused = 0
    for n in range(len(made)):
        try:
            artifact.rows.expand(artifact.contexts.first_composed + n)
        except ArtifactError as error:
            assert error.section == "context_bits" and error.offset
            refused += 1
    assert refused


def test_a_composed_row_holds_text_only() -> None:
    artifact, made = composed([300, 299, 290])
    refused = 0
    for n in range(len(made)):
        try:
            artifact.rows.expand(artifact.contexts.first_composed + n)
        except ArtifactError as error:
            assert error.section == "residual_token"
            refused += 1
    assert 0 < refused < len(made)
