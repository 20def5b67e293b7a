"""Garbage collection around a compilation."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

import pytest

from maskwright.compiler import CompileError, CompileOptions, Compiler, CompileResult, Limits, Vocabulary, pack
from maskwright.compiler.collection import THRESHOLDS, rare_collection
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask


def test_the_last_to_leave_restores() -> None:
    usual = gc.get_threshold()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with rare_collection():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with rare_collection():
        assert gc.get_threshold() == THRESHOLDS
        with rare_collection():
            thread.start()
            entered.wait(10)
    assert gc.get_threshold() == THRESHOLDS
    leave.set()
    thread.join(10)
    assert gc.get_threshold() == usual
    assert gc.isenabled()


def test_a_refused_source_restores_too() -> None:
    usual = gc.get_threshold()
    compiler = Compiler(Vocabulary.demo())
    with pytest.raises(CompileError):
        compiler.compile_json_schema('{"type": "object", "required": ["a"], "additionalProperties": false}')
    compiler.compile_json_schema('{"type": "integer"}')
    assert gc.get_threshold() == usual


def test_a_full_collection_that_became_due_is_done() -> None:
    """A middle one takes what's alive for lasting."""
    with rare_collection():
        pass  # what other tests have loaded
    before = gc.get_stats()[2]["collections"]
    with rare_collection():
        pass
    assert gc.get_stats()[2]["collections"] == before
    with rare_collection():
        gc.collect(1)
    assert gc.get_stats()[2]["collections"] == before + 1


RECURSIVE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer", "minimum": 3},
                "at": {"type": "string", "maxLength": 40, "pattern": "^a(?=b)[a-z]*$"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                "more": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 300},
            },
            "required": ["value"],
            "patternProperties": {"^x-": {"type": "string"}, "^[xy]": {"not": {"const": "no"}}},
        }
    },
    "$ref": "#/$defs/node",
}
GRAMMAR = """
start: e
e: t (("+" | "-") t)*
t: NUMBER | NAME "(" (e ("," e)*)? ")" | "(" e ")"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"""
TOOLS = [{"name": "a", "parameters": RECURSIVE}, {"name": "b", "parameters": {"type": "object"}}]
ALTERNATIVES = {
    "type": "object",
    "properties": {"k": {"enum": ["a", "b"]}, "n": {"type": "number", "multipleOf": 0.5}},
    "oneOf": [{"properties": {"k": {"const": "a"}}, "required": ["k"]}, {"properties": {"n": False}}],
    "required": ["k"],
    "unevaluatedProperties": False,
}
TAGGED = [{"name": "b", "parameters": {"type": "object", "properties": {"x": RECURSIVE, "y": {"type": "string"}}}}]
SOURCES: dict[str, Callable[[Compiler], CompileResult]] = {
    "recursive schema": lambda c: c.compile_json_schema(RECURSIVE),
    "alternatives": lambda c: c.compile_json_schema(ALTERNATIVES),
    "properties in any order": lambda c: Compiler(
        c.vocabulary, CompileOptions(property_order="any", whitespace=2)
    ).compile_json_schema({"properties": {"a": {"type": "integer"}, "b": {"format": "date"}}, "required": ["b"]}),
    "no instances": lambda c: c.compile_json_schema({"allOf": [{"type": "string"}, {"type": ["null", "array"]}]}),
    "too many states": lambda c: Compiler(c.vocabulary, limits=Limits(states=30)).compile_json_schema(RECURSIVE),
    "pattern": lambda c: c.compile_regex("(?=.*a)(?!.*bb)[abc]{2,9}|(x|y)*z"),
    "broken pattern": lambda c: c.compile_regex("(a"),
    "grammar": lambda c: c.compile_lark(GRAMMAR),
    "grammar with a schema": lambda c: c.compile_lark('start: "f" %json {"type": "object"} ";"'),
    "ambiguous grammar": lambda c: c.compile_lark('start: a | b\na: "x"\nb: "x"'),
    "GBNF": lambda c: c.compile_gbnf('root ::= t ("+" t)*\nt ::= [0-9]+ | "(" root ")"'),
    "tools": lambda c: c.compile_tools(TOOLS),
    "tools with tags": lambda c: c.compile_tools(TAGGED, format="qwen"),
}
REFUSED = {"no instances", "too many states", "broken pattern", "ambiguous grammar"}
FEW = 200
"""Objects. A grammar's literals each leave a few in lark, which evaluates them by a function that holds itself."""


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(Vocabulary.demo())


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def finished(compiler: Compiler, source: str) -> bytes | None:
    """The artifact, its report looked at; None: refused."""
    try:
        result = SOURCES[source](compiler)
    except CompileError:
        return None
    assert result.report.states
    return result.to_bytes()


@pytest.mark.parametrize("source", SOURCES)
def test_a_compilation_leaves_no_cycles(compiler: Compiler, uncollected: None, source: str) -> None:
    """All that it makes is freed by reference counts: nothing waits for a collection in the caller's next step."""
    assert (finished(compiler, source) is None) == (source in REFUSED)
    gc.collect()
    finished(compiler, source)
    assert gc.collect() < FEW


def test_nor_does_a_lazy_artifact(compiler: Compiler, uncollected: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "COMPLETE_CONTEXTS", 1)
    assert compiler.compile_lark(GRAMMAR).report.lazy
    gc.collect()
    assert compiler.compile_lark(GRAMMAR).report.lazy
    assert gc.collect() < FEW


@pytest.mark.parametrize("source", sorted(SOURCES.keys() - REFUSED))
def test_a_result_is_few_objects(compiler: Compiler, uncollected: None, source: str) -> None:
    """Collections visit what the caller holds, however long."""
    SOURCES[source](compiler)
    gc.collect()
    before = len(gc.get_objects())
    result = SOURCES[source](compiler)
    gc.collect()
    assert result.to_bytes() and len(gc.get_objects()) - before < FEW


def test_a_load_meets_no_large_collection(compiler: Compiler) -> None:
    """Neither the compilation before it nor the prepared vocabulary makes one due."""
    large = {"properties": {f"p{i}": {"type": "string", "maxLength": i} for i in range(300)}, "required": ["p7"]}
    sources = [*SOURCES.values(), lambda c: c.compile_json_schema(large)]
    loaded = VocabularyPack.from_bytes(compiler.vocabulary.pack_bytes())
    met: list[tuple[int, int]] = []

    def meet(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generation = info["generation"]
            met.append((generation, sum(len(gc.get_objects(generation=g)) for g in range(generation + 1))))

    gc.collect()
    for source in sources:
        try:
            data = source(compiler).to_bytes()
        except CompileError:
            continue
        gc.callbacks.append(meet)
        try:
            matcher = Matcher(Artifact.from_bytes(data, loaded))
            matcher.fill_next_token_bitmask(allocate_token_bitmask(1, loaded.vocab_size))
        finally:
            gc.callbacks.remove(meet)
    assert all(generation < 2 and visited < 10_000 for generation, visited in met)


def test_a_vocabulary_is_settled_with_its_first_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was loaded is visited in full there; later compilations visit little."""
    monkeypatch.setattr(pack, "_prepared", OrderedDict())
    compiler = Compiler(Vocabulary.demo())
    before = gc.get_stats()[2]["collections"]
    compiler.compile_json_schema(ALTERNATIVES)
    assert gc.get_stats()[2]["collections"] > before
    before = gc.get_stats()[2]["collections"]
    gc.collect()
    for source in ("alternatives", "grammar", "recursive schema"):
        SOURCES[source](compiler)
    assert gc.get_stats()[2]["collections"] == before + 1
