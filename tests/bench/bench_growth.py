"""How cost grows: compile seconds, states and bytes against one thing at a time, with the exponent of each.

    python -m tests.bench.bench_growth [--tokenizer tokenizer.json.gz]

A line is a family of schemas: size n is doubled a few times, and the exponent is the slope of the least-squares line
through the logarithms: 0 doesn't depend on n, 1 is proportional. `per` n only the last, dearest steps count, because a
fixed cost hides the growth of small sizes. Vocabulary size is grown by cutting the tokenizer's own tokens.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from maskwright.compiler import Compiler, Vocabulary

DEMO = Path(__file__).parents[2] / "compiler/maskwright/compiler/data/demo.tokenizer.json"
LAST = 3
"""Sizes that the exponent is taken over."""


def closed(properties: dict[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def nested(n: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for k in range(n):
        schema = closed({f"level{k}": schema})
    return schema


FAMILIES: dict[str, tuple[Callable[[int], dict[str, Any]], tuple[int, ...]]] = {
    "optional properties": (
        lambda n: closed({f"property{k}": {"type": "string"} for k in range(n)}),
        (16, 32, 64, 128),
    ),
    "required properties": (
        lambda n: closed({f"property{k}": {"type": "string"} for k in range(n)}, [f"property{k}" for k in range(n)]),
        (16, 32, 64, 128),
    ),
    "depth": (nested, (4, 8, 16, 32)),
    "maxLength": (lambda n: closed({"s": {"type": "string", "maxLength": n}}), (64, 1_024, 16_384, 65_536)),
    "minLength": (lambda n: closed({"s": {"type": "string", "minLength": n}}), (64, 256, 512, 1_024)),
    "maxItems": (
        lambda n: closed({"a": {"type": "array", "items": {"type": "integer"}, "maxItems": n}}),
        (64, 256, 1_024, 4_096),
    ),
    "enum values": (lambda n: {"enum": [f"value-{k}-{k * 7919 % n}" for k in range(n)]}, (64, 256, 1_024, 4_096)),
    "anyOf branches": (
        lambda n: {
            "anyOf": [closed({"kind": {"const": f"k{k}"}, f"p{k}": {"type": "integer"}}, ["kind"]) for k in range(n)]
        },
        (4, 8, 16, 32),
    ),
    "pattern repeat": (lambda n: {"type": "string", "pattern": f"^[a-z]{{1,{n}}}$"}, (8, 32, 128, 512)),
    "definitions used": (
        lambda n: {
            "$defs": {"point": closed({"x": {"type": "number"}, "y": {"type": "number"}}, ["x", "y"])},
            **closed({f"p{k}": {"$ref": "#/$defs/point"} for k in range(n)}),
        },
        (8, 16, 32, 64),
    ),
}


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of log cost against log size over the last sizes."""
    x = [math.log(n) for n in sizes[-LAST:]]
    y = [math.log(max(c, 1e-9)) for c in costs[-LAST:]]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum((a - mx) ** 2 for a in x)


def cost(compiler: Compiler, schema: dict[str, Any]) -> tuple[float, int, int]:
    """CPU seconds (the better of two), states, bytes."""
    seconds = math.inf
    for _ in range(2):
        begin = time.process_time()
        result = compiler.compile_json_schema(schema)
        seconds = min(seconds, time.process_time() - begin)
    return seconds, result.report.states, len(result.to_bytes())


def line(name: str, sizes: Sequence[int], costs: Sequence[tuple[float, int, int]]) -> str:
    seconds, states, data = zip(*costs, strict=True)
    ms = " ".join(f"{1e3 * s:.0f}" for s in seconds)
    slopes = " | ".join(f"{exponent(sizes, c):.2f}" for c in (seconds, states, data))
    return f"| {name} | {' '.join(map(str, sizes))} | {ms} | {slopes} |"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> None:
    p = argparse.ArgumentParser(prog="bench_growth")
    p.add_argument("--tokenizer", type=Path, default=DEMO)
    args = p.parse_args(argv or [])
    vocabulary = Vocabulary.from_file(args.tokenizer)
    compiler = Compiler(vocabulary)
    say(f"{args.tokenizer.name}, {vocabulary.size} tokens; exponents of the last {LAST} sizes")
    say("| grows | sizes | compile ms | seconds ~ n^ | states ~ n^ | bytes ~ n^ |\n|---|---|---|--:|--:|--:|")
    for name, (make, sizes) in FAMILIES.items():
        say(line(name, sizes, [cost(compiler, make(n)) for n in sizes]))
    schema = closed({"name": {"type": "string", "maxLength": 40}, "n": {"type": "integer"}})
    sizes = tuple(vocabulary.size >> k for k in (3, 2, 1, 0))
    say(line("vocabulary", sizes, [cost(Compiler(smaller(vocabulary, n)), schema) for n in sizes]))


def smaller(vocabulary: Vocabulary, size: int) -> Vocabulary:
    """The first `size` tokens, and every single byte."""
    table = [t if i < size or (t and len(t) == 1) else None for i, t in enumerate(vocabulary.tokens)]
    return Vocabulary.from_tokens(table, stop_token_ids=[])


if __name__ == "__main__":
    main(sys.argv[1:])
