"""The command line, `maskwright`. One file for each command; `terminal` is the only one that writes.

Exit codes: 0 done, or the text is accepted; 1 a source was refused, or the text isn't accepted; 2 the
command line was wrong; 3 a file couldn't be used: missing, damaged, not a tokenizer, an artifact of another
vocabulary; 4 the service couldn't be reached or started. With `--json` standard output holds one JSON
object, also for failures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from . import check, compile, evaluate, explain, inspect, lab, precompile, regex, registry, sample, serve, signing
from .terminal import EXIT_USAGE, Failure, Terminal

COMMANDS = (compile, explain, inspect, check, sample, evaluate, regex, precompile, serve, registry, signing, lab)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    options = _parser().parse_args(arguments)
    terminal = Terminal(as_json=options.json)
    try:
        code: int = options.run(options, terminal)
    except Failure as failure:
        terminal.fail(failure)
        return failure.exit_code
    except ModuleNotFoundError as error:
        # The base install is the worker's: it has this command, and not all that some of it needs.
        message = f"{error.name} isn't installed: pip install 'maskwright[{options.extra}]'"
        terminal.fail(Failure(EXIT_USAGE, message))
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough of it; nothing may be flushed at exit.
        sys.stdout = None
        return 141
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="maskwright",
        description="Compile schemas, patterns and grammars into token masks.",
        epilog="exit codes: 0 done, accepted; 1 refused, not accepted; 2 usage; 3 unusable file; 4 service",
    )
    parser.add_argument("--version", action="version", version=f"maskwright {version('maskwright')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in COMMANDS:
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        command.add_argument("--json", action="store_true", help="machine-readable output")
        module.add_arguments(command)
        command.set_defaults(run=module.run, extra=module.EXTRA)
    return parser
