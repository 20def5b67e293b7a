"""The official JSON Schema Test Suite, read from its archive: groups of tests by draft and file, and its remotes.

Nothing of the suite is in this repository. A test's name is `draft/file.json#group/test`, both by position, so a
baseline is good for one archive only and names it by digest.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance_run import Outcome, judge
from conformance_texts import read

DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09", "draft2020-12": "2020-12"}
"""The suite's folders and the values of the option `draft`."""
ARCHIVE = Path("data") / "json-schema-test-suite.tar.gz"
NOT_RUN = {"draft7/optional/content.json": "content keywords are annotations, as from 2019-09 on"}
REMOTES = "http://localhost:1234/"


@dataclass(frozen=True)
class Suite:
    """`files`: groups by (draft folder, file); `remotes`: texts by URI."""

    digest: str
    files: dict[tuple[str, str], list[Any]]
    remotes: dict[str, str]


def read_suite(archive: Path) -> Suite:
    files: dict[tuple[str, str], list[Any]] = {}
    remotes: dict[str, str] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            top, _, rest = path.partition("/")
            if not member.isfile() or not path.endswith(".json"):
                continue
            extracted = tar.extractfile(member)
            assert extracted is not None
            text = extracted.read().decode()
            draft, _, name = rest.partition("/")
            if top == "tests" and draft in DRAFTS:
                files[draft, name] = read(text)
            elif top == "remotes":
                remotes[REMOTES + rest] = text
    order = {draft: i for i, draft in enumerate(DRAFTS)}
    sorted_files = dict(sorted(files.items(), key=lambda item: (order[item[0][0]], item[0][1])))
    return Suite(hashlib.sha256(archive.read_bytes()).hexdigest(), sorted_files, dict(sorted(remotes.items())))


def enforces(name: str) -> bool:
    """Whether a file is about formats as assertions."""
    return name.startswith("optional/format/")


def run(suite: Suite, drafts: set[str] | None = None) -> Iterator[tuple[str, str, str, Outcome]]:
    """(draft folder, file, "group/test", outcome) of every test. Takes about two minutes for all drafts."""
    for (draft, name), groups in suite.files.items():
        if (drafts is not None and draft not in drafts) or f"{draft}/{name}" in NOT_RUN:
            continue
        options = {"draft": DRAFTS[draft], "formats": "enforce" if enforces(name) else "annotate"}
        remotes = {u: t for u, t in suite.remotes.items() if not _other_draft(u)}
        for place, outcome in judge(groups, options, remotes):
            yield draft, name, place, outcome


def _other_draft(uri: str) -> bool:
    """Remotes of drafts that this project doesn't know say nothing to it."""
    folder = uri.removeprefix(REMOTES).partition("/")[0]
    return folder in ("draft3", "v1")
