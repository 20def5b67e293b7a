"""Ways: where a token leads from a place, remembered so that its bytes needn't be walked again.

A *place* is a control in a context, numbered as its value in `context_rows`. Where a token leads depends on the place
and on what it takes off the stack: it may return from the frame, which takes off a symbol with its context, and go on
by what it finds there. So what's known of (place, token) is a tree: a `Way` where the token doesn't return; otherwise a
dictionary from what it takes off first, (symbol, context), to the rest of the tree.

The trees of an artifact are found by `place << PLACE_SHIFT | token`. They're facts, shared by all its matchers in any
thread, and only added to, at most `MOST_WAYS` in and as many between frames; what isn't known is walked. A known token
costs a look-up, however long it is, and a tuple.

Not remembered: tokens that return more than `MOST_POPS` times, and what ends on the empty stack, since such a walk also
sees that it's empty.
"""

from __future__ import annotations

from typing import Any

from maskwright.workers.state import Stack, State

PLACE_SHIFT = 22
"""Token ids are below 2 ** PLACE_SHIFT (`pack.MAX_VOCABULARY`)."""
NOWHERE = -(1 << 60)
"""The place of a sequence that has ended: keys aren't negative."""
MOST_WAYS, MOST_POPS = 1 << 14, 4
WAY_BYTES = 300
"""About what one takes."""

Way = tuple[int, int, int, int, tuple[tuple[int, int], ...]]
"""Control, context, row entry and place (shifted) that the token leads to; what it leaves pushed, (symbol, context)
each, the innermost last.
"""


class Ways(dict[int, Any]):
    """The ways known of one artifact. left: how many more between frames will be remembered."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        super().__init__()
        self.left = MOST_WAYS

    def add_crossing(self, key: int, stack: Stack, popped: int, low: Stack, after: State) -> None:
        """Remembers a token that was met on `stack`, took off `popped` symbols, so that `low` was left, and led to
        `after`.
        """
        if popped > MOST_POPS or self.left <= 0:
            return
        control, context, top, entry, _, _, place = after
        pushes: list[tuple[int, int]] = []
        while top is not low:
            assert top is not None
            pushes.append((top[0], top[1]))
            top = top[2]
        tree: dict[Any, Any] = self
        at: Any = key
        for _ in range(popped):
            assert stack is not None
            deeper = tree.get(at)
            if deeper is None:
                deeper = tree[at] = {}
            symbol, below, stack = stack
            tree, at = deeper, (symbol, below)
        tree[at] = (control, context, entry, place, tuple(pushes[::-1]))
        self.left -= 1

    def memory(self) -> int:
        """Bytes held. An estimate."""
        return WAY_BYTES * (len(self) + MOST_WAYS - self.left)
