"""Blobs fetched lately, in memory: verified when they were read, so they can be sent as they are.

Blobs are immutable and named by digest, so nothing here can go stale; `forget` is for blobs that may no
longer be served. Least recently used ones go when the sizes add up to more than `max_bytes`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from .content import ContentStore, Digest


class HotBlobs:
    """A bounded cache over a content store. Safe to share between threads."""

    def __init__(self, content: ContentStore, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._content, self._lock = content, threading.Lock()
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def find(self, hash_: str) -> bytes | None:
        """The bytes if they're in memory."""
        with self._lock:
            data = self._blobs.get(hash_)
            if data is not None:
                self._blobs.move_to_end(hash_)
            return data

    def read(self, digest: Digest) -> bytes:
        """The bytes from the store, kept where they fit. Raises what `ContentStore.get` raises."""
        data = self._content.get(digest)
        with self._lock:
            if digest.hash not in self._blobs and digest.size <= self.max_bytes:
                self._blobs[digest.hash] = data
                self._bytes += digest.size
            while self._bytes > self.max_bytes:
                self._bytes -= len(self._blobs.popitem(last=False)[1])
        return data

    def forget(self, hash_: str) -> None:
        with self._lock:
            self._bytes -= len(self._blobs.pop(hash_, b""))
