"""What numba takes to compile a kernel isn't counted against a source's time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numba import njit

from maskwright.compiler import Compiler, Limits, Vocabulary, jit
from maskwright.compiler import compile as pipeline
from maskwright.compiler.deadline import leave_out, now


def fresh_kernel() -> object:
    @njit
    def total(values):  # type: ignore[no-untyped-def]
        out = 0.0
        for value in values:
            out += np.sqrt(value)
        return out

    return total(np.ones(3))


def test_the_clock_stands_while_a_kernel_is_compiled() -> None:
    assert jit  # which listens
    real, counted = time.monotonic(), now()
    assert fresh_kernel() == 3.0
    real, counted = time.monotonic() - real, now() - counted
    assert 0 <= counted < 0.8 * real


def test_a_compilation_goes_on_after_a_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a fresh machine: the front end takes longer than the limit, all of it numba's."""
    calls: list[int] = []
    compile_pattern, monotonic = pipeline.compile_pattern, time.monotonic

    def slowly(*args: Any, **named: Any) -> Any:
        calls.append(1)
        leave_out(100.0)
        return compile_pattern(*args, **named)

    monkeypatch.setattr(pipeline, "compile_pattern", slowly)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 100.0 * len(calls))
    compiler = Compiler(Vocabulary.demo(), limits=Limits(compile_seconds=30.0))
    assert compiler.compile_regex("[a-z]{2}").to_bytes()
    assert calls
