"""The steps of one commit, and the table of what it comes to. No input or output: `performing` does what they ask for.

Before anything is judged, by what is known:

    the generation didn't end by a stop token      Incomplete
    the key belongs to other content               Rejected, layer "key"
    the key's call is done                         Duplicate, with the first result
    the key's call is in doubt                     InDoubt
    the key's call is running                      wait for it, then as above; InDoubt (running) after `wait_seconds`
    the key is free                                judge the text, claim the key

Until the action runs, the key stays free:

    a layer has reasons against the text           Rejected, that layer
    another caller claimed first                   as above, by what is known then
    a validator, the authorisation, the store, a cancellation or an interrupt raises          raised

The action has the claim (`store`: its states), and its end decides:

    the action                          the key's call      outcome
    returns                             done                Committed
    raises NotDone                      free                Rejected, layer "action"
    raises anything else                in doubt            InDoubt; KeyboardInterrupt and the like are raised
    is cancelled                        in doubt            the cancellation is raised
    ends, and that can't be written     in doubt            InDoubt
    never ends: its process is gone     in doubt            InDoubt, to whoever asks next

An action never begins twice under a key, since the claim is on disk before it begins and is given up only after its
end is on disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from maskwright.workers.gate.asked import Action, Request, Text, content_digest, name_of
from maskwright.workers.gate.errors import NotDone, StoreError
from maskwright.workers.gate.judging import Judge, Verdicts
from maskwright.workers.gate.outcomes import (
    Committed,
    Duplicate,
    Ended,
    Incomplete,
    InDoubt,
    Layer,
    Outcome,
    Reason,
    Rejected,
)
from maskwright.workers.gate.performing import Ask, Checkpoint, Operation, Stored, Wait
from maskwright.workers.gate.store import Claim, Entry, SqliteStore, State, Step
from maskwright.workers.metrics.counters import MeasuredLayer

STEPS = (
    "received", "looked", "accepting", "parse", "schema", "business", "permission", "claiming", "locked",
    "claim written", "claimed", "ran", "finishing", "end written", "finished",
)  # fmt: skip
"""What `on_step` is told on the way of a call that commits, in order."""
_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1
Steps = Generator[Operation, Any, Outcome]


@dataclass(frozen=True, slots=True)
class Committing:
    """How one gate commits. `count` is told the verdicts of each text, also when the commit raises."""

    judge: Judge
    store: SqliteStore
    scope: str
    wait_seconds: float
    at: Step
    count: Callable[[Verdicts], None]

    def commit(self, text: Text, key: str, action: Action, ended: Ended, principal: str | None) -> Steps:
        self.at("received")
        if ended != Ended.STOP:
            self.count({})
            return Incomplete(key, ended)
        content = content_digest(text, principal, self.judge.artifact.has_specials)
        known = yield from self._known(key, content)
        if known is not None:
            return known
        verdicts: Verdicts = {}
        try:
            judged = yield from self.judge.judge(text, key, self.scope, principal, verdicts)
            if isinstance(judged, Rejected):
                return judged
            return (yield from self._claim(judged, content, action, verdicts))
        finally:
            self.count(verdicts)

    def _known(self, key: str, content: str) -> Generator[Operation, Any, Outcome | None]:
        """What the store knows of the key, after a running call has ended; None when it's free."""
        deadline, wait = time.monotonic() + self.wait_seconds, _FIRST_WAIT
        while True:
            entry: Entry | None = yield Stored(lambda: self.store.look(self.scope, key))
            self.at("looked")
            if entry is None:
                return None
            if entry.content != content:
                return Rejected(key, Layer.KEY, (Reason("the key belongs to a call with other content"),))
            if entry.state == State.DONE:
                return Duplicate(key, entry.result, entry.done_at or entry.started_at, entry.note)
            if entry.state == State.DOUBT:
                return InDoubt(key, entry.note or "", entry.started_at)
            if time.monotonic() >= deadline:
                return InDoubt(key, "it's still running", entry.started_at, running=True)
            yield Wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _claim(self, request: Request, content: str, action: Action, verdicts: Verdicts) -> Steps:
        self.at("claiming")
        while True:
            claim = yield Stored(lambda: self.store.claim(self.scope, request.key, content, request.text, self.at))
            if claim is not None:
                return (yield from self._run(claim, request, action, verdicts))
            known = yield from self._known(request.key, content)  # another caller was quicker
            if known is not None:
                return known  # else it has released the key

    def _run(self, claim: Claim, request: Request, action: Action, verdicts: Verdicts) -> Steps:
        try:
            self.at("claimed")
            yield Checkpoint()
        except BaseException:
            self.store.release(claim, self.at)
            raise
        try:
            value = yield Ask(action, request)
            self.at("ran")
            self.at("finishing")
        except NotDone as error:
            verdicts[MeasuredLayer.TOOL] = False
            return self._freed(claim, Reason(_message(error) or "the action had no effect", check=name_of(action)))
        except BaseException as error:
            verdicts[MeasuredLayer.TOOL] = False
            note = f"the action raised {type(error).__name__}: {_message(error)}"[:1000]
            self._doubt(claim, note)
            if not isinstance(error, Exception):
                raise
            return InDoubt(request.key, note, claim.started_at)
        verdicts[MeasuredLayer.TOOL] = True
        return (yield from self._finished(claim, value))

    def _finished(self, claim: Claim, value: Any) -> Steps:
        result, note = _encode(value)
        try:
            yield Stored(lambda: self.store.finish(claim, result, note, self.at))
        except StoreError as error:
            return InDoubt(claim.key, f"the action ended, and that couldn't be recorded: {error}", claim.started_at)
        self.at("finished")
        return Committed(claim.key, json.loads(result), note)

    def _freed(self, claim: Claim, reason: Reason) -> Outcome:
        try:
            self.store.release(claim, self.at)
        except StoreError as error:
            note = f"the action had no effect, and the key couldn't be freed: {error}"
            return InDoubt(claim.key, note, claim.started_at)
        return Rejected(claim.key, Layer.ACTION, (reason,))

    def _doubt(self, claim: Claim, note: str) -> None:
        """A doubt that can't be written is found all the same: the claim stays, without its lock."""
        try:
            self.store.doubt(claim, note, self.at)
        except StoreError:
            return


def _message(error: BaseException) -> str:
    """What an exception says, as text that can be written down, whatever its class does."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return "(it says nothing that can be read)"


def _encode(value: Any) -> tuple[str, str | None]:
    """The result as JSON. It's no failure when it can't be: the action has run."""
    try:
        return json.dumps(value, allow_nan=False), None
    except Exception as error:  # of the caller's classes, too
        return "null", f"the result can't be kept as JSON: {_message(error)}"
