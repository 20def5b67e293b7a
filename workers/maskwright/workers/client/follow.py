"""Following a channel: the artifact that it points to, kept current in the background.

    with ChannelFollower(client, "refund-tool", "prod", fingerprint) as channel:
        artifact = channel.current.artifact      # once for each request; the request keeps it to its end

A thread watches the registry, resolves, fetches, verifies and loads, and only then swaps `current`: one reference,
so a request has the old artifact or the new one, whole, and what it took stays valid. When the registry can't be
reached, `current` stays; at the start the artifact that the channel pointed to last is taken from the disk cache.

A revoked artifact is no longer current: until there's another to take, `current` raises `ArtifactRevoked`. One that no
trusted key signed is never taken: what was current stays, and the log tells.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskwright.workers.client.calls import remember_revoked
from maskwright.workers.client.errors import ArtifactRevoked, CallFailed, ClientError

if TYPE_CHECKING:
    from maskwright.workers import Artifact
    from maskwright.workers.client.registry import RegistryClient

_log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


@dataclass(frozen=True)
class Current:
    """revision: of the state that told so; 0 where it's from the disk cache."""

    version: int
    revision: int
    hash: str
    artifact: Artifact


class ChannelFollower:
    """Follows one channel of one name. `on_swap` is called in the thread after each swap.

    Raises what `RegistryClient.resolve` and `load_artifact` raise, where there's nothing on disk either.
    """

    def __init__(
        self,
        client: RegistryClient,
        name: str,
        channel: str,
        fingerprint: str = "",
        on_swap: Callable[[Current], object] | None = None,
    ) -> None:
        self._client, self._name, self._channel, self._fingerprint = client, name, channel, fingerprint
        self._on_swap, self._stopping = on_swap, threading.Event()
        self._pointer = ":".join(filter(None, (name, channel, fingerprint)))
        self._revoked: ArtifactRevoked | None = None
        self._current = self._start()
        self._thread = threading.Thread(target=self._follow, name=f"follow {name}:{channel}", daemon=True)
        self._thread.start()

    def __enter__(self) -> ChannelFollower:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def current(self) -> Current:
        """What to use for the next request. Raises ArtifactRevoked."""
        if self._revoked is not None:
            raise ArtifactRevoked(self._revoked.hash, self._revoked.why)
        return self._current

    def close(self) -> None:
        """Stops following; returns at once, the thread ends with its watch."""
        self._stopping.set()

    def _start(self) -> Current:
        try:
            return self._resolve(0)
        except ArtifactRevoked:
            raise
        except ClientError as error:
            known = self._client.cache.find_pointer(self._pointer)
            if known is None:
                raise
            _log.warning("%s can't be had from the registry (%s); going on from the cache", self._pointer, error)
            artifact = self._client.load_artifact(str(known["artifact"]))
            return Current(int(known["version"]), 0, str(known["artifact"]), artifact)

    def _resolve(self, revision: int) -> Current:
        found = self._client.resolve(
            self._name, channel=self._channel, fingerprint=self._fingerprint, min_revision=revision
        )
        artifact = self._client.load_artifact(found.artifact)
        pointer = {"version": found.version, "artifact": found.artifact.hash}
        try:
            self._client.cache.put_pointer(self._pointer, pointer)
        except OSError as error:
            _log.warning("%s: where it points isn't kept on disk: %s", self._pointer, error)
        return Current(found.version, found.revision, found.artifact.hash, artifact)

    def _follow(self) -> None:
        pause, revision = FIRST_PAUSE, self._current.revision
        while not self._stopping.wait(0):
            try:
                for told, change in self._client.watch(revision, [self._name]):
                    if self._stopping.is_set():
                        return
                    pause, revision = FIRST_PAUSE, told
                    if change is None:
                        self._swap(revision)
                    elif change.kind == "revoke":
                        self._forbid(change.artifact_hash, change.reason)
            except ClientError as error:
                if isinstance(error, CallFailed) and error.reason == "REVISION_TOO_LARGE":
                    revision = 0  # another registry, or one that lost its end
                _log.info("%s: watching broke off: %s", self._pointer, error)
            except Exception:
                # Whatever it is, the artifact in use stays usable and the next round may do better.
                _log.exception("%s: following failed", self._pointer)
            if self._stopping.wait(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def _forbid(self, hash_: str, why: str) -> None:
        """At once, whether or not there's something else to take."""
        remember_revoked(self._client.cache, hash_)
        if hash_ == self._current.hash:
            self._revoked = ArtifactRevoked(hash_, why)

    def _swap(self, revision: int) -> None:
        """Everything up to the revision was told; takes what the channel points to then."""
        try:
            found = self._resolve(revision)
        except ArtifactRevoked as error:
            self._revoked = error
            return
        except ClientError as error:
            _log.warning("%s: revision %d can't be taken: %s", self._pointer, revision, error)
            raise
        self._revoked = None
        if (found.hash, found.version) == (self._current.hash, self._current.version):
            return
        self._current = found
        if self._on_swap is not None:
            self._on_swap(found)
