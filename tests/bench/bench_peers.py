"""Maskwright beside its peers on one set of schemas and texts: compile, load to first mask, fill + accept, sizes.

    python -m tests.bench.bench_peers --schemas schemas.jsonl.gz --tokenizer tokenizer.json.gz \
        --stop '<|eot_id|>' --sample 200 --engines maskwright,llguidance,xgrammar --out results

The schemas' file has a JSON object a line, {"id", "schema", "tests": [{"valid", "data"}]}; a text is `json.dumps(data)`
without escaping. Without `--schemas` the demo's schemas and the demo tokenizer are used, and texts drawn under masks.

Each engine runs in a process of its own. Schema by schema all engines take their turn, so that noise falls on all of
them; one that takes more than `--limit` seconds or dies is started anew and has that schema against it. Times are taken
inside Python around the calls. A table over the schemas that all engines compiled goes to `OUT.md` (and is printed),
with machine, versions and inputs; the curves to `OUT.svg`; each schema's figures to `OUT.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import random
import sys
import time
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.bench.engines import ENGINES, available, read_text, version
from tests.bench.plot import Curve, plot_curves

PERCENTILES = (50, 90, 99, 99.9)
MEASURES = {
    "compile": "compile, ms",
    "first": "compiled form → first mask, ms",
    "ttfm": "compile + first mask, ms",
    "step": "fill + accept, µs",
    "size": "stored bytes",
}
WARM_UP = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}'


def serve(pipe: Connection, name: str, tokenizer: Path, stop: str) -> None:
    """The engine's process: takes (schema, texts), sends a record."""
    from tokenizers import Tokenizer

    tok = Tokenizer.from_str(read_text(tokenizer))
    stop_id = tok.token_to_id(stop)
    if stop_id is None:
        raise ValueError(f"{tokenizer.name} has no token {stop!r}")
    engine = ENGINES[name](tokenizer, stop_id, tok.get_vocab_size())
    engine.compile(WARM_UP)
    engine.load()
    engine.fill()
    pipe.send("ready")
    while (work := pipe.recv()) is not None:
        schema, texts = work
        pipe.send(measure(engine, schema, [tok.encode(t, add_special_tokens=False).ids for t in texts]))


def measure(engine: Any, schema: str, texts: list[list[int]]) -> dict[str, Any]:
    """Times of one schema in seconds, and for each text whether the engine takes it whole."""
    clock = time.perf_counter
    try:
        begin = clock()
        engine.compile(schema)
        compiled = clock()
        engine.load()
        engine.fill()
        record: dict[str, Any] = {"compile": compiled - begin, "first": clock() - compiled, "size": engine.size}
        record["step"], record["taken"] = [], []
        for tokens in texts:
            engine.restart()
            record["taken"].append(follow(engine, tokens, record["step"]))
    except Exception as e:  # an engine's own errors have no common type
        return {"refused": f"{type(e).__name__}: {e}"[:300]}
    return record


def follow(engine: Any, tokens: list[int], step: list[float]) -> bool:
    clock = time.perf_counter
    for token in tokens:
        begin = clock()
        engine.fill()
        filled = clock()
        legal = engine.legal(token)
        asked = clock()
        accepted = engine.accept(token)
        step.append(filled - begin + clock() - asked)
        if not (legal and accepted):
            return False
    engine.fill()
    return bool(engine.legal(engine.stop))


class Contestant:
    """One engine's process, started anew when it dies or takes too long."""

    def __init__(self, name: str, tokenizer: Path, stop: str, limit: float) -> None:
        self.name, self.arguments, self.limit = name, (name, tokenizer, stop), limit
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, *self.arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def run(self, schema: str, texts: list[str]) -> dict[str, Any]:
        self.pipe.send((schema, texts))
        try:
            if self.pipe.poll(self.limit):
                record: dict[str, Any] = self.pipe.recv()
                return record
            outcome = f"over {self.limit:g} s"
        except EOFError:
            outcome = "died"
        self.process.kill()
        self.process.join()
        self.start()
        return {"refused": outcome}

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join()


def percentile(values: Sequence[float], p: float) -> float:
    return sorted(values)[min(len(values) - 1, math.floor(len(values) * p / 100))] if values else math.nan


def figures(records: Iterable[dict[str, Any]]) -> dict[str, list[float]]:
    """Of each measure all values, in its unit."""
    out: dict[str, list[float]] = {m: [] for m in MEASURES}
    for r in records:
        out["compile"].append(1e3 * r["compile"])
        out["first"].append(1e3 * r["first"])
        out["ttfm"].append(1e3 * (r["compile"] + r["first"]))
        out["step"].extend(1e6 * s for s in r["step"])
        if r["size"] is not None:
            out["size"].append(r["size"])
    return out


