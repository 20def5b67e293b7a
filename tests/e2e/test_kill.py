"""A server that's killed at any point loses nothing that it answered, and serves nothing that's wrong."""

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
from pathlib import Path

from servers import TOKENIZER

from maskwright.workers.client import CallFailed, CompiledSource, RegisteredTokenizer, RegistryClient

ROUNDS = int(os.environ.get("MASKWRIGHT_KILLS", "4"))
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


def test_nothing_answered_is_lost(tmp_path: Path, connect: Callable[..., RegistryClient]) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    answered: dict[str, CompiledSource] = {}
    tokenizers: list[RegisteredTokenizer] = []
    choose = random.Random(5)
    for round_ in range(ROUNDS):
        server, address = _start(script, tmp_path / "data")
        client = connect(address, cache=f"cache{round_}")
        tokenizers.append(client.register_tokenizer(TOKENIZER))
        for source, before in answered.items():
            again = client.compile(source, tokenizers[0].fingerprint, kind="regex", request_id=before.key)
            assert (again.artifact, again.key, again.cached) == (before.artifact, before.key, True)
            assert len(client.fetch(again.artifact)) == again.artifact.size
        worker = threading.Thread(target=_compile_on, args=(client, tokenizers[0], round_, answered))
        worker.start()
        time.sleep(choose.uniform(0.05, 0.3))
        _kill(server)
        worker.join()
    assert len(answered) > ROUNDS
    assert [t.created for t in tokenizers] == [True] + [False] * (ROUNDS - 1)


def test_no_change_of_names_is_lost_or_half_done(tmp_path: Path, connect: Callable[..., RegistryClient]) -> None:
    """Publishes and promotes until the server is killed; what was answered is there, and no more than one beyond it."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    choose, published, promoted = random.Random(7), 0, 0
    for round_ in range(ROUNDS):
        server, address = _start(script, tmp_path / "data")
        client = connect(address, cache=f"cache{round_}")
        key = client.compile("x", client.register_tokenizer(TOKENIZER).fingerprint, kind="regex").key
        if round_:
            found = client.versions("n")
            assert [v.version for v in found] == list(range(len(found), 0, -1))
            assert len(found) in (published, published + 1)
            published = len(found)
            pointed = client.resolve("n:prod").version
            assert pointed in (promoted, published)
            promoted = pointed
        done = {"published": published, "promoted": promoted}
        worker = threading.Thread(target=_promote_on, args=(client, key, done))
        worker.start()
        time.sleep(choose.uniform(0.1, 0.4))
        _kill(server)
        worker.join()
        assert done["promoted"]
        published, promoted = done["published"], done["promoted"]
    assert published > ROUNDS


def _promote_on(client: RegistryClient, key: str, done: dict[str, int]) -> None:
    with contextlib.suppress(CallFailed):
        while True:
            done["published"] = client.publish("n", [key])
            client.promote("n", "prod", done["published"])
            done["promoted"] = done["published"]


def _compile_on(
    client: RegistryClient, tokenizer: RegisteredTokenizer, round_: int, answered: dict[str, CompiledSource]
) -> None:
    with contextlib.suppress(CallFailed):
        for number in range(10_000):
            source = f"source {round_} {number}"
            result = client.compile(source, tokenizer.fingerprint, kind="regex")
            answered[source] = result


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
