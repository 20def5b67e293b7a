"""The vocabularies that the lab can compile for: the one that ships with the compiler, and those that are registered.

A pack is loaded once and kept while it's used; reading the one that ships happens in a child, like everything that
loads the compiler's engine.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from maskwright.workers import VocabularyPack

from ..catalog import Catalog, TokenizerRecord
from ..compiling import ChildPool, Refused, read_tokenizer, warm_compiler
from ..compiling.children import Call
from ..faults import Reason, RegistryError
from ..workspace import Workspace
from .distributions import Spellings

READ_SECONDS = 300.0
KEPT_PACKS = 4
MAX_LISTED = 200
DEMO_NAME, DEMO_FILE = "demo", "demo.tokenizer.json"


@dataclass(frozen=True)
class Tokenizer:
    """`path`: where a child reads it. `pack_hash`: SHA-256 of the pack's file."""

    name: str
    fingerprint: str
    path: str
    pack: VocabularyPack
    pack_hash: str
    spellings: Spellings


class Tokenizers:
    """Belongs to one event loop. `catalog` and `workspace` are the service's, None where there's no service."""

    def __init__(self, pool: ChildPool, catalog: Catalog | None = None, workspace: Workspace | None = None) -> None:
        self._pool, self._catalog, self._workspace = pool, catalog, workspace
        self._kept: OrderedDict[str, Tokenizer] = OrderedDict()
        self._added: Tokenizer | None = None
        self._demo: asyncio.Task[Tokenizer] | None = None

    async def get(self, fingerprint: str | None) -> Tokenizer:
        """None is the one that ships. Raises RegistryError UNKNOWN_TOKENIZER, and what the store raises."""
        demo = await self.demo()
        if fingerprint is None or fingerprint == demo.fingerprint:
            return demo
        if self._added is not None and fingerprint == self._added.fingerprint:
            return self._added
        found = self._kept.get(fingerprint)
        if found is None:
            found = self._kept[fingerprint] = await asyncio.to_thread(self._load, fingerprint)
            while len(self._kept) > KEPT_PACKS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(fingerprint)
        return found

    async def listed(self) -> list[dict[str, Any]]:
        """What a page may choose from, the one that ships first."""
        demo = await self.demo()
        shipped = [demo, *([self._added] if self._added else [])]
        listed = [_entry(t.name, t.fingerprint, t.pack.vocab_size) for t in shipped]
        if self._catalog is not None:
            records = await asyncio.to_thread(self._catalog.tokenizers, "", MAX_LISTED)
            listed += [
                _entry(r.name, r.fingerprint, r.vocab_size) for r in records if r.fingerprint != demo.fingerprint
            ]
        return listed

    async def demo(self) -> Tokenizer:
        """The one that ships; the first call takes seconds, and whoever else asks waits for it."""
        if self._demo is None or (self._demo.done() and (self._demo.cancelled() or self._demo.exception())):
            self._demo = asyncio.ensure_future(self._read_demo())
        return await asyncio.shield(self._demo)

    def warm_calls(self) -> list[Call]:
        """What a new child loads, so that nobody waits for it: the compiler, and what ships once that's known."""
        done = self._demo is not None and self._demo.done() and not self._demo.cancelled()
        if not done or self._demo is None or self._demo.exception():
            return [(warm_compiler, ())]
        demo = self._demo.result()
        return [(warm_compiler, (demo.path, demo.fingerprint))]

    async def add(self, name: str, path: str) -> Tokenizer:
        """A tokenizer of a file on this machine, which stays there. Raises RegistryError INVALID_TOKENIZER."""
        self._added = await self._read(name, path)
        return self._added

    async def close(self) -> None:
        """Ends what's being read."""
        if self._demo is not None:
            self._demo.cancel()
            await asyncio.gather(self._demo, return_exceptions=True)

    async def _read_demo(self) -> Tokenizer:
        return await self._read(DEMO_NAME, str(files("maskwright.compiler") / "data" / DEMO_FILE))

    async def _read(self, name: str, path: str) -> Tokenizer:
        read = await self._pool.run(read_tokenizer, path, seconds=READ_SECONDS)
        if isinstance(read, Refused):
            raise RegistryError(Reason.INVALID_TOKENIZER, read.diagnostics[0]["message"])
        return await asyncio.to_thread(_tokenizer, name, read.fingerprint, path, read.pack)

    def _load(self, fingerprint: str) -> Tokenizer:
        record = self._catalog.tokenizer(fingerprint) if self._catalog is not None else None
        if record is None or self._catalog is None or self._workspace is None:
            message = f"no tokenizer has fingerprint {fingerprint}"
            raise RegistryError(Reason.UNKNOWN_TOKENIZER, message, {"fingerprint": fingerprint})
        path: Path = self._workspace.tokenizer(record)
        return _tokenizer(record.name, fingerprint, str(path), self._pack(record))

    def _pack(self, record: TokenizerRecord) -> bytes:
        assert self._catalog is not None
        return self._catalog.content.get(record.pack)


def _tokenizer(name: str, fingerprint: str, path: str, data: bytes) -> Tokenizer:
    pack = VocabularyPack.from_bytes(data)
    return Tokenizer(name, fingerprint, path, pack, hashlib.sha256(data).hexdigest(), Spellings(pack))


def _entry(name: str, fingerprint: str, size: int) -> dict[str, Any]:
    return {"name": name, "fingerprint": fingerprint, "vocab_size": size}
