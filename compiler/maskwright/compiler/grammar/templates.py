"""Templates of a Lark grammar whose use has no end, or no end worth waiting for.

Lark makes a rule for each use of a template with other arguments, named by them. `_t{x}: _t{_u{x}}` never ends, and a
chain of templates that each use their argument twice ends in names of 2^n letters. So the uses are followed here first,
with arguments as numbers: each is made once, with its length, and more than `MAX_USES` or an argument longer than
`MAX_ARGUMENT` refuses the grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lark import Token, Tree
from lark.load_grammar import load_grammar

from maskwright.compiler.diagnostics import LimitExceeded

MAX_USES = 10_000
"""Of templates, with different arguments."""
MAX_ARGUMENT = 10_000
"""Names in one argument, written out."""

Use = tuple[str, tuple[int, ...]]


def check_templates(grammar: str, import_paths: list[Any]) -> None:
    """Raises LimitExceeded, and what lark raises for a grammar that it can't read. Grammars without templates cost
    nothing."""
    if "{" not in grammar:
        return
    loaded, _ = load_grammar(grammar, "<string>", import_paths, False)  # type: ignore[no-untyped-call]
    _Uses({str(name): (params, tree) for name, params, tree, _ in loaded.rule_defs}).follow()


class _Uses:
    def __init__(self, rules: dict[str, tuple[tuple[str, ...], Tree[Any]]]) -> None:
        self.rules = rules
        self.numbers: dict[object, int] = {}
        self.sizes: list[int] = []
        self.work: list[Use] = [(name, ()) for name, (params, _) in rules.items() if not params]
        self.met = set(self.work)

    def follow(self) -> None:
        while self.work:
            name, arguments = self.work.pop()
            params, tree = self.rules[name]
            bound = dict(zip(map(str, params), arguments, strict=False))
            for usage in _usages(tree):
                self.argument(usage, bound, name)

    def argument(self, tree: Tree[Any] | Token, bound: dict[str, int], rule: str) -> int:
        """The number of an argument, the uses in it noted."""
        if isinstance(tree, Tree) and tree.data == "template_usage":
            used, *given = tree.children
            arguments = tuple(self.argument(g, bound, rule) for g in given)
            found = self.number((_name(used), arguments), 1 + sum(self.sizes[a] for a in arguments), rule)
            self.use((_name(used), arguments), rule)
            return found
        if isinstance(tree, Tree) and len(tree.children) == 1:
            return self.argument(tree.children[0], bound, rule)
        name = _name(tree)
        return bound[name] if name in bound else self.number(name, 1, rule)

    def number(self, key: object, size: int, rule: str) -> int:
        if size > MAX_ARGUMENT:
            raise _too_much("template_argument", MAX_ARGUMENT, size, rule)
        found = self.numbers.setdefault(key, len(self.sizes))
        if found == len(self.sizes):
            self.sizes.append(size)
        return found

    def use(self, use: Use, rule: str) -> None:
        if use not in self.met and use[0] in self.rules:
            if len(self.met) >= MAX_USES:
                raise _too_much("template_uses", MAX_USES, len(self.met) + 1, rule)
            self.met.add(use)
            self.work.append(use)


def _usages(tree: Tree[Any]) -> Iterator[Tree[Any]]:
    """The outermost uses in a rule."""
    work: list[Any] = [tree]
    while work:
        node = work.pop()
        if isinstance(node, Tree):
            if node.data == "template_usage":
                yield node
            else:
                work += node.children


def _name(node: Any) -> str:
    return str(getattr(node, "name", node))


def _too_much(name: str, limit: int, observed: int, rule: str) -> LimitExceeded:
    hint = f"rule {rule!r} uses a template on an argument that grows with each use"
    return LimitExceeded(name, limit, observed, "templates", hint=hint)
