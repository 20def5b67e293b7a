"""Signatures of artifacts: Ed25519 (RFC 8032) over an artifact's hash, by keys that a client was told to trust.

A key's id is the first 16 hexadecimal digits of the SHA-256 of its 32 public bytes. What is signed is

    maskwright artifact v1\\n<hash, 64 lower-case hexadecimal digits>\\n

so a signature covers the artifact's bytes, and by the digest in its header the vocabulary pack. It doesn't say under
which name or version the artifact may be served: a lock file does.

A client with trusted keys loads only artifacts that one of them signed. Rotation: trust the new key beside the old one,
sign with the new, and stop trusting the old once what's still in use is signed anew.

Keys are PEM files: PKCS#8 for the private one, which isn't encrypted, SubjectPublicKeyInfo for public ones, several in
a file if need be. Needs the package `cryptography` (`maskwright[signing]`), imported when a key is read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.workers.client.errors import ArtifactUntrusted
from maskwright.workers.digests import is_digest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_ID = re.compile(r"[0-9a-f]{16}")
ENVIRONMENT = "MASKWRIGHT_TRUSTED_KEYS"
MAX_TRUSTED = 64
_PEM = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)


class KeyFileError(ValueError):
    """A file that doesn't hold the key that's wanted, or one that can't be had."""


@dataclass(frozen=True)
class Signature:
    """32 bytes of public key, 64 of signature. Says nothing until it's checked."""

    key_id: str
    public_key: bytes
    signature: bytes

    def to_json(self) -> dict[str, str]:
        return {"key_id": self.key_id, "public_key": self.public_key.hex(), "signature": self.signature.hex()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Signature:
        """Raises ValueError for anything else than `to_json` makes."""
        try:
            return cls(str(fields["key_id"]), bytes.fromhex(fields["public_key"]), bytes.fromhex(fields["signature"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a signature: {error}") from error

    def is_of(self, artifact_hash: str) -> bool:
        """Whether its own public key, which has its id, made it for this artifact. About 0.1 ms."""
        return key_id(self.public_key) == self.key_id and _verifies(self.public_key, self.signature, artifact_hash)


class TrustedKeys:
    """Public keys by id. Immutable."""

    def __init__(self, public_keys: Iterable[bytes]) -> None:
        self._keys = {key_id(key): key for key in public_keys}
        if not 0 < len(self._keys) <= MAX_TRUSTED:
            raise KeyFileError(f"{len(self._keys)} trusted keys; there may be from 1 to {MAX_TRUSTED}")

    @classmethod
    def load(cls, *paths: str | os.PathLike[str]) -> TrustedKeys:
        """The keys in PEM files; of a folder, in its files named *.pem and *.pub. Raises KeyFileError, OSError."""
        found: list[bytes] = []
        for path in map(Path, paths):
            files = sorted(f for f in path.iterdir() if f.suffix in (".pem", ".pub")) if path.is_dir() else [path]
            for file in files:
                found += _public_keys(file)
        return cls(found)

    @classmethod
    def from_environment(cls) -> TrustedKeys | None:
        """The keys in the files and folders of $MASKWRIGHT_TRUSTED_KEYS, separated as in $PATH; None if it's unset."""
        paths = [p for p in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if p]
        return cls.load(*paths) if paths else None

    @property
    def ids(self) -> list[str]:
        return sorted(self._keys)

    def check(self, artifact_hash: str, signatures: Iterable[Signature]) -> str:
        """The id of a trusted key that signed the artifact. Raises ArtifactUntrusted."""
        wrong: list[str] = []
        for signature in signatures:
            key = self._keys.get(signature.key_id)
            if key is None:
                continue
            if _verifies(key, signature.signature, artifact_hash):
                return signature.key_id
            wrong.append(signature.key_id)
        raise ArtifactUntrusted(artifact_hash, tuple(self.ids), tuple(wrong))


class SigningKey:
    """A private key. `repr` doesn't show it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key: bytes = key.public_key().public_bytes_raw()
        self.key_id = key_id(self.public_key)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    @classmethod
    def generate(cls) -> SigningKey:
        ed25519, _ = _cryptography()
        return cls(ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SigningKey:
        """The key in a PEM file. Raises KeyFileError, OSError."""
        ed25519, serialization = _cryptography()
        try:
            key = serialization.load_pem_private_key(Path(path).read_bytes(), None)
        except (ValueError, TypeError) as error:
            raise KeyFileError(f"{path}: not an unencrypted private key in PEM") from error
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise KeyFileError(f"{path}: not an Ed25519 key")
        return cls(key)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the private key, readable by its owner alone, and PATH.pub beside it, whose path is returned.

        Raises FileExistsError: a key is never written over.
        """
        _, serialization = _cryptography()
        private = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        beside = Path(f"{path}.pub")
        for file, data, mode in ((Path(path), private, 0o600), (beside, public, 0o644)):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
        return beside

    def sign(self, artifact_hash: str) -> Signature:
        return Signature(self.key_id, self.public_key, self._key.sign(statement(artifact_hash)))


def statement(artifact_hash: str) -> bytes:
    """What is signed for an artifact."""
    if not is_digest(artifact_hash):
        raise ValueError(f"not a SHA-256: {artifact_hash!r}")
    return f"maskwright artifact v1\n{artifact_hash}\n".encode()


def key_id(public_key: bytes) -> str:
    return hashlib.sha256(public_key).hexdigest()[:16]


def _public_keys(path: Path) -> list[bytes]:
    ed25519, serialization = _cryptography()
    found = []
    for block in _PEM.findall(path.read_bytes()):
        try:
            key = serialization.load_pem_public_key(block)
        except ValueError as error:
            raise KeyFileError(f"{path}: not a public key in PEM") from error
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise KeyFileError(f"{path}: not an Ed25519 key")
        found.append(key.public_bytes_raw())
    if not found:
        raise KeyFileError(f"{path}: no public key in PEM")
    return found


def _verifies(public_key: bytes, signature: bytes, artifact_hash: str) -> bool:
    ed25519, _ = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        key: Ed25519PublicKey = ed25519.Ed25519PublicKey.from_public_bytes(public_key)
        key.verify(signature, statement(artifact_hash))
    except (InvalidSignature, ValueError):
        return False
    return True


def _cryptography() -> tuple[Any, Any]:
    """(its ed25519 module, its serialization module). Raises KeyFileError where it isn't installed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise KeyFileError("signatures need the package cryptography: pip install 'maskwright[signing]'") from error
    return ed25519, serialization
