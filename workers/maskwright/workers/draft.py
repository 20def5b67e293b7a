"""Masks along drafts: windows and trees of tokens that a model verifies in one step (speculative decoding).

States are immutable and linked, so a draft is followed from its parent's state and nothing is undone but one
assignment. Rows are checked before the first is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.workers.masks import integers

if TYPE_CHECKING:
    from maskwright.workers.matcher import Matcher


def fill_window(matcher: Matcher, mask: Any, tokens: Sequence[int], index: int, remaining: int | None) -> int:
    """`Matcher.fill_draft_bitmask`."""
    parents = range(-1, len(tokens) - 1)
    return sum(fill_tree(matcher, mask, tokens, parents, index, remaining))


def fill_tree(
    matcher: Matcher, mask: Any, tokens: Sequence[int], parents: Sequence[int], index: int, remaining: int | None
) -> list[bool]:
    """`Matcher.fill_draft_tree_bitmask`."""
    if len(tokens) != len(parents):
        raise ValueError(f"{len(tokens)} tokens, {len(parents)} parents")
    tokens, parents = integers(tokens), integers(parents)
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise ValueError(f"node {node} can't have parent {parent}")
    if mask is not matcher._mask:
        matcher._bind(mask)
    if not 0 <= index <= len(matcher._views) - len(tokens) - 1:
        raise IndexError(f"rows {index} to {index + len(tokens)} of {len(matcher._views)}")
    here = matcher._state
    states: list[Any] = []
    depths: list[int] = []
    try:
        matcher.fill_next_token_bitmask(mask, index, remaining)
        for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
            depth = depths[parent] + 1 if parent >= 0 else 1
            left = None if remaining is None else remaining - depth
            matcher._state = states[parent] if parent >= 0 else here
            if matcher._state is not None and _accept(matcher, token, left):
                matcher.fill_next_token_bitmask(mask, index + 1 + node, left)
                states.append(matcher._state)
            else:
                _allow_all(matcher, index + 1 + node)
                states.append(None)
            depths.append(depth)
    finally:
        matcher._state = here
    return [state is not None for state in states]


def _accept(matcher: Matcher, token: int, left: int | None) -> bool:
    return matcher.accept_token(token) and (left is None or matcher._fits(left))


def _allow_all(matcher: Matcher, index: int) -> None:
    size, words = matcher.vocab_size, matcher._words[index]
    words[:] = 0xFFFFFFFF
    if size & 31:
        words[-1] = (1 << (size & 31)) - 1
    if matcher._tails is not None:
        np.frombuffer(matcher._tails[index], np.uint32)[:] = 0
