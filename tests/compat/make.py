"""Writes the files that this version's readers must be able to load for ever: `python -m tests.compat.make`.

They go to the folder named by the format version: a pack of a small vocabulary, an artifact for each kind of source and
each feature of the format, and `expected.json` with digests, texts and masks, taken from the compiler's tables through
the matcher of the day. A folder is written when its format version is released, and never again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from maskwright.compiler import CompileOptions, Compiler, CompileResult, Vocabulary
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.container import MAJOR, MINOR

WORDS = ["true", "false", "null", '{"', '":', '","', '"}', "], [", "name", "amount", " and", "  "]
WORDS += ["12", "0.5", "é", "日本"]
SPECIAL = {272: "<|end|>", 273: "<|call|>"}
TOOL = {
    "name": "pay",
    "parameters": {
        "type": "object",
        "properties": {"amount": {"type": "number", "minimum": 0}},
        "required": ["amount"],
        "additionalProperties": False,
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 70},
        "kind": {"enum": ["a", "b", 3]},
        "next": {"$ref": "#"},
        "list": {"type": "array", "items": {"type": ["null", "integer"]}},
    },
    "required": ["name"],
}
GRAMMAR = 'start: item ("," item)*\nitem: NAME | "(" start ")" | <|call|>\nNAME: /[a-z]+/\n%ignore " "\n'

Case = tuple[Callable[[Compiler], CompileResult], list[str]]
CASES: dict[str, Case] = {
    "schema": (
        lambda c: c.compile_json_schema(SCHEMA),
        [
            '{"name": "x", "next": {"name": "é"}}',
            '{"name":"n","kind":3,"list":[1, null]}',
            '{"kind":"a"}',
            '{"name":1}',
        ],
    ),
    "regex": (lambda c: c.compile_regex(r"(?:[a-z]+-)*\d{2,4}"), ["a-bc-12", "2024", "a-", "12345"]),
    "lark": (lambda c: c.compile_lark(GRAMMAR), ["a, (b,c)", "a,<|call|>", "(a", ","]),
    "tools": (
        lambda c: c.compile_tools([TOOL]),
        ["no call", '<tool_call>\n{"name": "pay", "arguments": {"amount": 1}}'],
    ),
}


def vocabulary() -> Vocabulary:
    tokens: list[bytes | None] = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS]
    return Vocabulary.from_tokens([*tokens, None, None], special=SPECIAL, stop_token_ids=[272])


def tokens_of(text: str) -> list[int]:
    """Special tokens by their names, the rest byte by byte."""
    ids = {name: i for i, name in SPECIAL.items()}
    parts = re.split(f"({'|'.join(map(re.escape, ids))})", text)
    return [t for part in parts for t in ([ids[part]] if part in ids else part.encode())]


def observe(artifact: Artifact, text: str) -> dict[str, Any]:
    """How many tokens of a text, single bytes and special ones, are taken, whether it may end there, and a digest of
    the masks on the way.
    """
    matcher, mask, seen = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size), hashlib.sha256()
    taken = 0
    for token in tokens_of(text):
        matcher.fill_next_token_bitmask(mask)
        seen.update(mask.astype("<i4").tobytes())
        if not matcher.accept_token(token):
            break
        taken += 1
    return {"text": text, "taken": taken, "may_end": matcher.is_accepting(), "masks": seen.hexdigest()}


def main(folder: Path | None = None) -> Path:
    """Writes the folder, below this one unless told otherwise. Raises FileExistsError for one that's there."""
    out = folder or Path(__file__).parent / f"{MAJOR}.{MINOR}"
    out.mkdir()
    v = vocabulary()
    (out / "vocabulary.mwpack").write_bytes(v.pack_bytes())
    pack, compiler = VocabularyPack.from_bytes(v.pack_bytes()), Compiler(v, CompileOptions())
    expected: dict[str, Any] = {"vocabulary.mwpack": {"sha256": hashlib.sha256(v.pack_bytes()).hexdigest()}}

    def write(name: str, data: bytes, texts: list[str]) -> None:
        (out / name).write_bytes(data)
        artifact = Artifact.from_bytes(data, pack)
        expected[name] = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "required_features": int(np.frombuffer(data, "<u8", 1, 16)[0]),
            "texts": [observe(artifact, t) for t in texts],
        }

    for name, (compile_, texts) in CASES.items():
        write(f"{name}.mwa", compile_(compiler).to_bytes(), texts)
    with patch.object(build, "COMPLETE_CONTEXTS", 1):
        write("lazy.mwa", CASES["lark"][0](compiler).to_bytes(), CASES["lark"][1])
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    return out


if __name__ == "__main__":
    main()
