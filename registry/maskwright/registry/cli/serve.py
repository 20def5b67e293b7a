"""`maskwright serve`: the registry and compiler as a gRPC service."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .. import DEFAULT_ADDRESS, DEFAULT_LAB_ADDRESS
from ..numbers import finite
from .terminal import EXIT_FILE, EXIT_OK, EXIT_SERVICE, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from ..config import ServerConfig

NAME = "serve"
EXTRA = "server"
HELP = "serve the compiler and registry over gRPC, until SIGTERM"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML; see deploy/maskwright-server.toml")
    parser.add_argument("--listen", metavar="HOST:PORT", help=f"default {DEFAULT_ADDRESS}; port 0: a free one")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="default maskwright-data")
    parser.add_argument("--store", metavar="LOCATION", help="s3://BUCKET/PREFIX?…; default: a folder in the data")
    parser.add_argument("--compilers", type=int, metavar="N", help="compiling processes")
    parser.add_argument("--drain-seconds", type=finite, metavar="SECONDS")
    page = DEFAULT_LAB_ADDRESS
    parser.add_argument("--lab", nargs="?", const=page, metavar="HOST:PORT", help=f"the lab's page too, at {page}")
    parser.add_argument("--check-config", action="store_true", help="read the configuration, tell and end")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    config = _config(options)
    if options.check_config:
        terminal.show(["the configuration is fine"], {"address": config.address})
        return EXIT_OK

    from maskwright.workers.client import KeyFileError

    from ..server import serve
    from ..store import StoreError
    from ..telemetry import start_logging, start_tracing

    start_logging(config.telemetry.log_format, config.telemetry.log_level)
    try:
        start_tracing(config.telemetry.traces)
    except ModuleNotFoundError as error:
        raise Failure(EXIT_USAGE, f"traces = \"otlp\": {error}: pip install 'maskwright[otlp]'") from error

    def ready(address: str, lab: str) -> None:
        lines = [f"listening on {address}, data in {config.data}", *([f"the lab is at {lab}"] if lab else [])]
        terminal.show(lines, {"address": address, **({"lab": lab} if lab else {})})

    try:
        asyncio.run(serve(config, ready))
    except KeyFileError as error:
        raise Failure(EXIT_FILE, str(error)) from error
    except (OSError, StoreError) as error:
        raise Failure(EXIT_SERVICE, f"can't serve on {config.address}: {error}") from error
    return EXIT_OK


def _config(options: argparse.Namespace) -> ServerConfig:
    from ..settings import load_config

    chosen = {
        "address": options.listen,
        "data": options.data,
        "store": options.store,
        "pool__children": options.compilers,
        "drain_seconds": options.drain_seconds,
        "lab__address": options.lab,
    }
    try:
        return load_config(options.config, os.environ, **chosen)
    except OSError as error:
        raise Failure(EXIT_FILE, f"{options.config}: {error.strerror or error}") from error
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error
