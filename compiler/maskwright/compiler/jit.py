"""How this package compiles its kernels with numba: once on a machine, kept on disk.

numba keeps compiled code beside the source, or, where that folder can't be written, in the user's cache folder or in
NUMBA_CACHE_DIR. Where there is none of these (a read-only container), kernels are compiled in each process: slower to
start, the same results.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import event

from maskwright.compiler.deadline import leave_out

log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])
_kernels: list[Any] = []


class _Compilations(event.Listener):
    """Tells `deadline` how long numba compiles. Compilations nest, and never overlap: numba holds a lock."""

    def __init__(self) -> None:
        self._depth, self._begin, self.seconds = 0, 0.0, 0.0

    def on_start(self, _: Any) -> None:
        if not self._depth:
            self._begin = time.monotonic()
        self._depth += 1

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        if not self._depth:
            spent = time.monotonic() - self._begin
            self.seconds += spent
            leave_out(spent)


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """The function compiled by numba on first use, from the disk's copy if there is one."""
    return _keep(_compile(function))


def borrowing(function: F) -> F:
    """As `kernel`, for one that makes no array: it doesn't count references to those it's given.

    With inlined parts that loop, numba would count each array's up and down at every step, which made a trie's walk
    five times as slow. Compiling one that makes an array fails.
    """
    return _keep(_compile(function, _nrt=False))


def inlined(function: F) -> F:
    """A part of kernels: it's compiled into each that calls it."""
    return _compile(function, inline="always")


def _keep(compiled: F) -> F:
    _kernels.append(compiled)
    return compiled


def _compile(function: F, **options: Any) -> F:
    try:
        return njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError as problem:  # no folder can be written
        log.warning("kernels aren't kept on disk, each process compiles them: %s", problem)
        return njit(**options)(function)  # type: ignore[no-any-return]


def compiling_seconds() -> float:
    """The seconds this process has spent compiling kernels, 0.0 where the disk had them all."""
    return _compilations.seconds


def kept_kernels() -> int:
    """How many kernels of the modules imported so far have compiled code on disk. A few milliseconds."""
    return sum(
        any(Path(k.stats.cache_path).glob(f"*.{k.py_func.__name__}-*.nbi")) if k.stats.cache_path else False
        for k in _kernels
    )


def kernels_are_kept() -> bool:
    """Whether every kernel has compiled code on disk; if not, the first use takes some ten seconds."""
    return kept_kernels() == len(_kernels)
