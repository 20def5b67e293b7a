"""How the client reaches a registry: plain or TLS, with a certificate of its own, with a bearer token.

A token over a connection that isn't encrypted can be read on the way, so it's refused except to this host.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

MAX_MESSAGE = 64 << 20
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # A watch whose other end vanished without a word must not wait for ever.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]
_LOOPBACK = ("127.", "localhost:", "[::1]:", "unix:")


@dataclass(frozen=True)
class Credentials:
    """Paths of PEM files, and a token.

    tls: encrypt. authority: certificates to trust instead of the system's. certificate and key: of this client,
    for a server that asks for one. server_name: the name in the server's certificate, where it isn't the address.
    """

    token: str = ""
    tls: bool = False
    authority: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""

    def __repr__(self) -> str:
        return f"Credentials(tls={self.tls}, token={'given' if self.token else 'none'})"

    @classmethod
    def from_environment(cls) -> Credentials:
        """MASKWRIGHT_TOKEN or MASKWRIGHT_TOKEN_FILE, MASKWRIGHT_TLS=1, MASKWRIGHT_TLS_AUTHORITY, _CERTIFICATE, _KEY,
        _SERVER_NAME."""
        get = os.environ.get
        token, file = get("MASKWRIGHT_TOKEN", ""), get("MASKWRIGHT_TOKEN_FILE", "")
        names = ("authority", "certificate", "key", "server_name")
        paths = {name: get(f"MASKWRIGHT_TLS_{name.upper()}", "") for name in names}
        tls = get("MASKWRIGHT_TLS", "") in ("1", "true") or any(paths.values())
        return cls(token or (Path(file).read_text().strip() if file else ""), tls, **paths)


def channel_arguments(address: str, credentials: Credentials) -> tuple[Any, list[tuple[str, Any]]]:
    """(channel credentials or None for a plain channel, options). Raises ValueError, OSError."""
    if not credentials.tls:
        if credentials.token and not address.startswith(_LOOPBACK):
            raise ValueError(f"a token isn't sent to {address} without TLS")
        return None, list(_OPTIONS)
    files = (credentials.authority, credentials.key, credentials.certificate)
    parts = [Path(f).read_bytes() if f else None for f in files]
    name = [("grpc.ssl_target_name_override", credentials.server_name)] if credentials.server_name else []
    return grpc.ssl_channel_credentials(*parts), [*_OPTIONS, *name]


def metadata(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    """What goes with every call."""
    return (("authorization", f"Bearer {credentials.token}"),) if credentials.token else ()
