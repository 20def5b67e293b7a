"""The compiler's version: part of every artifact's key.

It changes whenever the same input may give other bytes, so that caches and registries never mix two compilers' work.
"""

import hashlib
from functools import cache
from pathlib import Path

COMPILER_VERSION = "0.1.0"


@cache
def build_id() -> str:
    """A digest of the compiler's own source files, for caches that must not outlive a change of the code.

    Two installations of one release have the same; an editable checkout gets a new one with every edit. About 10 ms.
    """
    digest = hashlib.sha256(COMPILER_VERSION.encode())
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
