"""`maskwright precompile`: compile a manifest before it's needed, publish it, and lock what came out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.workers.whole_files import write_whole

from .files import file_failures
from .signing import key_failures
from .terminal import EXIT_FILE, EXIT_OK, EXIT_REFUSED, EXIT_SERVICE, EXIT_USAGE, Failure, Terminal, render_diagnostic

if TYPE_CHECKING:
    from maskwright.workers.client import LockedArtifact, RegistryClient, SigningKey

    from ..precompile import Backend, Item, Manifest, Outcome, PreparedTokenizer

NAME = "precompile"
EXTRA = "server"
HELP = "compile a manifest through a server or here; write a lock file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="maskwright.toml")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--server", metavar="HOST:PORT")
    where.add_argument("--output", type=Path, metavar="FOLDER", help="compile here; artifacts and packs go there")
    parser.add_argument("--lock", type=Path, metavar="FILE", help="default: maskwright.lock beside the manifest")
    parser.add_argument("--check", action="store_true", help="only tell whether the lock is stale; 1 if it is")
    parser.add_argument("--publish", action="store_true", help="with --server: a version for what changed")
    parser.add_argument("--promote", metavar="CHANNEL", help="with --publish: point it to those versions")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="with --server: sign what the manifest compiles to")
    parser.add_argument("--note", default="", help="with --publish: for people")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="with --output")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..precompile import ManifestError, load_manifest

    if (options.publish and not options.server) or (options.promote and not options.publish):
        raise Failure(EXIT_USAGE, "--publish needs --server, and --promote needs --publish")
    if options.sign and not options.server:
        raise Failure(EXIT_USAGE, "--sign needs --server; files are signed by `maskwright signing sign`")
    with file_failures(str(options.manifest)):
        try:
            manifest = load_manifest(options.manifest)
        except ManifestError as error:
            lines = [f"{place}: {message}" if place else message for place, message in error.faults]
            raise Failure(EXIT_FILE, f"{options.manifest}:\n  " + "\n  ".join(lines)) from error
    lock = options.lock or options.manifest.with_name("maskwright.lock")
    if options.check:
        return _check(options, manifest, lock, terminal)
    if options.server is None and options.output is None:
        raise Failure(EXIT_USAGE, "--server or --output tells where to compile")
    key = _signing_key(options.sign)
    with _backend(options) as (backend, client):
        return _Run(options, manifest, lock, terminal, key).compile(backend, client)


def _signing_key(path: Path | None) -> SigningKey | None:
    from maskwright.workers.client import SigningKey

    if path is None:
        return None
    with key_failures(), file_failures(str(path)):
        return SigningKey.load(path)


def _check(options: argparse.Namespace, manifest: Manifest, lock: Path, terminal: Terminal) -> int:
    from maskwright.workers.client import LockError, read_lock

    from ..precompile import staleness

    with file_failures(str(lock)):
        try:
            known = read_lock(lock)
        except LockError as error:
            raise Failure(EXIT_FILE, str(error)) from error
    if options.server or options.output:
        with _backend(options) as (backend, client):
            found = staleness(manifest, known, backend.compiler_version())
            found += [] if client is None else _unserved(client, known.artifacts)
    else:
        found = staleness(manifest, known)
    terminal.show(found or [f"{lock} holds"], {"stale": found})
    return EXIT_REFUSED if found else EXIT_OK


def _unserved(client: RegistryClient, artifacts: Sequence[LockedArtifact]) -> list[str]:
    """Locked artifacts that the registry doesn't have or has revoked."""
    from maskwright.workers.client import ArtifactRevoked, CallFailed, ServiceUnavailable

    found = []
    for artifact in artifacts:
        try:
            client.resolve(hash=artifact.artifact)
        except ServiceUnavailable:
            raise
        except (ArtifactRevoked, CallFailed) as error:
            found.append(f"{artifact.name} for {artifact.tokenizer}: {error}")
    return found


@contextmanager
def _backend(options: argparse.Namespace) -> Iterator[tuple[Backend, RegistryClient | None]]:
    from maskwright.workers.client import ClientError, RegistryClient, ServiceUnavailable

    from ..precompile import LocalBackend, ServerBackend

    if options.server is None:
        with file_failures(str(options.output)):
            yield LocalBackend(options.output or Path(), max(1, options.processes)), None
        return
    try:
        with RegistryClient(options.server, timeout=600.0) as client:
            yield ServerBackend(client), client
    except ServiceUnavailable as error:
        raise Failure(EXIT_SERVICE, f"{options.server}: {error}") from error
    except ClientError as error:
        raise Failure(EXIT_REFUSED, str(error)) from error


