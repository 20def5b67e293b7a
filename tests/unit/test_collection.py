"""Garbage collection around a compilation."""

from __future__ import annotations

import gc
import threading

import pytest

from maskwright.compiler import CompileError, Compiler, Vocabulary
from maskwright.compiler.collection import THRESHOLDS, rare_collection


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


def test_nothing_is_left_for_the_caller_to_collect() -> None:
    """What a compilation leaves in cycles is gone when it returns, and so is what would make the next step slow."""
    compiler = Compiler(Vocabulary.demo())
    names = {f"p{i}": {"type": ["string", "integer"], "maxLength": i} for i in range(60)}
    compiler.compile_json_schema({"properties": names})
    gc.collect()
    result = compiler.compile_json_schema({"properties": names, "required": ["p7"]})
    young = len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1))
    assert result.to_bytes() and young < 500
