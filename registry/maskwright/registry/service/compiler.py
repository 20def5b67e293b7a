"""CompilerService."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import grpc
from google.protobuf.json_format import MessageToDict

from maskwright.v1 import compiler_pb2, compiler_pb2_grpc, status_pb2, types_pb2

from ..compiling import CompileFlow, CompileOrder
from ..compiling.single_flight import Around
from ..config import ServerConfig
from ..faults import Reason, RegistryError, check_digest, invalid_request
from ..names import Journal
from ..names.changes import check_served
from ..security import current_caller
from ..security.quotas import Quotas
from ..signatures import Signer
from .messages import KINDS, artifact_message, diagnostic_message, kind_of, options_of
from .status import status_of

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
ARTIFACT_FORMAT_MAJORS = (1,)
MAX_ITEMS = 1000
MAX_RESOURCES = 1000


class CompilerServicer(compiler_pb2_grpc.CompilerServiceServicer):
    """Turns requests into orders for a `CompileFlow`."""

    def __init__(
        self,
        flow: CompileFlow,
        journal: Journal,
        config: ServerConfig,
        compiler_version: str,
        names: bool,
        quotas: Quotas,
        signer: Signer | None = None,
    ) -> None:
        self._flow, self._journal, self._config, self._signer = flow, journal, config, signer
        self._quotas = quotas
        self._compiler_version, self._names = compiler_version, names

    async def Compile(
        self, request: compiler_pb2.CompileRequest, context: grpc.aio.ServicerContext
    ) -> compiler_pb2.CompileResponse:
        return await self._compile(request, self._compiling())

    async def _compile(self, request: compiler_pb2.CompileRequest, around: Around) -> compiler_pb2.CompileResponse:
        outcome = await self._flow.compile(self._order(request), around)
        self._journal.read(lambda state: check_served(state, outcome.record.artifact_hash))
        if self._signer is not None and not request.validate_only:
            await asyncio.to_thread(self._signer.ensure, outcome.record.artifact_hash)
        return compiler_pb2.CompileResponse(
            info=artifact_message(outcome.record, outcome.report), cached=outcome.cached
        )

    async def Precompile(
        self, request: compiler_pb2.PrecompileRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[compiler_pb2.PrecompileResponse]:
        if len(request.items) > MAX_ITEMS:
            raise invalid_request("items", f"at most {MAX_ITEMS}")
        slots = asyncio.Semaphore(2 * self._config.pool.children)

        async def one(index: int) -> compiler_pb2.PrecompileResponse:
            response = compiler_pb2.PrecompileResponse(index=index)
            async with slots:
                try:
                    response.done.CopyFrom(await self._compile(request.items[index], nullcontext))
                except Exception as error:
                    status = status_of(error).SerializeToString()
                    response.failed.CopyFrom(status_pb2.RpcStatus.FromString(status))
            return response

        running = [asyncio.ensure_future(one(index)) for index in range(len(request.items))]
        try:
            for done in asyncio.as_completed(running):
                yield await done
        finally:
            for task in running:
                task.cancel()

    async def Explain(
        self, request: compiler_pb2.ExplainRequest, context: grpc.aio.ServicerContext
    ) -> compiler_pb2.ExplainResponse:
        fields = {f.name: getattr(request, f.name) for f in request.DESCRIPTOR.fields}
        order = self._order(compiler_pb2.CompileRequest(**fields))
        try:
            outcome = await self._flow.compile(replace(order, validate_only=True), self._compiling())
        except RegistryError as error:
            if error.reason is not Reason.SOURCE_REFUSED:
                raise
            return compiler_pb2.ExplainResponse(
                accepted=False, diagnostics=[diagnostic_message(d) for d in error.diagnostics]
            )
        info = artifact_message(outcome.record, outcome.report)
        return compiler_pb2.ExplainResponse(accepted=True, info=info)

    def _compiling(self) -> Around:
        """One compilation of the caller's, if it comes to that; a `Precompile` is counted as one as a whole."""
        return partial(self._quotas.compiling, current_caller().name)

    async def GetCapabilities(
        self, request: compiler_pb2.GetCapabilitiesRequest, context: grpc.aio.ServicerContext
    ) -> compiler_pb2.GetCapabilitiesResponse:
        profiles = [
            compiler_pb2.LimitsProfile(name=name, limits={k: float(v) for k, v in vars(limits).items()})
            for name, limits in sorted(self._config.profiles.items())
        ]
        return compiler_pb2.GetCapabilitiesResponse(
            server_version=version("maskwright"),
            compiler_version=self._compiler_version,
            kinds=list(KINDS),
            limits_profiles=profiles,
            max_message_bytes=self._config.max_message_bytes,
            max_tokenizer_bytes=self._config.max_tokenizer_bytes,
            artifact_format_majors=ARTIFACT_FORMAT_MAJORS,
            names=self._names,
            signing_key_id="" if self._signer is None else self._signer.key_id,
        )

    def _order(self, request: compiler_pb2.CompileRequest) -> CompileOrder:
        profile = request.limits_profile or "default"
        if profile not in self._config.profiles:
            message = f"no limits profile {profile!r}"
            raise RegistryError(Reason.UNKNOWN_PROFILE, message, {"profile": profile})
        if request.request_id and not _REQUEST_ID.fullmatch(request.request_id):
            raise invalid_request("request_id", "at most 128 of A-Z a-z 0-9 _ -")
        check_digest(request.tokenizer_fingerprint, "tokenizer_fingerprint")
        return CompileOrder(
            source=request.source,
            kind=kind_of(request.kind),
            options=options_of(request.options),
            limits=self._config.profiles[profile],
            fingerprint=request.tokenizer_fingerprint,
            validate_only=request.validate_only,
            request_id=request.request_id,
            resources=_resources(request),
            asked={"options": MessageToDict(request.options), "limits_profile": profile},
        )


def _resources(request: compiler_pb2.CompileRequest) -> dict[str, str]:
    if request.resources and request.kind != types_pb2.SOURCE_KIND_JSON_SCHEMA:
        raise invalid_request("resources", "only a JSON Schema has any")
    if len(request.resources) > MAX_RESOURCES:
        raise invalid_request("resources", f"at most {MAX_RESOURCES}")
    return dict(request.resources)
