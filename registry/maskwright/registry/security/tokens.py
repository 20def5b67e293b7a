"""Bearer tokens. The registry never holds one: the journal keeps its SHA-256.

    mwt_<id>_<secret>     id: 12 hexadecimal digits, known; secret: 256 random bits in base64url

A plain digest is enough for a secret of 256 random bits: there's nothing to guess that salt or a slow hash
would make slower. A token is valid at every replica within its `follow_seconds` of being made, and no longer
within as much of being removed.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Sequence

from ..faults import Reason, RegistryError, invalid_request
from ..names import Entry, Journal, Token
from ..names.journal import Decision
from .callers import SCOPES, Caller

_TOKEN = re.compile(r"mwt_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


def create_token(
    journal: Journal,
    caller: str,
    scopes: Sequence[str],
    namespaces: Sequence[str],
    by: str,
    lifetime_seconds: float | None = None,
) -> tuple[str, Entry]:
    """(the token, which can't be had again; its entry). Raises RegistryError INVALID_REQUEST, SwapUnsupported."""
    if not _NAME.fullmatch(caller):
        raise invalid_request("caller", "must be at most 100 of A-Z a-z 0-9 . _ @ -")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise invalid_request("scopes", f"{', '.join(unknown) or 'none'}; there are {', '.join(SCOPES)}")
    if lifetime_seconds is not None and not math.isfinite(lifetime_seconds):
        raise invalid_request("lifetime_seconds", f"{lifetime_seconds} is no time")  # it would never be over
    id_ = secrets.token_hex(6)
    token = f"mwt_{id_}_{secrets.token_urlsafe(32)}"
    fields = {
        "id": id_,
        "token_hash": _hash(token),
        "scopes": sorted(set(scopes)),
        "namespaces": sorted(set(namespaces)),
        "caller": caller,
        "expires": None if lifetime_seconds is None else time.time() + lifetime_seconds,
    }
    return token, journal.change(lambda _: Decision("token", fields), by)


def remove_token(journal: Journal, id_: str, by: str) -> Entry:
    """Raises RegistryError INVALID_REQUEST for an id that there isn't."""

    def decide(state: object) -> Decision:
        if journal.token(id_) is None:
            raise RegistryError(Reason.INVALID_REQUEST, f"no token {id_!r}", {"field": "id"})
        return Decision("untoken", {"id": id_})

    return journal.change(decide, by)


def caller_of_token(journal: Journal, token: str) -> Caller:
    """Whom a token stands for. Raises RegistryError UNAUTHENTICATED, which doesn't tell what was wrong with it."""
    match = _TOKEN.fullmatch(token)
    known = journal.token(match[1]) if match else None
    if known is None or not hmac.compare_digest(_hash(token), known.token_hash) or _is_over(known):
        raise RegistryError(Reason.UNAUTHENTICATED, "no valid token", {})
    return Caller(known.caller, frozenset(known.scopes), known.namespaces)


def _is_over(token: Token) -> bool:
    return token.expires is not None and time.time() >= token.expires


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
