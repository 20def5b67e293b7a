"""A matcher's state as bytes, and back: for preemption and for moving a sequence to another process.

    magic "MWS" and version 1
    SHA-256 of the artifact (32 bytes), fingerprint of the vocabulary (32 bytes)
    stop tokens: count, ids ascending
    the state that history begins at: terminated (0 or 1), control, depth of the stack, its symbols from the bottom up
    steps after it: count, then for each token 2 * token, for each text 2 * length + 1 and its bytes
    CRC-32 of all before (4 bytes, little-endian)

Numbers are unsigned LEB128. Contexts aren't stored: they follow from the symbols. Steps are accepted again, so
that whatever the bytes say, the matcher is in a state that its tables allow; checks, in order: length, checksum,
magic and version, artifact, vocabulary, stop tokens, state, steps, end.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, TypeVar

from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import SnapshotError
from maskwright.workers.state import TERMINATED, Stack, State
from maskwright.workers.ways import NOWHERE, PLACE_SHIFT

if TYPE_CHECKING:
    from maskwright.workers.matcher import Matcher

    M = TypeVar("M", bound=Matcher)

MAGIC, VERSION = b"MWS", 1
FIXED = len(MAGIC) + 1 + 32 + 32
MAX_NUMBER = 1 << 40


def write_snapshot(matcher: Matcher, history: int | None) -> bytes:
    """`Matcher.snapshot`. Raises ValueError for a negative history."""
    if history is not None and history < 0:
        raise ValueError(f"history {history} is negative")
    state, steps = matcher._state, list[int | bytes]()
    while state[4] is not None and (history is None or len(steps) < history):
        steps.append(state[5])
        state = state[4]
    out = bytearray(MAGIC)
    out.append(VERSION)
    out += bytes.fromhex(matcher.artifact.digest) + bytes.fromhex(matcher.artifact.pack.fingerprint)
    stops = sorted(set(matcher.stop_token_ids))
    symbols, stack = list[int](), state[2]
    while stack is not None:
        symbols.append(stack[0])
        stack = stack[2]
    numbers = [len(stops), *stops, int(state[3] == TERMINATED), state[0], len(symbols), *reversed(symbols), len(steps)]
    for number in numbers:
        _put(out, number)
    for step in reversed(steps):
        if isinstance(step, bytes):
            _put(out, 2 * len(step) + 1)
            out += step
        else:
            _put(out, 2 * step)
    return bytes(out) + zlib.crc32(out).to_bytes(4, "little")


def _put(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, part: str, below: int = MAX_NUMBER) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data):
                raise SnapshotError(part, "ends early")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 42:
                raise SnapshotError(part, "a number is too long")
        if value >= below:
            raise SnapshotError(part, f"{value} isn't below {below}")
        return value

    def count(self, part: str) -> int:
        """Of things that take at least a byte each."""
        return self.number(part, len(self.data) - self.at + 1)

    def bytes(self, part: str, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise SnapshotError(part, "ends early")
        self.at += length
        return self.data[self.at - length : self.at]


def read_snapshot(kind: type[M], artifact: Artifact, data: bytes) -> M:
    """`Matcher.restore`."""
    data = bytes(memoryview(data))
    if len(data) < FIXED + 4:
        raise SnapshotError("form", f"{len(data)} bytes are too few")
    if data[:3] != MAGIC:
        raise SnapshotError("form", "doesn't begin as a snapshot")
    if data[3] != VERSION:
        raise SnapshotError("version", f"{data[3]}, this reader knows {VERSION}")
    if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        raise SnapshotError("checksum", "the bytes were changed")
    if data[4:36].hex() != artifact.digest:
        raise SnapshotError("artifact", f"made with {data[4:36].hex()}, not {artifact.digest}")
    if data[36:68].hex() != artifact.pack.fingerprint:
        raise SnapshotError("vocabulary", f"made with {data[36:68].hex()}, not {artifact.pack.fingerprint}")
    read = _Reader(data[:-4])
    read.at = FIXED
    stops = [read.number("stop tokens", artifact.vocab_size) for _ in range(read.count("stop tokens"))]
    matcher = kind(artifact, stops)
    matcher._state = _read_state(read, artifact)
    _read_steps(read, matcher)
    if read.at != len(read.data):
        raise SnapshotError("form", f"{len(read.data) - read.at} bytes follow the end")
    return matcher


def _read_state(read: _Reader, a: Artifact) -> State:
    automaton, frames = a.automaton, a.context_frame
    terminated, control = read.number("state", 2), read.number("state", automaton.n_controls)
    stack: Stack = None
    context = 0
    for _ in range(read.count("state")):
        symbol = read.number("state", automaton.n_symbols)
        if automaton.all_symbol_frame[symbol] != frames[context]:
            raise SnapshotError("state", f"symbol {symbol} isn't pushed in its place")
        stack = (symbol, context, stack)
        above = a.context_push[a.push_offset[context] + symbol] - 1
        context = above if above >= 0 else a.enter(context, symbol)
        if context < 0:
            raise SnapshotError("state", f"symbol {symbol} is never pushed there")
    if automaton.frame_of(control) != frames[context]:
        raise SnapshotError("state", f"control {control} isn't in the frame on top")
    entry = a.entry(context, control)
    if not entry or (stack is not None and a.machine.is_final(control)):
        raise SnapshotError("state", f"no sequence rests in control {control} there")
    if terminated and not entry & 1:
        raise SnapshotError("state", "it has ended where no text may end")
    place = NOWHERE if terminated else (a.row_offset[context] + control) << PLACE_SHIFT
    return (control, context, stack, TERMINATED if terminated else entry, None, b"", place)


def _read_steps(read: _Reader, matcher: Matcher) -> None:
    for _ in range(read.count("history")):
        number = read.number("history")
        if number & 1:
            good = matcher.accept_string(read.bytes("history", number >> 1))
        else:
            good = matcher.accept_token(number >> 1)
        if not good:
            raise SnapshotError("history", f"step {len(matcher.accepted()) + 1} isn't accepted")
