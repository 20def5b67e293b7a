"""What can be done to names, each as a decision on the journal's state.

    publish   a new version of artifacts that the catalog holds and nobody revoked
    promote   a channel to a version; with `expected`, only from there
    rollback  a channel to the latest version before that may still be served, or to a given one of them
    pin       keep a version from retention
    retire    drop versions that no channel points to or could be rolled back to, and that aren't pinned
    revoke    an artifact, everywhere and for good

Every method returns the entry that did it; with a request id a retry returns the first try's. Blocking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..catalog import Catalog
from ..faults import Reason, RegistryError, invalid_request
from .journal import Decision, Journal
from .state import Artifact, Channel, Entry, Name, State, Version, check_channel, check_name

MAX_VERSIONS = 2000
MAX_ARTIFACTS = 64
MAX_NOTE = 500


@dataclass(frozen=True)
class Author:
    """Who asks, and under which request id."""

    caller: str = "anonymous"
    request_id: str = ""


class Changes:
    """Changes of one journal, over one catalog. Safe to share between threads."""

    def __init__(self, journal: Journal, catalog: Catalog) -> None:
        self._journal, self._catalog = journal, catalog

    def publish(self, name: str, artifact_keys: Sequence[str], note: str, author: Author) -> Entry:
        """Raises RegistryError UNKNOWN_ARTIFACT, REVOKED, TOO_MANY_VERSIONS, INVALID_REQUEST."""
        name = check_name(name)
        if len(note) > MAX_NOTE:
            raise invalid_request("note", f"at most {MAX_NOTE} characters")
        artifacts = self._artifacts(artifact_keys)
        fields = {"name": name, "artifacts": [asdict(a) for a in artifacts], "note": note}

        def decide(state: State) -> Decision:
            for artifact in artifacts:
                check_served(state, artifact.artifact_hash)
                self._check_kept(state, artifact.artifact_key)
            known = state.names.get(name, Name())
            if len(known.versions) >= MAX_VERSIONS:
                message, limit = f"{name} has {MAX_VERSIONS} versions; retire some", {"limit": str(MAX_VERSIONS)}
                raise RegistryError(Reason.TOO_MANY_VERSIONS, message, limit)
            return Decision("publish", {**fields, "version": known.latest + 1})

        return self._change("publish", decide, fields, author)

    def promote(
        self, name: str, channel: str, version: int, author: Author, expected: int | None = None
    ) -> Entry:
        """`expected`: the version that the channel must point to, 0 for a channel that must not be there yet.

        Raises RegistryError UNKNOWN_NAME, UNKNOWN_VERSION, REVOKED, CHANNEL_MOVED.
        """
        name = check_name(name)
        fields = {"name": name, "channel": check_channel(channel), "version": version}

        def decide(state: State) -> Decision:
            known = find_name(state, name)
            check_whole(state, find_version(known, name, version))
            _check_expected(known.channels.get(channel), expected)
            return Decision("promote", fields)

        return self._change("promote", decide, fields, author)

    def rollback(
        self, name: str, channel: str, author: Author, to: int | None = None, expected: int | None = None
    ) -> Entry:
        """Raises RegistryError UNKNOWN_NAME, UNKNOWN_CHANNEL, NO_EARLIER_VERSION, CHANNEL_MOVED."""
        name = check_name(name)
        fields = {"name": name, "channel": check_channel(channel)}

        def decide(state: State) -> Decision:
            known = find_name(state, name)
            pointed = find_channel(known, name, channel)
            _check_expected(pointed, expected)
            servable = [v for v in pointed.history if _is_servable(state, known, v) and to in (None, v)]
            if not servable:
                raise RegistryError(
                    Reason.NO_EARLIER_VERSION,
                    f"{channel} of {name} can't be rolled back{'' if to is None else f' to {to}'}",
                    {"name": name, "channel": channel},
                )
            return Decision("rollback", {**fields, "version": servable[-1]})

        return self._change("rollback", decide, fields, author)

    def pin(self, name: str, version: int, pinned: bool, author: Author) -> Entry:
        """Raises RegistryError UNKNOWN_NAME, UNKNOWN_VERSION."""
        name = check_name(name)
        fields = {"name": name, "version": version, "pinned": pinned}

        def decide(state: State) -> Decision:
            find_version(find_name(state, name), name, version)
            return Decision("pin", fields)

        return self._change("pin", decide, fields, author)

    def retire(self, name: str, versions: Sequence[int], author: Author) -> Entry:
        """Raises RegistryError UNKNOWN_NAME, UNKNOWN_VERSION, VERSION_IN_USE."""
        name = check_name(name)
        if not 0 < len(versions) <= MAX_VERSIONS:
            raise invalid_request("versions", f"from 1 to {MAX_VERSIONS}")
        fields = {"name": name, "versions": sorted(set(versions))}

        def decide(state: State) -> Decision:
            known = find_name(state, name)
            used = versions_in_use(known)
            for version in versions:
                if find_version(known, name, version).pinned or version in used:
                    message = f"{name}@{version} is pinned, or a channel points or can be rolled back to it"
                    raise RegistryError(Reason.VERSION_IN_USE, message, {"version": str(version)})
            return Decision("retire", fields)

        return self._change("retire", decide, fields, author)

    def revoke(self, artifact_hash: str, why: str, author: Author) -> Entry:
        """Of an artifact that's revoked the entry that did it. Raises RegistryError UNKNOWN_ARTIFACT."""
        if self._catalog.artifact_by_hash(artifact_hash) is None:
            message = f"no artifact {artifact_hash!r}"
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, message, {"artifact": artifact_hash})
        self._journal.catch_up()
        known = self._journal.read(lambda state: state.revoked.get(artifact_hash))
        fields = {"artifact_hash": artifact_hash, "reason": why[:MAX_NOTE]}
        return known or self._change("revoke", lambda _: Decision("revoke", fields), fields, author)

    def _artifacts(self, keys: Sequence[str]) -> list[Artifact]:
        if not 0 < len(keys) <= MAX_ARTIFACTS:
            raise invalid_request("artifact_keys", f"from 1 to {MAX_ARTIFACTS}")
        found: dict[str, Artifact] = {}
        for key in keys:
            record = self._catalog.artifact(key)
            if record is None:
                raise RegistryError(Reason.UNKNOWN_ARTIFACT, f"no artifact {key!r}", {"artifact": key})
            if record.fingerprint in found:
                raise invalid_request("artifact_keys", f"two are for the vocabulary {record.fingerprint}")
            found[record.fingerprint] = Artifact(
                record.fingerprint, key, record.artifact_hash, record.artifact_size
            )
        return [found[fingerprint] for fingerprint in sorted(found)]

    def _check_kept(self, state: State, key: str) -> None:
        """The record itself, not the index's copy: another replica may have collected it."""
        if key in state.collecting or self._catalog.content.find_record("artifacts", key) is None:
            message = f"artifact {key!r} was collected as garbage; compile it again"
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, message, {"artifact": key})

    def _change(
        self, kind: str, decide: Callable[[State], Decision], fields: Mapping[str, Any], author: Author
    ) -> Entry:
        entry = self._journal.change(decide, author.caller, author.request_id)
        if entry.kind != kind or any(entry.fields.get(name) != value for name, value in fields.items()):
            raise RegistryError(
                Reason.REQUEST_ID_REUSED,
                f"request id {author.request_id!r} was used for another request",
                {"request_id": author.request_id},
            )
        return entry


