"""`maskwright sample`: texts drawn from random logits under the mask."""

from __future__ import annotations

import argparse

from ..sampling import Sampler
from .files import read_artifact
from .terminal import EXIT_OK, EXIT_REFUSED, EXIT_USAGE, Failure, Terminal

NAME = "sample"
EXTRA = "compiler"
HELP = "draw texts from random logits under the mask"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact")
    parser.add_argument("--tokenizer", metavar="FILE", help="default: the pack beside the artifact")
    parser.add_argument("-n", "--number", type=int, default=5, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--max-tokens", type=int, default=2000)
    parser.add_argument(
        "--wind-down", type=int, default=40, metavar="TOKENS", help="from here on favour tokens that close"
    )


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    if options.number < 1 or options.max_tokens < 1 or options.seed < 0:
        raise Failure(EXIT_USAGE, "-n and --max-tokens must be at least 1, --seed at least 0")
    artifact = read_artifact(options.artifact, options.tokenizer, terminal)
    if not artifact.pack.stop_token_ids:
        raise Failure(EXIT_USAGE, "the vocabulary has no stop token, so no text would end")
    sampler = Sampler(artifact, options.seed, options.wind_down)
    with terminal.working("sampling"):
        samples = [sampler.draw(options.max_tokens) for _ in range(options.number)]
    lines = [s.text if s.finished else f"{s.text} … (cut after {len(s.tokens)} tokens)" for s in samples]
    if len(lines) > 1 and any(len(line.splitlines()) > 1 for line in lines):
        lines = [f"--- {n}\n{line}" for n, line in enumerate(lines, 1)]
    fields = {"samples": [{"text": s.text, "tokens": s.tokens, "finished": s.finished} for s in samples]}
    terminal.show(lines, fields)
    return EXIT_OK if all(s.finished for s in samples) else EXIT_REFUSED
