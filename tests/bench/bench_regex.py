"""Compile times of patterns, against interegular and greenery where they're installed.

    python -m tests.bench.bench_regex --patterns maskbench-dev.jsonl.gz

One hundred of the file's patterns, evenly spaced among those that are anchored at both ends and nowhere else: the
peers have no anchors and match whole texts, so everyone gets what's between. Everyone makes a minimal automaton over
characters; the time of Maskwright to UTF-8 bytes is told apart. Times are of the CPU: all of them are Python in one
thread. Each pattern is compiled once, cold caches included, after one warm-up pattern that isn't among them. A peer's
time is compared on the patterns that both compile within `SECONDS` of wall time; "wrong" counts the patterns whose
shortest members by Maskwright, confirmed by `re`, the peer's automaton refuses.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.options import Limits
from maskwright.compiler.regex import compile_pattern, parse_pattern
from maskwright.compiler.regex.tree import Point, walk
from maskwright.compiler.regular import shortest_members, to_bytes

COUNT = 100
SECONDS = 10.0
LITERALS = 1200
ROUNDS = 3
PEERS = ("interegular", "greenery")
Accepts = Callable[[str], bool]


@dataclass
class Run:
    """One engine on all patterns: `seconds` by pattern where it made an automaton, and why it didn't elsewhere."""

    seconds: dict[str, float] = field(default_factory=dict)
    accepts: dict[str, Accepts] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench_regex")
    parser.add_argument("--patterns", type=Path, default=_default_file(), help="MaskBench schemas, .jsonl.gz")
    path: Path | None = parser.parse_args(arguments).patterns
    engines = {"maskwright": _maskwright, "interegular": _interegular, "greenery": _greenery}
    for name in PEERS:
        if importlib.util.find_spec(name) is None:
            _say(f"{name}: skipped, it isn't installed")
            del engines[name]
    if path is None or not path.is_file():
        _say("real patterns: skipped, there's no file of them (--patterns)")
    else:
        _real(_chosen(path), engines)
    _alternation(engines)


def _default_file() -> Path | None:
    folder = os.environ.get("MASKWRIGHT_SHARED")
    return Path(folder) / "data" / "maskbench-dev.jsonl.gz" if folder else None


# -- engines -------------------------------------------------------------------------------------------------------


def _maskwright(pattern: str) -> Accepts:
    dfa = compile_pattern(pattern, limits=Limits(pattern_length=1_000_000))
    return lambda text: dfa.label(text) >= 0


def _interegular(pattern: str) -> Accepts:
    import interegular

    fsm = interegular.parse_pattern(pattern).to_fsm().reduce()
    return lambda text: bool(fsm.accepts(text))


def _greenery(pattern: str) -> Accepts:
    import greenery

    fsm = greenery.parse(pattern).to_fsm().reduce()
    return lambda text: bool(fsm.accepts(text))


# -- real patterns -------------------------------------------------------------------------------------------------


def _chosen(path: Path) -> list[str]:
    found: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            found.update(_patterns(json.loads(line)["schema"]))
    inner = sorted({p[1:-1] for p in found if p.startswith("^") and p.endswith("$") and not p.endswith("\\$")})
    usable = [p for p in inner if p and _is_plain(p)]
    return [usable[i * len(usable) // COUNT] for i in range(COUNT)] if len(usable) > COUNT else usable


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        if isinstance(value.get("patternProperties"), dict):
            yield from value["patternProperties"]
        for inner in value.values():
            yield from _patterns(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns(inner)


def _is_plain(pattern: str) -> bool:
    """No anchors left, and Python takes it too."""
    try:
        re.compile(pattern)
        return not any(isinstance(n, Point) for _, n in walk(parse_pattern(pattern)))
    except (re.error, CompileError):
        return False


def _real(patterns: list[str], engines: dict[str, Callable[[str], Accepts]]) -> None:
    runs = {name: _run(engine, patterns) for name, engine in engines.items()}
    ours = runs["maskwright"]
    for name, run in runs.items():
        times = sorted(run.seconds.values())
        reasons = ", ".join(sorted({f"{n}× {why}" for why, n in _counts(run.failures).items()})) or "none"
        _say(
            f"{name:<12} {len(times)} of {len(patterns)} patterns: p50 {_ms(statistics.median(times))},"
            f" p90 {_ms(times[len(times) * 9 // 10])}, max {_ms(times[-1])}, sum {sum(times):.2f} s; failed: {reasons}"
        )
    for name in list(runs)[1:]:
        both = sorted(ours.seconds.keys() & runs[name].seconds.keys())
        ratios = sorted(runs[name].seconds[p] / ours.seconds[p] for p in both)
        total = sum(runs[name].seconds[p] for p in both) / sum(ours.seconds[p] for p in both)
        wrong = [p for p in both if not all(map(runs[name].accepts[p], _members(p)))]
        _say(
            f"{name} / maskwright on {len(both)} patterns: p10 {ratios[len(both) // 10]:.1f},"
            f" p50 {statistics.median(ratios):.1f}, p90 {ratios[len(both) * 9 // 10]:.1f}, sum {total:.1f};"
            f" wrong: {len(wrong)} {wrong[:2]}"
        )
    began = time.process_time()
    for pattern in ours.seconds:
        to_bytes(compile_pattern(pattern), "utf8")
    _say(f"maskwright, warm, to UTF-8 bytes: sum {time.process_time() - began:.2f} s")


def _run(engine: Callable[[str], Accepts], patterns: list[str]) -> Run:
    engine("[a-f]+(x|y)?")
    run = Run()
    for pattern in patterns:
        began = time.process_time()
        try:
            with _limited(SECONDS):
                run.accepts[pattern] = engine(pattern)
            run.seconds[pattern] = time.process_time() - began
        except Exception as error:  # a peer may raise anything, and that's a figure too
            run.failures[pattern] = type(error).__name__
    return run


def _members(pattern: str) -> list[str]:
    try:
        members = shortest_members(compile_pattern(pattern), 3)
    except CompileError:
        return []
    return [m for m in members if isinstance(m, str) and re.fullmatch(pattern, m)]


# -- a long alternation --------------------------------------------------------------------------------------------


def _alternation(engines: dict[str, Callable[[str], Accepts]]) -> None:
    words = [f"literal{i}-{i * i * 7919}" for i in range(LITERALS)]
    pattern = "|".join(words)
    seconds: dict[str, float] = {}
    for name, engine in engines.items():
        engine("a|b")
        began = time.process_time()
        try:
            with _limited(4 * SECONDS):
                best, accepts = min((_timed(engine, pattern) for _ in range(ROUNDS)), key=lambda found: found[0])
        except Exception as error:  # as above
            _say(f"{LITERALS} literals, {name}: {type(error).__name__} after {time.process_time() - began:.1f} s")
            continue
        seconds[name] = best
        right = all(map(accepts, words[::37])) and not accepts("literal0")
        ratio = "" if name == "maskwright" else f", ratio {best / seconds['maskwright']:.1f}"
        _say(f"{LITERALS} literals, {name}: best of {ROUNDS} {best:.2f} s{ratio}{'' if right else ', wrong'}")


def _timed(engine: Callable[[str], Accepts], pattern: str) -> tuple[float, Accepts]:
    began = time.process_time()
    accepts = engine(pattern)
    return time.process_time() - began, accepts


# -- measuring -----------------------------------------------------------------------------------------------------


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in here when it takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError

    # A timer of CPU time would make the CPU clock itself coarse.
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _counts(failures: dict[str, str]) -> dict[str, int]:
    return {why: list(failures.values()).count(why) for why in set(failures.values())}


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
