"""What the files beside a tokenizer.json say about the model: stop tokens and the width of its logits.

`generation_config.json` and `tokenizer_config.json` name end-of-text tokens, `config.json` the number of
logits (`vocab_size`, in `text_config` for models that also see images). They're optional; one that can't be
read or that names a token which isn't in the vocabulary is an error, since it belongs to another model then.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskwright.compiler.vocabulary.faults import MAX_TOKENS, invalid
from maskwright.compiler.vocabulary.table import TokenTable


def read_beside(path: Path, table: TokenTable) -> None:
    """Add to `table` what the files beside `path` tell, if that file is called tokenizer.json."""
    if path.name != "tokenizer.json":
        return
    from maskwright.compiler.vocabulary.formats import naming

    readers = {
        "generation_config.json": _read_generation,
        "tokenizer_config.json": _read_tokenizer_config,
        "config.json": _read_model_config,
    }
    for name, read in readers.items():
        file = path.with_name(name)
        if file.is_file():
            with naming(str(file)):
                read(_object(file), table)


def _object(file: Path) -> dict[str, Any]:
    from maskwright.compiler.vocabulary.formats import load, parse_json

    value = parse_json(load(file))
    if not isinstance(value, dict):
        raise invalid("not a JSON object")
    return value


def _read_generation(value: dict[str, Any], table: TokenTable) -> None:
    ids = value.get("eos_token_id")
    for i in ids if isinstance(ids, list) else [] if ids is None else [ids]:
        if type(i) is not int or not 0 <= i < max(len(table.tokens), max(table.special, default=-1) + 1):
            raise invalid(f"token {i!r} isn't in the vocabulary", pointer="/eos_token_id", id=repr(i))
        table.stop_token_ids += (i,)


def _read_tokenizer_config(value: dict[str, Any], table: TokenTable) -> None:
    eos = value.get("eos_token")
    text = eos.get("content") if isinstance(eos, dict) else eos
    if text is None:
        return
    ids = [i for i, name in table.special.items() if name == text]
    if not ids:
        raise invalid(
            f"{text!r} isn't a special token of the vocabulary", pointer="/eos_token", token=repr(text)
        )
    table.stop_token_ids += tuple(ids)


def _read_model_config(value: dict[str, Any], table: TokenTable) -> None:
    part = value.get("text_config")
    for holder in (value, part if isinstance(part, dict) else {}):
        width = holder.get("vocab_size")
        if type(width) is int and 0 < width <= MAX_TOKENS:
            table.logits_width = max(table.logits_width or 0, width)
