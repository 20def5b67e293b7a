"""`maskwright inspect`: what an artifact or a vocabulary pack says about itself. Needs no tokenizer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from maskwright.workers import ArtifactError
from maskwright.workers.container import read_container

from .files import file_failures
from .terminal import EXIT_FILE, EXIT_OK, Failure, Terminal

NAME = "inspect"
EXTRA = "compiler"
HELP = "show what an artifact or vocabulary pack holds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", help="an artifact, or a .mwpack")


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    path = options.artifact
    with file_failures(path):
        data = Path(path).read_bytes()
    try:
        container = read_container(data)
    except ArtifactError as error:
        raise Failure(EXIT_FILE, f"{path}: {error}") from error
    header = {k: v for k, v in container.header.items() if k != "sections"}
    sections = [(s.name, s.stored, s.raw, s.codec) for s in container.sections.values()]
    lines = [f"{path}: {len(data):,} bytes, sha256 {container.digest}"]
    lines += [f"  {name:<22} {_render(value)}" for name, value in sorted(header.items())]
    lines.append("  section                bytes stored     inflated")
    lines += [f"  {name:<22} {stored:>12,} {raw:>12,}" for name, stored, raw, _ in sections]
    fields = {
        "file": path,
        "digest": container.digest,
        "size_bytes": len(data),
        "header": header,
        "sections": [
            {"name": name, "stored_bytes": stored, "inflated_bytes": raw, "codec": codec}
            for name, stored, raw, codec in sections
        ],
    }
    terminal.show(lines, fields)
    return EXIT_OK


def _render(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