class _Run:
    """One compilation of a manifest: progress, table, publishing, lock."""

    def __init__(
        self,
        options: argparse.Namespace,
        manifest: Manifest,
        lock: Path,
        terminal: Terminal,
        key: SigningKey | None = None,
    ) -> None:
        self._options, self._manifest, self._lock, self._terminal = options, manifest, lock, terminal
        self._key = key

    def compile(self, backend: Backend, client: RegistryClient | None) -> int:
        with self._terminal.working("preparing tokenizers"):
            prepared = backend.prepare(self._manifest)
        ready = self._usable(prepared)
        items = self._manifest.items
        outcomes: dict[int, Outcome] = {}
        with self._terminal.working(f"compiling {'one source' if len(items) == 1 else f'{len(items)} sources'}"):
            for outcome in backend.compile(items, ready):
                outcomes[outcome.index] = outcome
                self._tell_progress(len(outcomes), items[outcome.index], outcome)
        refused = [n for n in range(len(items)) if outcomes[n].failure]
        artifacts = [] if refused else self._lock_entries(items, outcomes, ready)
        if client is not None and self._key is not None and not refused:
            for hash_ in sorted({a.artifact for a in artifacts}):
                client.add_signature(hash_, self._key.sign(hash_))
        if client is not None and self._options.publish and not refused:
            artifacts = self._publish(client, artifacts)
        else:
            artifacts = self._with_known_versions(artifacts)
        if not refused:
            self._write(backend.compiler_version(), artifacts)
        self._show(items, outcomes, artifacts, refused)
        return EXIT_REFUSED if refused else EXIT_OK

    def _usable(self, prepared: Any) -> dict[str, PreparedTokenizer]:
        from ..precompile import Outcome

        for name, found in prepared.items():
            if isinstance(found, Outcome):
                message = f"tokenizer {name} can't be used: {found.failure}"
                raise Failure(EXIT_FILE, message, found.diagnostics)
        return dict(prepared)

    def _tell_progress(self, done: int, item: Item, outcome: Outcome) -> None:
        what = "REFUSED" if outcome.failure else "there already" if outcome.cached else "compiled"
        total = len(self._manifest.items)
        self._terminal.note(f"[{done}/{total}] {item.name} for {item.tokenizer}: {what}, {outcome.seconds:.1f} s")

    def _lock_entries(
        self, items: Sequence[Item], outcomes: dict[int, Outcome], ready: dict[str, PreparedTokenizer]
    ) -> list[LockedArtifact]:
        from maskwright.workers.client import LockedArtifact

        hashes = {name: self._manifest.tokenizer_hash(name) for name in ready}
        return [
            LockedArtifact(
                name=item.name,
                tokenizer=item.tokenizer,
                version=0,
                source=item.path,
                source_hash=item.source_hash,
                kind=item.kind,
                options=item.options.canonical(),
                tokenizer_hash=hashes[item.tokenizer],
                fingerprint=ready[item.tokenizer].fingerprint,
                artifact_key=outcomes[n].artifact_key,
                artifact=outcomes[n].artifact,
                artifact_size=outcomes[n].artifact_size,
                pack=outcomes[n].pack,
                pack_size=outcomes[n].pack_size,
            )
            for n, item in enumerate(items)
        ]

    def _with_known_versions(self, artifacts: list[LockedArtifact]) -> list[LockedArtifact]:
        """A version that the lock has still stands for a name that holds the same artifacts."""
        from dataclasses import replace

        from maskwright.workers.client import LockError, read_lock

        try:
            before = read_lock(self._lock).artifacts
        except (LockError, OSError):
            return artifacts
        held = {(a.name, a.artifact_key) for a in artifacts}
        changed = {name for name, _ in held ^ {(a.name, a.artifact_key) for a in before}}
        versions = {a.name: a.version for a in before if a.name not in changed}
        return [replace(a, version=versions.get(a.name, 0)) for a in artifacts]

    def _publish(self, client: RegistryClient, artifacts: list[LockedArtifact]) -> list[LockedArtifact]:
        """A new version of each name whose latest holds anything else; then the channel, where it points elsewhere."""
        from dataclasses import replace

        versions = {}
        channels = {n.name: n.channels for n in client.names()}
        for name in sorted({a.name for a in artifacts}):
            keys = sorted({a.artifact_key for a in artifacts if a.name == name})
            latest = client.versions(name)[0] if name in channels else None
            same = latest is not None and sorted(a.key for a in latest.artifacts) == keys
            versions[name] = latest.version if latest and same else client.publish(name, keys, self._options.note)
        if self._options.promote:
            for name, version in versions.items():
                if channels.get(name, {}).get(self._options.promote) != version:
                    client.promote(name, self._options.promote, version)
        return [replace(a, version=versions[a.name]) for a in artifacts]

    def _write(self, compiler_version: str, artifacts: Sequence[LockedArtifact]) -> None:
        from maskwright.workers.client.lock import render_lock

        with file_failures(str(self._lock)):
            write_whole(self._lock, render_lock(compiler_version, artifacts).encode())

    def _show(
        self,
        items: Sequence[Item],
        outcomes: dict[int, Outcome],
        artifacts: Sequence[LockedArtifact],
        refused: Sequence[int],
    ) -> None:
        lines, width = [], max(len(i.name) for i in items)
        for n, item in enumerate(items):
            result = outcomes[n]
            version = f"@{artifacts[n].version}" if artifacts and artifacts[n].version else ""
            what = "REFUSED" if result.failure else f"{result.artifact[:16]} {result.artifact_size:>9,} bytes"
            lines.append(f"{item.name + version:<{width + 5}} {item.tokenizer:<16} {what}")
            lines += [f"    {render_diagnostic(d)}" for d in result.diagnostics]
            if result.failure and not result.diagnostics:
                lines.append(f"    {result.failure}")
        lines.append(f"{len(refused)} of {len(items)} refused; no lock written" if refused else f"wrote {self._lock}")
        rows = [
            {
                "name": item.name,
                "tokenizer": item.tokenizer,
                "source": item.path,
                "version": artifacts[n].version if artifacts else 0,
                "artifact": outcomes[n].artifact,
                "size_bytes": outcomes[n].artifact_size,
                "cached": outcomes[n].cached,
                "failure": outcomes[n].failure,
                "diagnostics": list(outcomes[n].diagnostics),
            }
            for n, item in enumerate(items)
        ]
        self._terminal.show(lines, {"lock": str(self._lock) if not refused else None, "artifacts": rows})
