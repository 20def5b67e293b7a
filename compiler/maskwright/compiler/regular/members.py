"""Members of a language for people and tests: the shortest ones, and lengths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from maskwright.compiler.regular.dfa import Automaton


def shortest_members(automaton: Automaton, count: int) -> list[str | bytes]:
    """Up to `count` of the shortest texts with a label, as str or bytes by alphabet.

    One symbol stands for each class. Cost: `count` times the text length and the row width.
    """
    return list(islice(_shortest(automaton), count))


def distances_to_end(automaton: Automaton) -> list[int]:
    """For each state the fewest symbols to one with a label; -1 when none can be reached."""
    sources: list[list[int]] = [[] for _ in automaton.rows]
    for s, row in enumerate(automaton.rows):
        for _, t in row:
            sources[t].append(s)
    distance = [0 if label >= 0 else -1 for label in automaton.labels]
    queue = deque(s for s, d in enumerate(distance) if d == 0)
    while queue:
        t = queue.popleft()
        for s in sources[t]:
            if distance[s] < 0:
                distance[s] = distance[t] + 1
                queue.append(s)
    return distance


def longest_member(automaton: Automaton) -> int | None:
    """The length of the longest text with a label; None when there is no longest; -1 when there is no text.

    Kahn's topological order: automata are trimmed, so a cycle means unbounded length.
    """
    if automaton.labels[0] < 0 and not automaton.rows[0]:
        return -1
    incoming = [0] * automaton.n_states
    for row in automaton.rows:
        for _, t in row:
            incoming[t] += 1
    length = [0] * automaton.n_states
    work = [s for s, n in enumerate(incoming) if n == 0]
    done = 0
    for s in work:
        done += 1
        for _, t in automaton.rows[s]:
            length[t] = max(length[t], length[s] + 1)
            incoming[t] -= 1
            if incoming[t] == 0:
                work.append(t)
    return max(length) if done == automaton.n_states else None


def _shortest(automaton: Automaton) -> Iterator[str | bytes]:
    """Lengths upward; a walk of exactly `n` symbols is only begun where it can end."""
    longest = longest_member(automaton)
    letters = [_sample(ranges) for ranges in automaton.classes]
    reach = [frozenset(s for s, label in enumerate(automaton.labels) if label >= 0)]
    n = 0
    while longest is None or n <= longest:
        yield from _exactly(automaton, letters, reach, n)
        n += 1
        reach.append(frozenset(s for s, row in enumerate(automaton.rows) if any(t in reach[-1] for _, t in row)))


def _exactly(
    automaton: Automaton, letters: Sequence[int], reach: Sequence[frozenset[int]], n: int
) -> Iterator[str | bytes]:
    if 0 not in reach[n]:
        return
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        state, path = stack.pop()
        if len(path) == n:
            yield _text(path, automaton)
            continue
        left = n - len(path) - 1
        stack.extend((t, (*path, letters[c])) for c, t in reversed(automaton.rows[state]) if t in reach[left])


def _sample(ranges: Sequence[tuple[int, int]]) -> int:
    """A symbol that reads well: a letter, else a digit, else a visible ASCII character, else the least."""
    for low, high in ((0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x21, 0x7E)):
        for a, b in ranges:
            if max(a, low) <= min(b, high):
                return max(a, low)
    return ranges[0][0]


def _text(path: Sequence[int], automaton: Automaton) -> str | bytes:
    return bytes(path) if automaton.alphabet == "bytes" else "".join(map(chr, path))