def table(results: dict[str, list[dict[str, Any]]], rows: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Markdown lines, and the figures over the schemas that every engine compiled."""
    common = [i for i in range(len(rows)) if all("refused" not in r[i] for r in results.values())]
    lines = ["| | compiled | valid refused | invalid taken | " + " | ".join(f"p{p:g}" for p in PERCENTILES) + " |"]
    lines.append("|---|--:|--:|--:|" + "--:|" * len(PERCENTILES))
    found = {name: figures(records[i] for i in common) for name, records in results.items()}
    for name, records in results.items():
        done = [(r, row) for r, row in zip(records, rows, strict=True) if "refused" not in r]
        texts = [(took, t["valid"]) for r, row in done for took, t in zip(r["taken"], row["tests"], strict=True)]
        blocked, passed = sum(v and not t for t, v in texts), sum(t and not v for t, v in texts)
        lines.append(f"| **{name}** | {len(done)} of {len(rows)} | {blocked} | {passed} |" + " |" * len(PERCENTILES))
        for measure, title in MEASURES.items():
            if values := found[name][measure]:
                cells = " | ".join(f"{percentile(values, p):,.2f}" for p in PERCENTILES)
                lines.append(f"| {title} | | | | {cells} |")
    return [f"Percentiles are over the {len(common)} schemas that all of them compiled.", "", *lines], found


def demo_rows(tokenizer: Path) -> list[dict[str, Any]]:
    """The demo's schemas, with texts drawn under their masks."""
    from maskwright.compiler import Compiler, Vocabulary
    from maskwright.registry.demo.schemas import SCHEMAS
    from maskwright.registry.sampling import Sampler
    from maskwright.workers import Artifact, VocabularyPack

    vocabulary = Vocabulary.from_file(tokenizer)
    compiler, pack = Compiler(vocabulary), VocabularyPack.from_bytes(vocabulary.pack_bytes())
    rows = []
    for demo in SCHEMAS:
        if not demo.refused:
            artifact = Artifact.from_bytes(compiler.compile_json_schema(demo.schema).to_bytes(), pack)
            drawn = [Sampler(artifact, seed).draw(512) for seed in range(20)]
            tests = [{"valid": True, "data": json.loads(s.text)} for s in drawn if s.finished]
            rows.append({"id": demo.name, "schema": demo.schema, "tests": tests})
    return rows


def arguments(argv: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="bench_peers", description=__doc__.split("\n")[0] if __doc__ else None)
    p.add_argument("--schemas", type=Path)
    p.add_argument("--tokenizer", type=Path)
    p.add_argument("--stop", default="<|end|>", help="the stop token's text")
    p.add_argument("--engines", help=f"of {', '.join(ENGINES)}; default: those that are installed")
    p.add_argument("--sample", type=int, default=0, help="schemas to draw; default: all")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--limit", type=float, default=60, help="seconds a schema may take")
    p.add_argument("--out", type=Path, help="where results go, without ending; default: a table on the screen only")
    return p.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = arguments(argv or [])
    demo = Path(__file__).parents[2] / "compiler/maskwright/compiler/data/demo.tokenizer.json"
    tokenizer = args.tokenizer or demo
    rows = [json.loads(line) for line in read_text(args.schemas).splitlines()] if args.schemas else demo_rows(tokenizer)
    if args.sample and args.sample < len(rows):
        rows = random.Random(args.seed).sample(rows, args.sample)
    names = args.engines.split(",") if args.engines else available()
    contestants = [Contestant(name, tokenizer, args.stop, args.limit) for name in names]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        texts = [json.dumps(t["data"], ensure_ascii=False) for t in row["tests"]]
        for c in contestants:
            results[c.name].append(c.run(json.dumps(row["schema"]), texts))
    for c in contestants:
        c.stop()
    lines, found = table(results, rows)
    cpus = multiprocessing.cpu_count()
    head = [
        f"Machine: {platform.machine()}, {cpus} cores, {platform.system()}, Python {platform.python_version()}.",
        "Versions: " + ", ".join(f"{n} {version(n)}" for n in names) + ".",
        f"Input: {len(rows)} schemas of {args.schemas.name if args.schemas else 'the demo'}, seed {args.seed}, "
        f"tokenizer {tokenizer.name}.",
        "",
    ]
    text = "\n".join([*head, *lines, ""])
    sys.stdout.write(text + "\n")
    if args.out:
        args.out.with_suffix(".md").write_text(text)
        records = [{"engine": n, "id": row["id"], **r} for n in names for row, r in zip(rows, results[n], strict=True)]
        args.out.with_suffix(".jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        curves = {title: [Curve(n, found[n][m]) for n in names] for m, title in MEASURES.items()}
        args.out.with_suffix(".svg").write_text(plot_curves(curves))


if __name__ == "__main__":
    main(sys.argv[1:])
