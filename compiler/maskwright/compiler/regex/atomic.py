"""Atomic groups and possessive repeats, as lookarounds where that's exact.

An atomic group keeps the first match in order of preference. That's the same as an ordinary group with assertions
when its parts are *sure*: at a given point they match one text at most, since no member is a proper prefix of
another.

    (?>A|B)     (?>A) | (?!A)(?>B)
    (?>AB)      A(?>B)                          A sure; B too where an assertion follows it
    (?>X{n,m})  X{n,m-1}(?!X) | X{m}            X sure and never empty; greedy
    (?>X{n,})   X{n,}(?!X)
    (?>X{n,m}?) X{n}                            lazy: never takes more

Anything else is refused by name and span.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NoReturn

from maskwright.compiler.regex.builder import unsupported
from maskwright.compiler.regex.tree import (
    Alternation,
    Atomic,
    Chars,
    Concat,
    Look,
    Node,
    Point,
    Repeat,
    Span,
    children,
    concat,
    repeat,
    walk,
)
from maskwright.compiler.regular.dfa import Dfa

MAX_NESTING = 50
"""Of groups inside an atomic group; `_keep_first` recurses this deep."""


def resolve_atomic(root: Node, pattern: str, compile_node: Callable[[Node], Dfa]) -> Node:
    """The tree without `Atomic`. `compile_node` gives the automaton of a tree without assertions or `Atomic`.

    Raises CompileError (UNSUPPORTED_PATTERN) with the group's span.
    """
    if not any(isinstance(n, Atomic) for _, n in walk(root)):
        return root
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if not ready:
            stack.append((node, True))
            stack.extend((c, False) for c in children(node))
            continue
        found = _rebuild(node, [done[id(c)] for c in children(node)])
        if isinstance(found, Atomic):
            found = _Rewriter(pattern, found.span, compile_node).keep_first(found.body, 0)
        done[id(node)] = found
    return done[id(root)]


def _rebuild(node: Node, parts: list[Node]) -> Node:
    if all(a is b for a, b in zip(parts, children(node), strict=True)):
        return node
    if isinstance(node, Concat):
        return Concat(tuple(parts), node.span)
    if isinstance(node, Alternation):
        return Alternation(tuple(parts), node.span)
    if isinstance(node, Repeat):
        return Repeat(parts[0], node.low, node.high, node.span, node.lazy)
    if isinstance(node, Look):
        return Look(parts[0], node.ahead, node.negative, node.span)
    return Atomic(parts[0], node.span)


class _Rewriter:
    def __init__(self, pattern: str, span: Span, compile_node: Callable[[Node], Dfa]) -> None:
        self.pattern, self.span, self.compile_node = pattern, span, compile_node

    def keep_first(self, node: Node, depth: int) -> Node:
        """The node's first match in order of preference at every point, as an ordinary node."""
        if depth > MAX_NESTING:
            self.refuse()
        if isinstance(node, Alternation):
            return self.alternatives(list(node.branches), node.span, depth)
        if isinstance(node, Concat) and node.items:
            return self.sequence(list(node.items), node.span, depth)
        if isinstance(node, Repeat):
            return self.repeats(node)
        if isinstance(node, Chars | Point | Look | Concat) or self.sure(node):
            return node
        self.refuse()
        return None

    def alternatives(self, branches: list[Node], span: Span, depth: int) -> Node:
        out = [self.keep_first(branches[0], depth + 1)]
        not_before: list[Node] = []
        for earlier, branch in itertools.pairwise(branches):
            not_before.append(Look(earlier, True, True, earlier.span))
            out.append(concat([*not_before, self.keep_first(branch, depth + 1)], branch.span))
        return Alternation(tuple(out), span)

    def sequence(self, items: list[Node], span: Span, depth: int) -> Node:
        kept = [i for i in items if not isinstance(i, Point | Look)]
        # Up to the last item, and that too where an assertion follows: it may turn down what the item prefers.
        for item in kept if isinstance(items[-1], Point | Look) else kept[:-1]:
            if not self.sure(item):
                self.refuse()
        if not kept:
            return concat(items, span)
        return concat([self.keep_first(i, depth + 1) if i is kept[-1] else i for i in items], span)

    def repeats(self, node: Repeat) -> Node:
        x = node.item
        if not self.sure(x) or 0 in self.compile_node(x).accepting:
            self.refuse()
        if node.lazy:
            return repeat(x, node.low, node.low, node.span)
        stop = Look(x, True, True, node.span)
        if node.high is None:
            return concat([repeat(x, node.low, None, node.span), stop], node.span)
        all_of_them = repeat(x, node.high, node.high, node.span)
        if node.low == node.high:
            return all_of_them
        fewer = concat([repeat(x, node.low, node.high - 1, node.span), stop], node.span)
        return Alternation((fewer, all_of_them), node.span)

    def sure(self, node: Node) -> bool:
        """Whether no text of the node is a proper prefix of another (its automaton ends where it accepts)."""
        if any(isinstance(n, Point | Look | Atomic) for _, n in walk(node)):
            return False
        dfa = self.compile_node(node)
        return all(not dfa.rows[s] for s in dfa.accepting)

    def refuse(self) -> NoReturn:
        raise unsupported(
            self.pattern, "an atomic group or possessive repeat whose parts may match in several lengths", *self.span
        )
