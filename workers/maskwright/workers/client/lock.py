"""Lock files: which artifact each name stood for when a manifest was compiled, by digest.

`maskwright precompile` writes them; a fleet that pins one runs the same bytes until it takes another, whatever becomes
of channels. JSON, so that a difference can be read:

    {"format": 1, "compiler_version": "…", "artifacts": [{"name": "default/refund", "version": 7, …}, …]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from maskwright.workers.digests import is_digest

FORMAT = 1


class LockError(ValueError):
    """A lock file that can't be used, or that doesn't hold what's asked for."""


@dataclass(frozen=True, order=True)
class LockedArtifact:
    """One artifact of a version.

    version: 0 where it was compiled without publishing. source, tokenizer: as the manifest names them. source_hash,
    options, tokenizer_hash: what it was compiled from, by which staleness is found.
    """

    name: str
    tokenizer: str
    version: int
    source: str
    source_hash: str
    kind: str
    options: str
    tokenizer_hash: str
    fingerprint: str
    artifact_key: str
    artifact: str
    artifact_size: int
    pack: str
    pack_size: int


@dataclass(frozen=True)
class Lock:
    compiler_version: str
    artifacts: tuple[LockedArtifact, ...]

    def find(self, name: str, fingerprint: str = "") -> LockedArtifact:
        """The artifact of a name, for a vocabulary where there are several. Raises LockError."""
        full = name if "/" in name else f"default/{name}"
        found = [a for a in self.artifacts if a.name == full and fingerprint in ("", a.fingerprint)]
        if len(found) != 1:
            what = f"{len(found)} artifacts for" if found else "nothing for"
            raise LockError(f"the lock holds {what} {name}{f' and vocabulary {fingerprint}' if fingerprint else ''}")
        return found[0]


def read_lock(path: str | Path) -> Lock:
    """Raises LockError, OSError."""
    try:
        outer = json.loads(Path(path).read_text(encoding="utf-8"))
        if outer["format"] != FORMAT:
            raise LockError(f"{path}: format {outer['format']}, not {FORMAT}")
        artifacts = tuple(_artifact(a) for a in outer["artifacts"])
        return Lock(str(outer["compiler_version"]), artifacts)
    except LockError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise LockError(f"{path} isn't a lock file: {error}") from error


def render_lock(compiler_version: str, artifacts: Iterable[LockedArtifact]) -> str:
    """The text of a lock file; the same for the same artifacts in whatever order."""
    listed = [asdict(a) for a in sorted(artifacts)]
    return json.dumps({"format": FORMAT, "compiler_version": compiler_version, "artifacts": listed}, indent=1) + "\n"


def _artifact(values: dict[str, Any]) -> LockedArtifact:
    kinds = {f.name: {"str": str, "int": int}[str(f.type)] for f in fields(LockedArtifact)}
    for name, kind in kinds.items():
        if type(values[name]) is not kind:
            raise TypeError(f"{name} must be {kind.__name__}")
    for name in ("artifact", "pack"):
        if not is_digest(values[name]):
            raise ValueError(f"{name} isn't a SHA-256")
    return LockedArtifact(**{name: values[name] for name in kinds})
