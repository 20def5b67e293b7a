"""A thousand hostile sources through a real server, and what its other callers notice of it.

The server runs as `maskwright serve` with two compiling processes and the limits of profile strict. Four attackers send
the sources of tests/hostile/source in turn, each text made new by a remark so that no refusal is remembered. Meanwhile
one caller asks for an artifact that's known, and another compiles a small schema that's new each time, in the same two
processes; their latencies are told before and during the attack. At the end: how each source ended, whether the server
and its processes hold more memory than before, and whether they're the same processes. MASKWRIGHT_HOSTILE sets how many
are sent.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskwright.workers.client import CallFailed, ClientError, DiskCache, RegistryClient

COUNT = int(os.environ.get("MASKWRIGHT_HOSTILE", "1000"))
ATTACKERS = 4
QUIET_SECONDS = 8.0
PAUSE = 0.02
DEMO = Path(__file__).parents[2] / "compiler" / "maskwright" / "compiler" / "data" / "demo.tokenizer.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "maskwright.registry.cli", "serve", "--json", "--compilers", "2"]
        server = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--data", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert server.stdout is not None
            _run(json.loads(server.stdout.readline())["address"], server.pid, Path(folder))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def _run(address: str, pid: int, folder: Path) -> None:
    with RegistryClient(address, cache=DiskCache(folder / "cache"), timeout=300) as client:
        fingerprint = client.register_tokenizer(str(DEMO)).fingerprint
        callers = _Callers(address, folder, fingerprint)
        callers.run_for(QUIET_SECONDS)
        quiet = callers.take()
        _attack(address, folder, fingerprint, 2 * ATTACKERS)  # both processes have met some
        memory, began = _memory(pid), time.monotonic()
        with callers.running():
            ended = _attack(address, folder, fingerprint, COUNT)
        seconds = time.monotonic() - began
        busy = callers.take()
        time.sleep(2)
        _report(ended, seconds, quiet, busy, memory, _memory(pid))


def _attack(address: str, folder: Path, fingerprint: str, count: int) -> Counter[str]:
    sources = _sources()
    chosen = [sources[i % len(sources)] for i in range(count)]
    ended: Counter[str] = Counter()
    lock = threading.Lock()

    def send(share: int) -> None:
        with RegistryClient(address, cache=DiskCache(folder / f"attack{share}"), attempts=1, timeout=300) as client:
            for number in range(share, count, ATTACKERS):
                how = _send(client, fingerprint, chosen[number], f"{count}-{number}")
                with lock:
                    ended[how] += 1

    with ThreadPoolExecutor(ATTACKERS) as pool:
        list(pool.map(send, range(ATTACKERS)))
    return ended


def _send(client: RegistryClient, fingerprint: str, hostile: Any, mark: str) -> str:
    source = hostile.make()
    text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    try:
        client.compile(
            _marked(text, hostile.kind, mark),
            fingerprint,
            kind=hostile.kind,
            options=dict(hostile.options),
            limits_profile="strict",
        )
        return "artifact"
    except CallFailed as error:
        return error.reason or error.code
    except ClientError as error:
        return type(error).__name__
    except (ValueError, UnicodeError) as error:
        return f"not sent: {type(error).__name__}"


def _marked(text: str, kind: str, mark: str) -> str:
    """The source with something in it that makes it another, where that's possible without changing what it is."""
    if kind in ("lark",):
        return f"// {mark}\n{text}"
    if kind == "gbnf":
        return f"# {mark}\n{text}"
    if kind == "json_schema" and text.startswith("{") and not text.startswith("{}"):
        return '{"$comment":"' + mark + '",' + text[1:]
    return text


def _sources() -> list[Any]:
    path = Path(__file__).parents[1] / "hostile" / "source" / "hostile_sources.py"
    spec = importlib.util.spec_from_file_location("hostile_sources", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hostile_sources"] = module
    spec.loader.exec_module(module)
    return [h for h in module.SOURCES.values() if not h.huge]


class _Callers:
    """Two innocent callers, and the seconds that each of their calls took."""

    def __init__(self, address: str, folder: Path, fingerprint: str) -> None:
        self._address, self._folder, self._fingerprint = address, folder, fingerprint
        self._times: dict[str, list[float]] = {"known": [], "new": []}
        self._stop = threading.Event()
        self._number = 0

    def run_for(self, seconds: float) -> None:
        with self.running():
            time.sleep(seconds)

    def running(self) -> Any:
        @contextmanager
        def run() -> Iterator[None]:
            self._stop.clear()
            threads = [threading.Thread(target=self._call, args=(n,)) for n in self._times]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._stop.set()
                for thread in threads:
                    thread.join()

        return run()

    def take(self) -> dict[str, list[float]]:
        taken = {name: sorted(times) for name, times in self._times.items()}
        self._times = {name: [] for name in self._times}
        return taken

    def _call(self, name: str) -> None:
        with RegistryClient(self._address, cache=DiskCache(self._folder / name), timeout=300) as client:
            calls: dict[str, Callable[[], object]] = {
                "known": lambda: client.compile({"enum": ["a", "b"]}, self._fingerprint),
                "new": lambda: client.compile({"enum": [self._next(), "x"]}, self._fingerprint),
            }
            while not self._stop.is_set():
                began = time.perf_counter()
                calls[name]()
                self._times[name].append(time.perf_counter() - began)
                time.sleep(PAUSE)

    def _next(self) -> int:
        self._number += 1
        return self._number


def _memory(pid: int) -> dict[int, int]:
    """Resident bytes of the server and its children, by process."""
    command = ["ps", "-o", "pid=,rss=,args=", "--ppid", str(pid), "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, text=True)
    rows = (line.split(None, 2) for line in found.stdout.splitlines() if "resource_tracker" not in line)
    return {int(r[0]): int(r[1]) << 10 for r in rows}


def _report(
    ended: Counter[str],
    seconds: float,
    quiet: dict[str, list[float]],
    busy: dict[str, list[float]],
    before: dict[int, int],
    after: dict[int, int],
) -> None:
    how = ", ".join(f"{n} {k}" for k, n in ended.most_common())
    _say(f"{sum(ended.values()):,} hostile sources in {seconds:.0f} s: {how}")
    for name in quiet:
        _say(f"{name:<8} before: {_percentiles(quiet[name])}; meanwhile: {_percentiles(busy[name])}")
    for pid in sorted(set(before) | set(after)):
        _say(f"process {pid}: {_mib(before.get(pid))} before, {_mib(after.get(pid))} after")


def _percentiles(times: list[float]) -> str:
    if not times:
        return "no call"
    p50, p99 = times[len(times) // 2], times[-1 - len(times) // 100]
    return f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, max {times[-1] * 1e3:.0f} ms of {len(times)}"


def _mib(size: int | None) -> str:
    return "not there" if size is None else f"{size / (1 << 20):.0f} MiB"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
