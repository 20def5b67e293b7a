"""What a client holds, blocking or not: the channel with its credentials and stubs, the cache, the calls' steps.

Certificates and tokens that are rotated are taken at the next call (`RotatedFiles`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from maskwright.v1 import compiler_pb2_grpc, registry_pb2_grpc, tokenizer_pb2_grpc
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials, channel_options, rotated_credentials, rotated_metadata
from maskwright.workers.client.compiling import CompileCalls
from maskwright.workers.client.fetching import FetchCalls
from maskwright.workers.client.names import NameCalls
from maskwright.workers.client.signing import TrustedKeys
from maskwright.workers.client.tracing import traced


class RegistryCalls(CompileCalls, FetchCalls, NameCalls):
    """The steps of every call. Raises of each: what its docstring says."""


class Transport:
    """Base of the clients, which say `_grpc`: the module whose channels they use."""

    _grpc: ClassVar[Any]

    def __init__(
        self,
        address: str,
        *,
        cache: DiskCache | None = None,
        timeout: float = 120.0,
        attempts: int = 4,
        credentials: Credentials | None = None,
        trusted_keys: TrustedKeys | None = None,
    ) -> None:
        from maskwright.workers.artifact import cache_directory

        self.address, self.cache = address, cache or DiskCache(cache_directory())
        trusted = trusted_keys or TrustedKeys.from_environment()
        self._calls = RegistryCalls(address, self.cache, attempts, trusted)
        credentials = Credentials.from_environment() if credentials is None else credentials
        self._timeout, self._metadata = timeout, rotated_metadata(credentials)
        self._options, self._certificates = channel_options(credentials), rotated_credentials(address, credentials)
        self._retired: list[Any] = []
        self._connect(self._certificates.newest())
        self._running: dict[str, Any] = {}  # what shows that the steps of a `Once` run, by key

    def _connect(self, secure: Any) -> None:
        self._channel = (
            self._grpc.insecure_channel(self.address, self._options)
            if secure is None
            else self._grpc.secure_channel(self.address, secure, self._options)
        )
        self._stubs = _make_stubs(self._channel)

    def _follow_rotation(self) -> None:
        """A new channel where certificates have changed. Earlier ones' calls go on; gRPC leaves idle connections."""
        secure = self._certificates.renewed()
        if secure is not None:
            self._retired.append(self._channel)
            self._connect(secure)

    @property
    def _arguments(self) -> dict[str, Any]:
        return traced({"timeout": self._timeout, "metadata": self._metadata.newest()})

    def _send(self, method: str, message: Any) -> Any:
        """gRPC's call object, or its reply, of "Service/Method"."""
        return self._stub(method)(message, **self._arguments)

    def _open(self, method: str, message: Any) -> Any:
        """gRPC's call object of a stream that lasts as long as its caller wants."""
        return self._stub(method)(message, metadata=self._arguments["metadata"])

    def _stub(self, method: str) -> Any:
        self._follow_rotation()
        service, _, name = method.partition("/")
        return getattr(self._stubs[service], name)


def _make_stubs(channel: Any) -> dict[str, Any]:
    """The generated stubs, which are untyped, by service; health's messages go as bytes."""
    return {
        "CompilerService": compiler_pb2_grpc.CompilerServiceStub(channel),  # type: ignore[no-untyped-call]
        "RegistryService": registry_pb2_grpc.RegistryServiceStub(channel),  # type: ignore[no-untyped-call]
        "TokenizerService": tokenizer_pb2_grpc.TokenizerServiceStub(channel),  # type: ignore[no-untyped-call]
        "grpc.health.v1.Health": SimpleNamespace(Check=channel.unary_unary("/grpc.health.v1.Health/Check")),
    }
