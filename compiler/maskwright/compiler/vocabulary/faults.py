"""What a reader raises: one shape for every fault of a tokenizer file, and the bounds on its size."""

from __future__ import annotations

from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded

MAX_FILE_BYTES = 128 << 20
"""Bytes of a tokenizer file, decompressed. The largest in use are about 35 MB; 128 MB parse in seconds."""
MAX_TOKENS = 1 << 22
"""Token ids. A table is dense, so one high id costs as much as a full table. In use: up to about 260,000."""
MAX_TOKEN_BYTES = 1 << 16
"""Bytes of one token."""
MAX_TABLE_BYTES = 256 << 20
"""Bytes of all tokens together, at every stage of decoding (a decoder's Replace can make tokens grow)."""


def invalid(
    message: str, *, pointer: str | None = None, hint: str | None = None, **detail: Any
) -> CompileError:
    """The error for what can't be read or isn't a vocabulary; `detail` repeats the message's values."""
    return CompileError(
        Diagnostic(Code.INVALID_VOCABULARY, message, pointer=pointer, hint=hint, detail=detail)
    )


def too_large(name: str, limit: int, observed: int, *, pointer: str | None = None) -> LimitExceeded:
    """The error for a file that passes one of the bounds above."""
    return LimitExceeded(name, limit, observed, "reading the vocabulary", pointer=pointer)


def escape(key: str) -> str:
    """One reference token of a JSON pointer (RFC 6901); long keys are cut: it is for people."""
    key = key if len(key) <= 80 else key[:80] + "…"
    return key.replace("~", "~0").replace("/", "~1")
