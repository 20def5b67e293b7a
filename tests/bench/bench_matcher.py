"""What each operation of the matcher costs, in microseconds.

    python -m tests.bench.bench_matcher --schemas schemas.jsonl.gz --tokenizer tokenizer.json --count 40

schemas: JSON Lines, each an object with "schema". Random runs (uniform over the legal tokens, with a budget so that
they end) visit places; at each every operation is timed once. The first run over an artifact is left out (rows and
moves are made then), but for the lines that say "first". Without arguments: three small schemas, the vocabulary that
ships.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.compiler import CompileError, Compiler, Vocabulary
from maskwright.workers import Artifact, BatchMatcher, Matcher, VocabularyPack, allocate_token_bitmask

SMALL: list[Any] = [
    {"type": "object", "properties": {"n": {"type": "string", "maxLength": 9}, "c": {"items": {"$ref": "#"}}}},
    True,
    {"type": "array", "items": {"enum": ["refund", "ask", 3]}, "maxItems": 9},
]
BATCH = 32
FAR = 1_000_000


class Times:
    """Durations by name."""

    def __init__(self) -> None:
        self.ns: defaultdict[str, list[int]] = defaultdict(list)

    def of(self, name: str, call: Callable[[], Any], parts: int = 1) -> Any:
        """Times a call that does the same `parts` times."""
        begin = time.perf_counter_ns()
        result = call()
        self.ns[name].append((time.perf_counter_ns() - begin) // parts)
        return result

    def show(self) -> None:
        sys.stdout.write(f"{'us':34}{'n':>8}{'p50':>10}{'p90':>10}{'p99':>10}{'max':>12}\n")
        for name, values in self.ns.items():
            us = np.array(values) / 1000
            p50, p90, p99 = np.percentile(us, [50, 90, 99])
            sys.stdout.write(f"{name:34}{len(us):8}{p50:10.2f}{p90:10.2f}{p99:10.2f}{us.max():12.1f}\n")
        sys.stdout.flush()


def draw(rng: np.random.Generator, mask: np.ndarray) -> int:
    """A legal token."""
    bits = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little"))
    return int(rng.choice(bits))


def run(artifact: Artifact, rng: np.random.Generator, times: Times, slack: int) -> None:
    """One text; each operation at each place."""
    m, mask = Matcher(artifact), allocate_token_bitmask(BATCH, artifact.vocab_size)
    batch = BatchMatcher([m.fork() for _ in range(BATCH)])
    batch.fill_next_token_bitmask(mask)
    m.fill_next_token_bitmask(mask)
    left = int(times.of("min_tokens_to_finish", m.min_tokens_to_finish)) + slack
    while not m.is_terminated():
        times.of("fill", lambda: m.fill_next_token_bitmask(mask))
        times.of("fill, remaining far", lambda: m.fill_next_token_bitmask(mask, 0, FAR))
        times.of("fill, remaining near", lambda n=left: m.fill_next_token_bitmask(mask, 0, n))  # type: ignore[misc]
        token = draw(rng, mask)
        times.of("fork", m.fork)
        data = times.of("snapshot", m.snapshot)
        times.of("restore", lambda d=data: Matcher.restore(artifact, d))  # type: ignore[misc]
        times.of("snapshot(0)", lambda: m.snapshot(0))
        times.of("expected_bytes", m.expected_bytes)
        times.of("find_jump_forward_tokens", m.find_jump_forward_tokens)
        times.of("explain", m.explain)
        times.of("completions_left", m.completions_left)
        times.of("validate_tokens of 4", lambda t=token: m.validate_tokens([t] * 4))  # type: ignore[misc]
        times.of(f"batch fill of {BATCH}, a row", lambda: batch.fill_next_token_bitmask(mask), BATCH)
        times.of("accept", lambda t=token: m.accept_token(t))  # type: ignore[misc]
        same = [token] * BATCH
        times.of(f"batch accept of {BATCH}, a token", lambda s=same: batch.accept_tokens(s), BATCH)  # type: ignore[misc]
        left -= 1


def measure(artifacts: Sequence[Artifact], runs: int, slack: int) -> None:
    """Prints the table."""
    rng, times, first, unused = np.random.default_rng(0), Times(), Times(), Times()
    for artifact in artifacts:
        m, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size)
        first.of("first min_tokens_to_finish", m.min_tokens_to_finish)
        first.of("first fill with remaining", lambda m=m, mask=mask: m.fill_next_token_bitmask(mask, 0, FAR))  # type: ignore[misc]
        first.of("first completions_left", m.completions_left)
        run(artifact, rng, unused, slack)
    for _ in range(runs):
        for artifact in artifacts:
            run(artifact, rng, times, slack)
    first.show()
    times.show()


def artifacts_of(schemas: Sequence[Any], vocabulary: Vocabulary) -> list[Artifact]:
    """Those that compile in time, on one pack."""
    compiler = Compiler(vocabulary)
    pack, out = VocabularyPack.from_bytes(vocabulary.pack_bytes()), list[Artifact]()
    for schema in schemas:
        try:
            out.append(Artifact.from_bytes(compiler.compile_json_schema(schema).to_bytes(), pack))
        except CompileError as refused:
            sys.stdout.write(f"left out: {refused.diagnostics[0].code}\n")
    return out


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--slack", type=int, default=30, help="tokens of a run beyond the least")
    options = parser.parse_args(list(arguments))
    schemas = SMALL
    if options.schemas:
        opener = gzip.open if options.schemas.suffix == ".gz" else open
        with opener(options.schemas, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line)["schema"] for line in lines]
        schemas = rows[:: max(1, len(rows) // options.count)][: options.count]
    vocabulary = Vocabulary.demo()
    if options.tokenizer:
        data = options.tokenizer.read_bytes()
        vocabulary = Vocabulary.from_bytes(gzip.decompress(data) if options.tokenizer.suffix == ".gz" else data)
    measure(artifacts_of(schemas, vocabulary), options.runs, options.slack)


if __name__ == "__main__":
    main(sys.argv[1:])
