"""A folder of artifacts, and a tokenizer that writes what their pack says, for the engines' tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samples import FLAT, compiled

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers.adapters.sources import choice_pattern

PATTERN = "[0-9]{1,3}(-[0-9]{2}){0,2}"
LARK = 'start: ("(" start ")")* "x"?'
GBNF = 'root ::= "a" | "b" root'
CHOICES = ["yes", "no", "it's 5+5 (maybe)"]
FLAT_TEXT = json.dumps(FLAT)


def write_folder(folder: Path) -> Path:
    """The artifacts and their pack, as `maskwright compile` leaves them."""
    vocabulary = Vocabulary.demo()
    compiler = Compiler(vocabulary)
    made = {
        "flat": compiler.compile_json_schema(FLAT),
        "any": compiler.compile_json_schema(True),
        "object": compiler.compile_json_schema({"type": "object"}),
        "digits": compiler.compile_regex(PATTERN),
        "choice": compiler.compile_regex(choice_pattern(CHOICES)),
        "brackets": compiler.compile_lark(LARK),
        "letters": compiler.compile_gbnf(GBNF),
    }
    for name, result in made.items():
        (folder / f"{name}.mwa").write_bytes(result.to_bytes())
    (folder / f"{compiled()['flat'].pack.digest}.mwpack").write_bytes(vocabulary.pack_bytes())
    return folder


class GreedyTokenizer:
    """Encodes by the longest token that fits, over the pack's table; `wrong` shifts every id by one."""

    def __init__(self, wrong: bool = False) -> None:
        pack = compiled()["flat"].pack
        self.eos_token_id = pack.stop_token_ids[0]
        self._ids = {b: i for i in range(pack.vocab_size) if (b := pack.token_bytes(i))}
        self._longest, self._wrong = max(map(len, self._ids)), wrong

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        data, out = text.encode(), list[int]()
        while data:
            size = next(n for n in range(min(self._longest, len(data)), 0, -1) if data[:n] in self._ids)
            out.append(self._ids[data[:size]] + self._wrong)
            data = data[size:]
        return out


def stop() -> int:
    return compiled()["flat"].pack.stop_token_ids[0]


def encode(text: str) -> list[int]:
    return GreedyTokenizer().encode(text)


def fields(**values: Any) -> Any:
    """A stand-in for an engine's configuration: attributes alone."""
    return type("Fields", (), values)()
