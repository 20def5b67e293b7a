"""The demo's worker process: fetches artifacts over gRPC, samples under their masks, prints JSON lines.

It stands for an inference worker, so it uses the worker runtime and its client; the compiler isn't imported,
and it says so.

    python -m maskwright.registry.demo.worker ADDRESS CACHE NUMBER SEED ARTIFACT...
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from maskwright.workers.client import DiskCache, RegistryClient

from ..sampling import Sampler


def main(arguments: list[str]) -> int:
    address, cache, number, seed, *hashes = arguments
    with RegistryClient(address, cache=DiskCache(cache)) as client:
        for hash_ in hashes:
            _write(_work(client, hash_, int(number), int(seed)))
    _write({"compiler_loaded": any(name.startswith("maskwright.compiler") for name in sys.modules)})
    return 0


def _work(client: RegistryClient, hash_: str, number: int, seed: int) -> dict[str, Any]:
    began = time.perf_counter()
    artifact = client.load_artifact(hash_)
    loaded = time.perf_counter()
    sampler = Sampler(artifact, seed)
    samples = [sampler.draw(max_tokens=2000) for _ in range(number)]
    return {
        "artifact": hash_,
        "load_seconds": loaded - began,
        "samples": [{"text": s.text, "finished": s.finished} for s in samples],
        "tokens": sum(len(s.tokens) for s in samples),
        "legal": [count for s in samples for count in s.legal],
        "step_seconds": statistics.median(sampler.step_seconds),
    }


def _write(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
