"""Run as a program by `test_gate_kill`: forks workers that commit, and kills them with SIGKILL.

    gate_kills.py points FOLDER           one worker for each named step, killed when it gets there
    gate_kills.py race FOLDER             workers that commit the same keys at once
    gate_kills.py random FOLDER ROUNDS    workers that race and are killed at random moments

FOLDER holds an artifact and its pack; only the worker runtime is loaded. An action appends "key result" to the file
`effects`, which is the world: what it says happened. Results are printed as JSON for the test to judge.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maskwright.workers import Artifact
from maskwright.workers.gate import STEPS, CommitGate, Outcome, Request, SqliteStore

TEXT = '{"action":"ask"}'
IN_ACTION = ("before effect", "after effect")


class World:
    """A folder's artifact, store and effects."""

    def __init__(self, folder: Path, artifact: Artifact) -> None:
        self.folder, self.artifact = folder, artifact

    def gate(self, on_step: Callable[[str], None]) -> CommitGate:
        store = SqliteStore(self.folder / "calls.sqlite")
        schema = (self.folder / "schema.json").read_text()
        return CommitGate(self.artifact, schema, [lambda r: None], store, authorise=lambda r: True, on_step=on_step)

    def commit(self, gate: CommitGate, key: str, on_step: Callable[[str], None]) -> Outcome:
        def act(request: Request) -> str:
            on_step("before effect")
            result = f"{os.getpid()}-{time.monotonic_ns()}"
            append(self.folder / "effects", f"{request.key} {result}")
            on_step("after effect")
            return result

        return gate.commit(TEXT, key, act, ended="stop")

    def effects(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for line in lines(self.folder / "effects"):
            key, result = line.split()
            found[key].append(result)
        return found


def append(path: Path, line: str) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def ignore(step: str) -> None:
    """Nobody listens."""


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def points(world: World) -> list[dict[str, Any]]:
    """For each step: how the worker ended, the effects it left, and what the key is afterwards, twice."""
    found = []
    at = STEPS.index("ran")
    for number, point in enumerate((*STEPS[:at], *IN_ACTION, *STEPS[at:])):
        key = f"k{number}"

        def die(reached: str, point: str = point) -> None:
            if reached == point:
                os.kill(os.getpid(), signal.SIGKILL)

        child = fork(lambda key=key, die=die: world.commit(world.gate(die), key, die) and None)
        status = os.waitpid(child, 0)[1]
        left = list(world.effects()[key])
        gate = world.gate(ignore)
        after = [world.commit(gate, key, ignore).to_json() for _ in range(2)]
        found.append(
            {
                "point": point,
                "killed": os.WIFSIGNALED(status),
                "left": left,
                "after": after,
                "effects": world.effects()[key],
            }
        )
    return found


def commit_all(world: World, keys: list[str]) -> None:
    gate = world.gate(ignore)
    for key in keys:
        outcome = world.commit(gate, key, ignore).to_json()
        append(world.folder / "outcomes", json.dumps([key, outcome["outcome"], outcome.get("result")]))


def race(world: World) -> dict[str, Any]:
    keys = [f"k{n}" for n in range(12)]
    children = [fork(lambda: commit_all(world, keys)) for _ in range(6)]
    ended = [os.waitpid(child, 0)[1] for child in children]
    return {"ended": ended, "outcomes": outcomes(world), "effects": world.effects()}


def outcomes(world: World) -> list[Any]:
    return [json.loads(line) for line in lines(world.folder / "outcomes") if line.endswith("]")]


def kill_at_random(world: World, rounds: int) -> dict[str, Any]:
    choose = random.Random(3)
    settled = Counter[str]()
    for round_ in range(rounds):
        keys = [f"r{round_}-{n}" for n in range(40)]
        children = [fork(lambda keys=keys: commit_all(world, keys)) for _ in range(2)]
        time.sleep(choose.uniform(0.01, 0.25))
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        store = SqliteStore(world.folder / "calls.sqlite")
        before = world.effects()
        for entry in store.in_doubt():
            took = bool(before[entry.key])
            settled[f"took effect: {took}"] += 1
            result = before[entry.key][0] if took else None
            store.settle(entry.key, took_effect=took, by="test", why="the effects say so", result=result)
        store.close()
        commit_all(world, keys)
    return {"outcomes": outcomes(world), "effects": world.effects(), "settled": settled, "keys": 40 * rounds}


def main(arguments: list[str]) -> None:
    folder = Path(arguments[1])
    world = World(folder, Artifact.load(folder / "a.mwa"))
    if arguments[0] == "points":
        found: Any = points(world)
    elif arguments[0] == "race":
        found = race(world)
    else:
        found = kill_at_random(world, int(arguments[2]))
    assert "maskwright.compiler" not in sys.modules
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
