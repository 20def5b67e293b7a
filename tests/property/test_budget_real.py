"""Real schemas under the Llama 3.1 vocabulary, where they're there: budgets hold against hostile logits, the texts
parse and validate, masks with a budget are what forks say token by token, snapshots are the run.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest

from maskwright.compiler import CompileError, Compiler, Vocabulary
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

EVERY, FIRST = 211, 7
OWN = [
    {"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}}}}},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 0, "maxItems": 3},
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 40}, "b": True}, "required": ["a", "b"]},
    {"anyOf": [{"type": "object", "required": ["x"]}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def compiled(shared: Path) -> Iterator[list[tuple[Any, Artifact]]]:
    data = gzip.decompress((shared / "tokenizers" / "llama3_1.tokenizer.json.gz").read_bytes())
    compiler = Compiler(Vocabulary.from_bytes(data))
    pack = VocabularyPack.from_bytes(compiler.vocabulary.pack_bytes())
    schemas: list[Any] = list(OWN)
    with gzip.open(shared / "data" / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        schemas += [json.loads(line)["schema"] for i, line in enumerate(lines) if i % EVERY == FIRST]
    out = []
    for schema in schemas:
        try:
            out.append((schema, Artifact.from_bytes(compiler.compile_json_schema(schema).to_bytes(), pack)))
        except CompileError:
            continue
    yield out


def tastes(artifact: Artifact) -> np.ndarray:
    """How a model would like tokens that wants to open things and to write white space."""
    blob, offsets = artifact.pack.section("token_blob"), artifact.pack.section("token_offsets").astype(np.int64)
    worth = np.zeros(256, np.float32)
    worth[list(b"{[")], worth[list(b" \n\t\",:")], worth[list(b"}]")] = 10, 1, -10
    total = np.concatenate([[0], np.cumsum(worth[blob], dtype=np.float64)])
    return (total[offsets[1:]] - total[offsets[:-1]]).astype(np.float32)


def test_runs_end_in_time_and_validate(compiled: list[tuple[Any, Artifact]]) -> None:
    rng = np.random.default_rng(3)
    taste, mask = tastes(compiled[0][1]), allocate_token_bitmask(1, compiled[0][1].vocab_size)
    for schema, artifact in compiled:
        validator = jsonschema_rs.validator_for(schema)
        for weight, extra in ((1.0, 0), (1.0, 40), (0.0, 0), (0.0, 12), (0.05, 25)):
            m = Matcher(artifact)
            remaining = int(m.min_tokens_to_finish()) + extra
            while not m.is_terminated():
                assert remaining > 0
                m.fill_next_token_bitmask(mask, 0, remaining)
                bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: artifact.vocab_size]
                logits = weight * taste + rng.standard_normal(len(taste), dtype=np.float32)
                assert m.accept_token(int(np.where(bits, logits, -np.inf).argmax()))
                remaining -= 1
            value = json.loads(m.text())
            assert validator.is_valid(value), (schema, m.text())
            assert Matcher.restore(artifact, m.snapshot()).text() == m.text()


def test_masks_near_the_end_are_what_forks_say(compiled: list[tuple[Any, Artifact]]) -> None:
    rng = random.Random(4)
    for _, artifact in compiled:
        m, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size)
        for _ in range(12):
            left = int(m.min_tokens_to_finish()) + rng.choice([0, 0, 1, 2, 5, 9])
            m.fill_next_token_bitmask(mask, 0)
            free = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            m.fill_next_token_bitmask(mask, 0, left)
            kept = set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())
            assert kept and kept <= set(free.tolist())
            some = rng.sample(free.tolist(), min(60, len(free))) + rng.sample(sorted(kept), min(20, len(kept)))
            for token in some:
                fork = m.fork()
                assert fork.accept_token(token)
                assert (fork.min_tokens_to_finish() <= left - 1) == (token in kept)
            text = [t for t in some if t not in m.stop_token_ids]
            if not text:
                break
            assert m.accept_token(rng.choice(text))
            again = Matcher.restore(artifact, m.snapshot(0))
            assert again.min_tokens_to_finish() == m.min_tokens_to_finish()
            assert again.completions_left() == m.completions_left()
