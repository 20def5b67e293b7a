"""Random pushdown frames for property tests: a table of states, each with stays, calls and maybe a verdict."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from maskwright.compiler.automaton.explore import Call, External, Stay

ALPHABET = b"abc"


@dataclass(frozen=True)
class Table:
    """`rows[frame][state]` is (verdict or None, ((byte, 'stay', state) | (byte, 'call', callee, returns), ...))."""

    rows: tuple[tuple[tuple[int | None, tuple[tuple[object, ...], ...]], ...], ...]
    external: bool = False


@dataclass(frozen=True)
class RandomFrame:
    table: Table
    number: int
    pointer: str = ""

    @property
    def name(self) -> str:
        return f"random{self.number}"

    def start(self) -> int:
        return 0

    def transitions(self, state: int) -> Iterable[Stay | Call]:
        for t in self.table.rows[self.number][state][1]:
            byte = t[0]
            assert isinstance(byte, int)
            if t[1] == "stay":
                assert isinstance(t[2], int)
                yield Stay(byte, byte, t[2])
            else:
                assert isinstance(t[2], int)
                callee = External(f"f{t[2]}") if self.table.external else RandomFrame(self.table, t[2])
                yield Call(callee, t[3], first=((byte, byte),))

    def verdict(self, state: int) -> int | None:
        return self.table.rows[self.number][state][0]

    def resume(self, continuation: tuple[int | None, ...], verdict: int) -> int | None:
        return continuation[verdict % len(continuation)]


def random_table(rng: random.Random, frames: int = 3, states: int = 4, *, flat: bool = False) -> Table:
    """`flat`: no calls at all (a library that others call)."""
    rows = []
    for _ in range(frames):
        row = []
        for s in range(states):
            verdict = rng.randrange(2) if s and rng.random() < 0.45 else None
            moves: list[tuple[object, ...]] = []
            for byte in ALPHABET:
                kind = rng.random()
                if kind < 0.45 or (s == 0 and kind < 0.8):
                    moves.append((byte, "stay", rng.randrange(1, states)))
                elif kind < 0.75 and s and not flat:
                    back = tuple(rng.choice([None, *range(1, states)]) for _ in range(2))
                    moves.append((byte, "call", rng.randrange(frames), back))
            row.append((verdict, tuple(moves)))
        rows.append(tuple(row))
    return Table(tuple(rows))


def random_tokens(rng: random.Random, count: int = 60, longest: int = 5) -> list[bytes | None]:
    """Every single byte of the alphabet, and random strings; some ids are unused, some tokens are doubled."""
    out: list[bytes | None] = [bytes([b]) for b in ALPHABET]
    while len(out) < count:
        out.append(bytes(rng.choice(ALPHABET) for _ in range(rng.randint(1, longest))) if rng.random() < 0.95 else None)
    rng.shuffle(out)
    return out
