"""Rows of moves: made at once or found one by one, they say what the tables say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from toy import toy

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers import Artifact, VocabularyPack, machine
from maskwright.workers.machine import DEAD, END, FINAL, Machine
from maskwright.workers.tables import Automaton

SCHEMA = {"properties": {"näme": {"maxLength": 3}, "kind": {"enum": ["a", "ab", 1]}}, "required": ["kind"]}


def schema_artifact() -> Artifact:
    vocabulary = Vocabulary.demo()
    pack = VocabularyPack.from_bytes(vocabulary.pack_bytes())
    return Artifact.from_bytes(Compiler(vocabulary).compile_json_schema(SCHEMA).to_bytes(), pack)


def toy_artifact() -> Artifact:
    return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))


def by_definition(a: Automaton, control: int, byte: int) -> int:
    own = control - a.first_control
    edges = range(int(a.edge_start[own]), int(a.edge_start[own + 1]))
    otherwise = -1 - 2 * int(a.verdict[own])
    if byte == END:
        return otherwise if not edges else DEAD
    for edge in edges:
        if a.edge_low[edge] <= byte <= a.edge_high[edge]:
            move = int(a.edge_move[edge])
            if move & 1:
                return -2 - 2 * (move >> 1)
            to = (move >> 1) - a.first_control
            final = a.edge_start[to] == a.edge_start[to + 1] and a.verdict[to] > 0
            return FINAL - (move >> 1) if final else move >> 1
    return otherwise


@pytest.mark.parametrize("most", [0, 1 << 20])
@pytest.mark.parametrize("make", [toy_artifact, schema_artifact])
def test_rows_are_what_the_tables_say(monkeypatch: pytest.MonkeyPatch, most: int, make: Callable[[], Artifact]) -> None:
    monkeypatch.setattr(machine, "MOST_ROWS", most)
    monkeypatch.setattr(machine, "MOST_PACK_ROWS", most)
    artifact = make()
    pack = artifact.pack
    made = Machine(artifact.automaton, pack.machine)
    own = range(artifact.automaton.first_control, artifact.automaton.n_controls)
    kinds = set()
    for a, controls in ((pack.automaton, range(pack.automaton.n_controls)), (artifact.automaton, own)):
        for control in controls:
            for byte in range(END + 1):
                move = made.moves[control][byte]
                if move == machine.COLD:
                    move = made.step(control, byte)
                assert move == by_definition(a, control, byte)
                kinds.add("final" if move <= FINAL else "go" if move >= 0 else "dead" if move == DEAD else move & 1)
            assert made.is_final(control) == (by_definition(a, control, END) != DEAD)
    assert kinds == {"final", "go", "dead", 0, 1}
    assert made.memory() > 0


def test_actions_and_returns_are_those_of_their_automaton() -> None:
    artifact = toy_artifact()
    made = artifact.machine
    for a in (artifact.pack.automaton, artifact.automaton):
        for own in range(len(a.action_target)):
            first, end = a.action_start[own : own + 2].tolist()
            expected = (tuple(a.action_push[first:end].tolist()), int(a.action_target[own]))
            assert made.actions[a.first_action + own] == expected
        for own in range(len(a.return_start) - 1):
            first, end = a.return_start[own : own + 2].tolist()
            assert list(made.returns[a.first_symbol + own]) == a.return_move[first:end].tolist()
