"""`make conformance`: the official JSON Schema Test Suite, by draft and category, against the committed baseline.

    python -m tests.conformance [--archive FILE] [--update] [--list CATEGORY] [DRAFT...]
    python -m tests.conformance --pages

Prints the table. Exits with 1 when a test is worse than the baseline or wrong; `--update` writes the baseline when
nothing is. `--list` prints the tests of a category with the reason. The archive is looked for in the shared data
folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conformance_baseline import BASELINE, compare, load, make, pages, table
from conformance_suite import ARCHIVE, DRAFTS, NOT_RUN, read_suite, run


def _archive(named: Path | None) -> Path:
    folders = [os.environ.get("MASKWRIGHT_SHARED"), Path(__file__).parents[3] / "shared"]
    for candidate in [named] if named else [Path(f) / ARCHIVE for f in folders if f]:
        if candidate is not None and candidate.is_file():
            return candidate
    sys.exit("the suite isn't here: name its archive with --archive, or set MASKWRIGHT_SHARED")


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("drafts", nargs="*", choices=[*DRAFTS, []], metavar="DRAFT", help=", ".join(DRAFTS))
    parser.add_argument("--archive", type=Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--pages", action="store_true", help="only write the pages made from tables and baseline")
    parser.add_argument("--list", dest="listed", default="wrong", metavar="CATEGORY")
    options = parser.parse_args(arguments)
    if options.pages:
        for path, text in pages().items():
            path.write_text(text, "utf-8")
        return 0
    suite, drafts = read_suite(_archive(options.archive)), set(options.drafts) or set(DRAFTS)
    found = []
    for draft, name, place, outcome in run(suite, drafts):
        found.append((draft, name, place, outcome.category))
        if outcome.category == options.listed:
            _say(f"{draft}/{name}#{place}: {outcome.why}")
    made = make(suite.digest, found)
    _say(table(made), "", *(f"not run: {name} ({why})" for name, why in NOT_RUN.items()))
    worse: list[str] = []
    if BASELINE.exists() and load().archive == suite.digest:
        worse, better = compare(load(), found, drafts)
        _say(*(f"worse: {line}" for line in worse), *(f"better: {line}" for line in better))
    wrong = "wrong" in made.named
    if options.update and drafts == set(DRAFTS) and not worse and not wrong:
        BASELINE.write_text(made.text(), "utf-8")
    return 1 if worse or wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
