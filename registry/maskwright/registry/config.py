"""What a server can be told, with its defaults. Values are checked when the object is made.

`maskwright.registry.settings` reads it from a file and the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from maskwright.compiler.options import PROFILES, Limits

from . import DEFAULT_ADDRESS
from .compiling.children import PoolLimits
from .security.authentication import CertificateRule
from .security.quotas import QuotaLimits
from .security.tls import TlsFiles

DEFAULT_PROFILES: Mapping[str, Limits] = {name: Limits.profile(name) for name in PROFILES}
_LOOPBACK = ("127.", "localhost:", "[::1]:")


@dataclass(frozen=True)
class Authentication:
    """mode: "open", where everyone may do everything, or "required". certificates: whom TLS's names stand for."""

    mode: Literal["open", "required"] = "open"
    certificates: tuple[CertificateRule, ...] = ()


@dataclass(frozen=True)
class Telemetry:
    """metrics_address: host:port of Prometheus's endpoint, "" for none. traces: "log" to standard error, "otlp" by
    opentelemetry-exporter-otlp and its environment. log_format: for people or machines."""

    metrics_address: str = ""
    traces: Literal["none", "log", "otlp"] = "none"
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __post_init__(self) -> None:
        host, colon, port = self.metrics_address.rpartition(":")
        if self.metrics_address and not (host and colon and port.isdecimal()):
            raise ValueError(f"metrics_address must be host:port, not {self.metrics_address!r}")


@dataclass(frozen=True)
class Signing:
    """key: PEM file of an Ed25519 key with which the server signs what it compiles; "" for none."""

    key: str = ""


@dataclass(frozen=True)
class LabSettings:
    """address: host:port of the lab's page, "" for none. hosts: names that browsers may call it by, beside those of
    loopback; none given on another address than loopback: any, since there every caller needs a token."""

    address: str = ""
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        host, colon, port = self.address.rpartition(":")
        if self.address and not (host and colon and port.isdecimal()):
            raise ValueError(f"address must be host:port, not {self.address!r}")

    @property
    def on_loopback(self) -> bool:
        return self.address.startswith(_LOOPBACK)


@dataclass(frozen=True)
class ServerConfig:
    """Configuration of one server.

    address: host:port to listen on; port 0 takes a free one.
    data: folder of the index and the workspace, and of the store unless `store` is given.
    store: where the blobs are, as `store.locate.open_store` reads it.
    pool: compiling processes, queue, memory.
    profiles: limits by name; "default" must be among them.
    tls: certificates; None serves without encryption.
    authentication, quotas, telemetry, signing, lab: as there.
    insecure: serve others than this host without TLS, where something in front of the server encrypts.
    max_message_bytes: largest message read or sent. A source must fit in one.
    max_tokenizer_bytes: largest tokenizer file taken.
    chunk_bytes: data in one message of Fetch.
    hot_bytes: memory for blobs that were fetched lately.
    follow_seconds: how often other replicas' changes are looked for.
    drain_seconds: how long calls in flight may go on once the server was told to stop.
    """

    address: str = DEFAULT_ADDRESS
    data: Path = Path("maskwright-data")
    store: str = ""
    pool: PoolLimits = field(default_factory=lambda: PoolLimits(children=max(1, (os.cpu_count() or 2) // 2)))
    profiles: Mapping[str, Limits] = field(default_factory=lambda: dict(DEFAULT_PROFILES))
    tls: TlsFiles | None = None
    authentication: Authentication = field(default_factory=Authentication)
    quotas: QuotaLimits = field(default_factory=QuotaLimits)
    telemetry: Telemetry = field(default_factory=Telemetry)
    signing: Signing = field(default_factory=Signing)
    lab: LabSettings = field(default_factory=LabSettings)
    insecure: bool = False
    max_message_bytes: int = 16 << 20
    max_tokenizer_bytes: int = 256 << 20
    chunk_bytes: int = 1 << 20
    hot_bytes: int = 256 << 20
    follow_seconds: float = 1.0
    drain_seconds: float = 20.0

    def __post_init__(self) -> None:
        if "default" not in self.profiles:
            raise ValueError("profiles must hold 'default'")
        if ":" not in self.address:
            raise ValueError(f"address must be host:port, not {self.address!r}")
        for name in ("max_message_bytes", "max_tokenizer_bytes", "chunk_bytes"):
            if getattr(self, name) < 1024:
                raise ValueError(f"{name} must be at least 1024, not {getattr(self, name)}")
        if self.chunk_bytes > self.max_message_bytes - 1024:
            raise ValueError("chunk_bytes must leave 1024 bytes of max_message_bytes")
        if self.pool.children < 1 or self.pool.queue < 0 or self.drain_seconds < 0:
            raise ValueError("children must be at least 1, queue and drain_seconds not negative")
        if self.follow_seconds <= 0:
            raise ValueError(f"follow_seconds must be positive, not {self.follow_seconds:g}")
        self._check_exposure()

    @property
    def location(self) -> str:
        """Of the store, as `open_store` reads it."""
        return self.store or f"file:{self.data / 'store'}"

    def _check_exposure(self) -> None:
        """Nothing is open to other hosts by oversight."""
        if self.authentication.certificates and not (self.tls and self.tls.require_client):
            # gRPC asks clients for a certificate only where it insists on one.
            raise ValueError("authentication.certificates needs tls.require_client")
        if self.tls is None and not self.insecure and not self.address.startswith(_LOOPBACK):
            raise ValueError(f"{self.address} isn't this host's own: give tls, or say insecure = true")
        if self.lab.address and not self.lab.on_loopback:
            place = f"lab.address {self.lab.address} isn't this host's own"
            if self.authentication.mode != "required":
                raise ValueError(f"{place}: require authentication")
            if self.tls is None and not self.insecure:
                raise ValueError(f"{place}: give tls, or say insecure = true")
