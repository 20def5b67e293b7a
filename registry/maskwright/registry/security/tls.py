"""TLS with certificates that are read again when their files change.

At each handshake the files' times are looked at. New ones are taken only when certificate and key belong
together, so that a rotation caught halfway keeps the old pair; a fault is logged once for each change.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. client_authority: whose certificates of clients are believed. require_client: mutual TLS."""

    certificate: str
    key: str
    client_authority: str = ""
    require_client: bool = False

    def __post_init__(self) -> None:
        if self.require_client != bool(self.client_authority):
            raise ValueError("require_client and client_authority need each other")

    @property
    def paths(self) -> tuple[Path, ...]:
        given = (self.certificate, self.key, self.client_authority)
        return tuple(Path(p) for p in given if p)


def http_context(files: TlsFiles) -> ssl.SSLContext:
    """The same files for HTTPS. They are read once: a rotation needs a restart. Raises OSError, ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    if files.client_authority:
        context.load_verify_locations(files.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class ServerCertificates:
    """What gRPC asks at each handshake."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._times()

    def credentials(self) -> Any:
        """gRPC's server credentials. Raises OSError, ssl.SSLError for files that can't be used."""
        first = self._load()
        return grpc.dynamic_ssl_server_credentials(first, self._renewed, self._files.require_client)

    def _renewed(self) -> Any:
        """A new configuration, or None to go on with the last."""
        try:
            times = self._times()
            if times == self._seen:
                return None
            self._seen = times
            loaded = self._load()
        except (OSError, ValueError) as error:
            _log.warning("new certificates can't be used, the old ones stay: %s", error)
            return None
        _log.info("certificates were read again")
        return loaded

    def _load(self) -> Any:
        files = self._files
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        roots = Path(files.client_authority).read_bytes() if files.client_authority else None
        pair = [(Path(files.key).read_bytes(), Path(files.certificate).read_bytes())]
        return grpc.ssl_server_certificate_configuration(pair, roots)

    def _times(self) -> tuple[int, ...]:
        return tuple(p.stat().st_mtime_ns for p in self._files.paths)
