"""`DeviceMatcher` on a CUDA device: is it right there, does it copy, and what does a step take?

Without torch or a CUDA device it says so and measures nothing. It hasn't been run on one yet: on CPU tensors the same
code and kernels are tested (`tests/tensors`), and the kernels compile for sm_80 and sm_90.

    right    random tokens over compiled sources, masks and verdicts against `Matcher`, eager and from a captured graph
    copies   the profile of captured steps: no kernel or call that copies to or from the host, or waits
    time     of a step (advance and mask), from a graph, at batches of 1, 32 and 256; beside it xgrammar's way: fill
             on the CPU for each sequence, copy, apply its kernel (where xgrammar is installed)

`TOKENIZER=file` takes another vocabulary than the small one that the package ships.
"""

from __future__ import annotations

import importlib.util
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

DEVICE = "cuda"
BATCHES = (1, 32, 256)
STEPS = 200
SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"enum": ["refund", "ask", "close"]},
        "amount": {"type": "number"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["action"],
    "$defs": {
        "line": {
            "type": "object",
            "properties": {"note": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
            "required": ["note"],
        }
    },
}
TEXT = '{"action": "refund", "amount": 12.5, "lines": [{"note": "späť ✓", "parts": [{"note": "a"}, {"note": "b"}]}]}'


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def artifacts() -> list[Any]:
    from maskwright.compiler import Compiler, Vocabulary
    from maskwright.workers import Artifact, VocabularyPack

    named = os.environ.get("TOKENIZER")
    vocabulary = Vocabulary.from_file(named) if named else Vocabulary.demo()
    compiler, pack = Compiler(vocabulary), VocabularyPack.from_bytes(vocabulary.pack_bytes())
    made = [
        compiler.compile_json_schema(SCHEMA),
        compiler.compile_json_schema(True),
        compiler.compile_regex("[0-9]{1,3}(-[0-9]{2}){0,2}"),
    ]
    return [Artifact.from_bytes(r.to_bytes(), pack) for r in made]


def captured(step: Callable[[], None]) -> Any:
    """A CUDA graph of `step`, after runs that compile its kernels."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def check(found: list[Any], batch: int, steps: int, graph: bool) -> int:
    """Compares with `Matcher`; returns the number of accepted tokens. Raises AssertionError where they differ."""
    import torch

    from maskwright.workers import Matcher, allocate_token_bitmask
    from maskwright.workers.tensors import DeviceMatcher, DeviceTables

    rng, tables = random.Random(0), DeviceTables(found, DEVICE)
    device = DeviceMatcher(tables, batch)
    width = tables.vocab_size + 100
    tokens = torch.full((batch,), -1, dtype=torch.int64, device=DEVICE)
    source = torch.randn((batch, width), dtype=torch.float16, device=DEVICE)
    logits = source.clone()

    def step() -> None:
        logits.copy_(source)
        device.step(tokens, logits)

    run = captured(step).replay if graph else step
    hosts = [Matcher(found[i % len(found)]) for i in range(batch)]
    for i in range(batch):
        device.reset([i], i % len(found))
    mask, accepted = allocate_token_bitmask(batch, tables.vocab_size), 0
    run()
    for _ in range(steps):
        for i, host in enumerate(hosts):
            host.fill_next_token_bitmask(mask, i)
        legal = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")[:, : tables.vocab_size].astype(bool)
        got = torch.isfinite(logits).cpu().numpy()
        assert (got[:, : tables.vocab_size] == legal).all() and not got[:, tables.vocab_size :].any()
        chosen = [rng.choice(np.flatnonzero(row).tolist()) if rng.random() < 0.95 else 0 for row in legal]
        tokens.copy_(torch.tensor(chosen))
        run()
        verdicts = [host.accept_token(t) for host, t in zip(hosts, chosen, strict=True)]
        assert device.accepted.tolist() == verdicts
        assert device.is_terminated().tolist() == [host.is_terminated() for host in hosts]
        accepted += sum(verdicts)
    assert device.failures() == {}
    return accepted


def copies(found: list[Any]) -> list[str]:
    """Names in the profile of captured steps that copy to or from the host."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from maskwright.workers.tensors import DeviceMatcher, DeviceTables

    device = DeviceMatcher(DeviceTables(found, DEVICE), 32)
    tokens = torch.full((32,), -1, dtype=torch.int64, device=DEVICE)
    logits = torch.zeros((32, device.tables.vocab_size), device=DEVICE)
    graph = captured(lambda: device.step(tokens, logits) and None)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(20):
            graph.replay()
    names = {event.key for event in seen.key_averages()}
    return sorted(n for n in names if "HtoD" in n or "DtoH" in n or "cudaMemcpy" in n)


def time_device(found: list[Any], batch: int) -> float:
    """Microseconds of a captured step along a text that all sequences write."""
    import torch

    from maskwright.workers.tensors import DeviceMatcher, DeviceTables

    device = DeviceMatcher(DeviceTables(found[:1], DEVICE), batch)
    tokens = torch.full((batch,), -1, dtype=torch.int64, device=DEVICE)
    logits = torch.zeros((batch, device.tables.vocab_size), dtype=torch.float16, device=DEVICE)
    graph = captured(lambda: device.step(tokens, logits) and None)
    path = torch.tensor(along(found[0]), device=DEVICE)
    times = []
    for _ in range(STEPS // len(path) + 1):
        device.reset()
        for token in path:
            tokens.fill_(token)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        assert device.accepted.all()
    return statistics.median(times)


def along(artifact: Any) -> list[int]:
    """Tokens that write TEXT, the longest that fit."""
    pack = artifact.pack
    ids = {b: i for i in range(pack.vocab_size) if (b := pack.token_bytes(i))}
    data, out = TEXT.encode(), []
    while data:
        size = next(n for n in range(min(64, len(data)), 0, -1) if data[:n] in ids)
        out.append(ids[data[:size]])
        data = data[size:]
    return out


def time_xgrammar(found: list[Any], batch: int) -> float | None:
    """Microseconds of accept and fill on the CPU, copy and apply, along the same text; None without xgrammar."""
    if importlib.util.find_spec("xgrammar") is None:
        return None
    import json

    import torch
    import xgrammar

    pack = found[0].pack
    table = [pack.token_bytes(i) or b"" for i in range(pack.vocab_size)]
    info = xgrammar.TokenizerInfo(table, xgrammar.VocabType.RAW, stop_token_ids=list(pack.stop_token_ids))
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(SCHEMA))
    mask = xgrammar.allocate_token_bitmask(batch, pack.vocab_size).pin_memory()
    logits = torch.zeros((batch, pack.vocab_size), dtype=torch.float16, device=DEVICE)
    path, times = along(found[0]), []
    for _ in range(STEPS // len(path) + 1):
        matchers = [xgrammar.GrammarMatcher(compiled) for _ in range(batch)]
        for token in path:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for i, matcher in enumerate(matchers):
                assert matcher.accept_token(token)
                matcher.fill_next_token_bitmask(mask, i)
            xgrammar.apply_token_bitmask_inplace(logits, mask.to("cuda", non_blocking=True))
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def main() -> None:
    if importlib.util.find_spec("torch") is None:
        say("no torch: nothing measured")
        return
    import torch

    if not torch.cuda.is_available():
        say("no CUDA device: nothing measured")
        return
    found = artifacts()
    say(f"{torch.cuda.get_device_name()}, {found[0].vocab_size} tokens")
    for graph in (False, True):
        say(f"right: {check(found, 24, 120, graph)} tokens accepted as by Matcher, {'graph' if graph else 'eager'}")
    say(f"copies in captured steps: {copies(found) or 'none'}")
    say(f"{'us a step':>12} {'device':>10} {'xgrammar':>10}")
    for batch in BATCHES:
        theirs = time_xgrammar(found, batch)
        say(f"{batch:12} {time_device(found, batch):10.1f} {'-' if theirs is None else f'{theirs:10.1f}'}")


if __name__ == "__main__":
    main()
