"""Where a manifest is compiled: by a server, or here in child processes.

Both first prepare the tokenizers, then give results as they're done. Here, artifacts and packs are written into a
folder under their digests; by a server they're in its store.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from maskwright.compiler.options import Limits
from maskwright.compiler.version import COMPILER_VERSION
from maskwright.workers.client import CallFailed, RegistryClient, SourceRefused
from maskwright.workers.whole_files import write_whole

from .. import keys
from ..compiling.tasks import Compiled, CompileJob, Overrun, Refused, compile_source, read_tokenizer
from .manifest import Item, Manifest


@dataclass(frozen=True)
class PreparedTokenizer:
    fingerprint: str
    pack: str
    pack_size: int


@dataclass(frozen=True)
class Outcome:
    """failure: why there's no artifact, "" where there is one. cached: nothing was compiled for it now."""

    index: int
    seconds: float
    failure: str = ""
    diagnostics: tuple[dict[str, Any], ...] = ()
    artifact_key: str = ""
    artifact: str = ""
    artifact_size: int = 0
    pack: str = ""
    pack_size: int = 0
    cached: bool = False


class Backend(Protocol):
    """Compiles the items of a manifest."""

    def compiler_version(self) -> str: ...

    def prepare(self, manifest: Manifest) -> Mapping[str, PreparedTokenizer | Outcome]:
        """By name; an Outcome tells why a tokenizer can't be used."""

    def compile(
        self, items: Sequence[Item], tokenizers: Mapping[str, PreparedTokenizer]
    ) -> Iterator[Outcome]:
        """One outcome for each item, in whatever order."""


class ServerBackend:
    """Through a registry. Raises what the client raises, for the whole; what a source did is in its outcome."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    def compiler_version(self) -> str:
        return str(self._client.capabilities()["compiler_version"])

    def prepare(self, manifest: Manifest) -> Mapping[str, PreparedTokenizer | Outcome]:
        found: dict[str, PreparedTokenizer | Outcome] = {}
        for name, path in manifest.tokenizers.items():
            try:
                known = self._client.register_tokenizer(path)
            except SourceRefused as error:
                found[name] = Outcome(-1, 0.0, error.message, tuple(error.diagnostics))
                continue
            found[name] = PreparedTokenizer(known.fingerprint, known.pack.hash, known.pack.size)
        return found

    def compile(
        self, items: Sequence[Item], tokenizers: Mapping[str, PreparedTokenizer]
    ) -> Iterator[Outcome]:
        began = time.monotonic()
        asked = [
            {
                "source": item.source,
                "fingerprint": tokenizers[item.tokenizer].fingerprint,
                "kind": item.kind,
                "options": item.chosen,
                "limits_profile": item.limits_profile,
                "resources": item.resources,
            }
            for item in items
        ]
        for index, result in self._client.precompile(asked):
            seconds = time.monotonic() - began
            if isinstance(result, CallFailed):
                yield Outcome(index, seconds, result.message, tuple(result.diagnostics))
                continue
            yield Outcome(
                index,
                seconds,
                artifact_key=result.key,
                artifact=result.artifact.hash,
                artifact_size=result.artifact.size,
                pack=result.pack.hash,
                pack_size=result.pack.size,
                cached=result.cached,
            )


class LocalBackend:
    """In `processes` child processes, into `folder`. Limits profiles aren't known here."""

    def __init__(self, folder: Path, processes: int) -> None:
        self._folder, self._processes = folder, processes
        folder.mkdir(parents=True, exist_ok=True)

    def compiler_version(self) -> str:
        return COMPILER_VERSION

    def prepare(self, manifest: Manifest) -> Mapping[str, PreparedTokenizer | Outcome]:
        self._paths = {name: str(path) for name, path in manifest.tokenizers.items()}
        found: dict[str, PreparedTokenizer | Outcome] = {}
        for name, path in self._paths.items():
            result = read_tokenizer(path)
            if isinstance(result, Refused):
                found[name] = Outcome(-1, 0.0, result.diagnostics[0]["message"], tuple(result.diagnostics))
                continue
            pack = self._write(result.pack, ".mwpack")
            found[name] = PreparedTokenizer(result.fingerprint, pack, len(result.pack))
        return found

    def compile(
        self, items: Sequence[Item], tokenizers: Mapping[str, PreparedTokenizer]
    ) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self._processes, context) as pool:
            running = {}
            for index, item in enumerate(items):
                known = tokenizers[item.tokenizer]
                job = CompileJob(
                    item.kind,
                    item.source,
                    item.options,
                    Limits(),
                    known.fingerprint,
                    self._paths[item.tokenizer],
                    known.pack,
                    tuple(sorted(item.resources.items())),
                )
                running[pool.submit(compile_source, job)] = index
            began = time.monotonic()
            for done in as_completed(running):
                index, seconds = running[done], time.monotonic() - began
                known = tokenizers[items[index].tokenizer]
                yield self._outcome(index, items[index], known, done.result(), seconds)

    def _outcome(
        self,
        index: int,
        item: Item,
        tokenizer: PreparedTokenizer,
        result: Compiled | Refused | Overrun,
        seconds: float,
    ) -> Outcome:
        if not isinstance(result, Compiled):
            return Outcome(index, seconds, result.diagnostics[0]["message"], tuple(result.diagnostics))
        options = item.options.canonical()
        key = keys.artifact_key(item.source_hash, item.kind, options, tokenizer.fingerprint, COMPILER_VERSION)
        return Outcome(
            index,
            seconds,
            artifact_key=key,
            artifact=self._write(result.artifact, ".mwa"),
            artifact_size=len(result.artifact),
            pack=tokenizer.pack,
            pack_size=tokenizer.pack_size,
        )

    def _write(self, data: bytes, suffix: str) -> str:
        hash_ = hashlib.sha256(data).hexdigest()
        path = self._folder / f"{hash_}{suffix}"
        if not path.exists():
            write_whole(path, data)
        return hash_
