"""TLS with certificates that are read again when their files change, for gRPC and for the lab's page.

At each handshake the files' times are looked at (`RotatedFiles`), and certificate and key must belong together. Open
connections go on with what they began with. The page's handshakes take the newest context in the call-back that TLS has
for server names (RFC 6066), which OpenSSL makes without a name too.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from maskwright.workers.certificates import load_authority, load_pair
from maskwright.workers.rotated_files import RotatedFiles


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
    """The files for HTTPS. Raises OSError, ssl.SSLError for files that can't be used."""
    rotated = RotatedFiles("certificates", files.paths, lambda: _context(files))

    def take_newest(connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        connection.context = rotated.newest()

    context = _context(files)
    context.sni_callback = take_newest
    return context


def grpc_credentials(files: TlsFiles) -> Any:
    """gRPC's server credentials. Raises OSError, ssl.SSLError for files that can't be used."""
    rotated = RotatedFiles("certificates", files.paths, lambda: _grpc_configuration(files))
    return grpc.dynamic_ssl_server_credentials(rotated.newest(), rotated.renewed, files.require_client)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, files.certificate, files.key)
    if files.client_authority:
        load_authority(context, files.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
        # A session that's resumed isn't verified: it would let in whose authority was taken away.
        context.minimum_version, context.num_tickets = ssl.TLSVersion.TLSv1_3, 0
    return context


def _grpc_configuration(files: TlsFiles) -> Any:
    _context(files)  # gRPC would take what can't be used
    roots = Path(files.client_authority).read_bytes() if files.client_authority else None
    pair = [(Path(files.key).read_bytes(), Path(files.certificate).read_bytes())]
    return grpc.ssl_server_certificate_configuration(pair, roots)
