"""Certificates and keys from PEM files, checked before they're used; a fault names its file, as `ssl`'s own don't."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Raises OSError, ssl.SSLError (which is one), also where they don't belong together."""
    with _naming(certificate, key):
        context.load_cert_chain(certificate, key, password="")  # or it would ask the terminal


def load_authority(context: ssl.SSLContext, authority: str) -> None:
    """Raises OSError, ssl.SSLError."""
    with _naming(authority):
        context.load_verify_locations(authority)


@contextmanager
def _naming(*paths: str) -> Iterator[None]:
    """Which of them is missing or can't be read is told apart from what's in them."""
    for path in paths:
        with Path(path).open("rb"):
            pass
    try:
        yield
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise ssl.SSLError(error.errno or 0, f"{' and '.join(paths)}: {reason}") from error
