"""The pieces of one blob as they come, over as many streams as it takes. No IO."""

from __future__ import annotations

import hashlib

from maskwright.v1 import registry_pb2, types_pb2
from maskwright.workers.client.errors import CorruptDownload
from maskwright.workers.client.messages import BlobDigest

MAX_BLOB = 1 << 32
"""Bytes taken of a blob whose size isn't known beforehand: a server that lies can't fill the memory."""


class Download:
    """Of the blob `wanted`, whose size may be 0 where it isn't known."""

    def __init__(self, wanted: BlobDigest) -> None:
        self._wanted, self._received = wanted, bytearray()

    def request(self) -> registry_pb2.FetchRequest:
        """For what is missing."""
        digest = types_pb2.Digest(hash=self._wanted.hash, size_bytes=self._wanted.size)
        return registry_pb2.FetchRequest(digest=digest, offset=len(self._received))

    def take(self, piece: registry_pb2.FetchResponse) -> None:
        """Raises CorruptDownload for a piece that doesn't follow, or is too much."""
        have = len(self._received)
        if piece.offset != have:
            raise CorruptDownload(f"bytes from {have}", f"bytes from {piece.offset}")
        if have + len(piece.data) > (self._wanted.size or MAX_BLOB):
            raise CorruptDownload(f"{self._wanted.size or MAX_BLOB} bytes", "more")
        self._received += piece.data

    def finish(self) -> bytes:
        """The whole blob, checked. Raises CorruptDownload."""
        found, size = hashlib.sha256(self._received).hexdigest(), len(self._received)
        if found != self._wanted.hash or self._wanted.size not in (0, size):
            raise CorruptDownload(f"{self._wanted.hash}/{self._wanted.size}", f"{found}/{size}")
        return bytes(self._received)
