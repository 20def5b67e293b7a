"""The matcher: follows one sequence of tokens through an artifact's automaton and looks its masks up.

State is (control, context, stack). The stack is a linked list of tuples (symbol, context of the caller,
rest), states are linked to the one before, so fork and rollback copy nothing. A text token is legal when its
bit is in the row of (control, context); accepting it runs its bytes over `Machine.moves`. After a token the
control is *settled*: final controls have returned.

Stop tokens are bound here, not in the artifact: one is legal exactly when the text so far is complete, also
if the vocabulary has it as text. After a stop token the matcher is terminated: its mask holds stop tokens
only, they are accepted, change nothing, and count for `rollback`. A matcher belongs to one thread; artifacts
are shared.

Where the mask of a place is empty, filling it raises DeadEnd.

Not here: deciding which tokens are legal (that's compiled), and any input or output. Token budgets are in
budget.py, snapshots in snapshot.py, drafts in draft.py, forced texts in forced.py, words for people in
explain.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.workers.artifact import Artifact
from maskwright.workers.budget import Budget
from maskwright.workers.costs import NEVER
from maskwright.workers.count import artifact_counts, total
from maskwright.workers.draft import fill_tree, fill_window
from maskwright.workers.errors import ArtifactError, DeadEnd, DeadEndCause
from maskwright.workers.explain import MOST_ALTERNATIVES, Explanation, Place, frames_around, instance_path, readable
from maskwright.workers.forced import Forced, fewest_tokens, whole_tokens
from maskwright.workers.machine import COLD, DEAD
from maskwright.workers.masks import bitmask_rows
from maskwright.workers.snapshot import read_snapshot, write_snapshot
from maskwright.workers.specials import FIRST_MARK, SYMBOL
from maskwright.workers.spelling import spelling

Stack = tuple[int, int, Any] | None
Position = tuple[int, int, Stack]
State = tuple[int, int, Stack, int, Any, int | bytes]
"""Control, context, stack, row entry (2 * row index + may_end), the state before, the step that led here: a token,
or the text of `accept_string`. Entry TERMINATED: a stop token was accepted.
"""

TERMINATED = 1
MAX_PUSHES = 10_000
"""Symbols that returns may push in one token: an automaton that needs more is taken to run for ever."""


class Matcher:
    """Follows one sequence. `stop_token_ids`: default the vocabulary's own. Raises ValueError for ids outside
    the vocabulary.
    """

    __slots__ = (
        "_artifact", "_budget", "_context_rows", "_dense", "_empty", "_ending", "_final", "_mask", "_moves",
        "_row_offset", "_rows", "_state", "_stop_bits", "_stop_text", "_stops", "_tails", "_tokens", "_unusual",
        "_views", "stop_token_ids", "vocab_size",
    )  # fmt: skip

    def __init__(self, artifact: Artifact, stop_token_ids: Iterable[int] | None = None) -> None:
        stops = artifact.pack.stop_token_ids if stop_token_ids is None else tuple(int(t) for t in stop_token_ids)
        if any(not 0 <= t < artifact.vocab_size for t in stops):
            raise ValueError(f"stop_token_ids {stops} aren't all ids below {artifact.vocab_size}")
        self._artifact, self.vocab_size, self.stop_token_ids = artifact, artifact.vocab_size, stops
        self._stops = frozenset(stops)
        self._stop_text = frozenset(t for t in stops if artifact.pack.token_bytes(t) is not None)
        # Stop tokens that rows may hold. A special one that is also a symbol of the source is taken for that, unless
        # the text may end.
        self._ending = self._stops if artifact.has_specials else self._stop_text
        self._stop_bits = [(t >> 5, 1 << (t & 31)) for t in sorted(self._stops)]
        self._moves, self._final, self._dense = (
            artifact.machine.moves,
            artifact.machine.final,
            artifact.rows.dense,
        )
        self._rows = artifact.rows
        self._context_rows, self._row_offset = artifact.context_rows, artifact.row_offset
        self._tokens = artifact.pack.token_cache
        self._budget: Budget | None = None
        self._empty = artifact.empty_entries
        self._unusual = bool(self._stop_text) or not stops
        self._mask: object = None
        self._views: list[memoryview] = []
        self._tails: list[memoryview] | None = None
        self._state: State = self._first_state()

    def _first_state(self) -> State:
        a = self._artifact
        entry = a.entry(0, a.start)
        if not entry:
            raise ArtifactError("context_rows", None, "the start has no row")
        return (a.start, 0, None, entry, None, b"")

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
            self._rows.fill(view, entry >> 1)
        if close is not None:
            close[0].keep(np.frombuffer(view, np.uint32), *close[1:])
        if entry & 1:
            for word, bit in self._stop_bits:
                view[word] |= bit
        elif entry in self._empty:
            self._check_live(view, entry)
        if self._unusual:
            self._fill_unusual(view, entry)
        if self._tails is not None:
            tail = self._tails[index]
            tail[:] = memoryview(bytes(tail.nbytes)).cast("I")

    def _close_budget(self, left: int) -> tuple[Budget, int, Stack, int] | None:
        """What has to take tokens away when `left` remain after the next, None where none would. Raises ValueError."""
        control, _, stack, _, _, _ = self._state
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

    def _fill_unusual(self, view: memoryview, entry: int) -> None:
        """A stop token that is text is no text; without a stop token even a complete text may be stuck."""
        if not entry & 1:
            for word, bit in self._stop_bits:
                view[word] &= ~bit
        self._check_live(view, entry)

    def _check_live(self, view: memoryview, entry: int) -> None:
        if np.frombuffer(view, np.uint32).any():
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
        control, context, stack, entry, _, _ = state
        row = self._dense[entry >> 1]
        bit = row[token >> 5] >> (token & 31) & 1 if row is not None else self._rows.bit(entry >> 1, token)
        if not bit or (self._ending and token in self._ending and (entry & 1 or token in self._stop_text)):
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
        if not entry and not (entry := self._artifact.entry(context, control)):
            raise self._inconsistent(token)
        self._state = (control, context, stack, entry, state, token)
        return True

    def _accept_stop(self, token: int) -> bool:
        state = self._state
        if token not in self._stops or not state[3] & 1:
            return False
        self._state = (state[0], state[1], state[2], TERMINATED, state, token)
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
        if state[3] == TERMINATED or (self._artifact.has_specials and data and max(data) >= FIRST_MARK):
            return False
        reached = self._walk(data, state[0], state[1], state[2])
        if reached is None:
            return False
        control, context, stack = reached
        entry = self._context_rows[self._row_offset[context] + control]
        if not entry and not (entry := self._artifact.entry(context, control)):
            return False
        self._state = (control, context, stack, entry, state, data)
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
                if remaining is not None and self.min_tokens_to_finish() > remaining - done - 1:
                    break
                done += 1
        finally:
            self._state = state
        return done

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
                        if context < 0 and (context := self._enter(stack)) < 0:
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
                            if context < 0 and (context := self._enter(stack)) < 0:
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
                    if context < 0 and (context := self._enter(stack)) < 0:
                        return None
        return control, context, stack

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
        other._mask, other._views, other._tails = None, [], None
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

    def min_tokens_to_finish(self) -> int | float:
        """A bound on the tokens that complete the text, the stop token included: no more are needed, if masks are
        filled with it as `remaining`. 0 after a stop token. `math.inf` where no completion is known, which takes
        stop tokens that are text.

        It's the least number within literals, and above the least where one token could close several frames.
        Cost: about a microsecond; the first call for an artifact takes 10 us or so for each of its controls.
        """
        control, _, stack, entry, _, _ = self._state
        if entry == TERMINATED:
            return 0
        least = (self._budget or self._make_budget()).least(control, stack)
        return least if least < NEVER else math.inf

    def completions_left(self) -> int | float:
        """How many texts complete the one so far, itself included if it's complete: an exact int, or `math.inf`.
        After a stop token it's 1. The int may have a million bits (`maxLength`), more than Python prints at once;
        raises OverflowError beyond 4 million (count.py).

        Cost: the first call for an artifact counts what can be reached from here, some ten microseconds an edge and
        the arithmetic of large numbers; later ones, the stack.
        """
        control, _, stack, entry, _, _ = self._state
        if entry == TERMINATED:
            return 1
        counts = artifact_counts(self._artifact)
        symbols = []
        while stack is not None:
            symbols.append(stack[0])
            stack = stack[2]
        rest = counts.bottom
        for symbol in reversed(symbols):
            rest = counts.after(symbol, rest)
        return total([(n, rest[v]) for v, n in counts.vector(control)])

    def expected_bytes(self) -> bytes:
        """The bytes that may follow, ascending; none after a stop token."""
        if self._state[3] == TERMINATED:
            return b""
        found = self._forced().expected(self._state[:3])
        return bytes(b for b in found if b < FIRST_MARK) if self._artifact.has_specials else found

    def _forced(self) -> Forced:
        return Forced(self._artifact, self._walk)

    def find_jump_forward_bytes(self) -> bytes:
        """The bytes that must follow, up to where there's a choice or the text may end. Cost: some ten
        microseconds a byte.
        """
        if self._state[3] == TERMINATED:
            return b""
        text = self._forced().text(self._state[:3])
        return text.split(SYMBOL, 1)[0] if self._artifact.has_specials else text

    def find_jump_forward_string(self) -> str:
        """The text that must follow, as far as it's whole characters."""
        return whole_characters(self.find_jump_forward_bytes())

    def find_jump_forward_tokens(self, encode: Callable[[str], Sequence[int]] | None = None) -> list[int]:
        """Tokens for the text that must follow, to be put down without asking the model.

        Safe to tokenise again: they end before the first place from which a token of the vocabulary could reach
        beyond the forced text, so that none of the boundaries is one that the model might not have chosen
        (forced.py). `encode` cuts the forced text as your tokenizer does; without it, it's the fewest tokens.
        Raises ValueError when `encode`'s tokens don't spell the text.
        """
        text = self.find_jump_forward_bytes()
        if not text:
            return []
        pack, spelled = self._artifact.pack, spelling(self._artifact.pack, self._stop_text)
        end = self._forced().safe_end(text, self._state[:3], spelled)
        cut = encode(whole_characters(text)) if encode else fewest_tokens(text, spelled)
        tokens = whole_tokens(cut, pack.token_bytes, text, end)
        return tokens[: self.validate_tokens(tokens)]

    def where(self) -> Place:
        """The place in the source where the sequence stands, for people. `explain` tells more."""
        stack = self._frames()
        return Place(*stack[-1], self.expected_bytes(), self.is_accepting())

    def explain(self) -> Explanation:
        """Where in the source the sequence stands and what may follow, for people and their tools."""
        stack, terminated = self._frames(), self.is_terminated()
        ahead, at = self._forced(), self._state[:3]
        ways = [] if terminated else ahead.alternatives(at, MOST_ALTERNATIVES)
        frame, pointer = stack[-1]
        return Explanation(
            pointer=pointer,
            frame=frame,
            stack=stack,
            expected=self.expected_bytes(),
            forced="" if terminated else self.find_jump_forward_string(),
            alternatives=tuple(readable(self._artifact, way) for way in ways),
            may_end=self.is_accepting(),
            terminated=terminated,
            steps=len(self.accepted()),
            path=instance_path(self.text()) if self._artifact.header["source"]["kind"] == "json_schema" else None,
        )

    def _frames(self) -> tuple[tuple[str, str], ...]:
        """(name, pointer) from the outermost frame to the innermost."""
        automaton, stack = self._artifact.automaton, self._state[2]
        numbers = [int(automaton.all_control_frame[self._state[0]])]
        while stack is not None:
            numbers.append(int(automaton.all_symbol_frame[stack[0]]))
            stack = stack[2]
        return frames_around(self._artifact, numbers[::-1])

    def dead_end(self, cause: DeadEndCause, detail: str) -> DeadEnd:
        """The failure to raise when no token can be drawn here. Keep its prefix; don't try again."""
        a = self._artifact
        return DeadEnd(cause, detail, self.where(), self.accepted(), self.text(), a.pack.fingerprint, a.digest)

    def report_empty(self, width: int | None = None, kept: Sequence[int] | None = None) -> DeadEnd:
        """For a sampler whose distribution is empty though it applied the mask: finds the likely cause.

        width: columns of its logits. kept: the tokens that were left before or without the mask. Returns the
        DeadEnd to raise: the logits don't hold any legal token (another vocabulary), or legal ones were there
        and something outside took them away. Raises the DeadEnd of `fill_next_token_bitmask` when the mask itself
        is empty.
        """
        mask = np.zeros((1, self._artifact.pack.words), np.int32)
        self.fork().fill_next_token_bitmask(mask)
        legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if width is not None and legal[0] >= width:
            detail = f"the logits have {width} columns, the {len(legal)} legal tokens begin at {legal[0]}"
            return self.dead_end(DeadEndCause.VOCABULARY_MISMATCH, detail)
        detail = f"{len(legal)} tokens are legal (first {legal[:8].tolist()})"
        if kept is not None:
            both = np.intersect1d(legal, np.asarray(kept, np.int64))
            detail += f", {len(kept)} were kept outside, {len(both)} of them legal"
        return self.dead_end(DeadEndCause.OUTSIDE_TRUNCATION, detail)


def whole_characters(text: bytes) -> str:
    """The text without an incomplete character at its end."""
    for end in range(len(text), max(len(text) - 4, -1), -1):
        try:
            return text[:end].decode()
        except UnicodeDecodeError:
            continue
    return text.decode(errors="replace")
