"""From an order to an artifact: look up, else compile once, verify, keep.

    request id known?         -> its artifact
    artifact in the catalog?  -> it
    refusal in the catalog?   -> its diagnostics, raised
    same order in flight?     -> wait for it
    else                      -> compile in a child; keep blobs, then the record

Only a source's own fault is kept as a refusal. With `validate_only` nothing is kept.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from maskwright.compiler.options import CompileOptions, Limits

from .. import keys
from ..catalog import ArtifactRecord, Catalog, RequestRecord, TokenizerRecord
from ..content import Digest
from ..faults import Reason, RegistryError
from ..telemetry import Metrics
from ..workspace import Workspace
from .children import ChildPool
from .single_flight import Around, SingleFlight
from .tasks import Compiled, CompileJob, Overrun, Refused

KILL_FACTOR = 1.5
KILL_EXTRA_SECONDS = 30.0
"""A child is killed at its own time limit times the factor, plus this for reading a vocabulary."""

CompileTask = Callable[[CompileJob], Compiled | Refused | Overrun]


@dataclass(frozen=True)
class CompileOrder:
    """What a caller wants compiled.

    resources: texts of schemas that references may name, by URI. asked: options and profile as the caller said them.
    """

    source: str
    kind: str
    options: CompileOptions
    limits: Limits
    fingerprint: str
    validate_only: bool = False
    request_id: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CompileOutcome:
    """`cached`: no compilation was begun by this call."""

    record: ArtifactRecord
    report: dict[str, Any]
    cached: bool


@dataclass(frozen=True)
class _Keys:
    source: str
    artifact: str
    refusal: str
    request: str


class CompileFlow:
    """Compiles orders over one catalog and one pool; belongs to one event loop."""

    def __init__(
        self,
        catalog: Catalog,
        workspace: Workspace,
        pool: ChildPool,
        compiler_version: str,
        task: CompileTask,
        metrics: Metrics | None = None,
    ) -> None:
        self._catalog, self._workspace, self._pool, self._task = catalog, workspace, pool, task
        self._version, self._metrics = compiler_version, metrics or Metrics()
        self._flights: SingleFlight[CompileOutcome] = SingleFlight()

    async def compile(self, order: CompileOrder, around: Around = nullcontext) -> CompileOutcome:
        """Raises RegistryError for everything in the RPC's list, and what the store and `around` raise, which is held
        while a compilation lasts that this call began.
        """
        tokenizer, names, kept = await asyncio.to_thread(self._look_up, order)
        if kept is None:
            flight = f"{names.refusal}/{order.validate_only}"
            kept, began = await self._flights.run(flight, lambda: self._compile(order, names, tokenizer), around)
            self._metrics.cache.labels("flight" if not began else "catalog" if kept.cached else "none").inc()
            kept = replace(kept, cached=kept.cached or not began)
        else:
            self._metrics.cache.labels("catalog").inc()
        if order.request_id and not order.validate_only:
            request = RequestRecord(order.request_id, names.request, kept.record.artifact_key)
            _check_request(await asyncio.to_thread(self._catalog.add_request, request), names)
        return kept

    def callers(self) -> int:
        """How many wait for compilations in flight."""
        return self._flights.callers()

    def _look_up(self, order: CompileOrder) -> tuple[TokenizerRecord, _Keys, CompileOutcome | None]:
        tokenizer = self._catalog.tokenizer(order.fingerprint)
        if tokenizer is None:
            raise RegistryError(
                Reason.UNKNOWN_TOKENIZER,
                f"no tokenizer has fingerprint {order.fingerprint}",
                {"fingerprint": order.fingerprint},
            )
        names = self._names(order)
        return tokenizer, names, self._find(order, names)

    def _names(self, order: CompileOrder) -> _Keys:
        source, options = keys.source_hash(order.kind, order.source, order.resources), order.options.canonical()
        artifact = keys.artifact_key(source, order.kind, options, order.fingerprint, self._version)
        request = keys.request_hash(source, order.kind, order.fingerprint, order.asked)
        return _Keys(source, artifact, keys.refusal_key(artifact, order.limits), request)

    def _find(self, order: CompileOrder, names: _Keys) -> CompileOutcome | None:
        artifact_key = names.artifact
        if order.request_id and (request := self._catalog.request(order.request_id)) is not None:
            _check_request(request, names)
            artifact_key = request.artifact_key
        record = self._catalog.artifact(artifact_key)
        if record is not None:
            return CompileOutcome(record, self._catalog.get_json(record.report), cached=True)
        refusal = self._catalog.refusal(names.refusal)
        if refusal is not None:
            raise _refused(self._catalog.get_json(refusal.diagnostics), refusal.diagnostics)
        return None

    async def _compile(self, order: CompileOrder, names: _Keys, tokenizer: TokenizerRecord) -> CompileOutcome:
        if not order.validate_only:
            # Another flight may have landed between this caller's look-up and now.
            found = await asyncio.to_thread(self._find, order, names)
            if found is not None:
                return found
        path = await asyncio.to_thread(self._workspace.tokenizer, tokenizer)
        job = CompileJob(
            order.kind,
            order.source,
            order.options,
            order.limits,
            order.fingerprint,
            str(path),
            tokenizer.pack_hash,
            tuple(sorted(order.resources.items())),
        )
        seconds = order.limits.compile_seconds * KILL_FACTOR + KILL_EXTRA_SECONDS
        result = await self._run(job, seconds)
        if isinstance(result, Overrun):
            raise _overran(order.limits, result)
        if isinstance(result, Refused):
            digest = await asyncio.to_thread(self._keep_refusal, order, names, result)
            raise _refused(result.diagnostics, digest)
        return await asyncio.to_thread(self._keep, order, names, tokenizer, result)

    async def _run(self, job: CompileJob, seconds: float) -> Compiled | Refused | Overrun:
        """The child's result, measured with the wait for a child."""
        began, outcome = time.perf_counter(), "CANCELLED"
        try:
            result = await self._pool.run(self._task, job, seconds=seconds)
            if isinstance(result, Overrun):
                outcome = str(_overran(job.limits, result).reason)
            else:
                outcome = "done" if isinstance(result, Compiled) else "refused"
        except RegistryError as error:
            outcome = str(error.reason)
            raise
        finally:
            self._metrics.compile_seconds.labels(outcome).observe(time.perf_counter() - began)
        if isinstance(result, Refused):
            for code in {str(d["code"]) for d in result.diagnostics}:
                self._metrics.refusals.labels(code).inc()
        elif isinstance(result, Compiled):
            self._metrics.observe_report(result.report)
        return result

    def _keep_refusal(self, order: CompileOrder, names: _Keys, refused: Refused) -> Digest | None:
        if order.validate_only:
            return None
        return self._catalog.add_refusal(names.refusal, names.artifact, refused.diagnostics).diagnostics

    def _keep(self, order: CompileOrder, names: _Keys, tokenizer: TokenizerRecord, result: Compiled) -> CompileOutcome:
        put = _digest_only if order.validate_only else self._catalog.content.put
        pack = tokenizer.pack if result.pack is None else put(result.pack)
        artifact = put(result.artifact)
        report = put(json.dumps(result.report, sort_keys=True, separators=(",", ":")).encode())
        record = ArtifactRecord(
            artifact_key=names.artifact,
            source_hash=names.source,
            kind=order.kind,
            options=order.options.canonical(),
            fingerprint=order.fingerprint,
            compiler_version=self._version,
            artifact_hash=artifact.hash,
            artifact_size=artifact.size,
            pack_hash=pack.hash,
            pack_size=pack.size,
            report_hash=report.hash,
            report_size=report.size,
        )
        if order.validate_only:
            return CompileOutcome(record, result.report, cached=False)
        kept = self._catalog.add_artifact(record)
        return CompileOutcome(kept, self._catalog.get_json(kept.report), cached=False)


def _check_request(request: RequestRecord, names: _Keys) -> None:
    if request.request_hash != names.request:
        raise RegistryError(
            Reason.REQUEST_ID_REUSED,
            f"request id {request.request_id!r} was used for another request",
            {"request_id": request.request_id},
        )


def _overran(limits: Limits, overrun: Overrun) -> RegistryError:
    if overrun.limit_name == "compile_memory":
        message, reason = f"more than {limits.compile_memory} bytes of memory", Reason.COMPILE_MEMORY
    else:
        message, reason = f"not done within {limits.compile_seconds:g} s", Reason.COMPILE_TIMEOUT
    return RegistryError(reason, message, diagnostics=overrun.diagnostics)


def _refused(diagnostics: list[dict[str, Any]], digest: Digest | None) -> RegistryError:
    first = next((d for d in diagnostics if d.get("severity") == "error"), diagnostics[0])
    more = f" and {len(diagnostics) - 1} more" if len(diagnostics) > 1 else ""
    return RegistryError(
        Reason.SOURCE_REFUSED,
        f"{first['code']}: {first['message']}{more}",
        diagnostics=diagnostics,
        all_diagnostics=digest,
    )


def _digest_only(data: bytes) -> Digest:
    return Digest.of(data)
