"""Grammars against lark: on derived, mutated and short texts both judge alike, and no run reaches a dead end."""

from __future__ import annotations

import random

import pytest
from grammar_sources import SOURCES
from grammar_texts import Case, Deriver, exhaustive, finish, make_case, mutate, random_run

GAPS = {"json": ("", " ", "\n"), "csv": ("", " "), "config": ("", " "), "statements": ("", " ", " ", "\n")}


@pytest.fixture(scope="module", params=list(SOURCES))
def named(request: pytest.FixtureRequest) -> tuple[str, Case]:
    return request.param, make_case(SOURCES[request.param][0])


def test_members_and_mutations(named: tuple[str, Case]) -> None:
    name, case = named
    _, members, pieces = SOURCES[name]
    rng = random.Random(name)
    deriver = Deriver(case.lark, rng, GAPS.get(name, ("", " ")))
    derived = [deriver.derive("start", depth) for depth in range(12) for _ in range(8)]
    texts = [*members, *(t for t in derived if len(t) < 400)]
    bad, accepted = case.disagreements(texts)
    assert bad == []
    assert accepted >= len(members)
    assert case.disagreements([mutate(rng.choice(texts), rng, pieces) for _ in range(400)])[0] == []
    twice = [mutate(mutate(rng.choice(members), rng, pieces), rng, pieces) for _ in range(400)]
    assert case.disagreements(twice)[0] == []


def test_short_texts(named: tuple[str, Case]) -> None:
    name, case = named
    assert case.disagreements(exhaustive(SOURCES[name][2], 2))[0] == []


def test_every_prefix_can_be_finished(named: tuple[str, Case]) -> None:
    name, case = named
    rng = random.Random(name)
    for _ in range(12):
        run = random_run(case.automaton, rng, 40)
        config = rng.choice(run)
        ending = finish(case.automaton, config)
        assert ending is not None, (name, config)


def test_every_prefix_of_a_member_runs(named: tuple[str, Case]) -> None:
    name, case = named
    for text in SOURCES[name][1]:
        assert case.parses(text), text
