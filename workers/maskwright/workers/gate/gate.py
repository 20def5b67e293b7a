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

The steps are one generator that does no input or output (`_steps`); `commit` drives it, and `commit_async` drives it
on an event loop with the store's work in threads. Cancelling `commit_async` before the action begins frees the
key; afterwards the call is in doubt.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import operator
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maskwright.workers.artifact import Artifact
from maskwright.workers.gate.errors import NotDone, StoreError
from maskwright.workers.gate.layers import (
    Parse,
    ParseError,
    Schema,
    judge_accepting,
    parse_json,
    parse_text,
    schema_layer,
)
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
from maskwright.workers.gate.store import Claim, Entry, SqliteStore, State, Step
from maskwright.workers.metrics.counters import LayerMetrics, MeasuredLayer

MAX_KEY = 512
STEPS = (
    "received", "looked", "accepting", "parse", "schema", "business", "permission", "claiming", "locked",
    "claim written", "claimed", "ran", "finishing", "end written", "finished",
)  # fmt: skip
"""What `on_step` is told on the way of a call that commits, in order."""
_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1
_MEASURED = {
    Layer.ACCEPTING: MeasuredLayer.SYNTAX,
    Layer.PARSE: MeasuredLayer.SYNTAX,
    Layer.SCHEMA: MeasuredLayer.SCHEMA,
    Layer.BUSINESS: MeasuredLayer.BUSINESS,
    Layer.PERMISSION: MeasuredLayer.PERMISSION,
    Layer.ACTION: MeasuredLayer.TOOL,
}
Verdicts = dict[MeasuredLayer, bool]


@dataclass(frozen=True, slots=True)
class Request:
    """What validators, the authorisation and the action are given. `value`: the parsed text, parsed anew for each of
    them, so that none can change what another sees.
    """

    key: str
    scope: str
    text: str
    value: Any
    principal: str | None


Validator = Callable[[Request], Any]
"""Returns reasons against the request: None or nothing, a string, or several. May be async for `commit_async`."""
Authorise = Callable[[Request], Any]
"""Returns True to permit; anything else denies, and a string says why. May be async for `commit_async`."""
Action = Callable[[Request], Any]
"""Does it, and returns a JSON value. Raises NotDone when it had no effect. May be async for `commit_async`."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What was generated, without its stop token."""

    data: bytes
    tokens: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _Ask:
    """A call of the caller's code. It may return an awaitable."""

    call: Callable[[Request], Any]
    request: Request


