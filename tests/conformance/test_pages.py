"""Pages made from tables are up to date, and the departures hold."""

from __future__ import annotations

import json

import pytest
from conformance_baseline import pages

from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema
from maskwright.compiler.schema.departures import DEPARTURES, Departure
from maskwright.compiler.schema.keywords import ENFORCED, KEYWORDS, RESIDUAL


def test_pages_are_up_to_date() -> None:
    stale = [path.name for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "run `make pages`"


@pytest.mark.parametrize("departure", DEPARTURES, ids=lambda d: d.title)
def test_departures(departure: Departure) -> None:
    automaton = compile_schema(json.dumps(departure.schema), CompileOptions(**dict(departure.options))).automaton
    assert not accepts(automaton, departure.left_out.encode())
    assert accepts(automaton, departure.instead.encode())
    left_out, instead = json.loads(departure.left_out), json.loads(departure.instead)
    assert departure.other or left_out == instead


def test_the_tables() -> None:
    assert set(RESIDUAL) <= ENFORCED
    assert {k.treatment for k in KEYWORDS.values()} == {"enforced", "annotation"}
