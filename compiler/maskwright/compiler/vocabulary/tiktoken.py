"""tiktoken rank files: one token a line, its bytes in base64 (RFC 4648), a space, its rank, which is its id.

Such a file holds no special tokens: they're in the code that uses it. Give them by `special_tokens`.
"""

from __future__ import annotations

import binascii

from maskwright.compiler.vocabulary.faults import MAX_TOKEN_BYTES, MAX_TOKENS, invalid, too_large
from maskwright.compiler.vocabulary.table import TokenTable


def read_ranks(data: bytes) -> TokenTable:
    """The table of a rank file. Raises CompileError with the line that isn't right or repeats a rank."""
    ranks: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > 10:
            raise invalid(f"line {number} isn't base64, a space and a rank", line=number)
        rank = int(fields[1])
        if rank >= MAX_TOKENS:
            raise too_large("vocabulary_tokens", MAX_TOKENS, rank + 1)
        if rank in ranks:
            raise invalid(f"line {number}: rank {rank} appears twice", line=number, rank=rank)
        ranks[rank] = decode_base64(fields[0], f"line {number}")
    tokens: list[bytes | None] = [None] * (max(ranks, default=-1) + 1)
    for rank, token in ranks.items():
        tokens[rank] = token
    return TokenTable("tiktoken", tokens)


def decode_base64(text: bytes | str, where: str, *, pointer: str | None = None) -> bytes:
    """Strict base64; a lone `=`, which published files hold for an empty token, is empty."""
    if text in (b"=", "="):
        return b""
    try:
        token = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise invalid(f"{where}: not base64", pointer=pointer, where=where) from None
    if len(token) > MAX_TOKEN_BYTES:
        raise too_large("token_bytes", MAX_TOKEN_BYTES, len(token), pointer=pointer)
    return token
