"""Lists and settles calls in doubt.

    python -m maskwright.workers.gate calls.sqlite
    python -m maskwright.workers.gate calls.sqlite settle KEY --took-effect '{"refund": 7}' --by ann --why paid
    python -m maskwright.workers.gate calls.sqlite settle KEY --no-effect --by ann --why "no payment"

Output is JSON, one object a line. Exit codes: 0 done; 1 calls are in doubt, or the key isn't; 2 the command line was
wrong; 3 the store can't be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maskwright.workers.gate.errors import CannotSettle, StoreError
from maskwright.workers.gate.store import SqliteStore


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not Path(options.store).is_file():
        return _fail(3, f"{options.store}: no such file")
    try:
        with SqliteStore(options.store) as store:
            return _list(store) if options.command is None else _settle(store, options)
    except (ValueError, RecursionError) as error:  # no JSON, no text, nobody who says so
        return _fail(2, f"{parser.prog}: {error}")
    except CannotSettle as error:
        return _fail(1, str(error))
    except StoreError as error:
        return _fail(3, str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m maskwright.workers.gate", description="List and settle calls in doubt."
    )
    parser.add_argument("store", help="the store's SQLite file")
    commands = parser.add_subparsers(dest="command", metavar="settle")
    settle = commands.add_parser("settle", help="say whether a call took effect")
    settle.add_argument("key")
    settle.add_argument("--scope", default="")
    effect = settle.add_mutually_exclusive_group(required=True)
    effect.add_argument("--took-effect", metavar="RESULT", help="it did; the result as JSON, for duplicates")
    effect.add_argument("--no-effect", action="store_true", help="it didn't; the key may run again")
    settle.add_argument("--by", required=True, help="who says so")
    settle.add_argument("--why", required=True)
    return parser


def _list(store: SqliteStore) -> int:
    entries = store.in_doubt()
    for entry in entries:
        _show(asdict(entry))
    return 1 if entries else 0


def _settle(store: SqliteStore, options: argparse.Namespace) -> int:
    result = None if options.took_effect is None else _result(options.took_effect)
    store.settle(
        options.key,
        took_effect=not options.no_effect,
        by=options.by,
        why=options.why,
        result=result,
        scope=options.scope,
    )
    _show({"settled": options.key, "took_effect": not options.no_effect})
    return 0


def _result(text: str) -> Any:
    try:
        result = json.loads(text)
        json.dumps(result, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--took-effect isn't JSON: {error}") from error
    return result


def _show(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")


def _fail(code: int, message: str) -> int:
    sys.stderr.write(message + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
