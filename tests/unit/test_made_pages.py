"""The pages made from tables aren't stale, and every example gives its code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from maskwright.compiler import pages
from maskwright.compiler.diagnostic_codes import CODES, Example, run_example
from maskwright.compiler.diagnostics import HINTS, Code
from maskwright.compiler.options import PROFILES, Limits, limit_table

SOURCES = Path(pages.__file__).parent
RAISED = re.compile(r'(?:LimitExceeded|exceeded|too_large)\(\s*"([a-z_]+)"')
EXAMPLES = [(code, example) for code, entry in CODES.items() for example in entry.examples]


def test_limits_page_is_the_tables() -> None:
    page = pages.LIMITS.read_text(encoding="utf-8")
    assert page == pages.limits_page(pages.measured(page)), "python -m maskwright.compiler.pages"


def test_every_cost_is_measured() -> None:
    costs = pages.measured(pages.LIMITS.read_text(encoding="utf-8"))
    assert [name for name in limit_table() if costs.get(name, pages.NOT_MEASURED) == pages.NOT_MEASURED] == []


def test_diagnostics_page_is_the_table() -> None:
    page, now = pages.DIAGNOSTICS.read_text(encoding="utf-8"), pages.diagnostics_page()
    assert pages.without_messages(page) == pages.without_messages(now), "python -m maskwright.compiler.pages"


@pytest.mark.parametrize(("code", "example"), EXAMPLES, ids=lambda v: v.source[:30] if isinstance(v, Example) else v)
def test_examples_give_their_code(code: Code, example: Example) -> None:
    found = run_example(example)
    assert code in {d.code for d in found}
    assert {d.severity for d in found if d.code is code} == {CODES[code].severity}
    if CODES[code].severity == "error":
        assert {d.code for d in found} == {code}


def test_every_code_and_limit_is_listed() -> None:
    assert set(CODES) == set(Code)
    raised = {name for path in SOURCES.rglob("*.py") for name in RAISED.findall(path.read_text(encoding="utf-8"))}
    assert raised - set(limit_table()) - set(pages.FIXED) == set()
    assert set(limit_table()) <= set(HINTS)


def test_profiles_only_widen() -> None:
    strict, default, large = (vars(Limits.profile(name)) for name in PROFILES)
    assert all(strict[n] <= default[n] <= large[n] for n in default)
    assert Limits.profile("default") == Limits()


@pytest.mark.parametrize("value", [0, -1, True, "5", float("nan"), float("inf")])
def test_limits_are_checked(value: object) -> None:
    with pytest.raises(ValueError, match="states"):
        Limits(states=value)  # type: ignore[arg-type]
