"""Files that appear whole or not at all, for readers meanwhile and after a crash or a power cut: written beside under
another name, flushed, renamed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Writes or replaces the file, in a folder that's there. Raises OSError, with `path`; then nothing has changed."""
    staged = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with staged.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error  # the name that the caller knows
    finally:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