@dataclass(frozen=True, slots=True)
class _Stored:
    """Work of the store. It's never interrupted."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float


class _Checkpoint:
    """A point where a cancellation may strike."""


_Operation = _Ask | _Stored | _Wait | _Checkpoint
_Steps = Generator[_Operation, Any, Outcome]


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
        self._artifact, self._store, self._scope = artifact, store, scope
        self._schema = schema_layer(artifact, schema, resources, check_source)
        self._validators, self._authorise = tuple(validators), authorise
        is_json = schema is not None or artifact.header["source"]["kind"] == "json_schema"
        self._parse = parse or (parse_json if is_json else parse_text)
        self._wait_seconds, self._metrics = wait_seconds, metrics
        self._at: Step = on_step or (lambda step: None)

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
            raise TypeError(f"{_name(action)} is async: use commit_async")
        steps = self._steps(_Text(_bytes(text), _tokens(tokens)), key, action, ended, principal)
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                operation = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                return self._counted(stop.value)
            answer = error = None
            try:
                answer = _perform(operation)
            except BaseException as raised:
                error = raised

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
        steps = self._steps(_Text(_bytes(text), _tokens(tokens)), key, action, ended, principal)
        answer: Any = None
        error: BaseException | None = None
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                operation = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                outcome = self._counted(stop.value)
                if cancelled is not None:
                    raise cancelled from None
                return outcome
            answer = error = None
            try:
                if isinstance(operation, _Stored):
                    answer, struck = await _uninterrupted(operation.call)
                    cancelled = cancelled or struck
                elif cancelled is not None:
                    error = cancelled
                else:
                    answer = await _perform_async(operation)
            except BaseException as raised:
                error = raised

    # -- the steps -------------------------------------------------------------------------------------------

    def _steps(self, text: _Text, key: str, action: Action, ended: Ended | str, principal: str | None) -> _Steps:
        _check_call(key, action, principal)
        if text.tokens is None and self._artifact.has_specials:
            raise ValueError("the artifact's language has special tokens: pass the tokens, too")
        ended = Ended.of(ended)
        self._at("received")
        if ended != Ended.STOP:
            self._count({})
            return Incomplete(key, ended)
        content = _content(text, principal, self._artifact.has_specials)
        known = yield from self._known(key, content)
        if known is not None:
            return known
        verdicts: Verdicts = {}
        try:
            judged = yield from self._judge(text, key, principal, verdicts)
            if isinstance(judged, Rejected):
                return judged
            return (yield from self._claim(judged, content, action, verdicts))
        finally:
            self._count(verdicts)

    def _claim(self, request: Request, content: str, action: Action, verdicts: Verdicts) -> _Steps:
        self._at("claiming")
        while True:
            claim = yield _Stored(lambda: self._store.claim(self._scope, request.key, content, request.text, self._at))
            if claim is not None:
                return (yield from self._run(claim, request, action, verdicts))
            known = yield from self._known(request.key, content)  # another caller was quicker
            if known is not None:
                return known  # else it has released the key

    def _known(self, key: str, content: str) -> Generator[_Operation, Any, Outcome | None]:
        """What the store knows of the key, after a running call has ended; None when it's free."""
        deadline, wait = time.monotonic() + self._wait_seconds, _FIRST_WAIT
        while True:
            entry: Entry | None = yield _Stored(lambda: self._store.look(self._scope, key))
            self._at("looked")
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
            yield _Wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _judge(
        self, text: _Text, key: str, principal: str | None, verdicts: Verdicts
    ) -> Generator[_Operation, Any, Request | Rejected]:
        def passed(layer: Layer, reasons: Sequence[Reason]) -> bool:
            if layer != Layer.ACCEPTING or reasons:  # syntax is both layers: it has passed with the second
                verdicts[_MEASURED[layer]] = not reasons
            if not reasons:
                self._at(str(layer))
            return not reasons

        data = text.data
        if not passed(layer := Layer.ACCEPTING, reasons := judge_accepting(self._artifact, data, text.tokens)):
            return Rejected(key, layer, tuple(reasons))
        value, reasons = self._value(data)
        if not passed(layer := Layer.PARSE, reasons):
            return Rejected(key, layer, tuple(reasons))
        if self._schema is not None and not passed(layer := Layer.SCHEMA, reasons := self._schema.judge(value)):
            return Rejected(key, layer, tuple(reasons))
        request = Request(key, self._scope, data.decode("utf-8", "replace"), value, principal)
        if self._validators:
            reasons = []
            for validator in self._validators:
                reasons += _reasons((yield _Ask(validator, self._anew(request, data))), _name(validator))
            if not passed(layer := Layer.BUSINESS, reasons):
                return Rejected(key, layer, tuple(reasons))
        if self._authorise is not None:
            reasons = _denial((yield _Ask(self._authorise, self._anew(request, data))))
            if not passed(layer := Layer.PERMISSION, reasons):
                return Rejected(key, layer, tuple(reasons))
        return request

    def _value(self, data: bytes) -> tuple[Any, list[Reason]]:
        try:
            return self._parse(data), []
        except ParseError as error:
            return None, [error.reason]

    def _anew(self, request: Request, data: bytes) -> Request:
        return replace(request, value=self._parse(data))

    def _count(self, verdicts: Verdicts) -> None:
        if self._metrics is not None:
            self._metrics.record_text(verdicts)

    def _run(self, claim: Claim, request: Request, action: Action, verdicts: Verdicts) -> _Steps:
        try:
            self._at("claimed")
            yield _Checkpoint()
        except BaseException:
            self._store.release(claim, self._at)
            raise
        try:
            value = yield _Ask(action, request)
            self._at("ran")
            self._at("finishing")
        except NotDone as error:
            verdicts[MeasuredLayer.TOOL] = False
            return self._freed(claim, Reason(_message(error) or "the action had no effect", check=_name(action)))
        except BaseException as error:
            verdicts[MeasuredLayer.TOOL] = False
            note = f"the action raised {type(error).__name__}: {_message(error)}"[:1000]
            self._doubt(claim, note)
            if not isinstance(error, Exception):
                raise
            return InDoubt(request.key, note, claim.started_at)
        verdicts[MeasuredLayer.TOOL] = True
        result, note_ = _encode(value)
        try:
            yield _Stored(lambda: self._store.finish(claim, result, note_, self._at))
        except StoreError as error:
            note = f"the action ended, and that couldn't be recorded: {error}"
            return InDoubt(request.key, note, claim.started_at)
        self._at("finished")
        return Committed(request.key, json.loads(result), note_)

    def _freed(self, claim: Claim, reason: Reason) -> Outcome:
        try:
            self._store.release(claim, self._at)
        except StoreError as error:
            note = f"the action had no effect, and the key couldn't be freed: {error}"
            return InDoubt(claim.key, note, claim.started_at)
        return Rejected(claim.key, Layer.ACTION, (reason,))

    def _doubt(self, claim: Claim, note: str) -> None:
        """A doubt that can't be written is found all the same: the claim stays, without its lock."""
        try:
            self._store.doubt(claim, note, self._at)
        except StoreError:
            return

    def _counted(self, outcome: Outcome) -> Outcome:
        if self._metrics is not None:
            self._metrics.record_outcome(outcome.name, outcome.cause if isinstance(outcome, Incomplete) else None)
        return outcome


