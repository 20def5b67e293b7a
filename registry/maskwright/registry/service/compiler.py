"""CompilerService: Compile and GetCapabilities."""

from __future__ import annotations

import re
from importlib.metadata import version

import grpc

from maskwright.v1 import compiler_pb2, compiler_pb2_grpc

from ..compiling import CompileFlow, CompileOrder
from ..config import ServerConfig
from ..faults import Reason, RegistryError, invalid_request
from .messages import KINDS, artifact_message, kind_of, options_of

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
ARTIFACT_FORMAT_MAJORS = (1,)


class CompilerServicer(compiler_pb2_grpc.CompilerServiceServicer):
    """Turns requests into orders for a `CompileFlow`."""

    def __init__(self, flow: CompileFlow, config: ServerConfig, compiler_version: str) -> None:
        self._flow, self._config, self._compiler_version = flow, config, compiler_version

    async def Compile(
        self, request: compiler_pb2.CompileRequest, context: grpc.aio.ServicerContext
    ) -> compiler_pb2.CompileResponse:
        outcome = await self._flow.compile(self._order(request))
        return compiler_pb2.CompileResponse(
            info=artifact_message(outcome.record, outcome.report), cached=outcome.cached
        )

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
        )

    def _order(self, request: compiler_pb2.CompileRequest) -> CompileOrder:
        profile = request.limits_profile or "default"
        if profile not in self._config.profiles:
            message = f"no limits profile {profile!r}"
            raise RegistryError(Reason.UNKNOWN_PROFILE, message, {"profile": profile})
        if request.request_id and not _REQUEST_ID.fullmatch(request.request_id):
            raise invalid_request("request_id", "at most 128 of A-Z a-z 0-9 _ -")
        if not _FINGERPRINT.fullmatch(request.tokenizer_fingerprint):
            raise invalid_request("tokenizer_fingerprint", "must be 64 hexadecimal digits")
        return CompileOrder(
            source=request.source,
            kind=kind_of(request.kind),
            options=options_of(request.options),
            limits=self._config.profiles[profile],
            fingerprint=request.tokenizer_fingerprint,
            validate_only=request.validate_only,
            request_id=request.request_id,
        )
