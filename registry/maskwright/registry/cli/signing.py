"""`maskwright signing`: keys, and signatures of artifacts in files or in a registry.

A target is a file, whose signatures are in FILE.sig beside it, or with `--server` what the registry calls NAME@VERSION,
NAME:CHANNEL, NAME (its latest version) or an artifact's hash. Of a version every artifact is meant.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maskwright.workers.digests import is_digest
from maskwright.workers.whole_files import write_whole

from .files import file_failures
from .registry import calling
from .terminal import EXIT_FILE, EXIT_OK, EXIT_REFUSED, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.workers.client import RegistryClient, Signature

NAME = "signing"
EXTRA = "signing"
HELP = "make keys, sign artifacts, verify signatures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    def action(name: str, help_: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = actions.add_parser(name, help=help_, description=help_)
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable output")
        made.set_defaults(action={"keygen": _keygen, "sign": _sign, "verify": _verify}[name])
        return made

    action("keygen", "make a key: KEY, for its owner alone, and KEY.pub").add_argument("key", type=Path)
    sign = action("sign", "sign artifacts")
    verify = action("verify", "tell whether trusted keys signed artifacts; 1 if not")
    sign.add_argument("--key", type=Path, required=True, metavar="FILE")
    verify.add_argument("--trusted", type=Path, action="append", required=True, metavar="PATH", help="repeat")
    for one in (sign, verify):
        one.add_argument("target", nargs="+", help="a file; with --server a name's version or an artifact's hash")
        one.add_argument("--server", metavar="HOST:PORT")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    code: int = options.action(options, terminal)
    return code


@contextmanager
def key_failures() -> Iterator[None]:
    """Keys that can't be used, as failures of the command."""
    from maskwright.workers.client import KeyFileError

    try:
        yield
    except KeyFileError as error:
        raise Failure(EXIT_FILE, str(error)) from error


def _keygen(options: argparse.Namespace, terminal: Terminal) -> int:
    from maskwright.workers.client import SigningKey

    with key_failures(), file_failures(str(options.key)):
        key = SigningKey.generate()
        public = key.save(options.key)
    terminal.show([f"key {key.key_id} in {options.key} and {public}"], {"key_id": key.key_id, "public": str(public)})
    return EXIT_OK


def _sign(options: argparse.Namespace, terminal: Terminal) -> int:
    from maskwright.workers.client import SigningKey

    with key_failures(), file_failures(str(options.key)):
        key = SigningKey.load(options.key)
    signed = []
    if options.server:
        with calling(options.server) as client:
            for hash_ in _hashes(client, options.target):
                client.add_signature(hash_, key.sign(hash_))
                signed.append(hash_)
    else:
        for path in map(Path, options.target):
            signed.append(_file_hash(path))
            kept = [s for s in _read(path) if s.key_id != key.key_id]
            listed = [s.to_json() for s in (*kept, key.sign(signed[-1]))]
            with file_failures(str(_beside(path))):
                write_whole(_beside(path), (json.dumps(listed, indent=1) + "\n").encode())
    terminal.show([f"{h} signed by {key.key_id}" for h in signed], {"key_id": key.key_id, "artifacts": signed})
    return EXIT_OK


def _verify(options: argparse.Namespace, terminal: Terminal) -> int:
    from maskwright.workers.client import ArtifactUntrusted, TrustedKeys

    with key_failures(), file_failures(", ".join(map(str, options.trusted))):
        trusted = TrustedKeys.load(*options.trusted)
    found: dict[str, list[Signature]] = {}
    if options.server:
        with calling(options.server) as client:
            for hash_ in _hashes(client, options.target):
                found[hash_] = client.signatures(hash_, trusted.ids)
    else:
        found = {_file_hash(path): _read(path) for path in map(Path, options.target)}
    signers: dict[str, str] = {}
    lines = []
    for hash_, signatures in found.items():
        try:
            signers[hash_] = trusted.check(hash_, signatures)
            lines.append(f"{hash_} signed by {signers[hash_]}")
        except ArtifactUntrusted as error:
            lines.append(str(error))
    missing = sorted(found.keys() - signers.keys())
    terminal.show(lines, {"signed": signers, "untrusted": missing})
    return EXIT_REFUSED if missing else EXIT_OK


def _hashes(client: RegistryClient, targets: list[str]) -> Iterator[str]:
    """Hashes of the artifacts that are meant; each once."""
    seen: set[str] = set()
    for target in targets:
        for hash_ in [target] if is_digest(target) else _of_version(client, target):
            if hash_ not in seen:
                seen.add(hash_)
                yield hash_


def _of_version(client: RegistryClient, target: str) -> list[str]:
    name, at, number = target.partition("@")
    name, colon, channel = name.partition(":")
    versions = client.versions(name)
    if colon:
        versions = [v for v in versions if channel in v.channels]
    elif at:
        versions = [v for v in versions if str(v.version) == number]
    if not versions:
        raise Failure(EXIT_USAGE, f"{target}: no such version")
    return [a.hash for a in versions[0].artifacts]


def _file_hash(path: Path) -> str:
    with file_failures(str(path)):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sig")


def _read(path: Path) -> list[Signature]:
    """The signatures in the file beside it; none where there's no such file."""
    from maskwright.workers.client import Signature

    beside = _beside(path)
    if not beside.exists():
        return []
    with file_failures(str(beside)):
        try:
            return [Signature.from_json(fields) for fields in json.loads(beside.read_text())]
        except (ValueError, TypeError) as error:
            raise Failure(EXIT_FILE, f"{beside}: not a list of signatures") from error
