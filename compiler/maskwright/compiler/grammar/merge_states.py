"""Merge LR states that do the same.

States with equal rows, up to merging, can't be told apart by a parse: the top is asked for its actions, an exposed
state for its gotos. Lark has a state for each alternative's end, though most of them reduce alike; with one state
for all of them, lexemes after them are laid out once. Moore's partition refinement; the state in which a text
is accepted stays apart.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from maskwright.compiler.grammar.lark_tables import Action, Shift, Tables


def merge_states(tables: Tables) -> Tables:
    """Equivalent tables with as few states, in order of their first members. Cost: table size times rounds."""
    block = [int(q == tables.end_state) for q in range(tables.n_states)]
    count = 0
    while True:
        signs: dict[Hashable, int] = {}
        block = [signs.setdefault((block[q], _sign(tables, q, block)), len(signs)) for q in range(tables.n_states)]
        if len(signs) == count:
            break
        count = len(signs)
    first = [block.index(b) for b in range(count)]
    return replace(
        tables,
        actions=tuple({t: _merged(a, block) for t, a in tables.actions[q].items()} for q in first),
        gotos=tuple({name: block[target] for name, target in tables.gotos[q].items()} for q in first),
        lexer_of=tuple(tables.lexer_of[q] for q in first),
        end_state=block[tables.end_state],
    )


def _sign(tables: Tables, q: int, block: list[int]) -> Hashable:
    actions = tuple(
        (t, block[a.state]) if isinstance(a, Shift) else (t, a.origin, a.size) for t, a in tables.actions[q].items()
    )
    return tables.lexer_of[q], actions, tuple((name, block[target]) for name, target in tables.gotos[q].items())


def _merged(action: Action, block: list[int]) -> Action:
    return Shift(block[action.state]) if isinstance(action, Shift) else action
