"""What the journal's entries add up to. No IO, no clock: every replica that applied the same entries agrees.

An entry is a fact about one revision; `State.apply` is the only thing that changes a state:

    kind       fields                                   effect
    publish    name, version, artifacts, note           the name has one version more
    promote    name, channel, version                   the channel points to the version; the last one is remembered
    rollback   name, channel, version                   the same, and what it comes from is forgotten
    pin        name, version, pinned                    retention keeps the version, or no longer
    retire     name, versions                           the versions are gone; their numbers aren't used again
    revoke     artifact_hash, reason                    the artifact isn't served any more, anywhere; final
    collect    artifact_keys                            the artifacts' records are about to be removed: not to be named
    collected  artifact_keys                            they're gone
    token      id, token_hash, scopes, namespaces, …    a bearer token is valid
    untoken    id                                       it isn't any more

An entry of a kind that isn't known (of a later release) only moves the revision.

A name is `NAMESPACE/NAME`, or `NAME` in the namespace `default`. Versions count from 1 and only grow.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..faults import invalid_request

Part: TypeAlias = tuple[str | int, ...]
"""What `rows` calls a part of a state."""
NAME = re.compile(r"(?:[a-z0-9][a-z0-9._-]{0,62}/)?[a-z0-9][a-z0-9._-]{0,99}")
_CHANNEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")
DEFAULT_NAMESPACE = "default"
KEPT_REQUESTS = 4096
"""How many entries back a request id is known."""
KEPT_HISTORY = 16
"""How far a channel can be rolled back."""


def check_name(name: str) -> str:
    """The full form of a name, with its namespace. Raises RegistryError INVALID_REQUEST."""
    if not NAME.fullmatch(name):
        raise invalid_request("name", "must be NAME or NAMESPACE/NAME, of a-z 0-9 . _ -")
    return name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"


def check_channel(channel: str) -> str:
    if not _CHANNEL.fullmatch(channel):
        raise invalid_request("channel", "must be a letter, then at most 31 of a-z 0-9 _ -")
    return channel


def namespace_of(name: str) -> str:
    return name.partition("/")[0]


@dataclass(frozen=True)
class Entry:
    """One change. `at` is for people: ISO 8601 by the writer's clock; order is by revision alone."""

    revision: int
    kind: str
    at: str
    by: str
    fields: Mapping[str, Any]
    request_id: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "fields": dict(self.fields)}


@dataclass(frozen=True)
class Artifact:
    """What a version holds for one vocabulary."""

    fingerprint: str
    artifact_key: str
    artifact_hash: str
    artifact_size: int


@dataclass(frozen=True)
class Version:
    name: str
    version: int
    artifacts: tuple[Artifact, ...]
    note: str
    at: str
    by: str
    revision: int
    pinned: bool = False


@dataclass(frozen=True)
class Channel:
    """`history`: the versions it pointed to before, latest last."""

    version: int
    revision: int
    history: tuple[int, ...] = ()


@dataclass(frozen=True)
class Token:
    """A bearer token: only its SHA-256 is known. `namespaces`: patterns; empty means all. `expires`: Unix time."""

    id: str
    token_hash: str
    scopes: tuple[str, ...]
    namespaces: tuple[str, ...]
    caller: str
    expires: float | None = None


@dataclass
class Name:
    latest: int = 0
    versions: dict[int, Version] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)


class State:
    """The fold. `touched`: parts that were changed since somebody emptied it.

    Not safe to share between threads while it's applied to; `Journal` holds the lock.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.names: dict[str, Name] = {}
        self.revoked: dict[str, Entry] = {}
        self.collecting: set[str] = set()
        self.tokens: dict[str, Token] = {}
        self.requests: OrderedDict[str, Entry] = OrderedDict()
        self.touched: set[Part] = set()

    def apply(self, entry: Entry) -> None:
        """Takes the entry that follows. Raises ValueError for another."""
        if entry.revision != self.revision + 1:
            raise ValueError(f"revision {entry.revision} doesn't follow {self.revision}")
        effect = _EFFECTS.get(entry.kind)
        if effect is not None:
            effect(self, entry)
        if entry.request_id:
            self.requests[entry.request_id] = entry
            while len(self.requests) > KEPT_REQUESTS:
                self.requests.popitem(last=False)
        self.revision = entry.revision

    def _publish(self, entry: Entry) -> None:
        f = entry.fields
        artifacts = tuple(Artifact(**a) for a in f["artifacts"])
        name = self.names.setdefault(f["name"], Name())
        name.latest = f["version"]
        self.touched |= {("names", f["name"]), ("versions", f["name"], name.latest)}
        name.versions[name.latest] = Version(
            f["name"], name.latest, artifacts, f["note"], entry.at, entry.by, entry.revision
        )

    def _promote(self, entry: Entry) -> None:
        channels, channel = self._channels(entry)
        before = channels.get(channel)
        history = () if before is None else (*before.history, before.version)[-KEPT_HISTORY:]
        channels[channel] = Channel(entry.fields["version"], entry.revision, history)

    def _rollback(self, entry: Entry) -> None:
        channels, channel = self._channels(entry)
        version, history = entry.fields["version"], channels[channel].history
        last = max(n for n, v in enumerate(history) if v == version)
        channels[channel] = Channel(version, entry.revision, history[:last])

    def _channels(self, entry: Entry) -> tuple[dict[str, Channel], str]:
        self.touched.add(("channels", entry.fields["name"], entry.fields["channel"]))
        return self.names[entry.fields["name"]].channels, entry.fields["channel"]

    def _pin(self, entry: Entry) -> None:
        versions = self.names[entry.fields["name"]].versions
        number = entry.fields["version"]
        self.touched.add(("versions", entry.fields["name"], number))
        versions[number] = Version(**{**vars(versions[number]), "pinned": entry.fields["pinned"]})

    def _retire(self, entry: Entry) -> None:
        name = self.names[entry.fields["name"]]
        for number in entry.fields["versions"]:
            name.versions.pop(number, None)
            self.touched.add(("versions", entry.fields["name"], number))

    def _revoke(self, entry: Entry) -> None:
        self.revoked.setdefault(entry.fields["artifact_hash"], entry)
        self.touched.add(("revocations", entry.fields["artifact_hash"]))

    def _collect(self, entry: Entry) -> None:
        self.collecting.update(entry.fields["artifact_keys"])
        self.touched.update(("collecting", key) for key in entry.fields["artifact_keys"])

    def _collected(self, entry: Entry) -> None:
        self.collecting.difference_update(entry.fields["artifact_keys"])
        self.touched.update(("collecting", key) for key in entry.fields["artifact_keys"])

    def _token(self, entry: Entry) -> None:
        f = dict(entry.fields)
        token = Token(**{**f, "scopes": tuple(f["scopes"]), "namespaces": tuple(f["namespaces"])})
        self.tokens[token.id] = token
        self.touched.add(("tokens", token.id))

    def _untoken(self, entry: Entry) -> None:
        self.tokens.pop(entry.fields["id"], None)
        self.touched.add(("tokens", entry.fields["id"]))


_EFFECTS = {
    "publish": State._publish,
    "promote": State._promote,
    "rollback": State._rollback,
    "pin": State._pin,
    "retire": State._retire,
    "revoke": State._revoke,
    "collect": State._collect,
    "collected": State._collected,
    "token": State._token,
    "untoken": State._untoken,
}
