"""`maskwright serve`: the registry and compiler as a gRPC service."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from .. import DEFAULT_ADDRESS
from .terminal import EXIT_OK, EXIT_SERVICE, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from ..config import ServerConfig

NAME = "serve"
EXTRA = "server"
HELP = "serve the compiler and registry over gRPC, until SIGTERM"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", default=DEFAULT_ADDRESS, metavar="HOST:PORT", help="port 0: a free one")
    parser.add_argument("--data", type=Path, default=Path("maskwright-data"), metavar="FOLDER")
    parser.add_argument("--compilers", type=int, metavar="N", help="compiling processes")
    parser.add_argument("--drain-seconds", type=float, default=20.0)


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..server import serve

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = _config(options)

    def ready(address: str) -> None:
        terminal.show([f"listening on {address}, data in {config.data}"], {"address": address})

    try:
        asyncio.run(serve(config, ready))
    except OSError as error:
        raise Failure(EXIT_SERVICE, f"can't serve on {config.address}: {error}") from error
    return EXIT_OK


def _config(options: argparse.Namespace) -> ServerConfig:
    from ..config import ServerConfig

    try:
        config = ServerConfig(address=options.listen, data=options.data, drain_seconds=options.drain_seconds)
        if options.compilers is not None:
            pool = dataclasses.replace(config.pool, children=options.compilers)
            config = dataclasses.replace(config, pool=pool)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error
    return config
