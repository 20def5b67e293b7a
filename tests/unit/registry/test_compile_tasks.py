"""What a compiling child says of a source: refused for its own reason, or out of a resource, and never the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import pytest

from maskwright.compiler import Compiler, LimitExceeded, Vocabulary
from maskwright.compiler.options import RESOURCE_LIMITS, CompileOptions, Limits, limit_table
from maskwright.registry.compiling import (
    ChildPool,
    Compiled,
    CompileJob,
    Overrun,
    PoolLimits,
    Refused,
    compile_source,
    warm_compiler,
)
from maskwright.registry.compiling.flow import _overran
from maskwright.registry.faults import Reason, RegistryError

PATH = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")


@pytest.fixture(scope="module")
def job() -> CompileJob:
    vocabulary = Vocabulary.from_file(PATH)
    pack = hashlib.sha256(vocabulary.pack_bytes()).hexdigest()
    return CompileJob("json_schema", "{}", CompileOptions(), Limits(), vocabulary.fingerprint, PATH, pack)


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """The compiler raises what's in the list."""
    errors: list[BaseException] = []

    def compile_json_schema(self: Compiler, source: str, *more: object, **named: object) -> None:
        raise errors[0]

    monkeypatch.setattr(Compiler, "compile_json_schema", compile_json_schema)
    yield errors


@pytest.mark.parametrize("name", limit_table())
def test_only_resources_are_no_refusal(name: str, job: CompileJob, raising: list[BaseException]) -> None:
    raising.append(LimitExceeded(name, 1, 2, "stage", pointer=""))
    result = compile_source(job)
    if name in RESOURCE_LIMITS:
        assert isinstance(result, Overrun)
        assert result.limit_name == name
    else:
        assert isinstance(result, Refused)
    assert result.diagnostics[0]["detail"]["limit_name"] == name


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), KeyError("x"), OSError("full")])
def test_faults_of_the_compiler_are_no_refusal(
    error: BaseException, job: CompileJob, raising: list[BaseException]
) -> None:
    raising.append(error)
    with pytest.raises(type(error)):
        compile_source(job)


def test_overruns_have_reasons_of_their_own() -> None:
    reasons = {name: _overran(Limits(), Overrun([], name)).reason for name in RESOURCE_LIMITS}
    assert reasons == {"compile_seconds": Reason.COMPILE_TIMEOUT, "compile_memory": Reason.COMPILE_MEMORY}


async def test_in_a_child(job: CompileJob) -> None:
    """The same source: made, out of time, out of memory, refused; in one child, warmed."""
    pool = ChildPool(PoolLimits(children=1))
    pool.start(lambda: [(warm_compiler, (PATH, job.fingerprint))])
    source = json.dumps({"enum": [f"v{i}" for i in range(4_000)]})
    job = replace(job, source=source)
    made = await pool.run(compile_source, job, seconds=120)
    assert isinstance(made, Compiled)
    assert made.report["peak_bytes"] > 0
    late = await pool.run(compile_source, replace(job, limits=Limits(compile_seconds=0.01)), seconds=120)
    assert isinstance(late, Overrun)
    refused = await pool.run(compile_source, replace(job, limits=Limits(enum_values=100)), seconds=120)
    assert isinstance(refused, Refused)
    with pytest.raises(RegistryError) as caught:
        hungry = json.dumps({"enum": ["".join(f"{i * k}," for k in range(40)) for i in range(8_000)]})
        await pool.run(compile_source, replace(job, source=hungry, limits=Limits(compile_memory=1 << 20)), seconds=120)
    assert caught.value.reason is Reason.COMPILE_MEMORY
    assert isinstance(await pool.run(compile_source, replace(job, source="true"), seconds=120), Compiled)
    await pool.close()
