"""The time each pass takes, and the deadline they all keep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import out_of_time
from maskwright.compiler.options import Limits

T = TypeVar("T")


class Clock:
    """`seconds`: by pass, in their order. `deadline`: as of `deadline.now`; None: there's none.

    Raises LimitExceeded for `compile_seconds`.
    """

    def __init__(self, limits: Limits, deadline: float | None) -> None:
        self.limits, self.deadline = limits, deadline
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        out = work()
        self.seconds[name] = time.perf_counter() - begin
        self.check(name)
        return out

    def check(self, stage: str) -> None:
        if self.deadline is not None and now() > self.deadline:
            raise out_of_time(self.limits.compile_seconds, self.deadline, stage)

    def watch(self, items: Iterable[T], stage: str) -> Iterator[T]:
        for i, item in enumerate(items):
            if i % 64 == 63:
                self.check(stage)
            yield item
