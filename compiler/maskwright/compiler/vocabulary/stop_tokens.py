"""Which special tokens end a text: by well-known name, and what a post-processor puts at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NAMES = """
    </s> <eos> [EOS] <|eos|> <EOS_TOKEN> <|endoftext|> <|end_of_text|> <|end_of_sentence|>
    <｜end▁of▁sentence｜> <|eot_id|> <|eom_id|> <|eot|> <|EOT|> <|im_end|> <|end|> <|return|> <|call|>
    <end_of_turn> <|end_of_turn|> <|END_OF_TURN_TOKEN|>
"""
WELL_KNOWN = frozenset(_NAMES.split())
MAX_NESTING = 16


def stop_tokens_by_name(special: Mapping[int, str]) -> tuple[int, ...]:
    """The special ids whose name is one that models end their turn or text with, ascending."""
    return tuple(sorted(i for i, name in special.items() if name in WELL_KNOWN))


def stop_tokens_by_template(post_processor: Any, special: Mapping[int, str]) -> tuple[int, ...]:
    """The special ids that a tokenizer.json's `post_processor` puts after a single text, ascending.

    A post-processor has no part in decoding, so what isn't understood in it is passed over.
    """
    return tuple(sorted(set(_appended(post_processor, 0)) & set(special)))


def _appended(processor: Any, depth: int) -> Iterator[int]:
    if not isinstance(processor, dict) or depth > MAX_NESTING:
        return
    kind = processor.get("type")
    if kind == "Sequence" and isinstance(processor.get("processors"), list):
        for part in processor["processors"]:
            yield from _appended(part, depth + 1)
    elif kind in ("BertProcessing", "RobertaProcessing"):
        sep = processor.get("sep")
        if isinstance(sep, list) and len(sep) == 2 and type(sep[1]) is int:
            yield sep[1]
    elif kind == "TemplateProcessing":
        yield from _appended_by_template(processor)


def _appended_by_template(processor: dict[str, Any]) -> Iterator[int]:
    single, known = processor.get("single"), processor.get("special_tokens")
    if not isinstance(single, list) or not isinstance(known, dict):
        return
    after_text = False
    for piece in single:
        if not isinstance(piece, dict):
            return
        after_text = after_text or "Sequence" in piece
        token = piece.get("SpecialToken")
        if after_text and isinstance(token, dict) and isinstance(token.get("id"), str):
            entry = known.get(token["id"])
            ids = entry.get("ids") if isinstance(entry, dict) else None
            yield from (i for i in ids if type(i) is int) if isinstance(ids, list) else ()
