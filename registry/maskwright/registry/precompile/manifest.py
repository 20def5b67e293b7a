"""A manifest, `maskwright.toml`: names, their sources, and the tokenizers they're compiled for.

    [tokenizers]
    llama = "tokenizers/llama/tokenizer.json"

    [options]                      # of every artifact that doesn't say otherwise
    whitespace = "compact"

    [resources]                    # schemas that the references of others may name
    "https://example.com/money.json" = "schemas/money.json"

    [artifacts."payments/refund"]
    source = "schemas/refund.json"
    tokenizers = ["llama"]         # default: all
    kind = "json_schema"           # default: by suffix
    limits_profile = "strict"
    options = { max_nesting = 8 }  # over those above
    resources = []                 # URIs of those above; default: all, for a JSON Schema

Paths are relative to the manifest. Every fault is told with its place, and all of them at once.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from maskwright.compiler.options import CompileOptions

from .. import keys
from ..cli.files import KINDS, kind_by_suffix
from ..faults import RegistryError
from ..names import check_name
from ..workspace import COMPANIONS

_KEYS = ("source", "kind", "tokenizers", "options", "limits_profile", "resources")


class ManifestError(ValueError):
    """`faults`: (place, message) pairs."""

    def __init__(self, path: Path, faults: list[tuple[str, str]]) -> None:
        self.path, self.faults = path, faults
        super().__init__("; ".join(f"{place}: {message}" if place else message for place, message in faults))


@dataclass(frozen=True)
class Item:
    """One source for one tokenizer. path: as the manifest has it. chosen: options that aren't the compiler's."""

    name: str
    tokenizer: str
    path: str
    source: str
    kind: str
    options: CompileOptions
    chosen: Mapping[str, Any]
    limits_profile: str
    resources: Mapping[str, str] = field(default_factory=dict)

    @property
    def source_hash(self) -> str:
        return keys.source_hash(self.kind, self.source, self.resources)


@dataclass(frozen=True)
class Manifest:
    path: Path
    tokenizers: Mapping[str, Path]
    items: tuple[Item, ...]

    def tokenizer_hash(self, name: str) -> str:
        """Over the file and its companions, as they are now. Raises OSError."""
        path, digest = self.tokenizers[name], hashlib.sha256()
        for file in (path, *(path.with_name(c) for c in sorted(COMPANIONS))):
            if file == path or (path.name == "tokenizer.json" and file.is_file()):
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()


def load_manifest(path: Path) -> Manifest:
    """Reads a manifest and its sources. Raises ManifestError, OSError for the manifest itself."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(path, [("", str(error))]) from error
    reader = _Reader(path)
    manifest = reader.read(values)
    if reader.faults:
        raise ManifestError(path, reader.faults)
    return manifest


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.faults: list[tuple[str, str]] = []
        self._resources: dict[str, str] = {}

    def read(self, values: dict[str, Any]) -> Manifest:
        self._refuse_unknown("", values, ("tokenizers", "options", "resources", "artifacts"))
        self._read_resources(self._table("resources", values.get("resources", {})))
        tokenizers = self._tokenizers(self._table("tokenizers", values.get("tokenizers", {})))
        options = self._table("options", values.get("options", {}))
        items: list[Item] = []
        artifacts = self._table("artifacts", values.get("artifacts", {}))
        for name, artifact in artifacts.items():
            place = f"artifacts.{name}"
            items += self._items(place, name, self._table(place, artifact), options, tokenizers)
        if not artifacts:
            self._fault("artifacts", "there are none")
        return Manifest(self._path, tokenizers, tuple(items))

    def _items(
        self,
        place: str,
        name: str,
        values: dict[str, Any],
        defaults: dict[str, Any],
        tokenizers: dict[str, Path],
    ) -> list[Item]:
        self._refuse_unknown(place, values, _KEYS)
        full = self._name(place, name)
        path, source = self._source(place, values.get("source"))
        kind = values.get("kind") or kind_by_suffix(path) or ""
        if kind not in KINDS:
            self._fault(f"{place}.kind", f"must be one of {', '.join(KINDS)}, unless the suffix tells")
        chosen = {**defaults, **self._table(f"{place}.options", values.get("options", {}))}
        options = self._options(f"{place}.options", chosen)
        wanted = values.get("tokenizers", list(tokenizers))
        if not isinstance(wanted, list) or not wanted:
            self._fault(f"{place}.tokenizers", "must be a list of names")
            wanted = []
        for tokenizer in wanted:
            if tokenizer not in tokenizers:
                self._fault(f"{place}.tokenizers", f"no tokenizer {tokenizer!r} in [tokenizers]")
        profile = str(values.get("limits_profile", ""))
        supplied = self._chosen_resources(f"{place}.resources", kind, values.get("resources"))
        return [Item(full, str(t), path, source, kind, options, chosen, profile, supplied) for t in wanted]

    def _read_resources(self, values: dict[str, Any]) -> None:
        self._resources = {uri: self._source(f"resources.{uri}", file, "")[1] for uri, file in values.items()}

    def _chosen_resources(self, place: str, kind: str, uris: Any) -> dict[str, str]:
        if uris is None:
            return dict(self._resources) if kind == "json_schema" else {}
        if not isinstance(uris, list):
            self._fault(place, "must be a list of URIs")
            return {}
        for uri in uris:
            if uri not in self._resources:
                self._fault(place, f"no resource {uri!r} in [resources]")
        if uris and kind != "json_schema":
            self._fault(place, "only a JSON Schema has any")
        return {uri: self._resources[uri] for uri in uris if uri in self._resources}

    def _tokenizers(self, values: dict[str, Any]) -> dict[str, Path]:
        found = {}
        for name, file in values.items():
            path = self._path.parent / str(file)
            if not path.is_file():
                self._fault(f"tokenizers.{name}", f"no file {file}")
            found[name] = path
        if not found:
            self._fault("tokenizers", "there are none")
        return found

    def _source(self, place: str, file: Any, key: str = ".source") -> tuple[str, str]:
        place += key
        if not isinstance(file, str):
            self._fault(place, "must be the path of a file")
            return "", ""
        try:
            text = (self._path.parent / file).read_text(encoding="utf-8")
        except OSError as error:
            self._fault(place, f"{file}: {error.strerror or error}")
            return file, ""
        except UnicodeDecodeError as error:
            self._fault(place, f"{file}: byte {error.start} isn't UTF-8")
            return file, ""
        return file, text.removesuffix("\n") if file.endswith((".regex", ".re")) else text

    def _options(self, place: str, chosen: dict[str, Any]) -> CompileOptions:
        known = {f.name for f in fields(CompileOptions)}
        self._refuse_unknown(place, chosen, tuple(sorted(known)))
        try:
            return CompileOptions(**{name: v for name, v in chosen.items() if name in known})
        except (ValueError, TypeError) as error:
            self._fault(place, str(error))
            return CompileOptions()

    def _name(self, place: str, name: str) -> str:
        try:
            return check_name(name)
        except RegistryError as error:
            self._fault(place, error.message)
            return name

    def _table(self, place: str, values: Any) -> dict[str, Any]:
        if isinstance(values, dict):
            return values
        self._fault(place, "must be a table")
        return {}

    def _refuse_unknown(self, place: str, values: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for name in values:
            if name not in known:
                full = f"{place}.{name}" if place else name
                self._fault(full, f"isn't known; there are {', '.join(known)}")

    def _fault(self, place: str, message: str) -> None:
        self.faults.append((place, message))
