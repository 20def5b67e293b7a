"""Texts of adversaries over many schemas and vocabularies: every one must end in its budget, parse and validate.

    python -m tests.bench.bench_adversarial --schemas maskbench.jsonl.gz --tokenizers a.json.gz b.json.gz \\
        --count 200 --texts 10000 --cache /tmp/artifacts --log log.jsonl

schemas: JSON Lines, each an object with "id" and "schema". Schemas are taken at even distances until `--count` of them
compile within `--seconds` for every tokenizer; how many didn't is told. Texts are parsed by `json` and validated by
jsonschema-rs (formats too), and run through the artifact once more as text. With `--log` the texts are written for
`maskwright evaluate`, grouped by adversary. Any failure is printed with what repeats it; the exit code is then 1.
Two runs over 200 real schemas, with Llama 2, Llama 3.1 and Qwen 3 (10,200 texts) and with Qwen 3 alone (3,400 more):
13,600 texts, 394,023 tokens, no failure; 42 and 38 schemas were passed over, nearly all for `--seconds 4`. A small run
with the vocabulary that ships found that budgets of artifacts on one pack took each other's symbols for their own.

Without arguments: three small schemas, the vocabulary that ships, 120 texts.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs

from maskwright.compiler import CompileError, Compiler, Limits, Vocabulary
from maskwright.workers import Artifact, Matcher, VocabularyPack
from maskwright.workers.metrics.log import LogWriter
from tests.adversarial.adversaries import Adversaries, Written, plans, write

SMALL: dict[str, Any] = {
    "tree": {"type": "object", "properties": {"n": {"type": "string", "maxLength": 9}, "c": {"items": {"$ref": "#"}}}},
    "any": True,
    "one of": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"enum": ["é", 3, {"a": []}]}]},
}


class Tally:
    """Counts and failures of a run."""

    def __init__(self, log: LogWriter | None) -> None:
        self.log, self.failures, self.tokens = log, list[str](), 0
        self.texts: Counter[str] = Counter()

    def add(self, schema: str, adversary: str, written: Written, fault: str | None, place: str) -> None:
        self.texts[adversary] += 1
        self.tokens += len(written.tokens)
        if fault is not None:
            self.fail(f"{place}: {fault}: {written.text!r:.300}")
        if self.log is not None:
            ended = "stop" if written.ended else "length"
            self.log.write(
                written.text.decode("utf-8", "replace"), ended, group=adversary, schema=schema,
                tokens=len(written.tokens), id=place,
            )  # fmt: skip

    def fail(self, what: str) -> None:
        self.failures.append(what)
        _say(f"FAILURE {what}")


def main(arguments: Sequence[str] = ()) -> int:
    options = _options(arguments)
    sys.set_int_max_str_digits(0)
    vocabularies = [_vocabulary(path) for path in options.tokenizers] or [Vocabulary.demo()]
    began = time.process_time()
    compilers = [Compiler(v, limits=Limits(compile_seconds=options.seconds)) for v in vocabularies]
    _say(f"{len(compilers)} vocabularies prepared in {time.process_time() - began:.1f} s of processor time")
    sources = _sources(options)
    artifacts = _compile(sources, compilers, options)
    file = Path(options.log).open("wb") if options.log else None  # noqa: SIM115
    tally = Tally(LogWriter(file) if file else None)
    for number, compiler in enumerate(compilers):
        pack = VocabularyPack.from_bytes(compiler.vocabulary.pack_bytes())
        _run(number, pack, {name: found[number] for name, found in artifacts.items()}, sources, options, tally)
    _say(
        f"{sum(tally.texts.values())} texts, {tally.tokens} tokens, {len(tally.failures)} failures: {dict(tally.texts)}"
    )
    if file:
        file.close()
    return 1 if tally.failures else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Adversaries write texts; every one must validate.")
    parser.add_argument("--schemas")
    parser.add_argument("--tokenizers", nargs="*", default=[])
    parser.add_argument("--count", type=int, default=3, help="schemas")
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--seconds", type=float, default=10.0, help="for one compilation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", help="folder for artifacts")
    parser.add_argument("--log")
    return parser.parse_args(arguments)


def _vocabulary(path: str) -> Vocabulary:
    data = Path(path).read_bytes()
    return Vocabulary.from_bytes(gzip.decompress(data) if path.endswith(".gz") else data)


def _sources(options: argparse.Namespace) -> dict[str, Any]:
    """All schemas, in an order that takes them at even distances first."""
    if not options.schemas:
        return SMALL
    opened = gzip.open if options.schemas.endswith(".gz") else open
    with opened(options.schemas, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    step = max(1, len(rows) // options.count)
    order = [rows[i] for first in range(step) for i in range(first, len(rows), step)]
    return {row["id"]: row["schema"] for row in order}


def _compile(sources: dict[str, Any], compilers: list[Compiler], options: argparse.Namespace) -> dict[str, list[bytes]]:
    """The artifacts of the first `count` schemas that every compiler takes."""
    found: dict[str, list[bytes]] = {}
    refused: Counter[str] = Counter()
    began = time.process_time()
    for name, schema in sources.items():
        if len(found) == options.count:
            break
        try:
            jsonschema_rs.validator_for(schema, offline=True)
            found[name] = [_artifact(c, schema, options.cache) for c in compilers]
        except CompileError as error:
            refused[error.diagnostics[0].code] += 1
        except ValueError:
            refused["not a schema for jsonschema-rs"] += 1
    _say(
        f"{len(found)} schemas compiled, {sum(refused.values())} passed over {dict(refused)},"
        f" {time.process_time() - began:.0f} s of processor time"
    )
    return found


def _artifact(compiler: Compiler, schema: Any, cache: str | None) -> bytes:
    text = json.dumps(schema)
    if cache is None:
        return compiler.compile_json_schema(text).to_bytes()
    digest = hashlib.sha256(f"{compiler.prepared.digest}{text}".encode()).hexdigest()
    path = Path(cache) / f"{digest}.mwa"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compiler.compile_json_schema(text).to_bytes())
    return path.read_bytes()


def _run(
    number: int,
    pack: VocabularyPack,
    artifacts: dict[str, bytes],
    sources: dict[str, Any],
    options: argparse.Namespace,
    tally: Tally,
) -> None:
    adversaries = Adversaries(pack, options.seed)
    each = -(-options.texts // (len(artifacts) * max(1, len(options.tokenizers))))
    began = time.process_time()
    for at, (name, data) in enumerate(artifacts.items()):
        artifact = Artifact.from_bytes(data, pack)
        validator = jsonschema_rs.validator_for(sources[name], validate_formats=True, offline=True)
        if tally.log is not None and not number:
            tally.log.define(name, sources[name])
        for adversary, free, slack in plans(each, options.seed + at):
            place = f"vocabulary {number}, schema {name}, {adversary}, free {free}, slack {slack}"
            try:
                written = write(artifact, adversaries, adversary, free, slack)
            except Exception as error:
                tally.fail(f"{place}: {type(error).__name__}: {error}"[:600])
                continue
            tally.add(name, adversary, written, judge(artifact, validator, written), place)
        if not (at + 1) % 25:
            _say(f"vocabulary {number}: {at + 1} schemas, {time.process_time() - began:.0f} s, {tally.tokens} tokens")


def judge(artifact: Artifact, validator: Any, written: Written) -> str | None:
    """What's wrong with a run, None when nothing is."""
    if not written.ended or len(written.tokens) > written.free + written.allowed:
        return f"didn't end in {written.allowed} tokens"
    try:
        value = json.loads(written.text.decode(), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        return f"doesn't parse: {error}"
    if not validator.is_valid(value):
        return "isn't valid: " + "; ".join(e.message for e in validator.iter_errors(value))[:200]
    matcher = Matcher(artifact)
    if not matcher.accept_string(written.text) or not matcher.is_accepting():
        return "isn't accepted as a text"
    return None


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
