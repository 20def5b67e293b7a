"""`maskwright compile`: a source and a tokenizer to an artifact, and its pack beside it."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.compiler.diagnostics import CompileError
from maskwright.workers.whole_files import write_whole

from .choices import add_choices, compile_kind, limits_of, options_of, resources_of, with_tool_arguments
from .files import compiling, file_failures, kind_of, prepare_compiler, read_source, read_vocabulary
from .terminal import EXIT_FILE, EXIT_OK, EXIT_REFUSED, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.compiler import Vocabulary

NAME = "compile"
EXTRA = "compiler"
HELP = "compile a schema, pattern or grammar for a tokenizer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="file, or - for standard input")
    parser.add_argument("--tokenizer", required=True, metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where the artifact goes")
    add_choices(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    kind = kind_of(options.source, options.kind)
    chosen, limits, resources = options_of(options), limits_of(options), resources_of(options, kind)
    source = read_source(options.source)
    if not Path(options.output).parent.is_dir():
        # Now, and not when all the work is done.
        raise Failure(EXIT_FILE, f"{options.output}: there's no folder {Path(options.output).parent}")
    if kind == "tools":
        source = with_tool_arguments(source, options)
    vocabulary = read_vocabulary(options.tokenizer, terminal)
    try:
        compiler = prepare_compiler(vocabulary, chosen, limits, terminal)
        with compiling(options.source, terminal):
            result = compile_kind(compiler, kind, source, resources)
            artifact = result.to_bytes()
    except CompileError as error:
        diagnostics = [d.to_json() for d in error.diagnostics]
        raise Failure(EXIT_REFUSED, f"{options.source} was refused", diagnostics, source=source) from error
    pack = _write(Path(options.output), artifact, vocabulary, terminal)
    _show(options.output, artifact, pack, vocabulary, result.report.to_json(), terminal)
    return EXIT_OK


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
