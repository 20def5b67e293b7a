"""`maskwright lab`: the page that shows a constraint at work, on this host."""

from __future__ import annotations

import argparse
import asyncio
import signal

from .. import DEFAULT_LAB_ADDRESS
from .terminal import EXIT_OK, EXIT_SERVICE, EXIT_USAGE, Failure, Terminal

NAME = "lab"
EXTRA = "server"
HELP = "watch a constraint work: a page on this host, until interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = DEFAULT_LAB_ADDRESS
    parser.add_argument("--listen", default=default, metavar="HOST:PORT", help=f"default {default}; port 0: a free one")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    from ..lab.server import Lab

    host, _, port = options.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Failure(EXIT_USAGE, f"--listen must be HOST:PORT, not {options.listen!r}")
    try:
        asyncio.run(_serve(Lab, options.listen, terminal))
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error
    except OSError as error:
        raise Failure(EXIT_SERVICE, f"can't serve on {options.listen}: {error}") from error
    return EXIT_OK


async def _serve(lab_class: type, address: str, terminal: Terminal) -> None:
    lab, stopping = lab_class(address), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    page = await lab.start()
    terminal.show([f"the lab is at {page}"], {"page": page})
    await stopping.wait()
    await lab.stop()
