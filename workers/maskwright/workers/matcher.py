"""The matcher: follows one sequence of tokens through an artifact's automaton and looks its masks up.

State is (control, context, stack). The stack is a linked list of tuples (symbol, context of the caller,
rest), states are linked to the one before, so fork and rollback copy nothing. A text token is legal when its
bit is in the row of (control, context); accepting it runs its bytes over `Machine.moves`. After a token the
control is *settled*: final controls have returned.

Stop tokens are bound here, not in the artifact: one is legal exactly when the text so far is complete, also
if the vocabulary has it as text. After a stop token the matcher is terminated: its mask holds stop tokens
only, they are accepted, change nothing, and count for `rollback`. A matcher belongs to one thread; artifacts
are shared.

Not here: deciding which tokens are legal (that's compiled), and any input or output.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maskwright.workers.artifact import Artifact
from maskwright.workers.errors import ArtifactError
from maskwright.workers.machine import COLD, DEAD
from maskwright.workers.masks import bitmask_rows

Stack = tuple[int, int, Any] | None
Position = tuple[int, int, Stack]
State = tuple[int, int, Stack, int, Any]
"""Control, context, stack, row entry (2 * row index + may_end), the state before. Entry TERMINATED: a stop
token was accepted.
"""

TERMINATED = 1
MAX_PUSHES = 10_000
"""Symbols that returns may push in one token: an automaton that needs more is taken to run for ever."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a matcher stands: the frame's name, the source pointer it comes from, the bytes that may follow,
    whether it may end.
    """

    frame: str
    pointer: str
    expected: bytes
    may_end: bool


class Matcher:
    """Follows one sequence. `stop_token_ids`: default the vocabulary's own. Raises ValueError for ids outside
    the vocabulary.
    """

    __slots__ = (
        "_artifact", "_context_rows", "_dense", "_final", "_mask", "_moves", "_row_offset", "_rows", "_state",
        "_stop_bits", "_stop_text", "_stops", "_tails", "_tokens", "_views", "stop_token_ids", "vocab_size",
    )  # fmt: skip

    def __init__(self, artifact: Artifact, stop_token_ids: Iterable[int] | None = None) -> None:
        stops = artifact.pack.stop_token_ids if stop_token_ids is None else tuple(int(t) for t in stop_token_ids)
        if any(not 0 <= t < artifact.vocab_size for t in stops):
            raise ValueError(f"stop_token_ids {stops} aren't all ids below {artifact.vocab_size}")
        self._artifact, self.vocab_size, self.stop_token_ids = artifact, artifact.vocab_size, stops
        self._stops = frozenset(stops)
        self._stop_text = frozenset(t for t in stops if artifact.pack.token_bytes(t) is not None)
        self._stop_bits = [(t >> 5, 1 << (t & 31)) for t in sorted(self._stops)]
        self._moves, self._final, self._dense = (
            artifact.machine.moves,
            artifact.machine.final,
            artifact.rows.dense,
        )
        self._rows = artifact.rows
        self._context_rows, self._row_offset = artifact.context_rows, artifact.row_offset
        self._tokens = artifact.pack.token_cache
        self._mask: object = None
        self._views: list[memoryview] = []
        self._tails: list[memoryview] | None = None
        self._state: State = self._first_state()

    def _first_state(self) -> State:
        a = self._artifact
        entry = a.context_rows[a.row_offset[0] + a.start]
        if not entry:
            raise ArtifactError("context_rows", None, "the start has no row")
        return (a.start, 0, None, entry, None)

    # -- masks -----------------------------------------------------------------------------------------------

    def fill_next_token_bitmask(self, mask: Any, index: int = 0) -> None:
        """Writes the legal tokens into row `index` of `mask`, int32 [batch, words] (or [words]),
        C-contiguous, writable.

        words >= ceil(vocab_size / 32), those beyond are cleared. The array is looked at once and remembered.
        Cost: a copy of the row. Raises TypeError or ValueError for another array, IndexError for the index.
        """
        if mask is not self._mask:
            self._bind(mask)
        entry = self._state[3]
        view = self._views[index]
        row = self._dense[entry >> 1]
        if row is not None:
            view[:] = row
        else:
            self._rows.fill(view, entry >> 1)
        if entry & 1:
            for word, bit in self._stop_bits:
                view[word] |= bit
        elif self._stop_text:
            for word, bit in self._stop_bits:
                view[word] &= ~bit
        if self._tails is not None:
            tail = self._tails[index]
            tail[:] = memoryview(bytes(tail.nbytes)).cast("I")

    def _bind(self, mask: Any) -> None:
        words = self._artifact.pack.words
        rows = bitmask_rows(mask, words)
        self._views = [row[:words] for row in rows]
        self._tails = [row[words:] for row in rows] if rows and len(rows[0]) > words else None
        self._mask = mask

    # -- tokens ----------------------------------------------------------------------------------------------

    def accept_token(self, token: int) -> bool:
        """Goes on by one token. False, and nothing changes, when it isn't in the mask. Cost: linear in the
        token's bytes.

        Raises TypeError for what isn't an integer,
        ArtifactError when the artifact's mask holds a token that its automaton doesn't take: the
        artifact is wrong.
        """
        if type(token) is not int:
            token = operator.index(token)  # numpy's integers can't be shifted with Python's; a float is no token
        if not 0 <= token < self.vocab_size:
            return False
        state = self._state
        control, context, stack, entry, _ = state
        row = self._dense[entry >> 1]
        bit = row[token >> 5] >> (token & 31) & 1 if row is not None else self._rows.bit(entry >> 1, token)
        if not bit or (self._stop_text and token in self._stop_text):
            return self._accept_stop(token)
        data = self._tokens[token]
        if data is None:
            data = self._artifact.pack.text_bytes(token)
        # Most tokens stay in their frame. Those that don't are walked again from their first byte.
        moves, at = self._moves, control
        for byte in data:
            at = moves[at][byte]
            if at < 0:
                break
        if at >= 0 and not self._final[at]:
            control = at
        else:
            reached = self._walk(data, control, context, stack)
            if reached is None:
                raise self._inconsistent(token)
            control, context, stack = reached
        entry = self._context_rows[self._row_offset[context] + control]
        if not entry:
            raise self._inconsistent(token)
        self._state = (control, context, stack, entry, state)
        return True

    def _accept_stop(self, token: int) -> bool:
        state = self._state
        if token not in self._stops or not state[3] & 1:
            return False
        self._state = (state[0], state[1], state[2], TERMINATED, state)
        return True

    def _inconsistent(self, token: int) -> ArtifactError:
        where = f"artifact {self._artifact.digest}, control {self._state[0]}, context {self._state[1]}"
        return ArtifactError(
            "context_rows", None, f"the mask holds token {token}, the automaton doesn't take it ({where})"
        )

    def accept_string(self, text: str | bytes) -> bool:
        """Goes on by a text, as UTF-8 when it's a str, whatever tokens it would be. All or nothing; one step
        for `rollback`.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        state = self._state
        if state[3] == TERMINATED:
            return False
        reached = self._walk(data, state[0], state[1], state[2])
        if reached is None:
            return False
        control, context, stack = reached
        entry = self._context_rows[self._row_offset[context] + control]
        if not entry:
            return False
        self._state = (control, context, stack, entry, state)
        return True

    def _walk(self, data: bytes, control: int, context: int, stack: Stack) -> Position | None:
        """The settled position after `data`, None where no member goes on. One loop for speed: it's the
        runtime's hottest.
        """
        moves = self._moves
        machine, push, push_offset = (
            self._artifact.machine,
            self._artifact.context_push,
            self._artifact.push_offset,
        )
        spent = 0
        for byte in data:
            move = moves[control][byte]
            if move >= 0:
                control = move
                continue
            while True:
                if not move & 1:
                    pushes, control = machine.actions[(-2 - move) >> 1]  # type: ignore[misc]
                    for symbol in pushes:
                        stack = (symbol, context, stack)
                        context = push[push_offset[context] + symbol] - 1
                        if context < 0:
                            return None
                    break
                if move == COLD:
                    move = machine.step(control, byte)
                elif move == DEAD or stack is None:
                    return None
                else:
                    symbol, context, stack = stack
                    control = machine.returns[machine.return_start[symbol] + ((-3 - move) >> 1)]
                    if control < 0:
                        if control == -1 or spent > MAX_PUSHES:
                            return None
                        pushes, control = machine.actions[-2 - control]  # type: ignore[misc]
                        spent += len(pushes)
                        for symbol in pushes:
                            stack = (symbol, context, stack)
                            context = push[push_offset[context] + symbol] - 1
                            if context < 0:
                                return None
                    move = moves[control][byte]
                if move >= 0:
                    control = move
                    break
        final = self._final
        while final[control] and stack is not None:
            verdict = final[control] - 1
            symbol, context, stack = stack
            control = machine.returns[machine.return_start[symbol] + verdict]
            if control < 0:
                if control == -1 or spent > MAX_PUSHES:
                    return None
                pushes, control = machine.actions[-2 - control]  # type: ignore[misc]
                spent += len(pushes)
                for symbol in pushes:
                    stack = (symbol, context, stack)
                    context = push[push_offset[context] + symbol] - 1
                    if context < 0:
                        return None
        return control, context, stack

    # -- history ---------------------------------------------------------------------------------------------

    def rollback(self, n: int = 1) -> None:
        """Undoes the last `n` accepted steps. Raises ValueError, changing nothing, when there are fewer."""
        state = self._state
        if n < 0:
            raise ValueError(f"can't roll {n} steps back")
        for done in range(n):
            if state[4] is None:
                raise ValueError(f"can't roll {n} steps back, there are {done}")
            state = state[4]
        self._state = state

    def reset(self) -> None:
        """Back to the start; there's nothing left to roll back."""
        self._state = self._first_state()

    def fork(self) -> Matcher:
        """An independent matcher in the same state with the same history. Cost: constant."""
        other = object.__new__(Matcher)
        for name in Matcher.__slots__:
            setattr(other, name, getattr(self, name))
        other._mask, other._views, other._tails = None, [], None
        return other

    # -- questions -------------------------------------------------------------------------------------------

    def is_accepting(self) -> bool:
        """Whether the text so far is a complete member, which is when a stop token is legal."""
        return bool(self._state[3] & 1)

    def is_terminated(self) -> bool:
        """Whether a stop token has been accepted."""
        return self._state[3] == TERMINATED

    def expected_bytes(self) -> bytes:
        """The bytes that may follow, ascending; none after a stop token."""
        control, context, stack, entry, _ = self._state
        if entry == TERMINATED:
            return b""
        return bytes(b for b in range(256) if self._walk(bytes((b,)), control, context, stack) is not None)

    def where(self) -> Place:
        """The place in the source where the sequence stands, for people. Cost: a walk for each byte."""
        frame = int(self._artifact.automaton.all_control_frame[self._state[0]])
        name, pointer = self._artifact.frame_name(frame)
        return Place(name, pointer, self.expected_bytes(), self.is_accepting())
