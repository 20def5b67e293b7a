"""Blobs: fetched, checked, kept on disk, loaded; and the signatures of artifacts.

What's fetched is checked against its digest before it's used or kept; with trusted keys, artifacts against their
signatures too, cached or not. A download goes on from where it broke. What several want at once is downloaded once. A
cache that can't be written costs downloads, not answers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.v1 import registry_pb2
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.calls import Calls, Local, Once, Receive, Steps, Together
from maskwright.workers.client.download import Download
from maskwright.workers.client.errors import ArtifactRevoked, ArtifactUntrusted
from maskwright.workers.client.lock import Lock, LockedArtifact
from maskwright.workers.client.messages import BlobDigest, signature_message, signatures_of
from maskwright.workers.client.signing import Signature, TrustedKeys

if TYPE_CHECKING:
    from maskwright.workers import Artifact, VocabularyPack

_log = logging.getLogger(__name__)


class FetchCalls(Calls):
    """Those of `RegistryCalls` for blobs."""

    def __init__(self, address: str, cache: DiskCache, attempts: int, trusted: TrustedKeys | None) -> None:
        super().__init__(address, cache, attempts, trusted)
        self._packs: dict[str, VocabularyPack] = {}

    def fetch(self, digest: str | BlobDigest, kind: str = "blob") -> Steps[bytes]:
        """A blob's verified bytes, from disk or the registry. kind: "artifact", "pack" or "blob".

        Raises ArtifactUntrusted (of an artifact, where keys are trusted), ArtifactRevoked, CorruptDownload,
        CallFailed, ServiceUnavailable.
        """
        wanted = yield from self._usable(digest, kind)
        data: bytes = yield self._read_or_download(wanted, kind)
        return data

    def fetch_path(self, digest: str | BlobDigest, kind: str = "blob") -> Steps[Path]:
        """Like `fetch`, the file on disk. Raises OSError too, where the cache can't be written."""
        wanted = yield from self._usable(digest, kind)
        path: Path | None = yield Local(lambda: self.cache.find(kind, wanted.hash))
        if path is None:
            data = yield self._read_or_download(wanted, kind)
            path = yield Local(lambda: _kept(self.cache, kind, wanted.hash, data))
        assert path is not None
        return path

    def load_artifact(self, digest: str | BlobDigest) -> Steps[Artifact]:
        """The artifact with its pack, each fetched at most once per host.

        Raises what `fetch` raises, and `maskwright.workers.ArtifactError`.
        """
        from maskwright.workers import Artifact
        from maskwright.workers.container import read_container

        data = yield from self.fetch(digest, "artifact")
        container = yield Local(lambda: read_container(data))
        pack = yield from self.load_pack(str(container.header.get("pack")))
        artifact: Artifact = yield Local(lambda: Artifact.from_bytes(data, pack))
        return artifact

    def load_pack(self, digest: str | BlobDigest) -> Steps[VocabularyPack]:
        """The vocabulary pack, mapped once per client."""
        hash_ = digest.hash if isinstance(digest, BlobDigest) else digest
        if hash_ not in self._packs:
            self._packs[hash_] = yield Once(f"loaded {hash_}", lambda: self._load_pack(digest, hash_))
        return self._packs[hash_]

    def _load_pack(self, digest: str | BlobDigest, hash_: str) -> Steps[VocabularyPack]:
        from maskwright.workers import VocabularyPack

        if hash_ in self._packs:  # another caller was quicker
            return self._packs[hash_]
        pack: VocabularyPack
        try:
            path = yield from self.fetch_path(digest, "pack")
            pack = yield Local(lambda: VocabularyPack.load(path))
        except OSError as error:
            _log.warning("the pack isn't mapped from disk (%s), but held in memory", error)
            data = yield from self.fetch(digest, "pack")
            pack = yield Local(lambda: VocabularyPack.from_bytes(data))
        self._packs[hash_] = pack
        return pack

    def warm_lock(self, lock: Lock, fingerprint: str = "") -> Steps[list[LockedArtifact]]:
        """Brings what a lock file names to disk, packs too, eight at a time; with a vocabulary only its own.

        Raises what `fetch` raises.
        """
        chosen = [a for a in lock.artifacts if fingerprint in ("", a.fingerprint)]
        wanted = {("pack", BlobDigest(a.pack, a.pack_size)) for a in chosen}
        wanted |= {("artifact", BlobDigest(a.artifact, a.artifact_size)) for a in chosen}
        yield Together([self.fetch_path(digest, kind) for kind, digest in sorted(wanted, key=str)])
        return chosen

    def warm_blobs(self, digests: Iterable[BlobDigest], kind: str = "artifact") -> Steps[None]:
        """Brings blobs to disk, eight at a time. Raises what `fetch` raises."""
        yield Together([self.fetch_path(digest, kind) for digest in digests])

    def all_diagnostics(self, hash_: str) -> Steps[list[dict[str, Any]]]:
        """The whole list that a `SourceRefused` had to cut short: its `all_diagnostics`."""
        listed: list[dict[str, Any]] = json.loads((yield from self.fetch(hash_)))
        return listed

    def add_signature(self, artifact_hash: str, signature: Signature) -> Steps[None]:
        """Keeps a signature in the registry, beside the artifact."""
        message = signature_message(signature)
        request = registry_pb2.AddSignatureRequest(artifact_hash=artifact_hash, signature=message)
        yield from self.ask("RegistryService/AddSignature", request)

    def signatures(self, artifact_hash: str, key_ids: Sequence[str]) -> Steps[list[Signature]]:
        """The registry's signatures of an artifact by these keys, unchecked."""
        request = registry_pb2.GetSignaturesRequest(artifact_hash=artifact_hash, key_ids=key_ids)
        return signatures_of((yield from self.ask("RegistryService/GetSignatures", request)))

    # -- what may be used, and where it comes from -----------------------------------------------------------

    def _usable(self, digest: str | BlobDigest, kind: str) -> Steps[BlobDigest]:
        """What may be used: not revoked; an artifact, where keys are trusted, signed by one of them."""
        wanted = digest if isinstance(digest, BlobDigest) else BlobDigest(digest, 0)
        if self.cache.is_revoked(wanted.hash):
            raise ArtifactRevoked(wanted.hash)
        if kind == "artifact" and self.trusted is not None:
            yield from self._check_signed(self.trusted, wanted.hash)
        return wanted

    def _check_signed(self, trusted: TrustedKeys, hash_: str) -> Steps[None]:
        known = yield Local(lambda: self.cache.find_signatures(hash_))
        try:
            trusted.check(hash_, known)
            return
        except ArtifactUntrusted:
            found = yield from self.signatures(hash_, trusted.ids)
        trusted.check(hash_, found)
        yield Local(lambda: _keep_signatures(self.cache, hash_, found))

    def _read_or_download(self, wanted: BlobDigest, kind: str) -> Once:
        def steps() -> Steps[bytes]:
            data: bytes | None = yield Local(lambda: self.cache.read(kind, wanted.hash))
            if data is None:
                data = yield from self._download(wanted)
                yield Local(lambda: _keep(self.cache, kind, wanted.hash, data))
            return data

        return Once(f"{kind} {wanted.hash}", steps)

    def _download(self, wanted: BlobDigest) -> Steps[bytes]:
        download = Download(wanted)
        yield from self.attempt(Receive("RegistryService/Fetch", download.request, download.take))
        data: bytes = yield Local(download.finish)
        return data


def _kept(cache: DiskCache, kind: str, hash_: str, data: bytes) -> Path:
    """Where the blob lies, if need be from now on."""
    path = cache.path(kind, hash_)
    return path if path.is_file() else cache.put(kind, hash_, data)


def _keep(cache: DiskCache, kind: str, hash_: str, data: bytes) -> None:
    """Puts a blob into the cache where that can be written."""
    try:
        cache.put(kind, hash_, data)
    except OSError as error:
        _log.warning("%s isn't kept on disk: %s", hash_, error)


def _keep_signatures(cache: DiskCache, hash_: str, signatures: Sequence[Signature]) -> None:
    try:
        cache.put_signatures(hash_, signatures)
    except OSError as error:
        _log.warning("signatures of %s aren't kept on disk: %s", hash_, error)
