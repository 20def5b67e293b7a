"""Formulas: simplification keeps the truth table, equal formulas are one object, progress rewrites atoms."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space, conjuncts, constant

Tree = tuple[str, tuple["Tree", ...]] | int
"""An atom's number, or an operation and its parts."""


def trees() -> st.SearchStrategy[Tree]:
    leaves = st.integers(0, 3)
    return st.recursive(
        leaves,
        lambda parts: st.tuples(st.sampled_from(["all", "any", "one", "not"]), st.lists(parts, max_size=4).map(tuple)),
        max_leaves=12,
    )


def build(space: Space, tree: Tree) -> Formula:
    if isinstance(tree, int):
        return space.atom(f"a{tree}")
    name, parts = tree
    made = [build(space, p) for p in parts]
    if name == "not":
        return space.negate(space.all(made))
    operations: dict[str, Callable[[list[Formula]], Formula]] = {"all": space.all, "any": space.any, "one": space.one}
    return operations[name](made)


def value(tree: Tree, atoms: tuple[bool, ...]) -> bool:
    if isinstance(tree, int):
        return atoms[tree]
    name, parts = tree
    held = [value(p, atoms) for p in parts]
    return {"all": all(held), "any": any(held), "one": sum(held) == 1, "not": not all(held)}[name]


@settings(max_examples=400, deadline=None)
@given(trees())
@example(("one", (2, 2, ("not", (2,)))))
def test_simplification_keeps_the_truth_table(tree: Tree) -> None:
    space = Space()
    formula = build(space, tree)
    assert build(space, tree) is formula
    assert space.negate(space.negate(formula)) is formula
    for atoms in itertools.product((False, True), repeat=4):
        known = {space.atom(f"a{i}"): constant(v) for i, v in enumerate(atoms)}
        assert space.assign(formula, known) is constant(value(tree, atoms))
        half = dict(list(known.items())[:2])
        assert space.assign(space.assign(formula, half), known) is constant(value(tree, atoms))


def test_units_are_known_elsewhere() -> None:
    space = Space()
    a, b, c = (space.atom(x) for x in "abc")
    assert space.all([a, space.any([b, space.negate(a)])]) is space.all([a, b])
    assert space.any([a, space.all([a, b])]) is a
    assert space.all([a, space.negate(a)]) is FALSE
    assert space.any([space.all([a, b]), space.negate(space.all([a, b]))]) is TRUE
    assert space.one([a, a, b]) is space.all([space.negate(a), b])
    assert space.one([a, TRUE, c]) is space.all([space.negate(a), space.negate(c)])
    assert conjuncts(space.all([b, a])) == (a, b)
