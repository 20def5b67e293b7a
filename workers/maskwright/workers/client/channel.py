"""How the client reaches a registry: plain or TLS, with a certificate of its own, with a bearer token.

A token over a connection that isn't encrypted can be read on the way, so it's refused except to this host.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from maskwright.workers.certificates import load_authority, load_pair
from maskwright.workers.rotated_files import RotatedFiles

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
    """Paths of PEM files, and a token. Files that change are read again: a client needn't be made anew.

    token, or token_file: its file. tls: encrypt. authority: certificates to trust instead of the system's. certificate
    and key: of this client, for a server that asks for one. server_name: the name in the server's certificate, where it
    isn't the address.
    """

    token: str = ""
    tls: bool = False
    authority: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    token_file: str = ""

    def __repr__(self) -> str:
        return f"Credentials(tls={self.tls}, token={'given' if self.token or self.token_file else 'none'})"

    @classmethod
    def from_environment(cls) -> Credentials:
        """MASKWRIGHT_TOKEN or MASKWRIGHT_TOKEN_FILE, MASKWRIGHT_TLS=1, MASKWRIGHT_TLS_AUTHORITY, _CERTIFICATE, _KEY,
        _SERVER_NAME."""
        get = os.environ.get
        names = ("authority", "certificate", "key", "server_name")
        paths = {name: get(f"MASKWRIGHT_TLS_{name.upper()}", "") for name in names}
        tls = get("MASKWRIGHT_TLS", "") in ("1", "true") or any(paths.values())
        token = get("MASKWRIGHT_TOKEN", "")
        return cls(token, tls, **paths, token_file="" if token else get("MASKWRIGHT_TOKEN_FILE", ""))


def channel_options(credentials: Credentials) -> list[tuple[str, Any]]:
    name = [("grpc.ssl_target_name_override", credentials.server_name)] if credentials.server_name else []
    return [*_OPTIONS, *name]


def rotated_credentials(address: str, credentials: Credentials) -> RotatedFiles[Any]:
    """gRPC's channel credentials, None for a plain channel; made again when their files change.

    Raises ValueError, OSError (ssl.SSLError where certificate and key don't belong together).
    """
    if not credentials.tls and (credentials.token or credentials.token_file) and not address.startswith(_LOOPBACK):
        raise ValueError(f"a token isn't sent to {address} without TLS")
    files = (credentials.authority, credentials.key, credentials.certificate) if credentials.tls else ()

    def load() -> Any:
        if not credentials.tls:
            return None
        _check(credentials)  # gRPC would take what can't be used
        return grpc.ssl_channel_credentials(*(Path(f).read_bytes() if f else None for f in files))

    return RotatedFiles("certificates", filter(None, files), load)


def _check(credentials: Credentials) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if credentials.certificate or credentials.key:
        if not (credentials.certificate and credentials.key):
            raise ValueError("a client's certificate and its key need each other")
        load_pair(context, credentials.certificate, credentials.key)
    if credentials.authority:
        load_authority(context, credentials.authority)


def rotated_metadata(credentials: Credentials) -> RotatedFiles[tuple[tuple[str, str], ...]]:
    """What goes with every call; made again when the token's file changes. Raises OSError, ValueError."""
    file = credentials.token_file

    def load() -> tuple[tuple[str, str], ...]:
        token = credentials.token or (Path(file).read_text().strip() if file else "")
        if (file and not token) or not (token.isascii() and token.isprintable()):
            raise ValueError(f"{file or 'the token'} is no token: one line of ASCII")
        return (("authorization", f"Bearer {token}"),) if token else ()

    return RotatedFiles("tokens", filter(None, (file,)), load)
