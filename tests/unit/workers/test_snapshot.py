"""Snapshots: identities, small, and typed errors for whatever else."""

from __future__ import annotations

import random
import zlib

import pytest
from test_matcher import mask_of, walk
from toy import toy

from maskwright.workers import Artifact, ArtifactError, Matcher, SnapshotError, VocabularyPack

EOS = 300


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))


def sealed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("history", [None, 0, 2])
def test_a_snapshot_is_an_identity(artifact: Artifact, seed: int, history: int | None) -> None:
    rng, m = random.Random(seed), Matcher(artifact, [EOS, 299])
    walk(m, rng, 8)
    assert m.accept_string("") != m.is_terminated()
    if m.is_accepting() and seed % 2:
        assert m.accept_token(EOS)
    data = m.snapshot(history)
    other = Matcher.restore(artifact, data)
    assert other.snapshot(history) == data
    assert sorted(other.stop_token_ids) == [299, EOS]
    kept = m.accepted() if history is None else m.accepted()[len(m.accepted()) - history :]
    assert other.accepted() == kept
    for _ in range(len(kept) + 1):
        assert mask_of(other) == mask_of(m)
        assert (other.is_accepting(), other.is_terminated()) == (m.is_accepting(), m.is_terminated())
        if other.accepted():
            other.rollback()
            m.rollback()
    with pytest.raises(ValueError, match="there are 0"):
        other.rollback()


def test_snapshots_are_small(artifact: Artifact) -> None:
    m = Matcher(artifact)
    assert m.accept_string("[" * 500)
    assert len(m.snapshot(0)) <= 80 + 2 * 500
    assert len(Matcher(artifact).snapshot()) <= 80
    with pytest.raises(ValueError, match="negative"):
        m.snapshot(-1)


def test_every_cut_and_every_flipped_bit_is_refused(artifact: Artifact) -> None:
    m = Matcher(artifact)
    assert m.accept_string("[(()):a,[") and m.accept_token(0)
    data = m.snapshot()
    for n in range(len(data)):
        with pytest.raises(SnapshotError):
            Matcher.restore(artifact, data[:n])
    for bit in range(8 * len(data)):
        broken = bytearray(data)
        broken[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(SnapshotError):
            Matcher.restore(artifact, bytes(broken))
    with pytest.raises(SnapshotError, match="checksum"):
        Matcher.restore(artifact, data + b"\0")


def test_what_is_wrong_is_named(artifact: Artifact) -> None:
    data = Matcher(artifact).snapshot()[:-4]
    for at, part in [(0, "form"), (3, "version"), (4, "artifact"), (36, "vocabulary")]:
        broken = bytearray(data)
        broken[at] ^= 1
        with pytest.raises(SnapshotError) as caught:
            Matcher.restore(artifact, sealed(bytes(broken)))
        assert caught.value.part == part
    for body, part in [
        (data + b"\0", "form"),
        (data[:68] + b"\x01\xff\x7f" + data[69:], "stop tokens"),
        (data[:68] + b"\xff\xff\x7f" + data[69:], "stop tokens"),
        (data[:68] + b"\x00\x01" + data[-3:], "state"),  # ended at the start
        (data[:68] + b"\x00\x00\x7f\x00\x00", "state"),  # no such control
        (data[:68] + b"\x00\x00\x06\x01\x7f\x00", "state"),  # no such symbol
        (data[:68] + b"\x00\x00\x06\x01\x00\x00", "state"),  # a symbol of another frame
        (data[:68] + b"\x00\x00\x00\x00\x00", "state"),  # a control of another frame
        (data[:-1] + b"\x01\x00", "history"),  # token 0 isn't legal at the start
        (data[:-1] + b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "history"),
        (data[:-1] + b"\x01\x81\x7f", "history"),  # a text that ends early
        (data[:-1] + b"\x7f", "history"),
    ]:
        with pytest.raises(SnapshotError) as caught:
            Matcher.restore(artifact, sealed(body))
        assert caught.value.part == part, body


@pytest.mark.parametrize("seed", range(30))
def test_hostile_bodies_give_a_matcher_that_works_or_a_typed_error(artifact: Artifact, seed: int) -> None:
    rng, m = random.Random(seed), Matcher(artifact)
    walk(m, rng, 6)
    data = m.snapshot()[:-4]
    for _ in range(60):
        body = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(68, len(body))
            body[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
            if len(body) <= 70:
                break
        try:
            other = Matcher.restore(artifact, sealed(bytes(body)))
        except SnapshotError:
            continue
        try:
            mask_of(other)
            walk(other, rng, 4)
        except ArtifactError:
            pass  # a stack that no run makes may lead where the tables have nothing
