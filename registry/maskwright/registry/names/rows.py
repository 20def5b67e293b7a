"""A state as rows of the index, and back: what a replica starts from, without folding the whole journal again.

A *part* of a state is a table's name and a primary key: ("versions", "default/tool", 7). `State.touched` tells which
parts an entry changed; their rows are written with the entry, in one transaction, so that the rows of revision n are
always the fold of the first n entries. Tests hold the two against each other.

    names        name* | latest                    versions     name*, version* | artifacts (JSON), note, at, by, …
    channels     name*, channel* | version, …      revocations  artifact_hash* | revision
    tokens       id* | token_hash, scopes, …       collecting   artifact_key*
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ..index import FOLD_KEYS, Row
from .state import Artifact, Channel, Entry, Name, Part, State, Token, Version


def rows_of(state: State, parts: Iterable[Part]) -> Iterator[tuple[Part, Row | None]]:
    """Each part with its row; None for what there isn't any more."""
    for part in sorted(parts, key=str):
        fields = _fields(state, part)
        yield part, None if fields is None else {**dict(zip(FOLD_KEYS[str(part[0])], part[1:], strict=True)), **fields}


def parts_of(state: State) -> set[Part]:
    """All parts that a state has."""
    found: set[Part] = {("revocations", hash_) for hash_ in state.revoked}
    found |= {("tokens", id_) for id_ in state.tokens} | {("collecting", key) for key in state.collecting}
    for name, known in state.names.items():
        found.add(("names", name))
        found |= {("versions", name, number) for number in known.versions}
        found |= {("channels", name, channel) for channel in known.channels}
    return found


def state_of(
    revision: int, tables: Mapping[str, Iterable[Row]], revocations: Mapping[int, Entry], requests: Iterable[Entry]
) -> State:
    """The state of a revision. `revocations`: entries by revision; `requests`: those with request ids, oldest first.

    Raises ValueError, LookupError, TypeError for rows that aren't of a state.
    """
    state = State()
    state.revision = revision
    state.names = {row["name"]: Name(row["latest"]) for row in tables["names"]}
    for row in tables["versions"]:
        artifacts = tuple(Artifact(**a) for a in json.loads(row["artifacts"]))
        state.names[row["name"]].versions[row["version"]] = Version(
            row["name"],
            row["version"],
            artifacts,
            row["note"],
            row["at"],
            row["by"],
            row["revision"],
            bool(row["pinned"]),
        )
    for row in tables["channels"]:
        history = tuple(json.loads(row["history"]))
        channel = Channel(row["version"], row["revision"], history)
        state.names[row["name"]].channels[row["channel"]] = channel
    state.revoked = {row["artifact_hash"]: revocations[row["revision"]] for row in tables["revocations"]}
    state.collecting = {row["artifact_key"] for row in tables["collecting"]}
    for row in tables["tokens"]:
        lists = {name: tuple(json.loads(row[name])) for name in ("scopes", "namespaces")}
        state.tokens[row["id"]] = Token(**{**row, **lists})
    state.requests.update((entry.request_id, entry) for entry in requests)
    return state


def _fields(state: State, part: Part) -> dict[str, Any] | None:
    table, key = part[0], part[1]
    if table == "revocations":
        entry = state.revoked.get(str(key))
        return None if entry is None else {"revision": entry.revision}
    if table == "collecting":
        return {} if key in state.collecting else None
    if table == "tokens":
        token = state.tokens.get(str(key))
        return None if token is None else _token_fields(token)
    known = state.names.get(str(key))
    if known is None:
        return None
    if table == "names":
        return {"latest": known.latest}
    return _version_fields(known, part) if table == "versions" else _channel_fields(known, part)


def _token_fields(token: Token) -> dict[str, Any]:
    fields = {**asdict(token), "scopes": json.dumps(token.scopes), "namespaces": json.dumps(token.namespaces)}
    del fields["id"]
    return fields


def _version_fields(known: Name, part: Part) -> dict[str, Any] | None:
    version = known.versions.get(int(part[2]))
    if version is None:
        return None
    return {
        "artifacts": json.dumps([asdict(a) for a in version.artifacts]),
        "note": version.note,
        "at": version.at,
        "by": version.by,
        "revision": version.revision,
        "pinned": int(version.pinned),
    }


def _channel_fields(known: Name, part: Part) -> dict[str, Any] | None:
    channel = known.channels.get(str(part[2]))
    if channel is None:
        return None
    return {"version": channel.version, "revision": channel.revision, "history": json.dumps(channel.history)}
