"""The demo: server, tokenizer, three schemas, a worker process, validated samples.

    1 start the server as a process of its own on loopback, with an empty data folder
    2 register a tokenizer
    3 compile three schemas; the last is refused, with a diagnostic
    4 a worker process fetches the artifacts over gRPC and samples under their masks from random logits
    5 validate every text with jsonschema-rs, which knows nothing of the masks

Ends with 0 when every text is valid and the third schema was refused, else with 1.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs

import maskwright.compiler.compile  # noqa: F401  its kernels are those that `kept_kernels` counts
from maskwright.compiler.jit import kept_kernels
from maskwright.workers.client import (
    ClientError,
    CompiledSource,
    DiskCache,
    RegisteredTokenizer,
    RegistryClient,
    SourceRefused,
)

from ..cli.terminal import Terminal, render_diagnostic
from .schemas import SCHEMAS, DemoSchema

SHOWN, SHOWN_CHARACTERS = 3, 100
OPTIONS = {"whitespace": "compact"}
"""Random logits love white space; without it the texts are easier to read."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    terminal = Terminal(as_json=False)
    with tempfile.TemporaryDirectory(prefix="maskwright-demo-") as folder:
        try:
            with _server(Path(folder) / "data") as address:
                return 0 if _Demo(terminal, address, Path(folder) / "cache", options).run() else 1
        except (ClientError, OSError, RuntimeError) as error:
            terminal.note(f"demo: {error}")
            return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m maskwright.registry.demo", description="The whole path once.")
    default = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
    parser.add_argument("--tokenizer", default=default, metavar="FILE", help="default: the one that ships")
    parser.add_argument("-n", "--number", type=int, default=200, help="texts of each schema")
    parser.add_argument("--seed", type=int, default=0)
    return parser


@contextmanager
def _server(data: Path) -> Iterator[str]:
    """A server process on a free port of loopback; yields its address, and drains it afterwards."""
    command = [sys.executable, "-m", "maskwright.registry.cli", "serve", "--json", "--listen", "127.0.0.1:0"]
    log = data.parent / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen([*command, "--data", str(data)], stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server didn't start:\n{log.read_text()}")
        yield json.loads(line)["address"]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Demo:
    def __init__(self, terminal: Terminal, address: str, cache: Path, options: argparse.Namespace) -> None:
        self._terminal, self._address, self._cache, self._options = terminal, address, cache, options
        self._kernels = kept_kernels()

    def run(self) -> bool:
        """Whether everything was as it should be."""
        self._say(f"server       {self._address}, a process of its own")
        with RegistryClient(self._address, cache=DiskCache(self._cache)) as client:
            tokenizer = self._register(client)
            compiled = [(schema, self._compile(client, tokenizer, schema)) for schema in SCHEMAS]
        as_planned = all((result is None) == schema.refused for schema, result in compiled)
        artifacts = {result.artifact.hash: schema for schema, result in compiled if result is not None}
        return self._sample(artifacts) and as_planned

    def _register(self, client: RegistryClient) -> RegisteredTokenizer:
        began = time.perf_counter()
        tokenizer = client.register_tokenizer(self._options.tokenizer)
        seconds = time.perf_counter() - began
        self._say(
            f"tokenizer    {tokenizer.name}: {tokenizer.vocab_size:,} tokens, fingerprint"
            f" {tokenizer.fingerprint[:12]}, pack {tokenizer.pack.size / 1024:,.0f} KiB, {seconds:.1f} s"
        )
        self._say_built()
        return tokenizer

    def _compile(
        self, client: RegistryClient, tokenizer: RegisteredTokenizer, schema: DemoSchema
    ) -> CompiledSource | None:
        self._say(f"\n{schema.name:<12} {schema.about}")
        began = time.perf_counter()

        def compile_() -> CompiledSource:
            return client.compile(
                schema.schema, tokenizer.fingerprint, options=OPTIONS, limits_profile=schema.profile
            )

        try:
            result = compile_()
        except SourceRefused as refused:
            self._say(f"  refused    {render_diagnostic(refused.diagnostics[0])}")
            return None
        middle = time.perf_counter()
        again = compile_()
        hit = (time.perf_counter() - middle) * 1000
        report = result.report
        self._say(
            f"  compiled   {result.artifact.size:,} bytes in {middle - began:.2f} s: {report['states']:,}"
            f" states, {report['contexts']:,} contexts, {report['masks']:,} masks of its own"
        )
        self._say_built()
        self._say(f"  again      {hit:.1f} ms, from the registry: {'yes' if again.cached else 'no'}")
        return result

    def _say_built(self) -> None:
        """On a new machine the time above is mostly not the source's."""
        before, self._kernels = self._kernels, kept_kernels()
        if self._kernels > before:
            self._say(
                "             most of that time: the server's compiler built code of its own, once on this machine"
            )

    def _sample(self, artifacts: dict[str, DemoSchema]) -> bool:
        *rows, last = self._run_worker(list(artifacts))
        loaded = last["compiler_loaded"]
        self._say(f"\nworker       a process of its own; compiler imported: {'yes' if loaded else 'no'}")
        judged = [self._judge(artifacts[row["artifact"]], row) for row in rows]
        return all(judged) and not loaded

    def _run_worker(self, hashes: list[str]) -> list[dict[str, Any]]:
        settings = [self._address, str(self._cache), str(self._options.number), str(self._options.seed)]
        command = [sys.executable, "-m", "maskwright.registry.demo.worker", *settings, *hashes]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            raise RuntimeError(f"the worker ended with {done.returncode}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _judge(self, schema: DemoSchema, row: dict[str, Any]) -> bool:
        validator = jsonschema_rs.validator_for(schema.schema)
        finished = [s["text"] for s in row["samples"] if s["finished"]]
        valid = sum(_is_valid(validator, text) for text in finished)
        microseconds = row["step_seconds"] * 1e6
        self._say(
            f"\n{schema.name:<12} fetched, checked and loaded in {row['load_seconds'] * 1000:.0f} ms\n"
            f"  sampled    {len(row['samples'])} texts, {row['tokens']:,} tokens; a step"
            f" allowed {statistics.median(row['legal']):,.0f}, took {microseconds:.1f} µs (fill, accept)\n"
            f"  valid      {valid} of {len(finished)} by jsonschema-rs"
        )
        for text in sorted(finished, key=len)[len(finished) // 2 :][:SHOWN]:
            self._say(f"    {text[:SHOWN_CHARACTERS]}{'…' if len(text) > SHOWN_CHARACTERS else ''}")
        return bool(finished) and valid == len(finished) == len(row["samples"])

    def _say(self, line: str) -> None:
        self._terminal.show([line], {})


def _is_valid(validator: Any, text: str) -> bool:
    try:
        return bool(validator.is_valid(json.loads(text)))
    except ValueError:
        return False


if __name__ == "__main__":
    raise SystemExit(main())
