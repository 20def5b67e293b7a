"""Compiling for the page: in a child, with strict limits, and kept in memory alone.

What is typed is compiled at every pause, so nothing of it goes into the store. The last artifacts are kept by digest,
bounded in number and bytes; a page that finds its own gone compiles again, from the source that it holds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.options import CompileOptions, Limits
from maskwright.workers import Artifact, VocabularyPack

from ..compiling import ChildPool, Compiled, CompileJob, Overrun, Refused, SingleFlight, compile_source
from ..faults import Reason, RegistryError
from .tasks import Layer, judge_text
from .tokenizers import Tokenizer, Tokenizers

KEPT_ARTIFACTS, KEPT_BYTES = 64, 256 << 20
KILL_EXTRA_SECONDS, JUDGE_SECONDS = 10.0, 10.0


@dataclass(frozen=True)
class CompileRequest:
    """`fingerprint`: the tokenizer's; None for the one that ships."""

    kind: str
    source: str
    options: CompileOptions
    fingerprint: str | None


@dataclass(frozen=True)
class Bench:
    """A compiled source, ready to be followed. `seconds`: wall time of the compilation with its wait."""

    request: CompileRequest
    tokenizer: Tokenizer
    artifact: Artifact
    report: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Refusal:
    diagnostics: list[dict[str, Any]]
    seconds: float


class Workbench:
    """Belongs to one event loop."""

    def __init__(self, pool: ChildPool, tokenizers: Tokenizers, limits: Limits) -> None:
        self._pool, self._tokenizers, self._limits = pool, tokenizers, limits
        self._flights: SingleFlight[Bench | Refusal] = SingleFlight()
        self._by_digest: OrderedDict[str, Bench] = OrderedDict()
        self._digests: dict[str, str] = {}

    async def compile(self, request: CompileRequest) -> Bench | Refusal:
        """Raises RegistryError UNKNOWN_TOKENIZER, QUEUE_FULL, COMPILE_TIMEOUT, COMPILE_MEMORY, COMPILER_CRASHED."""
        key = _key(request)
        known = self._by_digest.get(self._digests.get(key, ""))
        if known is not None:
            self._by_digest.move_to_end(known.artifact.digest)
            return known
        return (await self._flights.run(key, lambda: self._compile(key, request)))[0]

    def get(self, digest: str) -> Bench:
        """Raises RegistryError UNKNOWN_ARTIFACT."""
        found = self._by_digest.get(digest)
        if found is None:
            message = f"the lab doesn't hold artifact {digest}: compile its source again"
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, message, {"artifact": digest})
        self._by_digest.move_to_end(digest)
        return found

    async def judge(self, bench: Bench, text: str) -> list[Layer]:
        """Raises RegistryError QUEUE_FULL, COMPILE_TIMEOUT, COMPILE_MEMORY, COMPILER_CRASHED."""
        request = bench.request
        return await self._pool.run(judge_text, request.kind, request.source, text, seconds=JUDGE_SECONDS)

    async def warm(self) -> None:
        """Loads the compiler into a child, which takes seconds, before somebody waits for it."""
        await self.compile(CompileRequest("json_schema", "true", CompileOptions(), None))

    async def _compile(self, key: str, request: CompileRequest) -> Bench | Refusal:
        began = time.perf_counter()
        tokenizer = await self._tokenizers.get(request.fingerprint)
        job = CompileJob(
            kind=request.kind,
            source=request.source,
            options=request.options,
            limits=self._limits,
            fingerprint=tokenizer.fingerprint,
            tokenizer_path=tokenizer.path,
            known_pack=tokenizer.pack_hash,
        )
        seconds = self._limits.compile_seconds + KILL_EXTRA_SECONDS
        result = await self._pool.run(compile_source, job, seconds=seconds)
        spent = time.perf_counter() - began
        if isinstance(result, Refused | Overrun):
            return Refusal(result.diagnostics, spent)
        artifact = await asyncio.to_thread(_load, result, tokenizer.pack)
        return self._keep(key, Bench(request, tokenizer, artifact, result.report, time.perf_counter() - began))

    def _keep(self, key: str, bench: Bench) -> Bench:
        digest = bench.artifact.digest
        self._by_digest[digest] = bench
        self._by_digest.move_to_end(digest)
        self._digests[key] = digest
        while len(self._by_digest) > 1 and (len(self._by_digest) > KEPT_ARTIFACTS or self._bytes() > KEPT_BYTES):
            gone, _ = self._by_digest.popitem(last=False)
            self._digests = {k: d for k, d in self._digests.items() if d != gone}
        return bench

    def _bytes(self) -> int:
        return sum(bench.artifact.memory_size_bytes for bench in self._by_digest.values())


def _load(result: Compiled, pack: VocabularyPack) -> Artifact:
    """An artifact that names another pack than its tokenizer's brings that pack along."""
    return Artifact.from_bytes(result.artifact, pack if result.pack is None else VocabularyPack.from_bytes(result.pack))


def _key(request: CompileRequest) -> str:
    parts = [request.kind, request.source, request.options.canonical(), request.fingerprint]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
