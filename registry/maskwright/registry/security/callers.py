"""A caller, and what it may do.

    read      resolve, fetch, list, watch, lease
    compile   compile, explain, precompile, register tokenizers
    publish   publish, promote, roll back, pin
    admin     revoke

A caller may have namespaces: patterns of shell style, of which one must match a name's. Artifacts aren't in a
namespace: whoever knows a digest and may read, may fetch it.

The caller of a call is in a context variable, set by the interceptor that authenticated it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..faults import Reason, RegistryError

SCOPES = ("read", "compile", "publish", "admin")


@dataclass(frozen=True)
class Caller:
    """`name` stands in the journal and counts for quotas. No namespaces means every one."""

    name: str
    scopes: frozenset[str] = frozenset(SCOPES)
    namespaces: tuple[str, ...] = ()

    def require(self, scope: str, namespace: str | None = None) -> None:
        """Raises RegistryError PERMISSION_DENIED."""
        if scope not in self.scopes:
            raise RegistryError(Reason.PERMISSION_DENIED, f"{self.name} lacks scope {scope!r}", {"scope": scope})
        if namespace is not None and not self.sees(namespace):
            message = f"{self.name} may not use namespace {namespace!r}"
            raise RegistryError(Reason.PERMISSION_DENIED, message, {"scope": scope, "namespace": namespace})

    def sees(self, namespace: str) -> bool:
        return not self.namespaces or any(fnmatchcase(namespace, p) for p in self.namespaces)


ANONYMOUS = Caller("anonymous")
_current: ContextVar[Caller] = ContextVar("caller", default=ANONYMOUS)


def current_caller() -> Caller:
    return _current.get()


@contextmanager
def using_caller(caller: Caller) -> Iterator[None]:
    mark = _current.set(caller)
    try:
        yield
    finally:
        with suppress(ValueError):  # a stream that was closed from another task's context
            _current.reset(mark)
