"""A sequence's state, as `Matcher` keeps it: immutable and linked, so that forks and rollbacks copy nothing."""

from __future__ import annotations

from typing import Any

Stack = tuple[int, int, Any] | None
Position = tuple[int, int, Stack]
State = tuple[int, int, Stack, int, Any, int | bytes, int]
"""Control, context, stack, row entry (2 * row index + may_end), the state before, the step that led here: a token,
or the text of `accept_string`, the place (ways.py). Entry TERMINATED: a stop token was accepted.
"""

TERMINATED = 1
MAX_RETURN_PUSHES = 10_000
"""Symbols that returns may push in one token: an automaton that needs more is taken to run for ever."""
