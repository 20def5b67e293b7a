"""The commit gate: an action runs only for a complete text that every layer passed, and once for its key.

Order of a commit:

    ended        a text that didn't end by a stop token is `Incomplete`; nothing else is looked at
    key          the store knows the key: done -> `Duplicate`; other content -> `Rejected`; running -> wait for it;
                 in doubt -> `InDoubt`
    accepting    the text's bytes run through the artifact's automaton to an accepting state
    parse        the text is a value
    schema       the value validates against the whole schema, residual keywords included
    business     the caller's validators have no reasons against it
    permission   the caller's authorisation says True
    claim        the key is taken, on disk, by exactly one caller
    action       runs; its result is written down before anybody hears of it

A key that was done or is in doubt isn't judged again: a retried call returns its first result even if, by now, a
validator would say no. A rejected text leaves its key free, so that a corrected one may use it.

A key belongs to its content: the text's exact bytes and the principal who asks. Scopes (one for each tool, say)
have keys of their own.

What runs once. The claim is on disk before the action begins and is only given up after its end is on disk, so an
action never begins twice under a key: not from two threads or processes, not after `kill -9` at any point. What
can't be had is to know whether an action that was interrupted took effect; such a call is in doubt until somebody
settles it (`SqliteStore.settle`, or `python -m maskwright.workers.gate`). An action that has its own idempotency
can be given `request.key`.

What the gate doesn't claim. It checks form, the schema, and what the caller's own functions check. It doesn't know
whether what the text says is true, whether the action is a good idea, or who the principal is: facts, business truth
and permission are the caller's, and without an `authorise` function nobody is asked.

`committing` has the steps, with a table of what a commit comes to; `commit` performs them in the caller's thread,
`commit_async` on an event loop with the store's work in threads. Cancelling `commit_async` before the action begins
frees the key; afterwards the call is in doubt.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from maskwright.workers.artifact import Artifact
from maskwright.workers.gate.asked import Action, Authorise, Text, Validator, check_call, name_of
from maskwright.workers.gate.committing import Committing, Steps
from maskwright.workers.gate.judging import Judge, Verdicts
from maskwright.workers.gate.layers import Parse, Schema, parse_json, parse_text, schema_layer
from maskwright.workers.gate.outcomes import Ended, Incomplete, Outcome
from maskwright.workers.gate.performing import OnLoop, perform
from maskwright.workers.gate.store import SqliteStore, Step
from maskwright.workers.metrics.counters import LayerMetrics
from maskwright.workers.steps import drive, drive_async


class CommitGate:
    """Commits texts of one artifact.

    schema: the artifact's JSON Schema, a value or JSON text; needed where the artifact leaves keywords to the gate,
    recommended for every JSON artifact, None for other sources. resources: schemas by URI that it refers to.
    validators: business checks, all are asked. store: where keys live. authorise: asked last. scope: the keys' name
    space. parse: bytes -> value for the layers after it (default: strict JSON for JSON sources, else the text
    itself); raises ParseError. wait_seconds: how long to wait for another caller's running action. metrics: counts
    every layer's verdicts. on_step: called with each of STEPS as it's reached, for traces (under `commit_async` some
    are told in a thread of the store's); it mustn't raise.

    Gates are immutable and may be shared between threads. Raises WrongSchema (`check_source=False` allows another
    schema), SchemaNeeded, MissingDependency, ValueError.
    """

    def __init__(
        self,
        artifact: Artifact,
        schema: Schema | str | bytes | None,
        validators: Sequence[Validator],
        store: SqliteStore,
        *,
        authorise: Authorise | None = None,
        scope: str = "",
        parse: Parse | None = None,
        resources: Mapping[str, Schema] | None = None,
        check_source: bool = True,
        wait_seconds: float = 30.0,
        metrics: LayerMetrics | None = None,
        on_step: Step | None = None,
    ) -> None:
        is_json = schema is not None or artifact.header["source"]["kind"] == "json_schema"
        judge = Judge(
            artifact,
            schema_layer(artifact, schema, resources, check_source),
            parse or (parse_json if is_json else parse_text),
            tuple(validators),
            authorise,
            at := on_step or (lambda step: None),
        )
        self._artifact, self._metrics = artifact, metrics
        self._committing = Committing(judge, store, scope, wait_seconds, at, self._count)

    def commit(
        self,
        text: str | bytes,
        key: str,
        action: Action,
        *,
        ended: Ended | str,
        principal: str | None = None,
        tokens: Sequence[int] | None = None,
    ) -> Outcome:
        """Runs `action` once for `key` if every layer passes; says what came of it.

        text: exactly what was generated, without the stop token. key: the call's own, 1 to 512 characters. ended: why
        the generation ended; a word that isn't known raises ValueError. tokens: the text's, without the stop token;
        needed where the artifact's language has special tokens, ValueError without them.

        Raises also what a validator, the authorisation or the store raises before the action began: then nothing
        ran. What the action raises is an outcome (`InDoubt`, or `Rejected` for NotDone), but for KeyboardInterrupt
        and the like: recorded and raised.
        """
        if inspect.iscoroutinefunction(action):
            raise TypeError(f"{name_of(action)} is async: use commit_async")
        steps = self._steps(text, key, action, ended, principal, tokens)
        return self._counted(drive(steps, perform))

    async def commit_async(
        self,
        text: str | bytes,
        key: str,
        action: Action,
        *,
        ended: Ended | str,
        principal: str | None = None,
        tokens: Sequence[int] | None = None,
    ) -> Outcome:
        """`commit` for an event loop: validators, authorisation and action may be async; sync ones run in the loop.
        A cancellation frees the key when it comes before the action, and leaves the call in doubt during it.
        """
        steps, loop = self._steps(text, key, action, ended, principal, tokens), OnLoop()
        outcome = self._counted(await drive_async(steps, loop.perform))
        if loop.cancelled is not None:
            raise loop.cancelled from None
        return outcome

    def _steps(
        self,
        text: str | bytes,
        key: str,
        action: Action,
        ended: Ended | str,
        principal: str | None,
        tokens: Sequence[int] | None,
    ) -> Steps:
        """The commit's, after a look at what it's given."""
        given = Text.of(text, tokens)
        check_call(key, action, principal)
        if given.tokens is None and self._artifact.has_specials:
            raise ValueError("the artifact's language has special tokens: pass the tokens, too")
        return self._committing.commit(given, key, action, Ended.of(ended), principal)

    def _count(self, verdicts: Verdicts) -> None:
        if self._metrics is not None:
            self._metrics.record_text(verdicts)

    def _counted(self, outcome: Outcome) -> Outcome:
        if self._metrics is not None:
            self._metrics.record_outcome(outcome.name, outcome.cause if isinstance(outcome, Incomplete) else None)
        return outcome
