"""The commit gate: an action runs only for a complete, valid, permitted text, and once for its key.

    store = SqliteStore("calls.sqlite")
    gate = CommitGate(artifact, schema, [within_balance], store, authorise=may_refund)
    match gate.commit(text, key="order-7/refund", action=pay, ended=finish_reason, principal=user):
        case Committed(result=result) | Duplicate(result=result): ...   # it ran, now or the first time
        case Rejected(layer=layer, reasons=reasons): ...                # nothing ran; the key is free
        case Incomplete(cause=cause): ...                               # cut: nothing ran, nothing is repaired
        case InDoubt(cause=cause): ...                                  # began, end unknown: settle it

gate       what a caller sees: the order of the layers, what is and isn't claimed
committing the steps of a commit, and the table of what it comes to
asked      what a commit is given
judging    the layers, one after the other
performing what the steps ask for, done by a thread or an event loop
outcomes   the five outcomes
layers     accepting state, parse, schema
store      keys on disk; what a crash leaves
locks      who is still at work
partial    what a cut or growing text shows, never to be committed

`python -m maskwright.workers.gate calls.sqlite` lists and settles calls in doubt. numpy is enough, but for the
schema layer, which loads jsonschema-rs (`pip install 'maskwright[gate]'`). POSIX only.
"""

from maskwright.workers.gate.asked import Request
from maskwright.workers.gate.committing import STEPS
from maskwright.workers.gate.errors import (
    CannotSettle,
    GateError,
    MissingDependency,
    NotDone,
    SchemaNeeded,
    StoreError,
    WrongSchema,
)
from maskwright.workers.gate.gate import CommitGate
from maskwright.workers.gate.layers import ParseError
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
from maskwright.workers.gate.partial import Partial, PartialView
from maskwright.workers.gate.store import Entry, SqliteStore, State

__all__ = [
    "STEPS",
    "CannotSettle",
    "CommitGate",
    "Committed",
    "Duplicate",
    "Ended",
    "Entry",
    "GateError",
    "InDoubt",
    "Incomplete",
    "Layer",
    "MissingDependency",
    "NotDone",
    "Outcome",
    "ParseError",
    "Partial",
    "PartialView",
    "Reason",
    "Rejected",
    "Request",
    "SchemaNeeded",
    "SqliteStore",
    "State",
    "StoreError",
    "WrongSchema",
]
