"""Mistral's tekken.json.

`config.default_num_special_tokens` ids come first and are special; the token of rank r has the id r plus that
number. Only so many ranks count as fill `config.default_vocab_size` (the file may hold more). Files up to
version v7 may leave out `special_tokens`: then the fixed list below holds. Special ids without a name are
called `<SPECIAL_n>`.
"""

from __future__ import annotations

from typing import Any

from maskwright.compiler.vocabulary.faults import MAX_TOKENS, invalid, too_large
from maskwright.compiler.vocabulary.stop_tokens import stop_tokens_by_name
from maskwright.compiler.vocabulary.table import TokenTable
from maskwright.compiler.vocabulary.tiktoken import decode_base64

EARLY_SPECIAL = """
    <unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS]
    [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]
    [TOOL_CONTENT]
"""


def read_tekken(value: dict[str, Any]) -> TokenTable:
    """The table of a parsed tekken.json. Raises CompileError with the pointer of what's wrong."""
    config = value["config"]
    if not isinstance(config, dict):
        raise invalid("not an object", pointer="/config")
    vocab: list[Any] = value["vocab"]
    n_special = _count(config, "default_num_special_tokens")
    size = _count(config, "default_vocab_size")
    n_text = size - n_special
    if not 0 <= n_text <= len(vocab):
        raise invalid(
            f"{size} tokens, {n_special} of them special, need {n_text} ranks; the file has {len(vocab)}",
            pointer="/config/default_vocab_size",
            size=size,
            special=n_special,
            ranks=len(vocab),
        )
    tokens: list[bytes | None] = [None] * size
    for place, entry in enumerate(vocab):
        rank, token = _entry(entry, place)
        if rank >= n_text:
            continue
        if tokens[n_special + rank] is not None:
            raise invalid(f"rank {rank} appears twice", pointer=f"/vocab/{place}/rank", rank=rank)
        tokens[n_special + rank] = token
    special = _special(value.get("special_tokens"), n_special)
    return TokenTable("tekken", tokens, special, stop_tokens_by_name(special))


def _count(config: dict[str, Any], key: str) -> int:
    n = config.get(key)
    if type(n) is not int or n < 0:
        raise invalid(f"{key} isn't a count", pointer=f"/config/{key}", key=key)
    if n > MAX_TOKENS:
        raise too_large("vocabulary_tokens", MAX_TOKENS, n, pointer=f"/config/{key}")
    return n


def _entry(entry: Any, place: int) -> tuple[int, bytes]:
    where = f"/vocab/{place}"
    if not isinstance(entry, dict) or type(entry.get("rank")) is not int or entry["rank"] < 0:
        raise invalid("not an object with a rank", pointer=where)
    text = entry.get("token_bytes")
    if not isinstance(text, str) or not text.isascii():
        raise invalid("token_bytes isn't base64 text", pointer=f"{where}/token_bytes")
    return entry["rank"], decode_base64(text, "token_bytes", pointer=f"{where}/token_bytes")


def _special(entries: Any, n_special: int) -> dict[int, str]:
    names = {i: f"<SPECIAL_{i}>" for i in range(n_special)}
    if entries is None:
        names.update(enumerate(EARLY_SPECIAL.split()[:n_special]))
        return names
    if not isinstance(entries, list):
        raise invalid("not an array", pointer="/special_tokens")
    seen: set[int] = set()
    for place, entry in enumerate(entries):
        where = f"/special_tokens/{place}"
        rank, name = (entry.get("rank"), entry.get("token_str")) if isinstance(entry, dict) else (None, None)
        if type(rank) is not int or not 0 <= rank < n_special or rank in seen or not isinstance(name, str):
            raise invalid(
                f"not a token_str with a rank of its own below {n_special}", pointer=where, special=n_special
            )
        seen.add(rank)
        names[rank] = name
    return names
