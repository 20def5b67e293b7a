"""`maskwright registry`: names, versions and channels of a running service; upkeep of a store.

The first group of commands calls a service (`--server`; TLS and token as `Credentials.from_environment` tells). The
second works on a store itself (`--data` or `--store`), beside the servers that use it or without any.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .. import DEFAULT_ADDRESS
from ..numbers import finite, positive
from .terminal import EXIT_FILE, EXIT_OK, EXIT_REFUSED, EXIT_SERVICE, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.workers.client import RegistryClient

    from ..catalog import Catalog
    from ..names import Journal, Token

NAME = "registry"
EXTRA = "server"
HELP = "names, versions and channels; upkeep of a store"
_Run = Callable[[argparse.Namespace, Terminal], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_calls(actions)
    _add_upkeep(actions)


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    code: int = options.action(options, terminal)
    return code


def _add_json(parser: argparse.ArgumentParser) -> None:
    """Taken after the action too, where people write it."""
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="machine-readable output")


def _add_calls(actions: Any) -> None:
    def call(name: str, help_: str, action: _Run, *positional: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(name, help=help_, description=help_)
        for argument in positional:
            parser.add_argument(argument, type=int if argument == "version" else str)
        _add_json(parser)
        parser.add_argument("--server", default=DEFAULT_ADDRESS, metavar="HOST:PORT")
        parser.set_defaults(action=action)
        return parser

    call("names", "list names and their channels", _names).add_argument("--prefix", default="")
    call("versions", "list a name's versions", _versions, "name")
    publish = call("publish", "add a version to a name", _publish, "name")
    publish.add_argument("artifact_key", nargs="+", help="one for each vocabulary")
    publish.add_argument("--note", default="")
    promote = call("promote", "point a channel to a version", _promote, "name", "channel", "version")
    promote.add_argument("--expect", type=int, metavar="VERSION", help="only from there; 0: a new channel")
    rollback = call("rollback", "point a channel to what it pointed to before", _rollback, "name", "channel")
    rollback.add_argument("--to", type=int, metavar="VERSION")
    call("pin", "keep a version from retention", lambda o, t: _pin(o, t, True), "name", "version")
    call("unpin", "undo pin", lambda o, t: _pin(o, t, False), "name", "version")
    retire = call("retire", "drop versions that nothing points to, for good", _retire, "name")
    retire.add_argument("versions", type=int, nargs="+")
    revoke = call("revoke", "stop serving an artifact, for good", _revoke, "artifact_hash")
    revoke.add_argument("--reason", required=True)
    resolve = call("resolve", "what NAME, NAME@VERSION or NAME:CHANNEL is", _resolve, "name")
    resolve.add_argument("--fingerprint", default="", help="the vocabulary, where there are several")
    call("health", "does the service serve? for probes; needs no token", _health)
    watch = call("watch", "print changes, one JSON object a line, until interrupted", _watch)
    watch.add_argument("--after", type=int, default=0, metavar="REVISION")
    watch.add_argument("--once", action="store_true", help="end when all that there is was printed")


def _add_upkeep(actions: Any) -> None:
    def upkeep(name: str, help_: str, action: _Run) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(name, help=help_, description=help_)
        _add_json(parser)
        parser.add_argument("--data", default="maskwright-data", metavar="FOLDER")
        parser.add_argument("--store", default="", metavar="LOCATION", help="default: the one under --data")
        parser.set_defaults(action=action)
        return parser

    upkeep("reindex", "rebuild the index from the store", _reindex)
    audit = upkeep("audit", "print the journal of changes, one JSON object a line", _audit)
    audit.add_argument("--after", type=int, default=0, metavar="REVISION")
    create = upkeep("token-create", "make a bearer token and print it, this once", _token_create)
    create.add_argument("caller", help="whom it stands for; in the audit log, and for quotas")
    create.add_argument("--scope", action="append", required=True, help="read, compile, publish or admin; repeat")
    create.add_argument("--namespace", action="append", default=[], help="only there; repeat; patterns")
    create.add_argument("--expires-days", type=positive, metavar="DAYS")
    upkeep("token-list", "list tokens' ids and rights", _token_list)
    upkeep("token-remove", "end a token", _token_remove).add_argument("id")
    gc = upkeep("gc", "tell what retention and garbage collection would remove; with --apply, remove it", _gc)
    gc.add_argument("--apply", action="store_true")
    gc.add_argument("--keep-versions", type=int, default=20, metavar="N", help="latest versions of each name")
    gc.add_argument("--keep-days", type=finite, default=30.0, metavar="DAYS", help="younger versions stay")
    gc.add_argument("--unnamed-days", type=finite, default=7.0, metavar="DAYS", help="as do younger artifacts")
    gc.add_argument("--grace-hours", type=finite, default=24.0, metavar="HOURS", help="from condemned to removed")


# -- calls --------------------------------------------------------------------------------------


@contextmanager
def calling(server: str) -> Iterator[RegistryClient]:
    """A client of a server, whose errors become failures of the command."""
    from maskwright.workers.client import CallFailed, ClientError, RegistryClient, ServiceUnavailable

    try:
        with RegistryClient(server) as client:
            yield client
    except ServiceUnavailable as error:
        raise Failure(EXIT_SERVICE, f"{server}: {error}") from error
    except CallFailed as error:
        raise Failure(EXIT_REFUSED, str(error), error.diagnostics, reason=error.reason) from error
    except ClientError as error:
        raise Failure(EXIT_REFUSED, str(error)) from error
    except (ValueError, OSError) as error:
        raise Failure(EXIT_USAGE, str(error)) from error


def _names(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        found = client.names(options.prefix)
    lines = [f"{n.name:<40} latest {n.latest:<5} {' '.join(f'{c}={v}' for c, v in n.channels.items())}" for n in found]
    terminal.show(lines or ["no names"], {"names": [vars(n) for n in found]})
    return EXIT_OK


def _versions(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        found = client.versions(options.name)
    lines = []
    for v in found:
        marks = [*v.channels, *(["pinned"] if v.pinned else []), *(["REVOKED"] if v.revoked else [])]
        lines.append(f"{v.version:>5}  {v.published_at}  {v.published_by}  {' '.join(marks)}  {v.note}".rstrip())
        lines += [f"       {a.hash}  {a.size:,} bytes, vocabulary {a.fingerprint[:16]}" for a in v.artifacts]
    fields = [{**vars(v), "artifacts": [vars(a) for a in v.artifacts]} for v in found]
    terminal.show(lines, {"versions": fields})
    return EXIT_OK


def _publish(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        version = client.publish(options.name, options.artifact_key, options.note)
    terminal.show([f"{options.name}@{version}"], {"name": options.name, "version": version})
    return EXIT_OK


def _promote(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        revision = client.promote(options.name, options.channel, options.version, expected=options.expect)
    line = f"{options.name}:{options.channel} is version {options.version}"
    terminal.show([line], {"version": options.version, "revision": revision})
    return EXIT_OK


def _rollback(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        version = client.rollback(options.name, options.channel, to=options.to)
    terminal.show([f"{options.name}:{options.channel} is version {version}"], {"version": version})
    return EXIT_OK


def _pin(options: argparse.Namespace, terminal: Terminal, pinned: bool) -> int:
    with calling(options.server) as client:
        revision = client.pin(options.name, options.version, pinned)
    state = "pinned" if pinned else "not pinned"
    terminal.show([f"{options.name}@{options.version} is {state}"], {"pinned": pinned, "revision": revision})
    return EXIT_OK


def _retire(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        revision = client.retire(options.name, options.versions)
    lines = [f"{options.name}@{version} is retired" for version in options.versions]
    terminal.show(lines, {"versions": options.versions, "revision": revision})
    return EXIT_OK


def _revoke(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        revision = client.revoke(options.artifact_hash, options.reason)
    terminal.show([f"{options.artifact_hash} is revoked"], {"revision": revision})
    return EXIT_OK


def _resolve(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        found = client.resolve(options.name, fingerprint=options.fingerprint)
    fields = {
        "version": found.version,
        "artifact_key": found.key,
        "artifact": found.artifact.hash,
        "size_bytes": found.artifact.size,
        "pack": found.pack.hash,
        "fingerprint": found.fingerprint,
        "compiler_version": found.compiler_version,
    }
    terminal.show([f"{name:<17} {value}" for name, value in fields.items()], fields)
    return EXIT_OK


def _watch(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        for _, change in client.watch(options.after):
            if change is not None:
                terminal.show([json.dumps(vars(change))], vars(change))
            elif options.once:
                break
    return EXIT_OK


def _health(options: argparse.Namespace, terminal: Terminal) -> int:
    with calling(options.server) as client:
        status = client.health()
    terminal.show([status], {"status": status})
    return EXIT_OK if status == "SERVING" else EXIT_SERVICE


# -- upkeep -------------------------------------------------------------------------------------


@contextmanager
def _opened(options: argparse.Namespace, create: bool = False) -> Iterator[tuple[Catalog, Journal]]:
    """`create`: a store that isn't there is made; else a location that's misspelt would look like an empty one."""
    from pathlib import Path

    from ..config import ServerConfig
    from ..faults import RegistryError
    from ..names import Journal
    from ..server import open_catalog
    from ..store import StoreError
    from ..store.locate import store_exists

    try:
        config = ServerConfig(data=Path(options.data), store=options.store)
        if not create and not store_exists(config.location):
            raise Failure(EXIT_FILE, f"there's no store at {config.location}")
        catalog = open_catalog(config)
        journal = Journal(catalog.content, catalog.index)
        journal.catch_up()
        yield catalog, journal
    except (StoreError, OSError) as error:
        raise Failure(EXIT_SERVICE, str(error)) from error
    except (ValueError, RegistryError) as error:
        raise Failure(EXIT_USAGE, str(error)) from error


def _reindex(options: argparse.Namespace, terminal: Terminal) -> int:
    with _opened(options) as (catalog, journal), terminal.working("reading the store"):
        catalog.reindex()
        journal.reread()
        rows, revision = catalog.index.count(), journal.read(lambda state: state.revision)
    lines = [f"{rows:,} rows, journal to revision {revision:,}"]
    terminal.show(lines, {"rows": rows, "revision": revision})
    return EXIT_OK


def _audit(options: argparse.Namespace, terminal: Terminal) -> int:
    with _opened(options) as (_, journal):
        for entry in journal.history(options.after):
            terminal.show([json.dumps(entry.to_json())], entry.to_json())
    return EXIT_OK


def _token_create(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..security.tokens import create_token

    seconds = None if options.expires_days is None else options.expires_days * 86400
    with _opened(options, create=True) as (_, journal):
        token, entry = create_token(journal, options.caller, options.scope, options.namespace, _operator(), seconds)
    terminal.show([token], {"token": token, "id": entry.fields["id"]})
    return EXIT_OK


def _token_list(options: argparse.Namespace, terminal: Terminal) -> int:
    with _opened(options) as (_, journal):
        tokens = journal.read(lambda state: list(state.tokens.values()))
    fields = [{k: v for k, v in vars(t).items() if k != "token_hash"} for t in tokens]
    lines = [
        f"{t.id}  {t.caller:<24} {','.join(t.scopes):<28} {','.join(t.namespaces) or 'every namespace'}{_expiry(t)}"
        for t in tokens
    ]
    terminal.show(lines or ["no tokens"], {"tokens": fields})
    return EXIT_OK


def _expiry(token: Token) -> str:
    if token.expires is None:
        return ""
    return f"  until {datetime.fromtimestamp(token.expires, UTC).isoformat(timespec='seconds')}"


def _token_remove(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..security.tokens import remove_token

    with _opened(options) as (_, journal):
        entry = remove_token(journal, options.id, _operator())
    terminal.show([f"{options.id} is removed"], {"revision": entry.revision})
    return EXIT_OK


def _operator() -> str:
    import getpass

    try:
        return f"operator:{getpass.getuser()}"
    except (KeyError, OSError):
        return "operator"


def _gc(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..collect import Collector, Retention
    from ..names import Author

    with _opened(options) as (catalog, journal):
        days = (options.keep_days, options.unnamed_days)
        retention = Retention(options.keep_versions, *days, grace_hours=options.grace_hours)
        collector = Collector(catalog, journal, retention, Author("gc"))
        with terminal.working("looking for garbage"):
            found = collector.run() if options.apply else collector.plan()
    lines = [f"retire   {name}@{v}" for name, versions in found.retired.items() for v in versions]
    lines += [f"collect  {hash_}" for hash_ in found.artifacts.values()]
    lines += [f"condemn  {hash_}" for hash_ in found.condemned] + [f"remove   {hash_}" for hash_ in found.removed]
    total = f"{len(lines)} things {'done' if options.apply else 'to do; nothing was changed (--apply does it)'}"
    terminal.show([*lines, total], {**vars(found), "applied": options.apply})
    return EXIT_OK
