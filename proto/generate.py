"""Generates the Python code of `proto/`; with `--check` tells whether the committed code is what that gives.

Files that declare no service get no `_pb2_grpc.py`. The result depends on the version of grpcio-tools, which
pyproject.toml pins; run it through `make gen`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent
PACKAGE = Path("maskwright/v1")


def generate(target: Path) -> None:
    """Writes the generated files under `target`. Raises SystemExit where protoc finds a fault."""
    protos = sorted(str(p) for p in (ROOT / PACKAGE).glob("*.proto"))
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    includes = [f"-I{ROOT}", f"-I{files('grpc_tools') / '_proto'}"]
    code = protoc.main(["protoc", *includes, *outputs, *protos])
    if code:
        raise SystemExit(code)
    for proto in protos:
        if not re.search(r"^service ", Path(proto).read_text(), re.MULTILINE):
            (target / PACKAGE / f"{Path(proto).stem}_pb2_grpc.py").unlink()


def differences(made: Path, committed: Path) -> Iterable[str]:
    """Names of generated files that are missing, left over, or different."""
    new = {p.name: p.read_bytes() for p in made.glob("*_pb2*.py*")}
    old = {p.name: p.read_bytes() for p in committed.glob("*_pb2*.py*")}
    return sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))


def main() -> int:
    if "--check" not in sys.argv[1:]:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        wrong = differences(Path(folder) / PACKAGE, ROOT / PACKAGE)
    for name in wrong:
        sys.stderr.write(f"proto/{PACKAGE / name} isn't what 'make gen' makes\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
