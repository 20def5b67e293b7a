"""Artifacts that the tests of tensors follow."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import random
from pathlib import Path

import numpy as np
from test_token_tables import usable
from toy import toy

from maskwright.compiler import CompileError, CompileOptions, Compiler, Vocabulary
from maskwright.compiler.artifact.writer import ArtifactMeta, PackMeta, VocabularyData, write_artifact, write_pack
from maskwright.compiler.options import Limits
from maskwright.compiler.tokens.build import build_tokens
from maskwright.workers import Artifact, Matcher, VocabularyPack
from maskwright.workers.fingerprint import vocabulary_fingerprint

TREE = {
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/t"}}, "n": {"type": "number"}},
            "required": ["n"],
        }
    },
}
FLAT = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "yy"]}, "b": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@functools.cache
def toy_artifact() -> Artifact:
    """The bracket language of the workers' tests."""
    return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))


@functools.cache
def random_artifact(seed: int, hot: int) -> Artifact:
    """A random automaton; with `hot` 0 its pack's rows are composed by the worker."""
    _, a, prepared, tokens = usable(seed)
    prepared.tables.hot[:] = hot
    stop = next((i for i, t in enumerate(tokens) if t is None), None)
    special = {} if stop is None else {stop: "<stop>"}
    fingerprint = vocabulary_fingerprint(tokens, special)
    data = VocabularyData(tokens, special, list(special))
    pack = VocabularyPack.from_bytes(write_pack(prepared.tables, vocabulary=data, meta=PackMeta(fingerprint, "0")))
    tables, _ = build_tokens(a, prepared, Limits())
    meta = ArtifactMeta("regex", "00" * 32, "{}", fingerprint, pack.digest, "0")
    return Artifact.from_bytes(write_artifact(tables, meta=meta), pack)


@functools.cache
def compiled() -> dict[str, Artifact]:
    """Sources against the demo vocabulary."""
    vocabulary = Vocabulary.demo()
    compiler = Compiler(vocabulary, CompileOptions())
    pack = VocabularyPack.from_bytes(vocabulary.pack_bytes())
    data = {
        "flat": compiler.compile_json_schema(FLAT),
        "tree": compiler.compile_json_schema(TREE),
        "any": compiler.compile_json_schema(True),
        "digits": compiler.compile_regex("[0-9]{1,3}(-[0-9]{2}){0,2}"),
        "chained": compiler.compile_lark('start: "a" start | "b"'),
        "brackets": compiler.compile_lark('start: ("(" start ")")* "x"?'),
    }
    return {name: Artifact.from_bytes(r.to_bytes(), pack) for name, r in data.items()}


@functools.cache
def symbols_artifact() -> Artifact:
    """A grammar whose symbols are special tokens, also the stop token."""
    tokens: list[bytes | None] = [*(bytes([b]) for b in range(256)), b"ab", None, None, None]
    names = {257: "<|x|>", 258: "<|call|>", 259: "<|end|>"}
    vocabulary = Vocabulary.from_tokens(tokens, names, [259])
    result = Compiler(vocabulary).compile_lark('start: (<|call|> "ab"+ <|end|>)+ <|x|>?')
    return Artifact.from_bytes(result.to_bytes(), VocabularyPack.from_bytes(vocabulary.pack_bytes()))


def real_artifacts(shared: Path, every: int) -> list[Artifact]:
    """Each `every`th real schema that isn't long and is accepted, against the demo vocabulary."""
    vocabulary = Vocabulary.demo()
    compiler = Compiler(vocabulary)
    pack, found = VocabularyPack.from_bytes(vocabulary.pack_bytes()), []
    with gzip.open(shared / "data" / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, 0, None, every):
            schema = json.loads(line)["schema"]
            if len(json.dumps(schema)) > 3000:
                continue
            try:
                result = compiler.compile_json_schema(schema)
            except CompileError:
                continue
            found.append(Artifact.from_bytes(result.to_bytes(), pack))
    return found


def next_token(rng: random.Random, matcher: Matcher, mask: np.ndarray) -> int:
    """Mostly a legal token, the short ones as often as all others; sometimes any number."""
    matcher.fill_next_token_bitmask(mask, 0)
    legal = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")).tolist()
    if rng.random() < 0.08 or not legal:
        return rng.randrange(-2, matcher.vocab_size + 2)
    if rng.random() < 0.5:
        table = matcher._artifact.pack
        legal = sorted(legal, key=lambda t: len(table.token_bytes(t) or b""))[:24]
    return rng.choice(legal)
