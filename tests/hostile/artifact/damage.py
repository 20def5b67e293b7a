"""Taking files apart and putting damaged ones together, with a right checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import random
import struct
from typing import Any

import numpy as np

from maskwright.workers import Artifact, ArtifactError, DeadEnd, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.container import PREAMBLE, read_container, write_container

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


def resign(data: bytes) -> bytes:
    """The file with the checksum that its bytes ask for."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def take_apart(data: bytes) -> Parts:
    """Header (without section table) and inflated sections."""
    c = read_container(data)
    header = {k: v for k, v in c.header.items() if k != "sections"}
    return header, {name: c.array(name).copy() for name in c.sections}


def put_together(parts: Parts, *, compress: bool = False) -> bytes:
    """A well-formed container around any sections."""
    return write_container(parts[0], parts[1].items(), compress=compress)


def with_header(data: bytes, change: Any) -> bytes:
    """The file with its JSON header passed through `change` (bytes to bytes), which must keep the length."""
    length = struct.unpack_from("<I", data, 12)[0]
    text = change(data[PREAMBLE.size : PREAMBLE.size + length])
    assert len(text) == length
    return resign(data[: PREAMBLE.size] + text + data[PREAMBLE.size + length :])


def raw_file(header: Any, body: bytes = b"") -> bytes:
    """A file around any header bytes or JSON value, with no regard for the section table."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = PREAMBLE.pack(b"\x89MWA\r\n\x1a\n", 1, 0, len(text), 0, 0) + text
    return resign(data + body + bytes(32))


def exercise(artifact: Artifact, seed: int = 0, steps: int = 12) -> None:
    """Uses an accepted file in every way; only ArtifactError and DeadEnd may come out of it."""
    rng, accepted = random.Random(seed), 0
    try:
        matcher = Matcher(artifact)
        mask = allocate_token_bitmask(1, artifact.vocab_size)
        for _ in range(steps):
            matcher.fill_next_token_bitmask(mask)
            legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert not len(legal) or legal.max() < artifact.vocab_size
            matcher.fork().accept_string(bytes(rng.choice(b"abcd()[],:!") for _ in range(5)))
            matcher.explain()
            matcher.find_jump_forward_tokens()
            budget(matcher, mask)
            if len(legal):
                accepted += matcher.accept_token(rng.choice(legal.tolist()))
        matcher.rollback(accepted)
        assert artifact.memory_size_bytes > 0
    except (ArtifactError, DeadEnd):
        pass


def budget(matcher: Matcher, mask: np.ndarray) -> None:
    """Bounds and counts of whatever the tables say are numbers; a snapshot is the state."""
    least = matcher.min_tokens_to_finish()
    with contextlib.suppress(OverflowError):
        assert matcher.completions_left() >= 0
    again = Matcher.restore(matcher.artifact, matcher.snapshot(0))
    assert again.min_tokens_to_finish() == least
    if least < math.inf:
        for remaining in (int(least), int(least) + 3):
            matcher.fill_next_token_bitmask(mask, 0, remaining)


def load_and_use(data: bytes, pack: VocabularyPack, seed: int = 0) -> bool:
    """Whether the file was accepted; ArtifactError is the only way to refuse it."""
    try:
        artifact = Artifact.from_bytes(data, pack)
    except ArtifactError as error:
        assert error.section and error.reason and str(error)
        return False
    exercise(artifact, seed)
    return True