def _perform(operation: _Operation) -> Any:
    if isinstance(operation, _Stored):
        return operation.call()
    if isinstance(operation, _Wait):
        return time.sleep(operation.seconds)
    if isinstance(operation, _Checkpoint):
        return None
    if inspect.iscoroutinefunction(operation.call):
        raise TypeError(f"{_name(operation.call)} is async: use commit_async")
    answer = operation.call(operation.request)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(f"{_name(operation.call)} returned an awaitable: use commit_async")
    return answer


async def _perform_async(operation: _Ask | _Wait | _Checkpoint) -> Any:
    if isinstance(operation, _Wait):
        return await asyncio.sleep(operation.seconds)
    if isinstance(operation, _Checkpoint):
        return await asyncio.sleep(0)
    answer = operation.call(operation.request)
    return await answer if inspect.isawaitable(answer) else answer


async def _uninterrupted(call: Callable[[], Any]) -> tuple[Any, asyncio.CancelledError | None]:
    """Runs the call in a thread to its end; a cancellation meanwhile is handed back, not raised."""
    work, struck = asyncio.ensure_future(asyncio.to_thread(call)), None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            struck = error
    return work.result(), struck


def _check_call(key: str, action: Action, principal: str | None) -> None:
    """Before anything is looked at: what nobody could run later, or write down."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not _is_text(key):
        raise ValueError(f"a key is a string of 1 to {MAX_KEY} characters, surrogates aside")
    if not callable(action):
        raise TypeError(f"an action is called, and {type(action).__name__} can't be")
    if principal is not None and not isinstance(principal, str):
        raise TypeError(f"a principal is a string or None, not {type(principal).__name__}")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _message(error: BaseException) -> str:
    """What an exception says, as text that can be written down, whatever its class does."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return "(it says nothing that can be read)"


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes):
        return text
    raise TypeError(f"a text is str or bytes, not {type(text).__name__}")


def _tokens(tokens: Sequence[int] | None) -> tuple[int, ...] | None:
    if tokens is None:
        return None
    given = tuple(operator.index(t) for t in tokens)
    if any(not 0 <= t < 1 << 32 for t in given):
        raise ValueError("tokens are numbers from 0 on, below 2 ** 32")
    return given


def _content(text: _Text, principal: str | None, with_tokens: bool) -> str:
    """What a key belongs to. Tokens count where the text alone doesn't tell what was said."""
    who = b"-" if principal is None else b"+" + principal.encode("utf-8", "surrogatepass")
    said = b"".join(t.to_bytes(8, "little") for t in text.tokens or ()) if with_tokens else b""
    parts = [len(part).to_bytes(8, "little") + part for part in (who, said, text.data)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _encode(value: Any) -> tuple[str, str | None]:
    """The result as JSON. It's no failure when it can't be: the action has run."""
    try:
        return json.dumps(value, allow_nan=False), None
    except Exception as error:  # of the caller's classes, too
        return "null", f"the result can't be kept as JSON: {_message(error)}"


def _reasons(answer: Any, check: str) -> list[Reason]:
    if answer is None:
        return []
    given: Iterable[Any] = (answer,) if isinstance(answer, str | Reason) else answer
    return [r if isinstance(r, Reason) else Reason(str(r), check=check) for r in given]


def _denial(answer: Any) -> list[Reason]:
    if answer is True:
        return []
    return [Reason(answer if isinstance(answer, str) else f"not permitted (the authorisation returned {answer!r:.80})")]


def _name(call: Callable[..., Any]) -> str:
    return str(getattr(call, "__qualname__", None) or type(call).__qualname__)
