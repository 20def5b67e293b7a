"""Reading what a command is given. Every failure is a `Failure` that names the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maskwright.compiler.diagnostics import CompileError
from maskwright.workers import Artifact, ArtifactError, VocabularyPack
from maskwright.workers.container import read_container

from .terminal import EXIT_FILE, EXIT_REFUSED, EXIT_USAGE, QUIET_SECONDS, Failure, Terminal

if TYPE_CHECKING:
    from maskwright.compiler import CompileOptions, Compiler, Limits, Vocabulary

KINDS = ("json_schema", "regex", "lark", "gbnf", "tools")
SUFFIXES = {
    ".tools.json": "tools", ".json": "json_schema", ".regex": "regex", ".re": "regex", ".lark": "lark", ".gbnf": "gbnf"
}  # fmt: skip


def read_source(path: str) -> str:
    """The text of a source; `-` is standard input."""
    with file_failures(path):
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure(EXIT_REFUSED, f"{path}: byte {error.start} isn't UTF-8") from error


def kind_by_suffix(path: str) -> str | None:
    """What the end of a file's name tells, the longest first."""
    return next((kind for suffix, kind in SUFFIXES.items() if path.lower().endswith(suffix)), None)


def kind_of(path: str, kind: str | None) -> str:
    """The kind asked for, else what the suffix tells."""
    found = kind or kind_by_suffix(path)
    if found is None:
        known = ", ".join(SUFFIXES)
        raise Failure(EXIT_USAGE, f"{path}: --kind is needed unless the suffix is one of {known}")
    return found


def read_vocabulary(path: str, terminal: Terminal) -> Vocabulary:
    from maskwright.compiler import Vocabulary

    with file_failures(path), terminal.working(f"reading {path}"):
        try:
            return Vocabulary.from_file(path)
        except CompileError as error:
            diagnostics = [d.to_json() for d in error.diagnostics]
            raise Failure(EXIT_FILE, f"{path} can't be used as a tokenizer", diagnostics) from error


def prepare_compiler(vocabulary: Vocabulary, options: CompileOptions, limits: Limits, terminal: Terminal) -> Compiler:
    """Tells what takes long: a vocabulary's pack is built once, and so are numba's kernels on a new machine.

    The compiler is imported late, because that takes a second and other commands don't need it.
    """
    from maskwright.compiler import Compiler
    from maskwright.compiler.jit import kernels_are_kept

    first = "" if kernels_are_kept() else ", and the compiler's own code for the first time on this machine"
    with terminal.working(f"preparing the vocabulary{first}"):
        return Compiler(vocabulary, options=options, limits=limits)


@contextmanager
def compiling(what: str, terminal: Terminal) -> Iterator[None]:
    """`terminal.working`, telling afterwards what kernels took: a kind of source may be the first to need some."""
    from maskwright.compiler.jit import compiling_seconds

    before = compiling_seconds()
    with terminal.working(f"compiling {what}"):
        yield
    spent = compiling_seconds() - before
    if spent >= QUIET_SECONDS:
        terminal.note(f"  {spent:.1f} s of that went into the compiler's own code, once on this machine")


def read_artifact(path: str, tokenizer: str | None, terminal: Terminal) -> Artifact:
    """An artifact with its pack: beside it or in the cache, else built from the tokenizer."""
    with file_failures(path):
        try:
            if tokenizer is None:
                return Artifact.load(path)
            data = Path(path).read_bytes()
            read_container(data)
            return Artifact.from_bytes(data, _pack(tokenizer, terminal))
        except ArtifactError as error:
            raise Failure(EXIT_FILE, f"{path}: {error}") from error


def _pack(tokenizer: str, terminal: Terminal) -> VocabularyPack:
    vocabulary = read_vocabulary(tokenizer, terminal)
    with terminal.working("building the vocabulary pack"):
        return VocabularyPack.from_bytes(vocabulary.pack_bytes())


@contextmanager
def file_failures(path: str) -> Iterator[None]:
    """What the operating system says about a file, as a `Failure`."""
    try:
        yield
    except OSError as error:
        raise Failure(EXIT_FILE, f"{error.filename or path}: {error.strerror or error}") from error
