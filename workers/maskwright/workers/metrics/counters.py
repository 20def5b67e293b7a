"""Counters by layer.

A text is judged by some layers, and each layer's verdicts are counted by themselves: a text that parses, validates
and says something false is a success of two layers and a failure of one, and no sum makes it anything else.

    syntax      the text is complete and parses
    schema      its value validates
    dead end    the run never met a state with no token to go on
    business    the caller's checks passed
    facts       what it says is true; somebody outside judges that
    permission  whoever asked may do it
    tool        the action succeeded

Of each layer: passed, failed, and the rest of the texts, which it didn't judge (a layer before said no, or there's
no such layer here). *Not judged is never passed.* `first`: of the texts that failed a layer, how many passed every
layer that judged them before it: adding these up over layers gives every failing text once.

Beside them: how generations ended, outcomes of the gate, and the time that masks add: to the first token (TTFT:
fetch, load, first mask) and to each token after it (TPOT: fill, apply, accept). Times are kept to two significant
digits, so memory stays bounded; quantiles are upper bounds with that precision.

Counters only grow. They may be shared between threads.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum


class MeasuredLayer(StrEnum):
    """The layers, in the order in which a text meets them."""

    DEAD_END = "dead end"
    SYNTAX = "syntax"
    SCHEMA = "schema"
    BUSINESS = "business"
    FACTS = "facts"
    PERMISSION = "permission"
    TOOL = "tool"


class Durations:
    """Times in seconds, kept as counts by upper bound of two significant digits (whole nanoseconds below 100 ns)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[int] = Counter()
        self.count, self.total = 0, 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Counts a time, `times` times. Raises ValueError for a negative one or one that isn't a number."""
        if not 0 <= seconds < 1e9 or times < 1:
            raise ValueError(f"{seconds} seconds, {times} times, can't be observed")
        bound = _bound(round(seconds * 1e9))
        with self._lock:
            self._counts[bound] += times
            self.count += times
            self.total += seconds * times

    def quantile(self, q: float) -> float | None:
        """An upper bound of the q-quantile (0 < q <= 1), None without times."""
        with self._lock:
            counts, left = sorted(self._counts.items()), q * self.count
        for bound, n in counts:
            left -= n
            if left <= 1e-9:
                return bound / 1e9
        return counts[-1][0] / 1e9 if counts else None

    def at_most(self, bounds_ns: tuple[int, ...]) -> list[int]:
        """How many times are within each bound, given in nanoseconds; exact for bounds of two significant digits."""
        with self._lock:
            counts = list(self._counts.items())
        return [sum(n for at, n in counts if at <= bound) for bound in bounds_ns]


def _bound(nanoseconds: int) -> int:
    unit: int = 10 ** max(0, len(str(nanoseconds)) - 2)
    return -(-nanoseconds // unit) * unit


class LayerMetrics:
    """What became of texts. `labels` are put on every exported sample; names are Prometheus label names.

    texts: generations seen. passed, failed, first: by layer. ends: by how they ended. outcomes: of the gate.
    clean: texts that passed every layer that judged them; full: that every layer judged, and passed.
    """

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.labels = dict(labels or {})
        if any(not name.isidentifier() or not name.isascii() for name in self.labels):
            raise ValueError(f"{', '.join(self.labels)} aren't all label names")
        self._lock = threading.Lock()
        self.texts = self.clean = self.full = self.tokens = 0
        self.passed: Counter[MeasuredLayer] = Counter()
        self.failed: Counter[MeasuredLayer] = Counter()
        self.first: Counter[MeasuredLayer] = Counter()
        self.ends: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.added_ttft, self.added_tpot = Durations(), Durations()

    def record_text(self, verdicts: Mapping[MeasuredLayer, bool], ended: str | None = None, tokens: int = 0) -> None:
        """Counts one text by the layers that judged it; a layer that isn't there didn't."""
        failing = [layer for layer in MeasuredLayer if verdicts.get(layer) is False]
        with self._lock:
            self.texts += 1
            self.tokens += tokens
            for layer, passed in verdicts.items():
                (self.passed if passed else self.failed)[layer] += 1
            self.first.update(failing[:1])
            self.clean += bool(verdicts) and not failing
            self.full += len(verdicts) == len(MeasuredLayer) and not failing
            if ended is not None:
                self.ends[ended] += 1

    def record_verdict(self, layer: MeasuredLayer, passed: bool) -> None:
        """Counts a verdict that comes later than its text was counted, on facts for example."""
        with self._lock:
            (self.passed if passed else self.failed)[layer] += 1

    def record_outcome(self, outcome: str, ended: str | None = None) -> None:
        """Counts an outcome of the gate, and how a cut text ended."""
        with self._lock:
            self.outcomes[outcome] += 1
            if ended is not None:
                self.ends[ended] += 1

    def not_judged(self, layer: MeasuredLayer) -> int:
        """Texts that the layer has no verdict on."""
        return max(0, self.texts - self.passed[layer] - self.failed[layer])