def find_name(state: State, name: str) -> Name:
    known = state.names.get(name)
    if known is None:
        raise RegistryError(Reason.UNKNOWN_NAME, f"no name {name!r}", {"name": name})
    return known


def find_version(known: Name, name: str, version: int) -> Version:
    found = known.versions.get(version)
    if found is None:
        message = f"{name} has no version {version}"
        raise RegistryError(Reason.UNKNOWN_VERSION, message, {"name": name, "version": str(version)})
    return found


def find_channel(known: Name, name: str, channel: str) -> Channel:
    found = known.channels.get(channel)
    if found is None:
        message = f"{name} has no channel {channel!r}"
        raise RegistryError(Reason.UNKNOWN_CHANNEL, message, {"name": name, "channel": channel})
    return found


def check_served(state: State, artifact_hash: str) -> None:
    """Raises RegistryError REVOKED."""
    entry = state.revoked.get(artifact_hash)
    if entry is not None:
        why = str(entry.fields["reason"])
        message = f"artifact {artifact_hash} was revoked: {why}"
        raise RegistryError(Reason.REVOKED, message, {"artifact_hash": artifact_hash, "why": why})


def check_whole(state: State, version: Version) -> None:
    """Raises RegistryError REVOKED where any artifact of a version is."""
    for artifact in version.artifacts:
        check_served(state, artifact.artifact_hash)


def versions_in_use(known: Name) -> set[int]:
    """Versions that a channel points to, or would if it were rolled back once."""
    pointed = {c.version for c in known.channels.values()}
    return pointed | {c.history[-1] for c in known.channels.values() if c.history}


def _is_servable(state: State, known: Name, version: int) -> bool:
    found = known.versions.get(version)
    return found is not None and not any(a.artifact_hash in state.revoked for a in found.artifacts)


def _check_expected(pointed: Channel | None, expected: int | None) -> None:
    found = 0 if pointed is None else pointed.version
    if expected is not None and found != expected:
        raise RegistryError(
            Reason.CHANNEL_MOVED,
            f"the channel points to version {found}, not {expected}",
            {"expected": str(expected), "found": str(found)},
        )
