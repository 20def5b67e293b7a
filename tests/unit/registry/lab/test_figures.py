"""What the page shows, from real artifacts: the worked examples to three digits, budgets, runs, the judges."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from maskwright.compiler import CompileOptions, Compiler, Vocabulary
from maskwright.registry.lab.distributions import Noise, Spellings, TextTable
from maskwright.registry.lab.examples import BY_NAME, EXAMPLES, Example
from maskwright.registry.lab.following import follow_text, mask_of, replay
from maskwright.registry.lab.runs import Order, run_free, run_json, run_masked
from maskwright.registry.lab.sampling import Settings, draw, drawable, everything, softmax
from maskwright.registry.lab.tasks import judge_text
from maskwright.registry.lab.views import figures_of, pieces_of, place_of, rows_of, step_of
from maskwright.workers import Artifact, VocabularyPack
from maskwright.workers.sampler import SamplingOptions

SETTINGS = Settings()


@cache
def pack() -> VocabularyPack:
    return VocabularyPack.from_bytes(Vocabulary.demo().pack_bytes())


@cache
def spellings() -> Spellings:
    return Spellings(pack())


@cache
def artifact(name: str) -> Artifact:
    example = BY_NAME[name]
    compiler = Compiler(Vocabulary.demo(), CompileOptions(whitespace="compact"))
    compile_ = {
        "json_schema": compiler.compile_json_schema,
        "regex": compiler.compile_regex,
        "lark": compiler.compile_lark,
        "gbnf": compiler.compile_gbnf,
    }[example.kind]
    return Artifact.from_bytes(compile_(example.source).to_bytes(), pack())


def table(example: Example, seed: int = 1) -> tuple[TextTable, Noise]:
    noise = Noise(pack().vocab_size, seed)
    return TextTable(example.table, pack(), spellings(), noise), noise


def view(name: str, text: str, budget: int = 0, settings: Settings = SETTINGS) -> tuple[Any, list[Any], dict[str, Any]]:
    """(matcher, rows, figures) after the tokens of a text, under the example's own table."""
    tokens = spellings().split(text.encode())
    reached = replay(artifact(name), tokens)
    assert reached.taken == len(tokens)
    step = step_of(reached.matcher, tokens, *table(BY_NAME[name]), settings, budget)
    return reached.matcher, rows_of(reached.matcher, step, ""), figures_of(reached.matcher, step, budget, len(tokens))


def shown(rows: list[Any]) -> dict[str, tuple[str, str, str]]:
    return {r.text: (r.state, f"{r.raw:.3f}", f"{r.after:.3f}") for r in rows if r.raw}


def test_refund_or_ask() -> None:
    _, rows, figures = view("refund", BY_NAME["refund"].start_text)
    assert shown(rows) == {
        "de": ("masked", "0.500", "0.000"),
        "refund": ("legal", "0.300", "0.667"),
        "ask": ("legal", "0.150", "0.333"),
        "ca": ("masked", "0.050", "0.000"),
    }
    assert f"{figures['retained']:.3f}" == "0.450"
    assert {r.text: r.toward for r in rows if r.toward} == {"de": "lete", "ca": "ncel"}


def test_city_and_unit() -> None:
    matcher, rows, figures = view("city", BY_NAME["city"].start_text)
    assert shown(rows)["unit"] == ("legal", "0.610", "1.000")
    assert shown(rows)["country"] == ("masked", "0.240", "0.000")
    assert figures["legal"] == 3 and figures["completions"] == "2" and figures["least"] == 9
    place = place_of(matcher)
    assert place["forced"] == 'unit":"' and [f["name"] for f in place["frames"]][-1] == "root"


def test_the_pointer_of_a_value() -> None:
    assert place_of(view("city", '{"city":"Os')[0])["pointer"] == "/properties/city"
    assert place_of(view("refund", '{"action":"')[0])["pointer"].startswith("/anyOf/0")


def test_a_number_of_completions_is_exact() -> None:
    _, _, figures = view("conditional", "")
    # {"pay":"cash"}, the same with one of 10,000 numbers, and card with one of them.
    assert int(figures["completions"]) == 1 + 10_000 + 10_000 or int(figures["completions"]) > 20_001
    _, _, after = view("conditional", '{"pay":"cash"}')
    assert after["completions"] == "1" and after["may_end"]


def test_a_budget_takes_away_what_would_be_too_late() -> None:
    matcher, _, free = view("tree", '{"name":"ab')
    least = free["least"]
    assert least == matcher.min_tokens_to_finish()
    written = len(spellings().split(b'{"name":"ab'))
    _, rows, tight = view("tree", '{"name":"ab', budget=written + least)
    assert tight["late"] > 0 and tight["legal"] < free["legal"] and not tight["short"]
    assert not any(r.state == "late" and r.after for r in rows)
    _, _, short = view("tree", '{"name":"ab', budget=written + least - 1)
    assert short["short"] and short["legal"] == free["legal"]


@pytest.mark.parametrize("seed", range(12))
def test_runs_of_noise_end_in_the_budget(seed: int) -> None:
    noise = Noise(pack().vocab_size, seed)
    for name in ("refund", "tree", "city"):
        budget = 24
        order = Order((), noise, noise, Settings(seed=seed), 256, budget)
        run = run_masked(artifact(name), order)
        assert run.why == "end" and len(run.tokens) <= budget
        text = run_json(artifact(name), run)["text"]
        assert {layer.verdict for layer in judge_text("json_schema", BY_NAME[name].source, text)} == {"yes"}


