"""Import time and resident memory of `maskwright.workers`, beside its peers'.

Each import runs in a fresh process, `ROUNDS` times in turn, files cached. The figure is what the import adds to a bare
interpreter: processor time, and resident memory (Linux) after it. numpy is a part of all of them, so it has a line of
its own. What isn't installed is left out: `make test-adapters` has the peers, and
`.venv-adapters/bin/python -m tests.bench bench_import` measures with them.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys

ROUNDS = 7
MODULES = (
    "numpy",
    "maskwright.workers",
    "maskwright.workers.client",
    "maskwright.workers.tensors.masks",
    "torch",
    "xgrammar",
    "llguidance",
)
CHILD = """
import time
begin = time.process_time()
{statement}
seconds = time.process_time() - begin
pages = int(open('/proc/self/statm').read().split()[1])
import resource
print(seconds, pages * resource.getpagesize())
"""


def measure(statement: str) -> tuple[float, int]:
    """(processor seconds of the statement, resident bytes after it) in a fresh process."""
    code = CHILD.format(statement=statement)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, resident = out.stdout.split()
    return float(seconds), int(resident)


def figures(modules: list[str]) -> dict[str, tuple[float, float]]:
    """Median (milliseconds, MiB beyond a bare interpreter) of each, measured in turn."""
    found: dict[str, list[tuple[float, int]]] = {m: [] for m in ["", *modules]}
    for _ in range(ROUNDS):
        for module, results in found.items():
            results.append(measure(f"import {module}" if module else "pass"))
    bare = statistics.median(r for _, r in found[""])
    return {
        m: (1000 * statistics.median(s for s, _ in r), (statistics.median(b for _, b in r) - bare) / 2**20)
        for m, r in found.items()
        if m
    }


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def main() -> None:
    there = [m for m in MODULES if is_there(m)]
    if importlib.util.find_spec("torch") is None:
        there = [m for m in there if m != "maskwright.workers.tensors.masks"]
    sys.stdout.write(f"{'import':34} {'ms':>8} {'MiB':>8}\n")
    for module, (milliseconds, resident) in figures(there).items():
        sys.stdout.write(f"{module:34} {milliseconds:8.1f} {resident:8.1f}\n")
    for module in MODULES:
        if module not in there:
            sys.stdout.write(f"{module:34} not installed\n")


if __name__ == "__main__":
    main()
