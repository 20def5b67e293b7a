"""Each outcome, each layer: what runs, what doesn't, and what the key remembers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gate_samples import SCHEMA, Make

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers import Artifact, VocabularyPack
from maskwright.workers.gate import (
    STEPS,
    CommitGate,
    Committed,
    Duplicate,
    Ended,
    Incomplete,
    InDoubt,
    Layer,
    NotDone,
    Outcome,
    ParseError,
    Partial,
    PartialView,
    Reason,
    Rejected,
    Request,
    SchemaNeeded,
    SqliteStore,
    StoreError,
    WrongSchema,
)

TEXT = '{"action":"refund","amount":7}'


class Bank:
    """An action that counts."""

    def __init__(self, result: Any = "paid", error: BaseException | None = None) -> None:
        self.calls: list[Request] = []
        self._result, self._error = result, error

    def __call__(self, request: Request) -> Any:
        self.calls.append(request)
        if self._error is not None:
            raise self._error
        return self._result


def _layer(outcome: Outcome) -> Layer:
    assert isinstance(outcome, Rejected)
    assert outcome.reasons
    return outcome.layer


def test_commits_once_and_returns_the_first_result(gate: CommitGate) -> None:
    bank = Bank({"id": (1, 2)})
    first = gate.commit(TEXT, "k", bank, ended="stop", principal="ann")
    assert first == Committed("k", {"id": [1, 2]})
    assert bank.calls == [Request("k", "", TEXT, {"action": "refund", "amount": 7}, "ann")]
    again = gate.commit(TEXT, "k", Bank("other"), ended=Ended.STOP, principal="ann")
    assert isinstance(again, Duplicate)
    assert again.result == first.result
    assert len(bank.calls) == 1
    assert isinstance(gate.commit(TEXT, "k2", bank, ended="stop"), Committed)


def test_a_key_belongs_to_its_content_and_who_asked(gate: CommitGate, artifact: Artifact, store: SqliteStore) -> None:
    bank = Bank()
    gate.commit(TEXT, "k", bank, ended="stop", principal="ann")
    assert _layer(gate.commit(TEXT.replace("7", "8"), "k", bank, ended="stop", principal="ann")) == Layer.KEY
    assert _layer(gate.commit(TEXT, "k", bank, ended="stop", principal="bob")) == Layer.KEY
    assert _layer(gate.commit(TEXT, "k", bank, ended="stop")) == Layer.KEY
    # A split between the two that reads the same isn't the same.
    gate.commit(TEXT, "k3", bank, ended="stop", principal="")
    assert _layer(gate.commit(TEXT, "k3", bank, ended="stop")) == Layer.KEY
    assert len(bank.calls) == 2
    other = CommitGate(artifact, SCHEMA, [], store, scope="other tool")
    assert isinstance(other.commit(TEXT, "k", bank, ended="stop", principal="bob"), Committed)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("length", Ended.LENGTH),
        ("MAX_TOKENS", Ended.LENGTH),
        ("abort", Ended.CANCELLED),
        (Ended.CANCELLED, Ended.CANCELLED),
        ("timeout", Ended.TIMED_OUT),
        ("timed out", Ended.TIMED_OUT),
        ("disconnect", Ended.DISCONNECTED),
    ],
)
@pytest.mark.parametrize("text", [TEXT, '{"action":"ref', ""])
def test_a_cut_text_is_never_committed(gate: CommitGate, reason: str, cause: Ended, text: str) -> None:
    """Also where it looks complete."""
    bank = Bank()
    assert gate.commit(text, "k", bank, ended=reason) == Incomplete("k", cause)
    assert not bank.calls
    assert isinstance(gate.commit(TEXT, "k", bank, ended="stop"), Committed)


def test_unknown_finish_reasons_are_refused(gate: CommitGate) -> None:
    for reason in ("content_filter", "", "Stop!"):
        with pytest.raises(ValueError, match="finish reason"):
            gate.commit(TEXT, "k", Bank(), ended=reason)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ('{"action":"refund"', 18),
        ('{"action":"refund"} ', 19),
        (' {"action":"refund"}', 0),
        ('{"action":"steal"}', 11),
        ('```json\n{"action":"ask"}\n```', 0),
        ('{"action":"ask","amount":07}', 25),
        ('{"action":"ask","tags":["é\udc80"]}', 28),
    ],
)
def test_a_text_that_the_artifact_refuses(gate: CommitGate, text: str, offset: int) -> None:
    bank = Bank()
    outcome = gate.commit(text, "k", bank, ended="stop")
    assert _layer(outcome) == Layer.ACCEPTING
    assert isinstance(outcome, Rejected)
    assert outcome.reasons[0].offset == offset
    assert not bank.calls
    assert isinstance(gate.commit(TEXT, "k", bank, ended="stop"), Committed)


def test_residual_keywords_are_judged(gate: CommitGate) -> None:
    text = '{"action":"ask","tags":["a","b","a"]}'
    outcome = gate.commit(text, "k", Bank(), ended="stop")
    assert _layer(outcome) == Layer.SCHEMA
    assert isinstance(outcome, Rejected)
    assert outcome.reasons[0].pointer == "/tags"
    assert isinstance(gate.commit(text.replace('"b","a"', '"b"'), "k", Bank(), ended="stop"), Committed)


def test_an_artifact_with_residual_keywords_needs_its_schema(
    artifact: Artifact, store: SqliteStore, make: Make
) -> None:
    with pytest.raises(SchemaNeeded, match="residual='allow'"):
        CommitGate(artifact, None, [], store)
    with pytest.raises(WrongSchema) as caught:
        CommitGate(artifact, {"type": "object"}, [], store)
    assert caught.value.expected == artifact.header["source"]["digest"]
    CommitGate(artifact, {"type": "object"}, [], store, check_source=False)
    CommitGate(artifact, json.dumps(SCHEMA, indent=2), [], store)
    with pytest.raises(ValueError, match="valid"):
        CommitGate(artifact, {"type": "nonsense"}, [], store, check_source=False)
    whole = CommitGate(make({"type": "boolean"}), None, [], store)
    assert isinstance(whole.commit("true", "k", Bank(), ended="stop"), Committed)


def test_draft_formats_and_resources_are_the_artifacts(make: Make, store: SqliteStore) -> None:
    dated = {"type": "string", "format": "date"}
    free = make(dated, formats="annotate")
    assert isinstance(CommitGate(free, dated, [], store).commit('"x"', "k", Bank(), ended="stop"), Committed)
    old = {"type": "array", "items": [{"type": "null"}], "additionalItems": False}
    seventh = CommitGate(make(old, draft="7"), old, [], store, scope="7")
    assert isinstance(seventh.commit("[null]", "k", Bank(), ended="stop"), Committed)
    far = {"$ref": "https://example.org/s"}
    gate = CommitGate(
        make({"type": "integer"}), far, [], store, scope="far", check_source=False,
        resources={"https://example.org/s": {"maximum": 5}},
    )  # fmt: skip
    assert isinstance(gate.commit("5", "k", Bank(), ended="stop"), Committed)
    assert _layer(gate.commit("6", "k6", Bank(), ended="stop")) == Layer.SCHEMA


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a":1,"a":2}', "twice"),
        ('{"b":{"a":1,"c":0,"a":1}}', "twice"),
        ('{"a":1e999}', "range"),
        ('{"a":-1e999}', "range"),
    ],
)
def test_ambiguous_json_is_refused(make: Make, store: SqliteStore, text: str, what: str) -> None:
    gate = CommitGate(make({"type": "object"}), {"type": "object"}, [], store)
    outcome = gate.commit(text, "k", Bank(), ended="stop")
    assert _layer(outcome) == Layer.PARSE
    assert isinstance(outcome, Rejected)
    assert what in outcome.reasons[0].message


def test_hostile_depth_and_digits(make: Make, store: SqliteStore) -> None:
    gate = CommitGate(make({}), {}, [], store)
    for text in ("[" * 100_000 + "]" * 100_000, "9" * 5000):
        assert _layer(gate.commit(text, "k", Bank(), ended="stop")) == Layer.PARSE


def test_texts_that_arent_json(make: Make, store: SqliteStore) -> None:
    def read(data: bytes) -> int:
        if data == b"00":
            raise ParseError(Reason("no such number"))
        return int(data)

    digits = make("[0-9]{2}")
    plain = CommitGate(digits, None, [], store)
    bank = Bank()
    assert isinstance(plain.commit("07", "k", bank, ended="stop"), Committed)
    assert bank.calls[0].value == "07"
    assert _layer(plain.commit("7", "k7", bank, ended="stop")) == Layer.ACCEPTING
    reading = CommitGate(digits, None, [], store, parse=read, scope="int")
    assert isinstance(reading.commit("07", "k", bank, ended="stop"), Committed)
    assert bank.calls[1].value == 7
    assert _layer(reading.commit("00", "k0", bank, ended="stop")) == Layer.PARSE


def test_all_validators_are_asked(artifact: Artifact, store: SqliteStore) -> None:
    def none(request: Request) -> None:
        return None

    def one(request: Request) -> str:
        return "too much"

    def some(request: Request) -> list[str | Reason]:
        return [Reason("no such order", pointer="/order"), "on Sunday"]

    bank = Bank()
    outcome = CommitGate(artifact, SCHEMA, [none, one, some], store).commit(TEXT, "k", bank, ended="stop")
    assert _layer(outcome) == Layer.BUSINESS
    assert isinstance(outcome, Rejected)
    assert [str(r) for r in outcome.reasons] == ["too much", "/order: no such order", "on Sunday"]
    assert outcome.reasons[0].check is not None
    assert outcome.reasons[0].check.endswith("one")
    assert not bank.calls
    # A key that is done isn't judged again.
    CommitGate(artifact, SCHEMA, [none], store).commit(TEXT, "k", bank, ended="stop")
    again = CommitGate(artifact, SCHEMA, [one], store).commit(TEXT, "k", bank, ended="stop")
    assert isinstance(again, Duplicate)


@pytest.mark.parametrize("answer", [False, None, 1, "not yours", [], object()])
def test_only_true_permits(artifact: Artifact, store: SqliteStore, answer: object) -> None:
    bank = Bank()
    gate = CommitGate(artifact, SCHEMA, [], store, authorise=lambda request: answer)
    outcome = gate.commit(TEXT, "k", bank, ended="stop", principal="eve")
    assert _layer(outcome) == Layer.PERMISSION
    assert not bank.calls
    allowed = CommitGate(artifact, SCHEMA, [], store, authorise=lambda request: request.principal == "ann")
    assert isinstance(allowed.commit(TEXT, "k", bank, ended="stop", principal="ann"), Committed)


def test_what_a_check_raises_is_passed_on_and_nothing_ran(artifact: Artifact, store: SqliteStore) -> None:
    def broken(request: Request) -> None:
        raise OSError("no data base")

    bank = Bank()
    with pytest.raises(OSError, match="no data base"):
        CommitGate(artifact, SCHEMA, [broken], store).commit(TEXT, "k", bank, ended="stop")
    with pytest.raises(OSError, match="no data base"):
        CommitGate(artifact, SCHEMA, [], store, authorise=broken).commit(TEXT, "k", bank, ended="stop")
    assert not bank.calls
    assert isinstance(CommitGate(artifact, SCHEMA, [], store).commit(TEXT, "k", bank, ended="stop"), Committed)


def test_an_action_without_effect_frees_its_key(gate: CommitGate) -> None:
    outcome = gate.commit(TEXT, "k", Bank(error=NotDone("the bank is closed")), ended="stop")
    assert _layer(outcome) == Layer.ACTION
    assert isinstance(outcome, Rejected)
    assert outcome.reasons[0].message == "the bank is closed"
    assert isinstance(gate.commit(TEXT, "k", Bank(), ended="stop"), Committed)


def test_an_action_that_raises_is_in_doubt_until_settled(gate: CommitGate, store: SqliteStore) -> None:
    outcome = gate.commit(TEXT, "k", Bank(error=TimeoutError("no answer")), ended="stop")
    assert isinstance(outcome, InDoubt)
    assert not outcome.running
    assert "TimeoutError: no answer" in outcome.cause
    bank = Bank()
    assert gate.commit(TEXT, "k", bank, ended="stop") == outcome
    assert not bank.calls
    (entry,) = store.in_doubt()
    assert (entry.key, entry.text, entry.note) == ("k", TEXT, outcome.cause)
    store.settle("k", took_effect=True, by="ann", why="the bank has it", result={"id": 3})
    found = gate.commit(TEXT, "k", bank, ended="stop")
    assert isinstance(found, Duplicate)
    assert found.result == {"id": 3}
    assert found.note == "settled by ann: the bank has it"
    assert not bank.calls
    assert not store.in_doubt()


def test_settled_without_effect_runs_again(gate: CommitGate, store: SqliteStore) -> None:
    gate.commit(TEXT, "k", Bank(error=TimeoutError()), ended="stop")
    store.settle("k", took_effect=False, by="ann", why="the bank hasn't")
    assert isinstance(gate.commit(TEXT, "k", Bank(), ended="stop"), Committed)
    (settled,) = store.settlements()
    assert (settled["key"], settled["took_effect"], settled["by"]) == ("k", False, "ann")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupted_action_is_in_doubt_and_raises(gate: CommitGate, error: BaseException) -> None:
    with pytest.raises(type(error)):
        gate.commit(TEXT, "k", Bank(error=error), ended="stop")
    assert isinstance(gate.commit(TEXT, "k", Bank(), ended="stop"), InDoubt)


def test_a_result_that_isnt_json_is_no_failure(gate: CommitGate) -> None:
    for key, result in (("object", object()), ("nan", float("nan")), ("bytes", b"x")):
        outcome = gate.commit(TEXT, key, Bank(result), ended="stop")
        assert isinstance(outcome, Committed)
        assert (outcome.result, outcome.note is None) == (None, False)
        again = gate.commit(TEXT, key, Bank(), ended="stop")
        assert isinstance(again, Duplicate)
        assert again.note == outcome.note


def test_a_result_that_cant_be_recorded_is_in_doubt(
    gate: CommitGate, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> float:
        raise StoreError("calls.sqlite", "no space")

    with monkeypatch.context() as patch:
        patch.setattr(store, "finish", full)
        outcome = gate.commit(TEXT, "k", Bank(), ended="stop")
    assert isinstance(outcome, InDoubt)
    assert "no space" in outcome.cause


def test_a_key_that_cant_be_freed_is_in_doubt(
    gate: CommitGate, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise StoreError("calls.sqlite", "no space")

    with monkeypatch.context() as patch:
        patch.setattr(store, "release", full)
        outcome = gate.commit(TEXT, "k", Bank(error=NotDone()), ended="stop")
    assert isinstance(outcome, InDoubt)
    assert "no space" in outcome.cause


def test_wrong_use(gate: CommitGate, artifact: Artifact, store: SqliteStore) -> None:
    for key in ("", "k" * 513):
        with pytest.raises(ValueError, match="key"):
            gate.commit(TEXT, key, Bank(), ended="stop")
    partial: Any = PartialView().feed(TEXT)
    assert isinstance(partial, Partial)
    with pytest.raises(TypeError, match="Partial"):
        gate.commit(partial, "k", Bank(), ended="stop")

    async def later(request: Request) -> None:
        return None

    with pytest.raises(TypeError, match="commit_async"):
        CommitGate(artifact, SCHEMA, [later], store).commit(TEXT, "k", Bank(), ended="stop")
    with pytest.raises(TypeError, match="commit_async"):
        gate.commit(TEXT, "k", later, ended="stop")
    assert isinstance(gate.commit(TEXT, "k", Bank(), ended="stop"), Committed)


def test_no_check_changes_what_the_action_sees(artifact: Artifact, store: SqliteStore) -> None:
    def change(request: Request) -> bool:
        request.value["amount"] = 10**6
        return True

    bank = Bank()
    gate = CommitGate(artifact, SCHEMA, [lambda r: change(r) and None], store, authorise=change)
    gate.commit(TEXT, "k", bank, ended="stop")
    assert bank.calls[0].value == json.loads(TEXT)


def test_steps_are_told_in_order(artifact: Artifact, store: SqliteStore) -> None:
    steps: list[str] = []
    gate = CommitGate(artifact, SCHEMA, [lambda r: None], store, authorise=lambda r: True, on_step=steps.append)
    gate.commit(TEXT, "k", Bank(), ended="stop")
    assert tuple(steps) == STEPS


def test_outcomes_as_json(gate: CommitGate) -> None:
    outcomes = [
        gate.commit(TEXT, "k", Bank(), ended="stop"),
        gate.commit(TEXT, "k", Bank(), ended="stop"),
        gate.commit("", "k2", Bank(), ended="stop"),
        gate.commit("", "k2", Bank(), ended="length"),
        gate.commit(TEXT, "k3", Bank(error=OSError()), ended="stop"),
    ]
    shown = [json.loads(json.dumps(o.to_json())) for o in outcomes]
    names = ["committed", "duplicate", "rejected", "incomplete", "in doubt"]
    assert [s["outcome"] for s in shown] == names
    assert shown[2]["layer"] == "accepting"
    assert shown[3]["cause"] == "length"


def test_the_library_for_schemas_is_optional(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from maskwright.workers.gate import MissingDependency

    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(MissingDependency, match=r"pip install 'maskwright\[gate\]'"):
        CommitGate(artifact, SCHEMA, [], SqliteStore(tmp_path / "s"))


def test_special_tokens_are_judged_by_tokens(store: SqliteStore) -> None:
    vocabulary = Vocabulary.demo()
    name, special = next((v, i) for i in vocabulary.special_ids if (v := vocabulary.special_text(i)))
    words = {vocabulary.token_bytes(i): i for i in range(vocabulary.size)}
    grammar = f'start: {name} "a" | "b"'
    artifact = Artifact.from_bytes(
        Compiler(vocabulary).compile_lark(grammar).to_bytes(), VocabularyPack.from_bytes(vocabulary.pack_bytes())
    )
    gate = CommitGate(artifact, None, [], store)
    a, b = words[b"a"], words[b"b"]
    with pytest.raises(ValueError, match="tokens"):
        gate.commit("b", "k", Bank(), ended="stop")
    assert isinstance(gate.commit("b", "k", Bank(), ended="stop", tokens=[b]), Committed)
    assert isinstance(gate.commit("b", "k", Bank(), ended="stop", tokens=[b]), Duplicate)
    for text in ("a", f"{name}a"):
        assert isinstance(gate.commit(text, text, Bank(), ended="stop", tokens=[special, a]), Committed)
    for text, tokens in (("a", [a]), ("b", [special, a]), ("", [special]), ("b", [b, b]), ("b", [])):
        outcome = gate.commit(text, "k2", Bank(), ended="stop", tokens=tokens)
        assert _layer(outcome) == Layer.ACCEPTING
