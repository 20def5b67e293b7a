"""The patterns of real schemas, where the data is there, against the engine of jsonschema-rs on likely texts."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
from regex_patterns import likely_texts

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern

LONGEST = 60
REFUSED = {
    "[": Code.INVALID_SOURCE,
    r"^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$": Code.LIMIT_EXCEEDED,
}


def patterns(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        if isinstance(value.get("patternProperties"), dict):
            yield from value["patternProperties"]
        for inner in value.values():
            yield from patterns(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from patterns(inner)


def test_real_patterns(shared: Path) -> None:
    found: set[str] = set()
    with gzip.open(shared / "data" / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found.update(patterns(json.loads(line)["schema"]))
    assert len(found) > 500
    wrong = []
    for pattern in sorted(found):
        try:
            dfa = compile_pattern(pattern, mode="search", limits=Limits(states=20_000))
        except CompileError as e:
            assert REFUSED.get(pattern) == e.diagnostics[0].code, pattern
            continue
        try:
            judge = jsonschema_rs.validator_for({"pattern": pattern})
        except (ValueError, jsonschema_rs.ValidationError):
            continue
        for text in likely_texts(dfa, random.Random(pattern), LONGEST):
            # Rust's dot takes these line ends, ECMA-262's doesn't.
            if not set(text) & set("\r\u2028") and judge.is_valid(text) != (dfa.label(text) >= 0):
                wrong.append((pattern, text, dfa.label(text)))
    assert wrong == []