def test_without_the_mask_the_first_wrong_token_is_told() -> None:
    tokens = tuple(spellings().split(b'{"action":"'))
    speaks, noise = table(BY_NAME["refund"])
    wrong = 0
    for seed in range(20):
        order = Order(tokens, speaks, noise, Settings(seed=seed), 64, 64)
        free, masked = run_free(artifact("refund"), order), run_masked(artifact("refund"), order)
        assert masked.why == "end" and masked.illegal_at is None
        if free.illegal_at is not None:
            wrong += 1
            taken = replay(artifact("refund"), (*tokens, *free.tokens)).taken
            assert taken == len(tokens) + free.illegal_at
        else:
            assert free.tokens == masked.tokens
    assert 5 < wrong < 20


def test_the_same_view_from_the_same_link() -> None:
    one, two = (view("tree", '{"name":"') for _ in range(2))
    assert one[1:] == two[1:]
    noise = Noise(500, 3)
    assert (noise.speak([1, 2]).logits == noise.speak([1, 2]).logits).all()
    assert (noise.speak([1, 2]).logits != noise.speak([12]).logits).any()


def test_noise_speaks_where_the_table_cannot() -> None:
    example = BY_NAME["city"]
    speaks, noise = table(example)
    outside = spellings().split(b'{"city":"Rome')
    assert speaks.speak(outside).source == "noise"
    # Inside the table, but nothing of it is legal.
    tokens = spellings().split(b'{"city":"Oslo","unit":"')
    matcher = replay(artifact("city"), tokens).matcher
    only_kelvin = TextTable([(1.0, '{"city":"Oslo","unit":"kelvin"}')], pack(), spellings(), noise)
    step = step_of(matcher, tokens, only_kelvin, noise, SETTINGS)
    assert step.spoken.source == "noise" and abs(step.after.sum() - 1) < 1e-9


def test_truncation_is_after_the_mask() -> None:
    settings = Settings(SamplingOptions(top_k=1))
    _, rows, _ = view("refund", '{"action":"', settings=settings)
    assert {r.text: r.drawn for r in rows if r.drawn} == {"refund": 1.0}
    hot = Settings(SamplingOptions(temperature=2.0))
    _, rows, _ = view("refund", '{"action":"', settings=hot)
    drawn = {r.text: r.drawn for r in rows if r.drawn}
    assert abs(drawn["refund"] / drawn["ask"] - 2**0.5) < 1e-9


def test_draws_depend_on_seed_and_position() -> None:
    probabilities = softmax(np.zeros(100))
    assert draw(probabilities, Settings(seed=1), 5) == draw(probabilities, Settings(seed=1), 5)
    assert len({draw(probabilities, Settings(seed=s), 5) for s in range(50)}) > 20
    assert draw(np.zeros(4), SETTINGS, 0) is None
    assert drawable(np.zeros(40), everything(40), SETTINGS).sum() == pytest.approx(1)
    assert drawable(np.zeros(40), np.zeros(2, np.int32), SETTINGS).sum() == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_every_example_runs_to_an_end(example: Example) -> None:
    speaks, noise = table(example)
    start = tuple(spellings().split(example.start_text.encode()))
    assert replay(artifact(example.name), start).taken == len(start)
    run = run_masked(artifact(example.name), Order(start, speaks, noise, SETTINGS, 200, 80))
    assert run.why == "end"
    assert abs(sum(weight for weight, _ in example.table) - 1) < 1e-9


def test_an_ended_text() -> None:
    text = '{"city":"Oslo","unit":"celsius"}'
    tokens = [*spellings().split(text.encode()), *pack().stop_token_ids[:1]]
    reached = replay(artifact("city"), [*tokens, 5, 6])
    assert reached.taken == len(tokens)
    step = step_of(reached.matcher, tokens, *table(BY_NAME["city"]), SETTINGS, 5)
    figures = figures_of(reached.matcher, step, 5, len(tokens))
    assert figures["ended"] and figures["least"] == 0
    assert pieces_of(artifact("city"), tokens)[-1] == {"token": tokens[-1], "text": "end of text", "stop": True}
    assert mask_of(reached.matcher, 0).late.sum() == 0


# -- the judges in the service -----------------------------------------------------------------------------------------


def verdicts(kind: str, source: str, text: str) -> list[tuple[str, str]]:
    return [(layer.judge, layer.verdict) for layer in judge_text(kind, source, text)]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ('{"type":"string","format":"date"}', '"2024-02-30"', ["yes", "no"]),
        ('{"type":"string","format":"date"}', '"2024-02-29"', ["yes", "yes"]),
        ("{}", "NaN", ["no"]),
        ("{}", "{", ["no"]),
        ("{}", "[" * 100_000, ["no"]),
        ('{"$ref":"https://example.com/s.json"}', "1", ["yes", "unknown"]),
        ('{"$ref":"file:///etc/passwd"}', "1", ["yes", "unknown"]),
        ('{"type":5}', "1", ["yes", "unknown"]),
    ],
)
def test_json_is_judged_apart_from_the_schema(source: str, text: str, expected: list[str]) -> None:
    assert [v for _, v in verdicts("json_schema", source, text)] == expected


def test_lark_judges_its_own_grammars() -> None:
    assert verdicts("lark", BY_NAME["sum"].source, "(1+2)*3") == [("lark", "yes")]
    assert verdicts("lark", BY_NAME["sum"].source, "(1+2") == [("lark", "no")]
    assert verdicts("gbnf", "root ::= [a]", "a") == []


def test_the_automaton_judges_whole_texts() -> None:
    layers = [follow_text(artifact("city"), text) for text in ('{"city":"Oslo","unit":"celsius"}', '{"city":"', "no")]
    assert [layer.verdict for layer in layers] == ["yes", "no", "no"] and layers[1].notes
