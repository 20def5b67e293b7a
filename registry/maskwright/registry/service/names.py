"""The part of RegistryService that changes and lists names.

Namespaces: a caller changes and sees names in its own only. A revocation is seen by all.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import grpc

from maskwright.v1 import registry_pb2 as pb
from maskwright.v1 import registry_pb2_grpc, types_pb2
from maskwright.workers.client.signing import Signature

from ..catalog import Catalog
from ..faults import Reason, RegistryError, check_digest, invalid_request
from ..leases import put_lease
from ..names import Author, Changes, Entry, Journal, Name, State, check_name, namespace_of
from ..names.changes import MAX_ARTIFACTS, check_served, find_name
from ..security import current_caller
from ..signatures import add_signature, find_signatures
from ..store import StoreError
from .messages import change_message, version_message

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
MAX_PAGE, DEFAULT_PAGE = 1000, 100
HEARTBEAT_SECONDS = 30.0
LEASE_SECONDS = (60, 30 * 86400)
_Context: TypeAlias = grpc.aio.ServicerContext


class NamesServicer(registry_pb2_grpc.RegistryServiceServicer):
    """Over one catalog and journal. Belongs to one event loop."""

    def __init__(self, catalog: Catalog, journal: Journal) -> None:
        self._catalog, self._journal = catalog, journal
        self._changes = Changes(journal, catalog)
        self._watching: set[asyncio.Event] = set()
        self._closing = False

    async def Publish(self, request: pb.PublishRequest, context: _Context) -> pb.PublishResponse:
        _require("publish", request.name)
        entry = await asyncio.to_thread(
            self._changes.publish,
            request.name,
            [check_digest(key, "artifact_keys") for key in request.artifact_keys],
            request.note,
            _author(request.request_id),
        )
        return pb.PublishResponse(version=entry.fields["version"], revision=entry.revision)

    async def Promote(self, request: pb.PromoteRequest, context: _Context) -> pb.PromoteResponse:
        _require("publish", request.name)
        expected = request.expected_version if request.HasField("expected_version") else None
        author = _author(request.request_id)
        entry = await asyncio.to_thread(
            self._changes.promote, request.name, request.channel, request.version, author, expected
        )
        return pb.PromoteResponse(revision=entry.revision)

    async def Rollback(self, request: pb.RollbackRequest, context: _Context) -> pb.RollbackResponse:
        _require("publish", request.name)
        to = request.to_version if request.HasField("to_version") else None
        expected = request.expected_version if request.HasField("expected_version") else None
        author = _author(request.request_id)
        entry = await asyncio.to_thread(
            self._changes.rollback, request.name, request.channel, author, to, expected
        )
        return pb.RollbackResponse(version=entry.fields["version"], revision=entry.revision)

    async def Pin(self, request: pb.PinRequest, context: _Context) -> pb.PinResponse:
        _require("publish", request.name)
        entry = await asyncio.to_thread(
            self._changes.pin, request.name, request.version, request.pinned, _author(request.request_id)
        )
        return pb.PinResponse(revision=entry.revision)

    async def Retire(self, request: pb.RetireRequest, context: _Context) -> pb.RetireResponse:
        _require("publish", request.name)
        author = _author(request.request_id)
        entry = await asyncio.to_thread(self._changes.retire, request.name, list(request.versions), author)
        return pb.RetireResponse(revision=entry.revision)

    async def AddSignature(self, request: pb.AddSignatureRequest, context: _Context) -> pb.AddSignatureResponse:
        message = request.signature
        signature = Signature(message.key_id, message.public_key, message.signature)
        await asyncio.to_thread(self._sign, request.artifact_hash, signature)
        return pb.AddSignatureResponse()

    async def GetSignatures(self, request: pb.GetSignaturesRequest, context: _Context) -> pb.GetSignaturesResponse:
        content, ids = self._catalog.content, list(request.key_ids)
        found = await asyncio.to_thread(find_signatures, content, request.artifact_hash, ids)
        return pb.GetSignaturesResponse(
            signatures=[
                types_pb2.Signature(key_id=s.key_id, public_key=s.public_key, signature=s.signature) for s in found
            ]
        )

    async def Revoke(self, request: pb.RevokeRequest, context: _Context) -> pb.RevokeResponse:
        current_caller().require("admin")
        author, hash_ = _author(request.request_id), check_digest(request.artifact_hash, "artifact_hash")
        entry = await asyncio.to_thread(self._changes.revoke, hash_, request.reason, author)
        return pb.RevokeResponse(revision=entry.revision)

    async def ListNames(self, request: pb.ListNamesRequest, context: _Context) -> pb.ListNamesResponse:
        size, caller = page_size(request.page_size), current_caller()

        def look(state: State) -> list[tuple[str, Name]]:
            names = sorted(n for n in state.names if n.startswith(request.prefix) and n > request.page_token)
            seen = [n for n in names if caller.sees(namespace_of(n))][: size + 1]
            return [(n, state.names[n]) for n in seen]

        found = self._journal.read(look)
        return pb.ListNamesResponse(
            names=[_name_message(*item) for item in found[:size]],
            next_page_token=found[size - 1][0] if len(found) > size else "",
        )

    async def ListVersions(
        self, request: pb.ListVersionsRequest, context: _Context
    ) -> pb.ListVersionsResponse:
        size, name = page_size(request.page_size), _require("read", request.name)
        if request.page_token and not request.page_token.isdecimal():
            raise invalid_request("page_token", "not one of this call's")
        below = int(request.page_token) if request.page_token else 1 << 31

        def look(state: State) -> list[pb.Version]:
            known = find_name(state, name)
            chosen = sorted((v for v in known.versions if v < below), reverse=True)[: size + 1]
            return [version_message(known.versions[v], known, state.revoked) for v in chosen]

        found = self._journal.read(look)
        token = str(found[size - 1].version) if len(found) > size else ""
        return pb.ListVersionsResponse(versions=found[:size], next_page_token=token)

    async def Watch(self, request: pb.WatchRequest, context: _Context) -> AsyncIterator[pb.WatchResponse]:
        sent, names, caller = request.after_revision, {check_name(n) for n in request.names}, current_caller()
        known = await asyncio.to_thread(self._known_revision, sent)
        if not 0 <= sent <= known:
            found = {"after_revision": str(sent), "revision": str(known)}
            raise RegistryError(Reason.REVISION_TOO_LARGE, f"revision {sent}, of {known}", found)

        def wanted(entry: Entry) -> bool:
            name = entry.fields.get("name")
            if name is None:
                return entry.kind == "revoke"
            return caller.sees(namespace_of(name)) and (not names or name in names)

        changed = asyncio.Event()
        stop = self._subscribe(changed)
        try:
            while not self._closing:
                changed.clear()
                while page := await asyncio.to_thread(self._journal.entries, sent):
                    for entry in page:
                        sent = entry.revision
                        if wanted(entry):
                            yield pb.WatchResponse(revision=sent, change=change_message(entry))
                yield pb.WatchResponse(revision=sent)
                await _wait(changed)
        finally:
            stop()

    async def Lease(self, request: pb.LeaseRequest, context: _Context) -> pb.LeaseResponse:
        if not REQUEST_ID.fullmatch(request.lease_id):
            raise invalid_request("lease_id", "from 1 to 128 of A-Z a-z 0-9 _ -")
        if not LEASE_SECONDS[0] <= request.seconds <= LEASE_SECONDS[1]:
            raise invalid_request("seconds", f"from {LEASE_SECONDS[0]} to {LEASE_SECONDS[1]}")
        hashes = [check_digest(hash_, "artifact_hashes") for hash_ in request.artifact_hashes]
        if not 0 < len(hashes) <= MAX_ARTIFACTS * 16:
            raise invalid_request("artifact_hashes", f"from 1 to {MAX_ARTIFACTS * 16}")
        caller = current_caller().name
        until = await asyncio.to_thread(self._lease, caller, request.lease_id, hashes, request.seconds)
        return pb.LeaseResponse(expires_at=until)

    @property
    def watching(self) -> int:
        """Watches that are open."""
        return len(self._watching)

    def end_watches(self) -> None:
        """Ends every Watch, so that draining doesn't wait for them; callers go on at another server."""
        self._closing = True
        for event in self._watching:
            event.set()

    def _lease(self, caller: str, lease_id: str, hashes: list[str], seconds: int) -> int:
        for hash_ in hashes:
            if self._catalog.artifact_by_hash(hash_) is None:
                raise RegistryError(Reason.UNKNOWN_ARTIFACT, f"no artifact {hash_!r}", {"artifact": hash_})
        return put_lease(self._catalog.content, caller, lease_id, hashes, seconds)

    def _sign(self, hash_: str, signature: Signature) -> None:
        check_digest(hash_, "artifact_hash")
        if self._catalog.artifact_by_hash(hash_) is None:
            raise RegistryError(Reason.UNKNOWN_ARTIFACT, f"no artifact {hash_!r}", {"artifact": hash_})
        self._journal.read(lambda state: check_served(state, hash_))
        add_signature(self._catalog.content, hash_, signature)

    def _known_revision(self, wanted: int) -> int:
        """The store's; what's known here where the store can't be asked, and that's enough."""
        try:
            return self._journal.catch_up()
        except (StoreError, RegistryError):
            known = self._journal.read(lambda state: state.revision)
            if wanted > known:
                raise
            return known

    def _subscribe(self, event: asyncio.Event) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        stop_journal = self._journal.watch(lambda: loop.call_soon_threadsafe(event.set))
        self._watching.add(event)

        def stop() -> None:
            stop_journal()
            self._watching.discard(event)

        return stop


async def _wait(event: asyncio.Event) -> None:
    """Until the event or a heartbeat."""
    try:
        await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
    except TimeoutError:
        return


def page_size(asked: int) -> int:
    size = asked or DEFAULT_PAGE
    if not 0 < size <= MAX_PAGE:
        raise invalid_request("page_size", f"must be from 1 to {MAX_PAGE}")
    return size


def _require(scope: str, name: str) -> str:
    full = check_name(name)
    current_caller().require(scope, namespace_of(full))
    return full


def _author(request_id: str) -> Author:
    if request_id and not REQUEST_ID.fullmatch(request_id):
        raise invalid_request("request_id", "at most 128 of A-Z a-z 0-9 _ -")
    return Author(current_caller().name, request_id)


def _name_message(name: str, known: Name) -> pb.ListNamesResponse.Name:
    channels = [
        pb.ListNamesResponse.Channel(channel=n, version=c.version, revision=c.revision)
        for n, c in sorted(known.channels.items())
    ]
    return pb.ListNamesResponse.Name(name=name, latest_version=known.latest, channels=channels)


