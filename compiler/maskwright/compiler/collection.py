"""Garbage collection around a compilation: rarer while it runs, and nothing that's due when it returns.

What a compilation makes lives until its end, then reference counts free it: no pass leaves a cycle (a test holds them
to that). So Python's collector visits it in vain, again and again as it grows: a fifth of the time where states are
many. The collector isn't switched off, only rarer: where compilations of several threads overlap without a gap it still
runs.

A full collection visits whatever the process holds, which takes 50 to 200 ms where numba is loaded, and is due when
what outlived younger ones is a quarter of all. Of a compilation only two things make it so: what's loaded once (a
vocabulary's tables, kernels), and so many allocations that a middle collection met what was alive then. The full one is
done at once there, as a part of a step that's long anyway, or it would fall into the caller's next one. Other
compilations call no collection.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (100_000, 50, 50)
"""Young objects before a collection (a few milliseconds), and how many of one generation make one of the next."""
_lock = threading.Lock()
_running = 0
_usual = gc.get_threshold()
_middle = 0
_loaded = False


def loaded() -> None:
    """A vocabulary is in memory, to stay. The next compilation, which loads kernels, ends with a full collection."""
    global _loaded
    _loaded = True


@contextmanager
def rare_collection() -> Iterator[None]:
    """May be nested, and entered by several threads: the last to leave restores the thresholds."""
    global _running, _usual, _middle
    with _lock:
        if not _running:
            _usual, _middle = gc.get_threshold(), gc.get_count()[2]
            gc.set_threshold(*THRESHOLDS)
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                _settle()
                gc.set_threshold(*_usual)


def _settle() -> None:
    global _loaded
    if gc.isenabled() and (_loaded or gc.get_count()[2] > _middle):
        gc.collect()
        _loaded = False
