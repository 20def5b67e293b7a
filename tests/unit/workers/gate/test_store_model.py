"""The store against a model of it: random operations, with stores opened and closed in between."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from maskwright.workers.gate import CannotSettle, SqliteStore, State
from maskwright.workers.gate.store import Claim

KEYS = st.sampled_from(["a", "b", "c"])
SCOPES = st.sampled_from(["", "tool"])


def _at(step: str) -> None:
    """Nobody listens."""


class StoreAndModel(RuleBasedStateMachine):
    """`model`: state and result by (scope, key). A claim whose lock is dropped is a process that's gone."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = SqliteStore(Path(self.folder.name) / "s")
        self.model: dict[tuple[str, str], tuple[State, object]] = {}
        self.claims: dict[tuple[str, str], Claim] = {}
        self.settled = 0

    @rule(scope=SCOPES, key=KEYS)
    def claim(self, scope: str, key: str) -> None:
        claim = self.store.claim(scope, key, "content", "text", _at)
        assert (claim is None) == ((scope, key) in self.model)
        if claim is not None:
            self.model[scope, key] = State.RUNNING, None
            self.claims[scope, key] = claim

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), end=st.sampled_from(["finish", "release", "doubt", "gone"]), result=st.integers(0, 9))
    def end(self, data: st.DataObject, end: str, result: int) -> None:
        place = data.draw(st.sampled_from(sorted(self.claims)))
        claim = self.claims.pop(place)
        if end == "finish":
            self.store.finish(claim, str(result), None, _at)
            self.model[place] = State.DONE, result
        elif end == "release":
            self.store.release(claim, _at)
            del self.model[place]
        elif end == "doubt":
            self.store.doubt(claim, "who knows", _at)
            self.model[place] = State.DOUBT, None
        else:
            claim.lock.release()
            self.model[place] = State.DOUBT, None

    @rule(scope=SCOPES, key=KEYS, took_effect=st.booleans())
    def settle(self, scope: str, key: str, took_effect: bool) -> None:
        try:
            self.store.settle(key, scope=scope, took_effect=took_effect, by="test", why="x", result="settled")
        except CannotSettle as error:
            state, _ = self.model.get((scope, key), ("unknown", None))
            assert error.state == state != State.DOUBT
            return
        assert self.model.pop((scope, key))[0] == State.DOUBT
        self.settled += 1
        if took_effect:
            self.model[scope, key] = State.DONE, "settled"

    @rule()
    def prune(self) -> None:
        done = [place for place, (state, _) in self.model.items() if state == State.DONE]
        assert self.store.prune(-1) == len(done)
        for place in done:
            del self.model[place]

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = SqliteStore(Path(self.folder.name) / "s")

    @invariant()
    def agrees(self) -> None:
        for place in [(s, k) for s in ("", "tool") for k in "abc"]:
            entry = self.store.look(*place)
            assert (entry is None) == (place not in self.model)
            if entry is not None:
                assert (entry.state, entry.result) == self.model[place]
                assert (entry.text is None) == (entry.state == State.DONE)
        doubts = {place for place, (state, _) in self.model.items() if state == State.DOUBT}
        assert {(e.scope, e.key) for e in self.store.in_doubt()} == doubts
        assert len(self.store.settlements()) == self.settled

    def teardown(self) -> None:
        for claim in self.claims.values():
            claim.lock.release()
        self.store.close()
        self.folder.cleanup()


StoreAndModel.TestCase.settings = settings(deadline=None, derandomize=True, max_examples=20, stateful_step_count=20)
test_store_and_model = StoreAndModel.TestCase
