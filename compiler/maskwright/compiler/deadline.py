"""The clock that deadlines are kept by: `time.monotonic` without the time that kernels take to compile.

numba compiles a kernel when it's used first on a machine, which takes seconds, up to a minute for all of them where
the machine is busy. That says nothing about a source, so `compile_seconds` doesn't count it. `jit` reports each
compilation here; one thread's holds up all others that need a kernel (numba compiles one at a time), so the time is
left out for all.
"""

from __future__ import annotations

import time

_left_out = 0.0


def now() -> float:
    """Seconds, comparable only with each other."""
    return time.monotonic() - _left_out


def leave_out(seconds: float) -> None:
    """Seconds that have just passed and aren't counted."""
    global _left_out
    _left_out += seconds
