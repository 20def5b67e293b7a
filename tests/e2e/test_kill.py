"""A server that's killed at any point loses nothing that it answered, and serves nothing that's wrong.

`make kills` kills it 200 times; the tests of every day a few times.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from servers import TOKENIZER

from maskwright.workers.client import CallFailed, CompiledSource, RegistryClient

ROUNDS = int(os.environ.get("MASKWRIGHT_KILLS", "6")) // 2
"""Of each of the two tests."""
CHOOSE = random.Random(5)
SERVER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import faulty
from maskwright.registry.compiling import PoolLimits
from maskwright.registry.config import ServerConfig
from maskwright.registry.server import Server, Tasks

async def main():
    config = ServerConfig(address="127.0.0.1:0", data=Path(sys.argv[1]), pool=PoolLimits(children=1))
    server = Server(config, Tasks(faulty.compile_source, faulty.read_tokenizer, "test-1"))
    print(await server.start(), flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def _start(script: Path, data: Path) -> tuple[subprocess.Popen[str], str]:
    here = str(Path(__file__).parent)
    server = subprocess.Popen(
        [sys.executable, str(script), str(data), here], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def _kill(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert server.stdout is not None
    server.stdout.close()


def _kill_within(server: subprocess.Popen[str], seconds: float, work: Callable[[threading.Event], None]) -> None:
    """Kills a server at most so long after its first answer to a `work` that goes on."""
    answered = threading.Event()

    def run() -> None:
        with contextlib.suppress(CallFailed):
            work(answered)

    worker = threading.Thread(target=run)
    worker.start()
    try:
        assert answered.wait(120)
        time.sleep(CHOOSE.uniform(0.0, seconds))
    finally:
        _kill(server)
        worker.join()


def _compile_on(
    client: RegistryClient, fingerprint: str, round_: int, answered: dict[str, CompiledSource], done: threading.Event
) -> None:
    for number in range(10_000):
        source = f"source {round_} {number}"
        answered[source] = client.compile(source, fingerprint, kind="regex")
        done.set()


def _promote_on(client: RegistryClient, name: str, key: str, state: dict[str, int], done: threading.Event) -> None:
    while True:
        state["published"] = client.publish(name, [key])
        client.promote(name, "prod", state["published"])
        state["promoted"] = state["published"]
        done.set()


def test_nothing_answered_is_lost(tmp_path: Path, connect: Callable[..., RegistryClient]) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    answered: dict[str, CompiledSource] = {}
    fingerprint = ""

    def check(client: RegistryClient, sources: list[str]) -> None:
        for source in sources:
            before = answered[source]
            again = client.compile(source, fingerprint, kind="regex", request_id=before.key)
            assert (again.artifact, again.key, again.cached) == (before.artifact, before.key, True)
            assert len(client.fetch(again.artifact)) == again.artifact.size

    for round_ in range(ROUNDS):
        server, address = _start(script, tmp_path / "data")
        client = connect(address, cache=f"cache{round_}")
        tokenizer = client.register_tokenizer(TOKENIZER)
        assert tokenizer.created == (round_ == 0)
        fingerprint = tokenizer.fingerprint
        check(client, CHOOSE.sample(sorted(answered), min(20, len(answered))))

        _kill_within(server, 0.25, partial(_compile_on, client, fingerprint, round_, answered))
    server, address = _start(script, tmp_path / "data")
    check(connect(address, cache="last"), list(answered))
    _kill(server)
    assert len(answered) >= ROUNDS


def test_no_change_of_names_is_lost_or_half_done(tmp_path: Path, connect: Callable[..., RegistryClient]) -> None:
    """Publishes and promotes until the server is killed; what was answered is there, and no more than one beyond it."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    published = promoted = total = 0
    for round_ in range(ROUNDS):
        name, is_new = f"n{round_ // 20}", round_ % 20 == 0
        if is_new:
            published = promoted = 0
        server, address = _start(script, tmp_path / "data")
        client = connect(address, cache=f"cache{round_}")
        key = client.compile("x", client.register_tokenizer(TOKENIZER).fingerprint, kind="regex").key
        if not is_new:
            found = client.versions(name)
            assert [v.version for v in found] == list(range(len(found), 0, -1))
            assert len(found) in (published, published + 1)
            published = len(found)
            pointed = client.resolve(f"{name}:prod").version
            assert pointed in (promoted, published)
            promoted = pointed
        state = {"published": published, "promoted": promoted}

        _kill_within(server, 0.3, partial(_promote_on, client, name, key, state))
        total += state["published"] - published
        published, promoted = state["published"], state["promoted"]
    assert total >= ROUNDS


def test_children_end_with_a_killed_server(tmp_path: Path, connect: Callable[..., RegistryClient]) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    server, address = _start(script, tmp_path / "data")
    client = connect(address)
    tokenizer = client.register_tokenizer(TOKENIZER)
    client.compile("x", tokenizer.fingerprint, kind="regex")
    (log,) = (tmp_path / "data" / "workspace").rglob("compiled.log")
    child = int(log.read_text().split()[0])
    os.kill(child, 0)
    _kill(server)
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or _is_zombie(child):
            return
        time.sleep(0.05)
    raise AssertionError("the child outlived its server")


def test_serve_stops_on_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maskwright.registry.cli", "serve", "--json", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen([*command, "--data", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    taken = subprocess.run([*command[:-1], address, "--data", str(tmp_path)], capture_output=True, text=True)
    assert (taken.returncode, "error" in json.loads(taken.stdout)) == (4, True)
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    server.stdout.close()


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
