"""Signatures kept beside artifacts, and the server's own.

    signatures/<artifact hash>/<key id>    public key and signature in hexadecimal, a checksummed record

A signature is kept only if its own public key verifies it for that artifact, so a record can't be anything but what the
key's owner made, and the first that's written stays. They aren't in the index: clients ask once for an artifact and
keep the answer. Whoever collects an artifact removes its signatures.

A server with a key signs the artifacts that it compiles, and those found compiled that lack its signature: after a
change of keys, which needs no restart, compiling again is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.workers.client.signing import KEY_ID, Signature, SigningKey
from maskwright.workers.rotated_files import RotatedFiles

from .content import ContentStore
from .faults import Reason, RegistryError, check_digest, invalid_request

TABLE = "signatures"
MAX_KEYS = 64


def add_signature(content: ContentStore, artifact_hash: str, signature: Signature) -> None:
    """Keeps a signature of an artifact. Raises RegistryError INVALID_REQUEST, INVALID_SIGNATURE."""
    check_digest(artifact_hash, "artifact_hash")
    if not KEY_ID.fullmatch(signature.key_id):
        raise invalid_request("signature.key_id", "must be 16 hexadecimal digits")
    if not signature.is_of(artifact_hash):
        message = f"not key {signature.key_id}'s signature of artifact {artifact_hash}"
        fields = {"key_id": signature.key_id, "artifact_hash": artifact_hash}
        raise RegistryError(Reason.INVALID_SIGNATURE, message, fields)
    content.put_record(TABLE, f"{artifact_hash}/{signature.key_id}", signature.to_json())


def find_signatures(content: ContentStore, artifact_hash: str, key_ids: Sequence[str]) -> list[Signature]:
    """Those that there are by these keys, in their order. Costs one look-up in the store for each."""
    check_digest(artifact_hash, "artifact_hash")
    if len(key_ids) > MAX_KEYS or not all(map(KEY_ID.fullmatch, key_ids)):
        raise invalid_request("key_ids", f"at most {MAX_KEYS} of 16 hexadecimal digits")
    found = (content.find_record(TABLE, f"{artifact_hash}/{id_}") for id_ in dict.fromkeys(key_ids))
    return [Signature.from_json(record) for record in found if record is not None]


def remove_signatures(content: ContentStore, artifact_hash: str) -> None:
    for key in list(content.store.list(f"{TABLE}/{artifact_hash}/")):
        content.store.delete(key)


class Signer:
    """The server's key, in a PEM file that may be rotated. Safe to share between threads."""

    def __init__(self, content: ContentStore, path: str) -> None:
        """Raises KeyFileError, OSError."""
        self._content = content
        self._key = RotatedFiles("signing keys", (path,), lambda: SigningKey.load(path))
        self._signed: set[tuple[str, str]] = set()

    @property
    def key_id(self) -> str:
        """Of the key that signs from now on."""
        return self._key.newest().key_id

    def ensure(self, artifact_hash: str) -> None:
        """Signs an artifact unless this key did. Costs a look-up in the store the first time."""
        key = self._key.newest()
        if (key.key_id, artifact_hash) in self._signed:
            return
        if not find_signatures(self._content, artifact_hash, [key.key_id]):
            add_signature(self._content, artifact_hash, key.sign(artifact_hash))
        if len(self._signed) >= _REMEMBERED:
            self._signed.clear()
        self._signed.add((key.key_id, artifact_hash))


_REMEMBERED = 100_000
