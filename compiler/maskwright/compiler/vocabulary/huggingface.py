"""Hugging Face tokenizer.json: the tokens of its model and the added tokens, spelled by its decoder.

Ids of added tokens are those that the `tokenizers` library gives when it loads the file, not those written in
it: an added token whose content the model knows has the model's id, any other gets the next free id, in file
order, counted from the number of the model's tokens. An added token hides the model's token of the same id.
An added token is special when its flag says so, or when another added token of the same content does. All
others are text and go through the decoder like the model's tokens.

Only what decoding needs is read: not merges, scores, normaliser or pre-tokeniser.
"""

from __future__ import annotations

from typing import Any

from maskwright.compiler.vocabulary.decoders import spell
from maskwright.compiler.vocabulary.faults import MAX_TOKENS, escape, invalid, too_large
from maskwright.compiler.vocabulary.stop_tokens import stop_tokens_by_name, stop_tokens_by_template
from maskwright.compiler.vocabulary.table import TokenTable

MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")


def read_tokenizer_json(value: dict[str, Any]) -> TokenTable:
    """The table of a parsed tokenizer.json. Raises CompileError with the pointer of what's wrong."""
    model = value["model"]
    if not isinstance(model, dict):
        raise invalid("not an object", pointer="/model")
    kind = _model_kind(model)
    ids = _unigram_ids(model) if kind == "Unigram" else _mapped_ids(model)
    texts: list[str | None] = [None] * (max((i for _, i in ids), default=-1) + 1)
    for text, i in ids:
        texts[i] = text
    special = _add_tokens(value.get("added_tokens"), texts, dict(ids), len(ids))
    for i in special:
        texts[i] = None
    spelled = spell(texts, value.get("decoder"))
    stops = {*stop_tokens_by_name(special), *stop_tokens_by_template(value.get("post_processor"), special)}
    return TokenTable(
        kind=_kind_name(kind, spelled.byte_level, bool(spelled.fallback_bytes)),
        tokens=spelled.tokens,
        special=special,
        stop_token_ids=tuple(sorted(stops)),
        dummy_prefix=spelled.dummy_prefix,
        warnings=spelled.warnings,
    )


def _model_kind(model: dict[str, Any]) -> str:
    kind = model.get("type")
    if kind is None:  # files of early versions don't say
        kind = (
            "Unigram" if isinstance(model.get("vocab"), list) else "BPE" if "merges" in model else "WordPiece"
        )
    if kind not in MODELS:
        raise invalid(
            f"model {kind!r} isn't known; known are {', '.join(MODELS)}",
            pointer="/model/type",
            model=repr(kind),
        )
    return str(kind)


def _kind_name(kind: str, byte_level: bool, byte_fallback: bool) -> str:
    if kind == "BPE":
        return "byte_level_bpe" if byte_level else "byte_fallback_bpe" if byte_fallback else "bpe"
    return kind.lower()


def _mapped_ids(model: dict[str, Any]) -> list[tuple[str, int]]:
    vocab = model.get("vocab")
    if not isinstance(vocab, dict):
        raise invalid("not an object of ids", pointer="/model/vocab")
    seen: dict[int, str] = {}
    for text, i in vocab.items():
        if type(i) is not int or i < 0:
            raise invalid(f"id {i!r:.40} isn't a token id", pointer=f"/model/vocab/{escape(text)}")
        if i >= MAX_TOKENS:
            raise too_large("vocabulary_tokens", MAX_TOKENS, i + 1, pointer=f"/model/vocab/{escape(text)}")
        if seen.setdefault(i, text) is not text:
            raise invalid(
                f"id {i} belongs to {seen[i]!r:.40} already", pointer=f"/model/vocab/{escape(text)}", id=i
            )
    return list(vocab.items())


def _unigram_ids(model: dict[str, Any]) -> list[tuple[str, int]]:
    vocab = model.get("vocab")
    if not isinstance(vocab, list):
        raise invalid("not an array of pieces", pointer="/model/vocab")
    if len(vocab) > MAX_TOKENS:
        raise too_large("vocabulary_tokens", MAX_TOKENS, len(vocab), pointer="/model/vocab")
    for i, piece in enumerate(vocab):
        if not isinstance(piece, list) or len(piece) != 2 or not isinstance(piece[0], str):
            raise invalid("not a piece and its score", pointer=f"/model/vocab/{i}")
    return [(piece[0], i) for i, piece in enumerate(vocab)]


def _add_tokens(
    entries: Any, texts: list[str | None], model_ids: dict[str, int], model_size: int
) -> dict[int, str]:
    """Put the added tokens into `texts`, growing it; returns the special ones."""
    ids = dict(model_ids)
    special_texts: set[str] = set()
    free = model_size
    for place, entry in enumerate(_added_entries(entries)):
        text: str = entry["content"]
        if not text:
            continue
        if entry["special"]:
            special_texts.add(text)
        if text not in ids:
            ids[text] = free
            free += 1
        i = ids[text]
        if i >= MAX_TOKENS:
            raise too_large("vocabulary_tokens", MAX_TOKENS, i + 1, pointer=f"/added_tokens/{place}")
        texts.extend(None for _ in range(i + 1 - len(texts)))
        texts[i] = text
    # judged last, by what each id holds in the end: a flag counts for every id with that content
    return {i: text for i, text in enumerate(texts) if text is not None and text in special_texts}


def _added_entries(entries: Any) -> list[dict[str, Any]]:
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise invalid("not an array", pointer="/added_tokens")
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
            raise invalid("not an object with a content", pointer=f"/added_tokens/{place}")
        if not isinstance(entry.get("special"), bool):
            raise invalid("special isn't true or false", pointer=f"/added_tokens/{place}/special")
    return entries
