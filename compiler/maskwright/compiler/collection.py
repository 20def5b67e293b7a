"""Rarer garbage collection while a compilation runs.

What a compilation makes lives until its end, so Python's collector mostly visits it in vain, again and again as it
grows: a third of the time of schemas with ten thousand states. Reference counts free what passes drop; cycles wait.
The collector isn't switched off: where compilations of several threads overlap without a gap it still runs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (100_000, 20, 20)
"""Young objects before a collection (a few milliseconds), and how many of one generation make one of the next."""
_lock = threading.Lock()
_running = 0
_usual = gc.get_threshold()


@contextmanager
def rare_collection() -> Iterator[None]:
    """May be nested, and entered by several threads: the last to leave restores the thresholds."""
    global _running, _usual
    with _lock:
        if not _running:
            _usual = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                # What was put off is done now, or it would fall to the caller's next step. The collector's own count
                # doesn't tell whether it's due: what's freed is taken off, whenever it was made.
                if gc.isenabled():
                    gc.collect(2 if gc.get_count()[2] > _usual[2] else 1)
                gc.set_threshold(*_usual)
