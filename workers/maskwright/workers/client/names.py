"""Names: publish, promote, roll back, pin, revoke, list, watch, lease.

A change of names that's tried again must not happen twice, so each carries a request id, a random one unless the
caller gives it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.v1 import registry_pb2
from maskwright.workers.client.calls import Calls, Steps, Stream
from maskwright.workers.client.messages import message

_KINDS = {number: name.removeprefix("KIND_").lower() for name, number in registry_pb2.Change.Kind.items()}


@dataclass(frozen=True)
class NamedArtifact:
    fingerprint: str
    key: str
    hash: str
    size: int


@dataclass(frozen=True)
class NamedVersion:
    """`published_at` is for people: ISO 8601 by the server's clock. `channels` point to it."""

    name: str
    version: int
    artifacts: tuple[NamedArtifact, ...]
    note: str
    published_at: str
    published_by: str
    revision: int
    pinned: bool
    channels: tuple[str, ...]
    revoked: bool


@dataclass(frozen=True)
class NameSummary:
    """`channels`: name to version."""

    name: str
    latest: int
    channels: dict[str, int]


@dataclass(frozen=True)
class Change:
    """One revision. kind: "publish", "promote", "rollback", "pin", "retire" (then `versions`), "revoke", "collect"."""

    revision: int
    kind: str
    name: str
    channel: str
    version: int
    artifact_hash: str
    reason: str
    at: str
    by: str
    versions: tuple[int, ...] = ()


class NameCalls(Calls):
    """Those of `RegistryCalls` for names."""

    def publish(self, name: str, artifact_keys: Sequence[str], note: str = "", request_id: str = "") -> Steps[int]:
        """Adds a version of a name; returns its number. Raises CallFailed, ServiceUnavailable."""
        request = message(
            registry_pb2.PublishRequest,
            name=name,
            artifact_keys=artifact_keys,
            note=note,
            request_id=request_id or _new_id(),
        )
        return int((yield from self.ask("RegistryService/Publish", request)).version)

    def promote(
        self, name: str, channel: str, version: int, *, expected: int | None = None, request_id: str = ""
    ) -> Steps[int]:
        """Points a channel to a version, with `expected` only from there; returns the revision."""
        request = message(
            registry_pb2.PromoteRequest,
            name=name,
            channel=channel,
            version=version,
            expected_version=expected,
            request_id=request_id or _new_id(),
        )
        return int((yield from self.ask("RegistryService/Promote", request)).revision)

    def rollback(
        self,
        name: str,
        channel: str,
        *,
        to: int | None = None,
        expected: int | None = None,
        request_id: str = "",
    ) -> Steps[int]:
        """Points a channel to what it pointed to before; returns that version."""
        request = message(
            registry_pb2.RollbackRequest,
            name=name,
            channel=channel,
            to_version=to,
            expected_version=expected,
            request_id=request_id or _new_id(),
        )
        return int((yield from self.ask("RegistryService/Rollback", request)).version)

    def pin(self, name: str, version: int, pinned: bool = True) -> Steps[int]:
        """Keeps a version from retention, or no longer; returns the revision."""
        request = message(registry_pb2.PinRequest, name=name, version=version, pinned=pinned, request_id=_new_id())
        return int((yield from self.ask("RegistryService/Pin", request)).revision)

    def retire(self, name: str, versions: Sequence[int], request_id: str = "") -> Steps[int]:
        """Drops versions that aren't in use, for good; returns the revision."""
        request = message(registry_pb2.RetireRequest, name=name, versions=versions, request_id=request_id or _new_id())
        return int((yield from self.ask("RegistryService/Retire", request)).revision)

    def revoke(self, artifact_hash: str, reason: str) -> Steps[int]:
        """Stops an artifact being served, for good; returns the revision."""
        request = message(registry_pb2.RevokeRequest, artifact_hash=artifact_hash, reason=reason, request_id=_new_id())
        return int((yield from self.ask("RegistryService/Revoke", request)).revision)

    def names(self, prefix: str = "") -> Steps[list[NameSummary]]:
        """All names that begin so, in order."""
        request = message(registry_pb2.ListNamesRequest, prefix=prefix, page_size=1000)
        replies = yield from self.ask_pages("RegistryService/ListNames", request)
        return [
            NameSummary(n.name, n.latest_version, {c.channel: c.version for c in n.channels})
            for reply in replies
            for n in reply.names
        ]

    def versions(self, name: str) -> Steps[list[NamedVersion]]:
        """A name's versions, latest first."""
        request = message(registry_pb2.ListVersionsRequest, name=name, page_size=1000)
        replies = yield from self.ask_pages("RegistryService/ListVersions", request)
        return [_version(v) for reply in replies for v in reply.versions]

    def watch(self, after: int = 0, names: Sequence[str] = ()) -> Stream[tuple[int, Change | None]]:
        """(revision, change) pairs after a revision; without a change the caller has all up to the revision.

        Ends when the server drains; raises ServiceUnavailable when it's gone. Go on with the last revision.
        """
        request = message(registry_pb2.WatchRequest, after_revision=after, names=names)
        return Stream("RegistryService/Watch", request, lambda told: (told.revision, _change(told)))

    def lease(self, artifact_hashes: Sequence[str], seconds: int, lease_id: str = "") -> Steps[str]:
        """Keeps artifacts from garbage collection; returns the lease's id, to renew it with."""
        request = message(
            registry_pb2.LeaseRequest, lease_id=lease_id or _new_id(), artifact_hashes=artifact_hashes, seconds=seconds
        )
        yield from self.ask("RegistryService/Lease", request)
        return str(request.lease_id)


def named_request(name: str, version: int | None, channel: str, fingerprint: str, min_revision: int) -> dict[str, Any]:
    """The fields of a ResolveRequest by name. Takes `name@7` and `name:channel` too. Raises ValueError."""
    if "@" in name:
        name, _, number = name.partition("@")
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{name}@{number}: the version isn't a number")
        version = int(number)
    elif ":" in name:
        name, _, channel = name.partition(":")
    if version is not None and channel:
        raise ValueError("a version or a channel, not both")
    at: dict[str, Any] = {} if version is None else {"version": version}
    if channel:
        at = {"channel": channel}
    named = message(registry_pb2.NamedVersion, name=name, **at)
    return {"named": named, "tokenizer_fingerprint": fingerprint, "min_revision": min_revision}


def _change(message: registry_pb2.WatchResponse) -> Change | None:
    if not message.HasField("change"):
        return None
    c = message.change
    kind = _KINDS.get(c.kind, "unspecified")
    versions = tuple(c.versions)
    return Change(c.revision, kind, c.name, c.channel, c.version, c.artifact_hash, c.reason, c.at, c.by, versions)


def _version(v: registry_pb2.Version) -> NamedVersion:
    artifacts = tuple(
        NamedArtifact(a.tokenizer_fingerprint, a.artifact_key, a.artifact.hash, a.artifact.size_bytes)
        for a in v.artifacts
    )
    return NamedVersion(
        v.name,
        v.version,
        artifacts,
        v.note,
        v.published_at,
        v.published_by,
        v.revision,
        v.pinned,
        tuple(v.channels),
        v.revoked,
    )


def _new_id() -> str:
    return secrets.token_hex(16)
