"""Layered metrics: counters, both renderings, the log format and its evaluation."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from gate_samples import SCHEMA
from prometheus_client.parser import text_string_to_metric_families

from maskwright.workers import Artifact
from maskwright.workers.gate import CommitGate, NotDone, SqliteStore
from maskwright.workers.metrics import Durations, LayerMetrics, MeasuredLayer, render_prometheus, render_table
from maskwright.workers.metrics import log as log_module
from maskwright.workers.metrics.evaluate import evaluate
from maskwright.workers.metrics.log import FaultCode, LogWriter

L = MeasuredLayer
HEADER = b'{"log":"maskwright-generations","version":1}\n'


def _samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_quantiles_are_upper_bounds_of_two_digits() -> None:
    choose = random.Random(1)
    times = sorted(10 ** choose.uniform(-8, 2) for _ in range(2001))
    durations = Durations()
    assert durations.quantile(0.5) is None
    for t in times:
        durations.observe(t)
    for q in (0.01, 0.5, 0.9, 0.99, 1.0):
        true = times[max(0, -int(-q * len(times) // 1) - 1)]
        found = durations.quantile(q)
        assert found is not None
        assert true <= found + 1e-9 <= true * 1.1 + 3e-9
    assert durations.count == 2001
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="observed"):
            durations.observe(wrong)


def test_a_layers_failure_isnt_hidden_by_anothers_success() -> None:
    m = LayerMetrics()
    good = dict.fromkeys(L, True)
    for _ in range(97):
        m.record_text(good)
    m.record_text({**good, L.FACTS: False})
    m.record_text({**good, L.FACTS: False, L.PERMISSION: False})
    m.record_text({L.SYNTAX: False, L.DEAD_END: True})
    assert (m.passed[L.SCHEMA], m.failed[L.SCHEMA], m.not_judged(L.SCHEMA)) == (99, 0, 1)
    assert (m.failed[L.FACTS], m.first[L.FACTS], m.first[L.PERMISSION], m.first[L.SYNTAX]) == (2, 2, 0, 1)
    assert (m.clean, m.full) == (97, 97)
    rows = {line.split("  ")[1].strip(): line.split() for line in render_table({"all": m}) if line.startswith("  ")}
    assert rows["schema"][1:] == ["99", "99", "0", "100.0%", "99.0%", "0"]
    assert rows["facts"][1:] == ["99", "97", "2", "97.9%", "97.0%", "2"]
    samples = _samples(render_prometheus([m]))
    verdicts = "maskwright_layer_verdicts_total"
    assert samples[verdicts, frozenset({("layer", "facts"), ("verdict", "failed")})] == 2
    assert samples[verdicts, frozenset({("layer", "schema"), ("verdict", "failed")})] == 0
    assert samples[verdicts, frozenset({("layer", "schema"), ("verdict", "not_judged")})] == 1


def test_a_groups_name_stays_in_its_line() -> None:
    (first, *_) = render_table({"a\nb\x1b[2J": LayerMetrics()})
    assert first == "a\\nb\\x1b[2J: 0 texts, 0 tokens"
    assert render_table({"gruppe é": LayerMetrics()})[0].startswith("gruppe é: ")


def test_no_texts_are_neither_good_nor_bad() -> None:
    m = LayerMetrics()
    assert all("%" not in line for line in render_table({"none": m})[2:])
    m.record_text({L.SYNTAX: True})
    assert (m.clean, m.full) == (1, 0)
    m.record_text({})
    assert m.clean == 1


def test_rates_are_rounded_down() -> None:
    m = LayerMetrics()
    for n in range(2_000):
        m.record_text({L.SYNTAX: n > 0})
    assert any("99.9%" in line and "100.0%" not in line for line in render_table({"": m}))


def test_the_text_for_prometheus_is_well_formed() -> None:
    odd = 'a "quoted"\nback\\slash'
    first, second = LayerMetrics({"gate": odd}), LayerMetrics({"gate": "other"})
    first.added_ttft.observe(0.002)
    for seconds in (2.5e-6, 2.6e-6, 40.0):
        first.added_tpot.observe(seconds)
    first.record_outcome("in doubt")
    first.record_text({}, "timed out", 7)
    text = render_prometheus([first, second])
    samples = _samples(text)
    me = ("gate", odd)
    buckets = {
        dict(labels)["le"]: value
        for (name, labels), value in samples.items()
        if name == "maskwright_added_tpot_seconds_bucket" and me in labels
    }
    assert buckets["2.5e-06"] == 1
    assert buckets["5e-06"] == 2
    assert buckets["+Inf"] == 3
    values = list(buckets.values())
    assert values == sorted(values)
    assert samples["maskwright_gate_outcomes_total", frozenset({me, ("outcome", "in_doubt")})] == 1
    assert samples["maskwright_generation_ends_total", frozenset({me, ("ended", "timed_out")})] == 1
    assert samples["maskwright_tokens_total", frozenset({me})] == 7
    assert text.count("# TYPE maskwright_texts_total") == 1
    assert b'{gate="\\\\ud800"}' in render_prometheus([LayerMetrics({"gate": "\ud800"})]).encode()
    with pytest.raises(ValueError, match="labels"):
        render_prometheus([first, first])
    with pytest.raises(ValueError, match="label names"):
        LayerMetrics({"no name": "x"})


def test_the_gate_counts(artifact: Artifact, store: SqliteStore) -> None:
    metrics = LayerMetrics({"gate": "refund"})

    def business(request: Any) -> str | None:
        return "too much" if request.value.get("amount", 0) > 100 else None

    gate = CommitGate(artifact, SCHEMA, [business], store, metrics=metrics, authorise=lambda r: r.principal == "ann")

    def act(request: Any) -> str:
        if request.key == "closed":
            raise NotDone
        if request.key == "broken":
            raise OSError
        return "done"

    ask, twice, much = '{"action":"ask"}', '{"action":"ask","tags":["a","a"]}', '{"action":"refund","amount":101}'
    for key, text, who in (
        ("good", ask, "ann"), ("good", ask, "ann"), ("eve", ask, "eve"), ("twice", twice, "ann"),
        ("much", much, "ann"), ("cut", ask[:-1], "ann"), ("closed", ask, "ann"), ("broken", ask, "ann"),
    ):  # fmt: skip
        gate.commit(text, key, act, ended="stop", principal=who)
    gate.commit(ask, "long", act, ended="length", principal="ann")
    assert dict(metrics.outcomes) == {"committed": 1, "duplicate": 1, "rejected": 5, "in doubt": 1, "incomplete": 1}
    assert dict(metrics.ends) == {"length": 1}
    assert metrics.texts == 8  # the duplicate is no new text
    found = {layer: (metrics.passed[layer], metrics.failed[layer], metrics.not_judged(layer)) for layer in L}
    assert found == {
        L.DEAD_END: (0, 0, 8),
        L.SYNTAX: (6, 1, 1),
        L.SCHEMA: (5, 1, 2),
        L.BUSINESS: (4, 1, 3),
        L.FACTS: (0, 0, 8),
        L.PERMISSION: (3, 1, 4),
        L.TOOL: (1, 2, 5),
    }


def test_a_log_is_judged_by_its_texts() -> None:
    file = io.BytesIO()
    log = LogWriter(file)
    log.define("point", {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}})
    good = {"schema": "point", "tokens": 11, "added_ttft_seconds": 0.001, "added_tpot_seconds": 2e-6}
    log.write('{"x":1}', "stop", group="masked", layers={"facts": False, "tool": None}, **good)
    log.write('{"x":2}', "stop", group="masked", layers={"facts": True, "syntax": True}, **good)
    log.write('{"x":', "length", group="masked", schema="point")
    log.write("", "dead end", group="masked", schema="point")
    log.write('{"y":1}', "stop", group="free", schema="point")
    log.write("Sure! Here it is", "stop", group="free", schema="point", id="7", meta={"prompt": 1})
    log.write("any text", "stop", group="free", layers={"syntax": True})
    found = evaluate(file.getvalue().splitlines(keepends=True))
    assert found.n_faults == 0
    masked, free = found.groups["masked"], found.groups["free"]
    assert list(found.groups) == ["masked", "free"]
    assert (masked.texts, masked.tokens, dict(masked.ends)) == (4, 22, {"stop": 2, "length": 1, "dead end": 1})
    assert (masked.passed[L.SYNTAX], masked.failed[L.SYNTAX]) == (2, 2)
    assert (masked.passed[L.SCHEMA], masked.failed[L.SCHEMA], masked.not_judged(L.SCHEMA)) == (2, 0, 2)
    assert (masked.passed[L.FACTS], masked.failed[L.FACTS]) == (1, 1)
    assert (masked.failed[L.DEAD_END], masked.first[L.DEAD_END], masked.first[L.SYNTAX]) == (1, 1, 1)
    assert (free.passed[L.SYNTAX], free.failed[L.SYNTAX], free.failed[L.SCHEMA]) == (2, 1, 1)
    assert masked.added_tpot.count == 20
    assert masked.added_tpot.quantile(0.5) == pytest.approx(2e-6)


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        (b"{", FaultCode.NOT_JSON, None),
        (b"\xff{}", FaultCode.NOT_JSON, None),
        (b'{"text":NaN}', FaultCode.NOT_JSON, None),
        (b"[" * 100_000, FaultCode.NOT_JSON, None),
        (b"[]", FaultCode.NOT_AN_OBJECT, None),
        (b"{}", FaultCode.MISSING_FIELD, "ended"),
        (b'{"ended":"stop"}', FaultCode.MISSING_FIELD, "text"),
        (b'{"text":"","ended":"done"}', FaultCode.WRONG_VALUE, "ended"),
        (b'{"text":1,"ended":"stop"}', FaultCode.WRONG_VALUE, "text"),
        (b'{"text":"","ended":"stop","txet":""}', FaultCode.UNKNOWN_FIELD, "txet"),
        (b'{"text":"","ended":"stop","schema":"s"}', FaultCode.UNKNOWN_SCHEMA, "schema"),
        (b'{"text":"","ended":"stop","tokens":true}', FaultCode.WRONG_VALUE, "tokens"),
        (b'{"text":"","ended":"stop","tokens":-1}', FaultCode.WRONG_VALUE, "tokens"),
        (b'{"text":"","ended":"stop","tokens":1.5}', FaultCode.WRONG_VALUE, "tokens"),
        (b'{"text":"","ended":"stop","added_tpot_seconds":1e999}', FaultCode.WRONG_VALUE, "added_tpot_seconds"),
        (b'{"text":"","ended":"stop","layers":{"schema":1}}', FaultCode.WRONG_VALUE, "layers.schema"),
        (b'{"text":"","ended":"stop","layers":{"truth":true}}', FaultCode.UNKNOWN_FIELD, "layers.truth"),
        (b'{"text":"","ended":"stop","layers":{"dead end":true}}', FaultCode.UNKNOWN_FIELD, "layers.dead end"),
        (b'{"text":"","ended":"stop","group":"\\ud800"}', FaultCode.WRONG_VALUE, "group"),
        (b'{"text":"","ended":"\\ud800"}', FaultCode.WRONG_VALUE, "ended"),
        (b'{"text":"","ended":"stop","\\ud800":1}', FaultCode.UNKNOWN_FIELD, "\\ud800"),
        (b'{"text":"","ended":"stop","layers":{"\\ud800":true}}', FaultCode.UNKNOWN_FIELD, "layers.\\ud800"),
        (b'{"define":"s","schema":{"type":"\\ud800"}}', FaultCode.INVALID_SCHEMA, "schema"),
        (b'{"define":"s"}', FaultCode.MISSING_FIELD, "schema"),
        (b'{"define":"s","schema":{"type":"x"}}', FaultCode.INVALID_SCHEMA, "schema"),
        (b'{"define":"s","schema":{},"draft":"3"}', FaultCode.WRONG_VALUE, "draft"),
    ],
)
def test_bad_lines_are_told_by_number(line: bytes, code: FaultCode, field: str | None) -> None:
    good = b'{"text":"1","ended":"stop"}\n'
    found = evaluate([HEADER, good, b"\n", line + b"\n", good])
    assert [(f.line, f.code, f.field) for f in found.faults] == [(4, code, field)]
    assert f"line 4{', ' + field if field else ''}: ".encode() in str(found.faults[0]).encode()
    assert found.groups["all"].texts == 2


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"", FaultCode.NO_HEADER),
        (b"{}", FaultCode.NO_HEADER),
        (b'{"text":"","ended":"stop"}', FaultCode.NO_HEADER),
        (b'{"log":"maskwright-generations","version":2}', FaultCode.WRONG_VERSION),
        (b'{"log":"maskwright-generations","version":true}', FaultCode.WRONG_VERSION),
        (b"\x89PNG", FaultCode.NOT_JSON),
    ],
)
def test_what_is_no_log(first: bytes, code: FaultCode) -> None:
    lines = [first, b'{"text":"","ended":"stop"}'] if first else []
    found = evaluate(lines)
    assert [(f.line, f.code) for f in found.faults] == [(1, code)]
    assert not found.groups


def test_a_verdict_that_the_text_contradicts() -> None:
    define = b'{"define":"s","schema":{"type":"integer"}}\n'
    lie = {"text": '"x"', "ended": "stop", "schema": "s", "layers": {"syntax": True, "schema": True}}
    empty = {**lie, "text": ""}
    found = evaluate([HEADER, define, json.dumps(lie).encode(), json.dumps(empty).encode()])
    assert [(f.line, f.code, f.field) for f in found.faults] == [
        (3, FaultCode.CONTRADICTION, "layers.schema"),
        (4, FaultCode.CONTRADICTION, "layers.syntax"),
        (4, FaultCode.CONTRADICTION, "layers.schema"),
    ]
    metrics = found.groups["all"]
    assert (metrics.passed[L.SYNTAX], metrics.failed[L.SYNTAX]) == (1, 1)
    assert (metrics.passed[L.SCHEMA], metrics.failed[L.SCHEMA], metrics.not_judged(L.SCHEMA)) == (0, 1, 1)


def test_lines_that_are_too_long_arent_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_LINE", 60)
    good = b'{"text":"1","ended":"stop"}\n'
    for end in (b"\n", b""):
        file = io.BytesIO(HEADER + good + b'{"text":"' + b"x" * 500 + end)
        lines = list(log_module.lines_of(file))
        assert [len(line) for line in lines] == [len(HEADER), len(good), 61]
        found = evaluate([*lines, good])
        assert [(f.line, f.code) for f in found.faults] == [(3, FaultCode.TOO_LONG)]
        assert found.groups["all"].texts == 2


def test_a_writer_refuses_what_a_reader_would() -> None:
    log = LogWriter(io.BytesIO())
    for fields in ({"ended": "done"}, {"ended": "stop", "tokens": -1}, {"ended": "stop", "layers": {"x": True}}):
        with pytest.raises(ValueError, match=r"^(ended|tokens|layers\.x): "):
            log.write("", **fields)  # type: ignore[arg-type]
