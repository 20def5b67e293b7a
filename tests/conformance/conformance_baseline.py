"""The committed baseline of the official suite: counts by draft, file and category, and the names of what isn't exact.

It only ratchets: a test may move to a better category (then the baseline has to be written anew), never to a worse one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from conformance_run import CATEGORIES

from maskwright.compiler.schema import departures
from maskwright.compiler.schema import pages as support

BASELINE = Path(__file__).parent / "baseline.json"
Found = tuple[str, str, str, str]
"""(draft, file, "group/test", category)"""


@dataclass(frozen=True)
class Baseline:
    """`named[category][draft][file]` are places, space between; `counts[draft][file][category]` numbers of tests."""

    archive: str
    counts: dict[str, dict[str, dict[str, int]]]
    named: dict[str, dict[str, dict[str, str]]]

    def category(self, draft: str, name: str, place: str) -> str:
        for category, drafts in self.named.items():
            if place in drafts.get(draft, {}).get(name, "").split():
                return category
        return "exact"

    def text(self) -> str:
        content = {"archive": self.archive, "counts": self.counts, "named": self.named}
        return json.dumps(content, indent=1) + "\n"


def load() -> Baseline:
    return Baseline(**json.loads(BASELINE.read_text("utf-8")))


def make(archive: str, found: Iterable[Found]) -> Baseline:
    counts: dict[str, dict[str, Counter[str]]] = {}
    named: dict[str, dict[str, dict[str, list[str]]]] = {}
    for draft, name, place, category in found:
        counts.setdefault(draft, {}).setdefault(name, Counter())[category] += 1
        if category != "exact":
            named.setdefault(category, {}).setdefault(draft, {}).setdefault(name, []).append(place)
    return Baseline(
        archive,
        {
            draft: {name: {c: n[c] for c in CATEGORIES if n[c]} for name, n in files.items()}
            for draft, files in counts.items()
        },
        {
            c: {d: {f: " ".join(p) for f, p in files.items()} for d, files in named[c].items()}
            for c in CATEGORIES
            if c in named
        },
    )


def compare(baseline: Baseline, found: Iterable[Found], drafts: set[str]) -> tuple[list[str], list[str]]:
    """What became worse, and what better, than the baseline of some drafts; tests that it doesn't know are better."""
    worse, better = [], []
    known = {d: sum(sum(c.values()) for c in baseline.counts.get(d, {}).values()) for d in drafts}
    seen: Counter[str] = Counter()
    for draft, name, place, category in found:
        seen[draft] += 1
        before = baseline.category(draft, name, place)
        change = CATEGORIES.index(category) - CATEGORIES.index(before)
        if change:
            (worse if change > 0 else better).append(f"{draft}/{name}#{place}: {before} -> {category}")
    for draft in drafts:
        if seen[draft] != known[draft]:
            (worse if seen[draft] < known[draft] else better).append(
                f"{draft}: {known[draft]} tests before, {seen[draft]} now"
            )
    return worse, better


def pages() -> dict[Path, str]:
    """The pages made from the keyword tables and the baseline, by path."""
    folder = Path(departures.__file__).parent
    return {folder / "SUPPORT.md": support.page(load().counts), folder / "DEPARTURES.md": departures.page()}


def table(baseline: Baseline) -> str:
    """Tests by draft and category, in Markdown."""
    lines = [f"| draft | tests | {' | '.join(CATEGORIES)} |", "|---" * (len(CATEGORIES) + 2) + "|"]
    for draft, files in baseline.counts.items():
        counts = Counter[str]()
        for found in files.values():
            counts.update(found)
        cells = " | ".join(str(counts[c]) for c in CATEGORIES)
        lines.append(f"| {draft.removeprefix('draft')} | {counts.total()} | {cells} |")
    return "\n".join(lines)
