"""Conformance: cases of our own for every keyword in every draft, and the official suite where it's there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from conformance_baseline import BASELINE, compare, load
from conformance_run import CATEGORIES
from conformance_suite import ARCHIVE, DRAFTS, read_suite, run

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema
from maskwright.compiler.schema.keywords import DRAFTS as KNOWN
from maskwright.compiler.schema.keywords import ENFORCED, KEYWORDS

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text("utf-8").splitlines()]
ORACLES: dict[str, Any] = {
    "4": jsonschema_rs.Draft4Validator,
    "6": jsonschema_rs.Draft6Validator,
    "7": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}


def test_every_keyword_has_a_case_in_every_draft() -> None:
    covered = {(case["keyword"], draft) for case in CASES for draft in case["drafts"]}
    wanted = {(k, title) for k in ENFORCED for title, draft in KNOWN.items() if KEYWORDS[k].known(draft)}
    assert wanted - covered == set()


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{i}-{c['keyword']}" for i, c in enumerate(CASES)])
def test_own_cases(number: int) -> None:
    """`valid` texts are accepted, `invalid` ones aren't; `narrower` ones are valid and blocked by the canonical
    form. Another validator agrees on which are valid."""
    case = CASES[number]
    formats = case.get("formats", "annotate")
    for draft in case["drafts"]:
        options = CompileOptions(draft=draft, formats=formats)
        automaton = compile_schema(json.dumps(case["schema"]), options).automaton
        oracle = ORACLES[draft](case["schema"], validate_formats=formats == "enforce")
        for kind, taken, valid in (("valid", True, True), ("invalid", False, False), ("narrower", False, True)):
            for text in case.get(kind, ()):
                assert accepts(automaton, text.encode()) is taken, (draft, text)
                assert oracle.is_valid(json.loads(text)) is valid, (draft, text)


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite(shared: Path, draft: str) -> None:
    """Nothing is worse than the baseline, and nothing is wrong. Better: `python -m tests.conformance --update`."""
    baseline = load()
    suite = read_suite(shared / ARCHIVE)
    if suite.digest != baseline.archive:
        pytest.skip("the baseline is for another archive of the suite")
    found = [(d, name, place, outcome.category) for d, name, place, outcome in run(suite, {draft})]
    worse, better = compare(baseline, found, {draft})
    assert worse == []
    assert better == [], "the baseline is behind: update it"
    assert not any(category == "wrong" for _, _, _, category in found)


def test_the_baseline_holds_nothing_wrong() -> None:
    baseline = load()
    assert set(baseline.named) <= set(CATEGORIES) - {"exact", "wrong"}
    assert BASELINE.read_text("utf-8") == baseline.text()
