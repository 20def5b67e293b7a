"""The matcher: follows one sequence of tokens through an artifact's automaton and looks its masks up.

State is (control, context, stack). The stack is a linked list of tuples (symbol, context of the caller,
rest), states are linked to the one before, so fork and rollback copy nothing. A text token is legal when its
bit is in the row of (control, context); accepting it runs its bytes over `Machine.moves`, or looks up where they led
before (ways.py). After a token the control is *settled*: final controls have returned.

Stop tokens are bound here, not in the artifact: one is legal exactly when the text so far is complete, also
if the vocabulary has it as text. After a stop token the matcher is terminated: its mask holds stop tokens
only, they are accepted, change nothing, and count for `rollback`. A matcher belongs to one thread; artifacts
are shared.

Where the mask of a place is empty, filling it raises DeadEnd.

Not here: deciding which tokens are legal (that's compiled), and any input or output. What only reads the state is
in questions.py, token budgets in budget.py, snapshots in snapshot.py, drafts in draft.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.workers.artifact import Artifact
from maskwright.workers.budget import Budget
from maskwright.workers.draft import fill_tree, fill_window
from maskwright.workers.errors import ArtifactError, DeadEndCause
from maskwright.workers.machine import COLD, DEAD, END, FINAL
from maskwright.workers.masks import bitmask_rows, integers
from maskwright.workers.questions import Questions
from maskwright.workers.snapshot import read_snapshot, write_snapshot
from maskwright.workers.specials import FIRST_MARK
from maskwright.workers.state import MAX_RETURN_PUSHES, TERMINATED, Position, Stack, State
from maskwright.workers.ways import MOST_WAYS, NOWHERE, PLACE_SHIFT, Ways


class Matcher(Questions):
    """Follows one sequence. `stop_token_ids`: default the vocabulary's own. Raises ValueError for ids outside
    the vocabulary, TypeError for what isn't an integer.
    """

    __slots__ = (
        "_accepting",
        "_artifact",
        "_budget",
        "_dense",
        "_empty",
        "_ending",
        "_known",
        "_mask",
        "_most_known",
        "_rows",
        "_state",
        "_stop_bits",
        "_stop_text",
        "_stops",
        "_tails",
        "_unusual",
        "_views",
        "_walking",
        "_words",
        "stop_token_ids",
        "vocab_size",
    )  # fmt: skip

    def __init__(self, artifact: Artifact, stop_token_ids: Iterable[int] | None = None) -> None:
        stops = artifact.pack.stop_token_ids if stop_token_ids is None else tuple(integers(stop_token_ids))
        self._artifact, self.vocab_size, self.stop_token_ids = artifact, artifact.vocab_size, stops
        self._stops, self._stop_text, self._stop_bits = artifact.pack.stops(stops)
        # Stop tokens that rows may hold. A special one that is also a symbol of the source is taken for that, unless
        # the text may end.
        self._ending = self._stops if artifact.has_specials else self._stop_text
        machine, self._rows, self._dense = artifact.machine, artifact.rows, artifact.rows.dense
        # What a method reads together: one look-up instead of five.
        self._accepting = (
            self._dense,
            artifact.pack.token_cache,
            machine.moves,
            artifact.context_rows,
            artifact.row_offset,
        )
        self._walking = (
            machine.moves,
            machine.actions,
            machine.returns,
            artifact.context_push,
            artifact.push_offset,
        )
        self._budget: Budget | None = None
        # What's legal for a matcher with stop tokens among its rows' is its own.
        self._known = Ways() if self._ending else artifact.ways
        self._most_known = 0 if self._ending else MOST_WAYS
        self._empty = artifact.empty_entries
        self._unusual = bool(self._stop_text) or not stops
        self._mask: object = None
        self._views: list[memoryview] = []
        self._words: list[npt.NDArray[np.uint32]] = []
        self._tails: list[memoryview] | None = None
        self._state: State = self._first_state()

    def _first_state(self) -> State:
        a = self._artifact
        entry = a.entry(0, a.start)
        if not entry:
            raise ArtifactError("context_rows", None, "the start has no row")
        return (a.start, 0, None, entry, None, b"", (a.row_offset[0] + a.start) << PLACE_SHIFT)

    @property
    def artifact(self) -> Artifact:
        """What the sequence is followed through."""
        return self._artifact

    # -- masks -----------------------------------------------------------------------------------------------

    def fill_next_token_bitmask(self, mask: Any, index: int = 0, remaining: int | None = None) -> None:
        """Writes the legal tokens into row `index` of `mask`, int32 [batch, words] (or [words]),
        C-contiguous, writable.

        words >= ceil(vocab_size / 32), those beyond are cleared. The array is looked at once and remembered.
        `remaining`: how many tokens may still be drawn, the stop token included. Then only tokens after which the
        text can still be completed are left in: a run that starts with `remaining >= min_tokens_to_finish()`,
        draws from these masks and counts down by one a token is complete in time.
        Cost: a copy of the row; with `remaining` about a microsecond more, and near the end some milliseconds
        (budget.py). Raises TypeError or ValueError for another array, IndexError for the index, ValueError when
        `remaining` is below `min_tokens_to_finish()`, DeadEnd when no token is legal.
        """
        if mask is not self._mask:
            self._bind(mask)
        entry = self._state[3]
        view = self._views[index]
        close = None if remaining is None or entry == TERMINATED else self._close_budget(remaining - 1)
        row = self._dense[entry >> 1]
        if row is not None:
            view[:] = row
        else:
            self._rows.fill(view, self._words[index], entry >> 1)
        if close is not None:
            close[0].keep(self._words[index], *close[1:])
        if entry & 1:
            for word, bit in self._stop_bits:
                view[word] |= bit
        elif entry in self._empty:
            self._check_live(index, entry)
        if self._unusual:
            self._fill_unusual(view, index, entry)
        if self._tails is not None:
            tail = self._tails[index]
            tail[:] = memoryview(bytes(tail.nbytes)).cast("I")

    def _close_budget(self, left: int) -> tuple[Budget, int, Stack, int] | None:
        """What has to take tokens away when `left` remain after the next, None where none would. Raises ValueError."""
        control, _, stack, _, _, _, _ = self._state
        budget = self._budget or self._make_budget()
        if budget.is_far(control, stack, left):
            return None
        least = self.min_tokens_to_finish()
        if left + 1 < least:
            raise ValueError(f"{left + 1} tokens remain, finishing takes up to {least}")
        return None if budget.is_near(control, stack, left) else (budget, control, stack, left)

    def _make_budget(self) -> Budget:
        self._budget = Budget(self._artifact, self._stop_text, 1 if self._stops else 0)
        return self._budget

    def _fill_unusual(self, view: memoryview, index: int, entry: int) -> None:
        """A stop token that is text is no text; without a stop token even a complete text may be stuck."""
        if not entry & 1:
            for word, bit in self._stop_bits:
                view[word] &= ~bit
        self._check_live(index, entry)

    def _check_live(self, index: int, entry: int) -> None:
        if self._words[index].any():
            return
        if entry & 1:
            detail = "the text is complete, and there is no stop token to end it"
        elif self._stop_text:
            detail = f"every way on is a stop token that is text: {sorted(self._stop_text)}"
        else:
            detail = "the artifact's own mask is empty here"
        raise self.dead_end(DeadEndCause.UNSUPPORTED, detail)

    def _bind(self, mask: Any) -> None:
        words = self._artifact.pack.words
        rows = bitmask_rows(mask, words)
        self._views = [row[:words] for row in rows]
        self._words = [np.frombuffer(view, np.uint32) for view in self._views]
        self._tails = [row[words:] for row in rows] if rows and len(rows[0]) > words else None
        self._mask = mask

    # -- tokens ----------------------------------------------------------------------------------------------

    def accept_token(self, token: int) -> bool:
        """Goes on by one token. False, and nothing changes, when it isn't in the mask. Cost: linear in the
        token's bytes the first time, then a look-up.

        Raises TypeError for what isn't an integer,
        ArtifactError when the artifact's mask holds a token that its automaton doesn't take: the
        artifact is wrong.
        """
        if type(token) is not int:
            token = operator.index(token)  # numpy's integers can't be shifted with Python's; a float is no token
        if not 0 <= token < self.vocab_size:
            return False
        state = self._state
        way = self._known.get(state[6] + token)
        stack = state[2]
        while type(way) is dict:  # the token returns, and goes on by what's taken off
            if stack is None:  # on a deeper stack it did; here it ends
                return self._accept_new(token)
            symbol, context, stack = stack
            way = way.get((symbol, context))
        if way is None:
            return self._accept_new(token)
        control, context, entry, place, pushes = way
        for symbol, below in pushes:
            stack = (symbol, below, stack)
        self._state = (control, context, stack, entry, state, token, place)
        return True

    def _accept_new(self, token: int) -> bool:
        """`accept_token` for a token that isn't known from here; remembers it."""
        dense, tokens, moves, context_rows, row_offset = self._accepting
        state = self._state
        control, context, stack, entry, _, _, before = state
        row = dense[entry >> 1]
        bit = row[token >> 5] >> (token & 31) & 1 if row is not None else self._rows.bit(entry >> 1, token)
        if not bit or (self._ending and token in self._ending and (entry & 1 or token in self._stop_text)):
            return self._accept_stop(token)
        data = tokens[token]
        if data is None:
            data = self._artifact.pack.text_bytes(token)
        # Most tokens stay in their frame. Those that don't are walked again from their first byte.
        at, low, popped = control, stack, 0
        for byte in data:
            at = moves[at][byte]
            if at < 0:
                break
        if at >= 0:
            control = at
        else:
            reached = self._run(data, control, context, stack)
            if reached is None:
                raise self._inconsistent(token)
            control, context, stack, low, popped = reached
        place = row_offset[context] + control
        entry = context_rows[place]
        if not entry and not (entry := self._artifact.entry(context, control)):
            raise self._inconsistent(token)
        place <<= PLACE_SHIFT
        self._state = (control, context, stack, entry, state, token, place)
        known = self._known
        if len(known) < self._most_known:
            if at >= 0:
                known[before + token] = (control, context, entry, place, ())
            elif stack is not None:
                known.add_crossing(before + token, state[2], popped, low, self._state)
        return True

    def _accept_stop(self, token: int) -> bool:
        state = self._state
        if token not in self._stops or not state[3] & 1:
            return False
        self._state = (state[0], state[1], state[2], TERMINATED, state, token, NOWHERE)
        return True

    def _inconsistent(self, token: int) -> ArtifactError:
        where = f"artifact {self._artifact.digest}, control {self._state[0]}, context {self._state[1]}"
        return ArtifactError(
            "context_rows", None, f"the mask holds token {token}, the automaton doesn't take it ({where})"
        )

    def accept_string(self, text: str | bytes) -> bool:
        """Goes on by a text, as UTF-8 when it's a str, whatever tokens it would be. All or nothing; one step
        for `rollback`. Raises TypeError for what is neither text nor bytes.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(memoryview(text))
        state = self._state
        if state[3] == TERMINATED or (self._artifact.has_specials and data and max(data) >= FIRST_MARK):
            return False
        reached = self._walk(data, state[0], state[1], state[2])
        if reached is None:
            return False
        control, context, stack = reached
        entry = self._artifact.entry(context, control)
        if not entry:
            return False
        place = (self._artifact.row_offset[context] + control) << PLACE_SHIFT
        self._state = (control, context, stack, entry, state, data, place)
        return True

    def validate_tokens(self, tokens: Iterable[int], remaining: int | None = None) -> int:
        """How many of the tokens, from the first on, would be accepted one after the other. Changes nothing.

        `remaining`: tokens must also be in the masks that `fill_next_token_bitmask` makes with it. Raises
        TypeError for what isn't an integer, ValueError when `remaining` is below `min_tokens_to_finish()`.
        """
        state, done = self._state, 0
        if remaining is not None and remaining < (least := self.min_tokens_to_finish()):
            raise ValueError(f"{remaining} tokens remain, finishing takes up to {least}")
        try:
            for token in tokens:
                if not self.accept_token(token):
                    break
                if remaining is not None and not self._fits(remaining - done - 1):
                    break
                done += 1
        finally:
            self._state = state
        return done

    def _fits(self, left: int) -> bool:
        """Whether the text can be completed with `left` tokens more. After a stop token any number will do."""
        return self._state[3] == TERMINATED or self.min_tokens_to_finish() <= left

    def fill_draft_bitmask(self, mask: Any, tokens: Sequence[int], index: int = 0, remaining: int | None = None) -> int:
        """Masks for a draft of k tokens, to be verified in one step of the model: row `index` is the mask of here,
        row index + i the one after the first i tokens. Returns how many tokens are acceptable; the matcher stays
        where it is.

        Stop tokens may be in the draft: after one only stop tokens are. Rows behind a token that isn't acceptable
        have all bits of the vocabulary set: their logits are never used, and a row without any token would make
        samplers fail. `remaining` is as for `fill_next_token_bitmask`, at the first row. Cost: one fill a row.
        Raises what `fill_next_token_bitmask` raises; IndexError before anything is written.
        """
        return fill_window(self, mask, tokens, index, remaining)

    def fill_draft_tree_bitmask(
        self, mask: Any, tokens: Sequence[int], parents: Sequence[int], index: int = 0, remaining: int | None = None
    ) -> list[bool]:
        """Masks for a tree of drafts. Node i is `tokens[i]` after node `parents[i]` < i, or after here for -1. Row
        `index` is the mask of here, row index + 1 + i the one after node i. Returns for each node whether it and
        those before it are acceptable; otherwise as `fill_draft_bitmask`. Raises ValueError for parents that
        aren't a tree.
        """
        return fill_tree(self, mask, tokens, parents, index, remaining)

    def _walk(self, data: bytes, control: int, context: int, stack: Stack) -> Position | None:
        """The settled position after `data`, None where no member goes on."""
        reached = self._run(data, control, context, stack)
        return reached and reached[:3]

    def _run(self, data: bytes, control: int, context: int, stack: Stack) -> tuple[int, int, Stack, Stack, int] | None:
        """The settled position after `data`, what's left below it of the stack given, and how many symbols were taken
        off that. None where no member goes on. One loop for speed.
        """
        moves, actions, returns, push, push_offset = self._walking
        low, popped, spent = stack, 0, 0
        for byte in (*data, END):
            move = moves[control][byte]
            while move < 0:
                if move == DEAD:
                    return (control, context, stack, low, popped) if byte == END else None
                if move <= FINAL:
                    control = FINAL - move
                    break
                if not move & 1:
                    pushes, control = actions[(-2 - move) >> 1]
                    for symbol in pushes:
                        stack = (symbol, context, stack)
                        context = push[push_offset[context] + symbol] - 1
                        if context < 0 and (context := self._enter(stack)) < 0:
                            return None
                    break
                if move == COLD:
                    move = self._artifact.machine.step(control, byte)
                    continue
                if stack is None:
                    return (control, context, stack, low, popped) if byte == END else None
                if stack is low:
                    low, popped = stack[2], popped + 1
                symbol, context, stack = stack
                control = returns[symbol][(-3 - move) >> 1]
                if control < 0:
                    if control == -1 or spent > MAX_RETURN_PUSHES:
                        return None
                    pushes, control = actions[-2 - control]
                    spent += len(pushes)
                    for symbol in pushes:
                        stack = (symbol, context, stack)
                        context = push[push_offset[context] + symbol] - 1
                        if context < 0 and (context := self._enter(stack)) < 0:
                            return None
                move = moves[control][byte]
            else:
                control = move
        raise AssertionError("the end is followed by nothing")

    def _enter(self, stack: Stack) -> int:
        """The context that the symbol on top leads to, where it isn't known yet."""
        assert stack is not None
        return self._artifact.enter(stack[1], stack[0])

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
        other._mask, other._views, other._words, other._tails = None, [], [], None
        other._budget = None
        return other

    def accepted(self) -> tuple[int | bytes, ...]:
        """The steps so far: tokens as int, texts of `accept_string` as bytes. Cost: linear in them."""
        out = []
        state = self._state
        while state[4] is not None:
            out.append(state[5])
            state = state[4]
        return tuple(reversed(out))

    def text(self) -> bytes:
        """The bytes of the steps so far. Cost: linear in them."""
        pack = self._artifact.pack
        return b"".join([s if isinstance(s, bytes) else pack.token_bytes(s) or b"" for s in self.accepted()])

    def snapshot(self, history: int | None = None) -> bytes:
        """This state as bytes, for `restore` in another process: some 80 bytes, two to four for each symbol on the
        stack, and one to three for each of the last `history` steps that can then be rolled back (default: all).
        """
        return write_snapshot(self, history)

    @classmethod
    def restore(cls, artifact: Artifact, data: bytes) -> Matcher:
        """The matcher that a snapshot was made of. Every number in it is checked. Raises SnapshotError, also when
        it was made with another artifact.
        """
        return read_snapshot(cls, artifact, data)

    # -- questions -------------------------------------------------------------------------------------------

    def is_accepting(self) -> bool:
        """Whether the text so far is a complete member, which is when a stop token is legal."""
        return bool(self._state[3] & 1)

    def is_terminated(self) -> bool:
        """Whether a stop token has been accepted."""
        return self._state[3] == TERMINATED
