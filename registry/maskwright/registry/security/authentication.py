"""From a call to a caller: by bearer token, by client certificate, or nobody in particular.

    open         everyone is `anonymous` and may do everything; for loopback and trusted networks
    required     a token, or a certificate that a rule names; a token goes first

A certificate's names (common name and alternative names, as TLS verified them) are matched in shell style with the
rules, in order; the first that fits tells scopes and namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..faults import Reason, RegistryError
from ..names import Journal
from .callers import ANONYMOUS, SCOPES, Caller
from .tokens import caller_of_token

_NAME_FIELDS = ("x509_common_name", "x509_subject_alternative_name")
_BEARER = "bearer "


@dataclass(frozen=True)
class CertificateRule:
    name: str
    scopes: tuple[str, ...]
    namespaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.scopes) - set(SCOPES)
        if unknown or not self.scopes:
            raise ValueError(f"scopes must be among {', '.join(SCOPES)}")


class Authenticator:
    """Knows callers by the journal's tokens and by rules for certificates."""

    def __init__(self, journal: Journal, required: bool, rules: Sequence[CertificateRule] = ()) -> None:
        self._journal, self._required, self._rules = journal, required, rules

    def caller(
        self, metadata: Iterable[tuple[str, str | bytes]], peer: Mapping[str, Sequence[bytes]]
    ) -> Caller:
        """Raises RegistryError UNAUTHENTICATED. A token that's sent must be valid, required or not."""
        for name, value in metadata:
            if name == "authorization":
                text = value if isinstance(value, str) else value.decode("latin-1")
                token = text[len(_BEARER) :] if text.lower().startswith(_BEARER) else ""
                return caller_of_token(self._journal, token)
        found = self._by_certificate(peer)
        if found is None and self._required:
            raise RegistryError(Reason.UNAUTHENTICATED, "a token or a known certificate is needed", {})
        return found or ANONYMOUS

    def _by_certificate(self, peer: Mapping[str, Sequence[bytes]]) -> Caller | None:
        names = [v.decode("utf-8", "replace") for field in _NAME_FIELDS for v in peer.get(field, ())]
        for rule in self._rules:
            for name in names:
                if fnmatchcase(name, rule.name):
                    return Caller(name, frozenset(rule.scopes), rule.namespaces)
        return None
