"""`maskwright compile`: a source and a tokenizer to an artifact, and its pack beside it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.options import CompileOptions, Limits

from .files import KINDS, file_failures, kind_of, read_source, read_vocabulary
from .terminal import EXIT_OK, EXIT_REFUSED, EXIT_USAGE, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.compiler import Compiler, CompileResult, Vocabulary

NAME = "compile"
EXTRA = "compiler"
HELP = "compile a schema, pattern or grammar for a tokenizer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="file, or - for standard input")
    parser.add_argument("--tokenizer", required=True, metavar="FILE")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--kind", choices=KINDS, help="default: by the suffix .json, .regex, .lark, .gbnf, .tools.json")
    kinds.add_argument("--gbnf", dest="kind", action="store_const", const="gbnf", help="the source is GBNF")
    kinds.add_argument("--tools", dest="kind", action="store_const", const="tools", help="the source lists tools")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where the artifact goes")
    parser.add_argument("--whitespace", default="flexible", help="flexible, compact, or columns of indent")
    parser.add_argument("--max-whitespace", type=int, default=16, metavar="BYTES")
    parser.add_argument("--property-order", choices=("declared", "any"), default="declared")
    parser.add_argument("--residual", choices=("refuse", "allow"), default="refuse")
    parser.add_argument("--regex-dialect", choices=("ecma262", "python"), default="ecma262")
    parser.add_argument("--formats", choices=("enforce", "annotate"), default="enforce")
    parser.add_argument("--max-nesting", type=int, metavar="N", help="containers open at once")
    parser.add_argument("--grammar-start", metavar="RULE", help="default: start, in GBNF root")
    parser.add_argument("--grammar-fallback", choices=("refuse", "commit"), default="refuse")
    parser.add_argument("--grammar-strict", action="store_true", help="refuse conflicts and terminals that collide")
    _add_tool_arguments(parser)
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="refuse when passed; repeat for several (compile_seconds=5)",
    )


def _add_tool_arguments(parser: argparse.ArgumentParser) -> None:
    tools = parser.add_argument_group("tools", "where the source doesn't say it itself")
    tools.add_argument("--format", help="how calls are written; default: hermes")
    tools.add_argument("--tool-choice", metavar="CHOICE", help="auto (default), none, required, or a tool's name")
    tools.add_argument("--no-parallel", action="store_true", help="at most one call")
    tools.add_argument("--reasoning", nargs=2, metavar=("OPEN", "CLOSE"), help="free text before, between these")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    # Late, because it takes a second and the other commands don't need it.
    from maskwright.compiler import Compiler

    kind = kind_of(options.source, options.kind)
    chosen, limits = _options(options), _limits(options.limit)
    source = read_source(options.source)
    if kind == "tools":
        source = _with_tool_arguments(source, options)
    vocabulary = read_vocabulary(options.tokenizer, terminal)
    try:
        with terminal.working("preparing the vocabulary"):
            compiler = Compiler(vocabulary, options=chosen, limits=limits)
        with terminal.working(f"compiling {options.source}"):
            result = _compile(compiler, kind, source)
            artifact = result.to_bytes()
    except CompileError as error:
        diagnostics = [d.to_json() for d in error.diagnostics]
        raise Failure(EXIT_REFUSED, f"{options.source} was refused", diagnostics, source=source) from error
    pack = _write(Path(options.output), artifact, vocabulary, terminal)
    _show(options.output, artifact, pack, vocabulary, result.report.to_json(), terminal)
    return EXIT_OK


def _compile(compiler: Compiler, kind: str, source: str) -> CompileResult:
    if kind == "regex":
        return compiler.compile_regex(source.removesuffix("\n"))
    if kind == "lark":
        return compiler.compile_lark(source)
    if kind == "gbnf":
        return compiler.compile_gbnf(source)
    if kind == "tools":
        return compiler.compile_tools(source)
    return compiler.compile_json_schema(source)


def _with_tool_arguments(source: str, options: argparse.Namespace) -> str:
    """The document with what the command line adds; a source that isn't one is left for the compiler to refuse."""
    given = {"format": options.format, "tool_choice": options.tool_choice, "reasoning": options.reasoning}
    given["parallel"] = False if options.no_parallel else None
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        value = json.loads(source)
    except (ValueError, RecursionError):
        return source
    if not chosen or not isinstance(value, list | dict):
        return source
    return json.dumps({"tools": value, **chosen} if isinstance(value, list) else {**value, **chosen})


def _options(options: argparse.Namespace) -> CompileOptions:
    whitespace = options.whitespace
    try:
        return CompileOptions(
            whitespace=int(whitespace) if whitespace.isdecimal() else whitespace,
            max_whitespace=options.max_whitespace,
            property_order=options.property_order,
            residual=options.residual,
            regex_dialect=options.regex_dialect,
            formats=options.formats,
            max_nesting=options.max_nesting,
            grammar_start=options.grammar_start,
            grammar_fallback=options.grammar_fallback,
            grammar_strict=options.grammar_strict,
        )
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error


def _limits(settings: list[str]) -> Limits:
    defaults = vars(Limits())
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in defaults:
            raise Failure(EXIT_USAGE, f"no limit {name!r}; there are {', '.join(defaults)}")
        try:
            chosen[name] = type(defaults[name])(value)
        except ValueError as error:
            raise Failure(EXIT_USAGE, f"limit {name} can't be {value!r}") from error
    return Limits(**chosen)


def _write(output: Path, artifact: bytes, vocabulary: Vocabulary, terminal: Terminal) -> Path:
    """Writes both, the pack first and only where it isn't yet. Returns the pack's path."""
    with terminal.working("building the vocabulary pack"):
        pack = vocabulary.pack_bytes()
    path = output.parent / f"{hashlib.sha256(pack).hexdigest()}.mwpack"
    with file_failures(str(output)):
        if not path.exists() or path.stat().st_size != len(pack):
            write_whole(path, pack)
        write_whole(output, artifact)
    return path


def write_whole(path: Path, data: bytes) -> None:
    """A file that appears whole or not at all."""
    staged = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        with staged.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def _show(
    output: str,
    artifact: bytes,
    pack: Path,
    vocabulary: Vocabulary,
    report: dict[str, Any],
    terminal: Terminal,
) -> None:
    digest = hashlib.sha256(artifact).hexdigest()
    lines = [
        f"{output}: {len(artifact):,} bytes, sha256 {digest}",
        f"  vocabulary {vocabulary.fingerprint[:16]} ({vocabulary.size:,} tokens), pack {pack.name}",
        f"  {report['states']:,} states in {report['frames']:,} frames, {report['contexts']:,} contexts,"
        f" {report['masks']:,} masks",
    ]
    fields = {
        "artifact": output,
        "digest": digest,
        "size_bytes": len(artifact),
        "pack": str(pack),
        "fingerprint": vocabulary.fingerprint,
        "report": report,
    }
    terminal.show(lines, fields)
