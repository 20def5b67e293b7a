"""Real schemas with their valid and invalid texts, where the data is there: nothing invalid passes, and a
valid
text is blocked for its property order alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from random_schemas import accepts_in_some_order

from maskwright.compiler.automaton.explore import explore_library
from maskwright.compiler.automaton.ir import accepts
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.schema import compile_schema, library_frames

EVERY = 60


def test_real_schemas(shared: Path) -> None:
    library = minimise(specialise(explore_library(library_frames(CompileOptions.max_whitespace))))
    seen = refused = 0
    wrong: list[str] = []
    with gzip.open(shared / "data" / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % EVERY:
                continue
            row = json.loads(line)
            seen += 1
            try:
                automaton = compile_schema(row["schema"], library=library).automaton
            except CompileError as e:
                assert e.diagnostics[0].code in (Code.UNSUPPORTED_KEYWORD, Code.LIMIT_EXCEEDED)
                refused += 1
                continue
            for test in row["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                if accepts(automaton, text.encode()) == test["valid"]:
                    continue
                if not test["valid"] or not accepts_in_some_order(automaton, test["data"]):
                    wrong.append(row["id"])
    assert wrong == []
    assert refused * 20 < seen
