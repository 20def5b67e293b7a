"""Small vocabularies and sources compiled against them, for tests of the matcher on real front ends."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

PIECES = (
    '{"', '":', '": ', '","', '", "', '"}', '"]', '}}', ']]', '[[', '{{', '[{"', '"}]', "  ", "\n  ", "    ", "true",
    "false", "null", "name", "na", "me", "kind", "re", "fund", "refund", "ask", "00", "12", "2024-", ": ", ', ', '""',
    '":"', 'é', '😀', 'name"', '":{"name":"', '"},"kind":"ask"}', "\\u00", "\\n",
)  # fmt: skip
"""Tokens beside the 256 bytes: words, runs of white space, and some that span many syntactic units."""
STOP = 256 + len(PIECES)


@functools.cache
def vocabulary(padding: int = 0) -> Vocabulary:
    """All bytes, the pieces, "<|stop|>", "<|end|>", and unused ids behind them."""
    tokens: list[bytes | None] = [bytes((b,)) for b in range(256)]
    tokens += [p.encode() for p in PIECES]
    special = {STOP: "<|stop|>", STOP + 1: "<|end|>"}
    return Vocabulary.from_tokens([*tokens, None, None, *[None] * padding], special, [STOP])


@functools.cache
def _compiled(text: str, kind: str, options: str, padding: int) -> Artifact:
    vocab = vocabulary(padding)
    compiler = Compiler(vocab, CompileOptions(**json.loads(options)))
    result = {
        "schema": lambda: compiler.compile_json_schema(json.loads(text)),
        "regex": lambda: compiler.compile_regex(text),
        "lark": lambda: compiler.compile_lark(text),
    }[kind]()
    return Artifact.from_bytes(result.to_bytes(), pack(padding))


@functools.cache
def pack(padding: int = 0) -> VocabularyPack:
    """One for all artifacts, as in an engine."""
    return VocabularyPack.from_bytes(vocabulary(padding).pack_bytes())


def schema(value: Any, padding: int = 0, **options: Any) -> Artifact:
    return _compiled(json.dumps(value), "schema", json.dumps(options), padding)


def regex(pattern: str, **options: Any) -> Artifact:
    return _compiled(pattern, "regex", json.dumps({"regex_dialect": "python", **options}), 0)


def lark(grammar: str) -> Artifact:
    return _compiled(grammar, "lark", "{}", 0)


def token(text: str | bytes) -> int:
    """The id of a piece or a byte."""
    data = text.encode() if isinstance(text, str) else text
    return data[0] if len(data) == 1 else 256 + PIECES.index(data.decode())


def mask_of(m: Matcher, remaining: int | None = None) -> set[int]:
    mask = allocate_token_bitmask(1, m.vocab_size)
    m.fill_next_token_bitmask(mask, 0, remaining)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())
