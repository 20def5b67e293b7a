"""What sources at each default limit cost: the last column of LIMITS.md, which this writes anew.

Every source is made to be just within its limit, and as cheap as it can be beyond that. It's compiled in a child
process of its own, warmed before. What's told is processor time, peak memory and what came of it: an artifact, or the
other limit that it met first. `mask_bytes` and `artifact_bytes` are too far to reach with the demo vocabulary; they're
measured on what is reached and multiplied. MASKWRIGHT_LIMITS names some of the limits. Figures are of one core of this
machine.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from maskwright.compiler import Compiler, LimitExceeded, Vocabulary, pages
from maskwright.compiler.memory import MemoryUse
from maskwright.compiler.options import Limits

DEFAULT = Limits()
WALL_SECONDS = 240
FAR = 10_000.0
"""Seconds: time isn't what's measured at the other limits."""


def _nested(n: int) -> str:
    return '{"items":' * n + "{}" + "}" * n


def _chain(n: int) -> dict[str, Any]:
    links = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{n}": {"type": "null"}}}


def _frames(n: int) -> dict[str, Any]:
    """An array of arrays, each of which is a frame of its own and calls another."""
    return {"prefixItems": [{"type": "array", "prefixItems": [{"const": i}], "items": False} for i in range(n)]}


SOURCES: dict[str, tuple[str, Callable[[], Any]]] = {
    "source_bytes": ("json_schema", lambda: {"type": "null", "description": "x" * (DEFAULT.source_bytes - 100)}),
    "schema_depth": ("json_schema", lambda: _nested(DEFAULT.schema_depth - 1)),
    "ref_expansion": ("json_schema", lambda: _chain(DEFAULT.ref_expansion - 10)),
    "properties": (
        "json_schema",
        lambda: {
            "properties": {f"p{i}": {"const": None} for i in range(DEFAULT.properties)},
            "additionalProperties": False,
        },
    ),
    "enum_values": ("json_schema", lambda: {"enum": [f"v{i * 7919}" for i in range(DEFAULT.enum_values)]}),
    "branches": ("json_schema", lambda: {"anyOf": [{"const": f"v{i * 7919}"} for i in range(DEFAULT.branches)]}),
    "pattern_length": ("regex", lambda: "ab" * (DEFAULT.pattern_length // 2)),
    "string_bound": ("json_schema", lambda: {"type": "string", "maxLength": DEFAULT.string_bound}),
    "array_bound": (
        "json_schema",
        lambda: {"type": "array", "items": {"const": None}, "maxItems": DEFAULT.array_bound},
    ),
    "frames": ("json_schema", lambda: _frames(DEFAULT.frames)),
    "states": ("regex", lambda: "[ab]*a[ab]{20}"),
    "stack_classes": ("json_schema", lambda: _frames(DEFAULT.stack_classes // 2)),
    "mask_bytes": ("json_schema", lambda: _frames(2_000)),
    "artifact_bytes": ("json_schema", lambda: _frames(2_000)),
}


def _measure(name: str, pipe: Connection) -> None:
    """In a child: (processor seconds, peak bytes, what came of it, report)."""
    kind, make = SOURCES[name]
    compiler = Compiler(Vocabulary.demo(), limits=Limits(compile_seconds=FAR))
    compiler.compile_json_schema({"items": {"pattern": "^a+$"}})
    source = make()
    text = source if isinstance(source, str) else json.dumps(source)
    memory, began = MemoryUse(), time.process_time()
    try:
        result = compiler.compile_regex(text) if kind == "regex" else compiler.compile_json_schema(text)
        spent, peak = time.process_time() - began, memory.peak()
        report = result.report.to_json()
        pipe.send((spent, peak, "", {k: report[k] for k in ("states", "masks", "artifact_bytes", "seconds")}))
    except LimitExceeded as error:
        pipe.send((time.process_time() - began, memory.peak(), error.limit_name, {}))
    except MemoryError:
        pipe.send((time.process_time() - began, DEFAULT.compile_memory, "memory", {}))


def _run(name: str) -> str:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(name, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(WALL_SECONDS):
            return f"more than {WALL_SECONDS} s"
        return _say_cost(name, *ours.recv())
    except EOFError:
        return "the process ended"
    finally:
        process.kill()
        process.join()


def _say_cost(name: str, spent: float, peak: int, met: str, report: dict[str, Any]) -> str:
    mib = peak / (1 << 20)
    if name == "mask_bytes":
        row = (4096 + 31) // 32 * 4
        rows = DEFAULT.mask_bytes // row
        seconds = report["seconds"]["rows"] * rows / report["masks"]
        stopped = ", so `compile_seconds` stops it" if seconds > DEFAULT.compile_seconds else ""
        return f"about {seconds:,.0f} s for the rows ({report['masks']:,} measured){stopped}"
    if name == "artifact_bytes":
        times = DEFAULT.artifact_bytes / report["artifact_bytes"]
        seconds = report["seconds"]["write"] * times
        return f"about {seconds:,.0f} s to write ({report['artifact_bytes']:,} bytes measured)"
    if met == name:
        return f"{spent:.1f} s, {mib:,.0f} MiB until it's refused"
    if met:
        return f"{spent:.1f} s, {mib:,.0f} MiB, then refused by `{met}`"
    return f"{spent:.1f} s, {mib:,.0f} MiB"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = os.environ.get("MASKWRIGHT_LIMITS", "").split() or list(SOURCES)
    costs = pages.measured(pages.LIMITS.read_text(encoding="utf-8"))
    costs |= {"compile_seconds": "itself", "compile_memory": "itself"}
    for name in wanted:
        costs[name] = _run(name)
        sys.stdout.write(f"{name:<16} {costs[name]}\n")
        sys.stdout.flush()
    pages.LIMITS.write_text(pages.limits_page(costs), encoding="utf-8")


if __name__ == "__main__":
    main()
