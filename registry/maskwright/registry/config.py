"""What a server can be told, with its defaults. Values are checked when the object is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maskwright.compiler.options import Limits

from . import DEFAULT_ADDRESS
from .compiling.children import PoolLimits

DEFAULT_PROFILES: Mapping[str, Limits] = {
    "default": Limits(),
    "small": Limits(states=5_000, frames=500, stack_classes=2_000, mask_bytes=64 << 20, compile_seconds=10.0),
}


@dataclass(frozen=True)
class ServerConfig:
    """Configuration of one server.

    address: host:port to listen on; port 0 takes a free one.
    data: folder of the index and the workspace, and of the store unless `store` is given.
    store: where the blobs are, as `store.locate.open_store` reads it.
    pool: compiling processes, queue, memory.
    profiles: limits by name; "default" must be among them.
    max_message_bytes: largest message read or sent. A source must fit in one.
    max_tokenizer_bytes: largest tokenizer file taken.
    chunk_bytes: data in one message of Fetch.
    hot_bytes: memory for blobs that were fetched lately.
    follow_seconds: how often other replicas' changes are looked for.
    drain_seconds: how long calls in flight may go on once the server was told to stop.
    """

    address: str = DEFAULT_ADDRESS
    data: Path = Path("maskwright-data")
    store: str = ""
    pool: PoolLimits = field(default_factory=lambda: PoolLimits(children=max(1, (os.cpu_count() or 2) // 2)))
    profiles: Mapping[str, Limits] = field(default_factory=lambda: dict(DEFAULT_PROFILES))
    max_message_bytes: int = 16 << 20
    max_tokenizer_bytes: int = 256 << 20
    chunk_bytes: int = 1 << 20
    hot_bytes: int = 256 << 20
    follow_seconds: float = 1.0
    drain_seconds: float = 20.0

    def __post_init__(self) -> None:
        if "default" not in self.profiles:
            raise ValueError("profiles must hold 'default'")
        if ":" not in self.address:
            raise ValueError(f"address must be host:port, not {self.address!r}")
        for name in ("max_message_bytes", "max_tokenizer_bytes", "chunk_bytes"):
            if getattr(self, name) < 1024:
                raise ValueError(f"{name} must be at least 1024, not {getattr(self, name)}")
        if self.chunk_bytes > self.max_message_bytes - 1024:
            raise ValueError("chunk_bytes must leave 1024 bytes of max_message_bytes")
        if self.follow_seconds <= 0:
            raise ValueError(f"follow_seconds must be positive, not {self.follow_seconds:g}")
        if self.pool.children < 1 or self.pool.queue < 0 or self.drain_seconds < 0:
            raise ValueError("children must be at least 1, queue and drain_seconds not negative")
