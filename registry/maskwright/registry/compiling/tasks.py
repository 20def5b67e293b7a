"""What runs inside a compiling child process: plain functions from picklable values to picklable values.

A child keeps the vocabularies it used last, since reading one takes seconds and every job needs one. What a
source did wrong comes back as `Refused`; running out of time or memory inside the compiler as `Overrun`, which
says nothing about the source and must not be remembered; what's wrong with a vocabulary or with the compiler is
raised. The compiler's engine is imported by the first job, or by `warm_compiler`, so that the server itself never
loads it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from maskwright.compiler.diagnostics import CompileError, LimitExceeded
from maskwright.compiler.options import RESOURCE_LIMITS, CompileOptions, Limits

from .child import memory_growth

if TYPE_CHECKING:
    from maskwright.compiler import CompileResult, Vocabulary

KEPT_VOCABULARIES = 2
_vocabularies: OrderedDict[str, tuple[Vocabulary, str]] = OrderedDict()


@dataclass(frozen=True)
class CompileJob:
    """One compilation.

    known_pack: the hash of the pack that the caller holds for this vocabulary. resources: (URI, text) pairs of the
    schemas that a JSON Schema's references may name.
    """

    kind: str
    source: str
    options: CompileOptions
    limits: Limits
    fingerprint: str
    tokenizer_path: str
    known_pack: str
    resources: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Compiled:
    """`pack` holds the bytes only where the artifact needs another pack than the job's `known_pack`."""

    artifact: bytes
    report: dict[str, Any]
    pack_hash: str
    pack: bytes | None


@dataclass(frozen=True)
class Refused:
    diagnostics: list[dict[str, Any]]


@dataclass(frozen=True)
class Overrun:
    """`limit_name`: the limit of `RESOURCE_LIMITS` that was passed."""

    diagnostics: list[dict[str, Any]]
    limit_name: str = "compile_seconds"


@dataclass(frozen=True)
class ReadTokenizer:
    fingerprint: str
    vocab_size: int
    stop_token_ids: tuple[int, ...]
    logits_width: int
    pack: bytes


def compile_source(job: CompileJob) -> Compiled | Refused | Overrun:
    """Compiles one source. Costs what the compiler costs, and reading the vocabulary the first time."""
    from maskwright.compiler import Compiler

    vocabulary, pack_hash = _vocabulary(job.tokenizer_path, job.fingerprint)
    compiler = Compiler(vocabulary, options=job.options, limits=job.limits)
    compilers: dict[str, Callable[[str], CompileResult]] = {
        "json_schema": partial(compiler.compile_json_schema, resources=dict(job.resources)),
        "regex": compiler.compile_regex,
        "lark": compiler.compile_lark,
        "gbnf": compiler.compile_gbnf,
        "tools": compiler.compile_tools,
    }
    try:
        with memory_growth(job.limits.compile_memory):
            result = compilers[job.kind](job.source)
            artifact, report = result.to_bytes(), plain_report(result.report)
    except LimitExceeded as error:
        diagnostics = [d.to_json() for d in error.diagnostics]
        return Overrun(diagnostics, error.limit_name) if error.limit_name in RESOURCE_LIMITS else Refused(diagnostics)
    except CompileError as error:
        return Refused([d.to_json() for d in error.diagnostics])
    pack = None if pack_hash == job.known_pack else vocabulary.pack_bytes()
    return Compiled(artifact, report, pack_hash, pack)


def warm_compiler(tokenizer_path: str = "", fingerprint: str = "") -> None:
    """Loads the compiler with its kernels, and a vocabulary if one is given, by compiling something small."""
    from maskwright.compiler import Compiler

    if tokenizer_path:
        vocabulary, _ = _vocabulary(tokenizer_path, fingerprint)
        Compiler(vocabulary).compile_json_schema(_WARMING)


_WARMING = '{"properties": {"a": {"items": {"enum": ["b", 1]}}, "c": {"pattern": "^d+$"}}, "required": ["c"]}'


def read_tokenizer(path: str) -> ReadTokenizer | Refused:
    """Reads a tokenizer file and builds its pack."""
    from maskwright.compiler import Vocabulary

    try:
        vocabulary = Vocabulary.from_file(path)
        return ReadTokenizer(
            vocabulary.fingerprint,
            vocabulary.size,
            vocabulary.stop_token_ids,
            vocabulary.logits_width,
            vocabulary.pack_bytes(),
        )
    except CompileError as error:
        return Refused([d.to_json() for d in error.diagnostics])


def plain_report(report: Any) -> dict[str, Any]:
    """A report as JSON values."""
    if isinstance(report, Mapping):
        return dict(report)
    if hasattr(report, "to_json"):
        plain: dict[str, Any] = report.to_json()
        return plain
    if is_dataclass(report) and not isinstance(report, type):
        return asdict(report)
    raise TypeError(f"a report of type {type(report).__name__}")


def _vocabulary(path: str, fingerprint: str) -> tuple[Vocabulary, str]:
    if fingerprint in _vocabularies:
        _vocabularies.move_to_end(fingerprint)
        return _vocabularies[fingerprint]
    from maskwright.compiler import Vocabulary

    vocabulary = Vocabulary.from_file(path)
    if vocabulary.fingerprint != fingerprint:
        raise RuntimeError(f"{path} has fingerprint {vocabulary.fingerprint}, not {fingerprint}")
    pack_hash = hashlib.sha256(vocabulary.pack_bytes()).hexdigest()
    _vocabularies[fingerprint] = (vocabulary, pack_hash)
    while len(_vocabularies) > KEPT_VOCABULARIES:
        _vocabularies.popitem(last=False)
    return _vocabularies[fingerprint]
