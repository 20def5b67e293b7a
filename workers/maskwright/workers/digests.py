"""What names a blob: the SHA-256 of its bytes, as 64 lower-case hexadecimal digits."""

from __future__ import annotations

import re
from typing import Any

_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(text: Any) -> bool:
    """Whether it has a digest's form, so that it's safe as a part of a path, too."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None
