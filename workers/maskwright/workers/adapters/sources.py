"""Which artifact belongs to what a request asks for.

An engine's request brings a schema, pattern or grammar as text; the worker has no compiler. `FolderSource` finds what
was compiled ahead of time, by the source's digest, and refuses the rest. `RegistrySource` asks a registry, which
compiles what it hasn't compiled before. Both also take an artifact by name or digest (kind "artifact").

Kinds are the compiler's: "json_schema", "regex", "lark", "gbnf", "tools"; and "artifact". Sources may be used by
several threads at once, as engines compile in a pool.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from maskwright.workers.artifact import Artifact, find_pack
from maskwright.workers.container import read_container
from maskwright.workers.digests import is_digest
from maskwright.workers.errors import WrongVocabulary
from maskwright.workers.pack import VocabularyPack
from maskwright.workers.source_digest import source_digest

PROBE = 'Maskwright {"a":[1,-2.5e3,true,null]}\n\té€漢😀 <b>\\u0041</b>'


class ArtifactNotFound(LookupError):
    """There's no artifact for what a request asks for. `digest` is its source's, or the name asked for; `where` was
    searched.
    """

    def __init__(self, kind: str, digest: str, where: str) -> None:
        self.kind, self.digest, self.where = kind, digest, where
        super().__init__(kind, digest, where)

    def __str__(self) -> str:
        what = f"artifact {self.digest}" if self.kind == "artifact" else f"artifact for {self.kind} {self.digest}"
        return f"no {what} in {self.where}: compile it ahead of time, or use a registry"


class ArtifactSource(Protocol):
    """Where an adapter finds artifacts."""

    def find(self, kind: str, source: str) -> Artifact:
        """The artifact of a source, or by name or digest. Raises ArtifactNotFound, or what the source's client raises:
        ValueError or LookupError for a request's own fault.
        """
        ...


class FolderSource:
    """The artifacts (`*.mwa`) of a folder, by the digest of their source, their file's digest or its name without the
    suffix. Reads headers when it's made, and each file when it's first asked for.

    pack: default found as `Artifact.load` does. Raises OSError, ArtifactError for files that can't be trusted,
    ValueError when two artifacts have one source (compiled with other options): asked for by name, they'd be in folders
    of their own.
    """

    def __init__(self, folder: str | os.PathLike[str], pack: VocabularyPack | None = None) -> None:
        self._folder, self._pack, self._lock = Path(folder), pack, threading.Lock()
        self._paths: dict[tuple[str, str], Path] = {}
        self._loaded: dict[Path, Artifact] = {}
        for path in sorted(self._folder.glob("*.mwa")):
            container = read_container(path.read_bytes())
            if self._pack is None:
                self._pack = find_pack(container, path.parent)
            source = container.header.get("source")
            if isinstance(source, Mapping):
                self._add((str(source.get("kind")), str(source.get("digest"))), path)
            self._add(("artifact", container.digest), path)
            if path.stem != container.digest:
                self._add(("artifact", path.stem), path)

    def _add(self, key: tuple[str, str], path: Path) -> None:
        other = self._paths.setdefault(key, path)
        if other != path:
            raise ValueError(f"{other} and {path} are both for {key[0]} {key[1]}")

    def find(self, kind: str, source: str) -> Artifact:
        """Raises ArtifactNotFound, ArtifactError, OSError."""
        key = (kind, source if kind == "artifact" else source_digest(kind, source))
        path = self._paths.get(key)
        if path is None:
            raise ArtifactNotFound(*key, str(self._folder))
        with self._lock:
            if path not in self._loaded:
                self._loaded[path] = Artifact.load(path, self._pack)
            return self._loaded[path]


class RegistrySource:
    """Asks a registry (`maskwright.workers.client.RegistryClient`), which compiles what it hasn't got.

    fingerprint: of the vocabulary, as registered. options: the compiler's, for every source. kept: artifacts held in
    memory; others are read from the client's disk cache again.
    """

    def __init__(
        self, client: Any, fingerprint: str, *, options: Mapping[str, Any] | None = None, kept: int = 256
    ) -> None:
        self._client, self._fingerprint, self._options, self._kept = client, fingerprint, options, kept
        self._loaded: OrderedDict[tuple[str, str], Artifact] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, kind: str, source: str) -> Artifact:
        """Raises the client's errors: SourceRefused with diagnostics, ArtifactRevoked, ServiceUnavailable and so on. A
        name (kind "artifact") is `tool`, `tool@7` or `tool:prod`, or an artifact's digest.
        """
        key = (kind, source if kind == "artifact" else source_digest(kind, source))
        with self._lock:
            if key in self._loaded and kind != "artifact":  # a channel may have moved
                self._loaded.move_to_end(key)
                return self._loaded[key]
        artifact: Artifact = self._client.load_artifact(self._digest(kind, source))
        with self._lock:
            self._loaded[key] = artifact
            while len(self._loaded) > self._kept:
                self._loaded.popitem(last=False)
        return artifact

    def _digest(self, kind: str, source: str) -> Any:
        if kind != "artifact":
            compiled = self._client.compile(source, self._fingerprint, kind=kind, options=self._options)
        elif is_digest(source):
            return source
        else:
            compiled = self._client.resolve(source, fingerprint=self._fingerprint)
        return compiled.artifact


def environment_source(environ: Mapping[str, str] = os.environ) -> ArtifactSource | None:
    """`MASKWRIGHT_ARTIFACTS`: a folder; or `MASKWRIGHT_REGISTRY` (an address) with `MASKWRIGHT_VOCABULARY` (a
    fingerprint). None when neither is set. Raises ValueError for an address without a fingerprint, and what the source
    raises.
    """
    if folder := environ.get("MASKWRIGHT_ARTIFACTS"):
        return FolderSource(folder)
    address, fingerprint = environ.get("MASKWRIGHT_REGISTRY"), environ.get("MASKWRIGHT_VOCABULARY")
    if not address:
        return None
    if not fingerprint:
        raise ValueError("MASKWRIGHT_REGISTRY is set, MASKWRIGHT_VOCABULARY (the vocabulary's fingerprint) isn't")
    from maskwright.workers.client import RegistryClient

    return RegistrySource(RegistryClient(address), fingerprint)


def check_tokenizer(tokenizer: Any, pack: VocabularyPack) -> None:
    """Whether an engine's tokenizer writes what the pack's tokens say: a probe is encoded, and the bytes of its tokens
    must be the probe (a space before it, which SentencePiece adds, is allowed). Raises WrongVocabulary. Catches another
    vocabulary, not every difference: the fingerprint is what names a vocabulary exactly.
    """
    tokens = [int(t) for t in tokenizer.encode(PROBE, add_special_tokens=False)]
    written = b"".join(pack.token_bytes(t) or b"\xff" for t in tokens)
    if written.removeprefix(b" ") != PROBE.encode():
        raise WrongVocabulary("vocabulary", pack.fingerprint, f"one that writes {written[:60]!r} for a probe")


def grammar_kind(text: str) -> str:
    """Which of the compiler's notations a grammar is in: "gbnf" (`name ::= …`) or "lark"."""
    return "gbnf" if "::=" in text else "lark"


def choice_pattern(choices: list[str]) -> str:
    """A pattern (ECMA-262) that matches exactly these texts. Raises ValueError for none, and for what isn't a text."""
    if not choices or not all(isinstance(c, str) for c in choices):
        raise ValueError("choices are texts, at least one")
    return "(?:" + "|".join("".join(map(_escaped, c)) for c in choices) + ")"


def _escaped(character: str) -> str:
    if character in "\\^$.*+?()[]{}|/-":
        return "\\" + character
    return character if character.isprintable() else "".join(f"\\u{u:04x}" for u in _units(character))


def _units(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]
