"""Texts in many scripts, and what a tokenizer's decoding of them must equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from maskwright.compiler.vocabulary import Vocabulary

_HEX = """
    20-7E 00-1F 7F-A0 A0-FF 100-24F 250-2AF 300-36F 370-3FF 400-4FF 530-58F 590-5FF 600-6FF 700-74F 900-97F
    980-9FF B80-BFF E00-E7F F00-FFF 10A0-10FF 1100-11FF 1200-137F 1E00-1EFF 2000-206F 20A0-20CF 2190-22FF
    2500-25FF 2600-27BF 3000-30FF 4E00-9FFF AC00-D7A3 E000-E0FF FB00-FDFF FE00-FE2F FF00-FFEF
    10300-1034F 12000-120FF
    1D400-1D4FF 1F1E6-1F1FF 1F300-1F64F 1F900-1F9FF 20000-200FF E0100-E01EF 10FF00-10FFFF
"""
RANGES = [(int(low, 16), int(high, 16)) for low, _, high in (r.partition("-") for r in _HEX.split())]
_WORDS = """
    the quick brown fox def return import class null true false 0 1 42 3.14 -7e10 {} [] () => == != <=
    && || // {"id": ["a", {"b": Straße naïve Привет мир Ελλάδα שלום مرحبا नमस्ते 你好 世界
    こんにちは 안녕 สวัสดี café e\u0301 /*
    👩‍👩‍👧 🇩🇪 👍🏽 <tag> </s> <s> <|im_end|> <0x0A> ▁ Ġ ##x don't I'll it's . , ! ?
"""
WORDS = _WORDS.split()
SPACES = (" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u2003", "        ", "")


def texts(count: int, seed: int = 7) -> Iterator[str]:
    """`count` texts: random characters of one or two ranges, words and white space mixed, JSON."""
    random = Random(seed)
    for i in range(count):
        if i % 3 == 0:
            yield _characters(random, RANGES[(i // 3) % len(RANGES)], random.choice(RANGES))
        elif i % 3 == 1:
            yield "".join(random.choice(WORDS) + random.choice(SPACES) for _ in range(random.randint(1, 12)))
        else:
            yield _json(random)


def _characters(random: Random, *ranges: tuple[int, int]) -> str:
    picked = (random.choice(ranges) for _ in range(random.randint(1, 16)))
    return random.choice(SPACES) + "".join(chr(random.randint(*r)) for r in picked) + random.choice(SPACES)


def _json(random: Random) -> str:
    value = {random.choice(WORDS): [random.choice(WORDS), random.random(), None] for _ in range(3)}
    indent = random.choice((None, 1, 2, 4, "\t"))
    return json.dumps(value, indent=indent, ensure_ascii=random.random() < 0.3)


def spelled(vocabulary: Vocabulary, ids: list[int]) -> bytes:
    """The joined bytes of `ids`, special tokens by their names, as decoding without skipping them gives."""
    out = []
    for i in ids:
        special = vocabulary.special_text(i)
        out.append((vocabulary.token_bytes(i) or b"") if special is None else special.encode())
    return b"".join(out)


def decoded(tokenizer: Any, ids: list[int]) -> bytes:
    """What the tokenizers library makes of them."""
    return tokenizer.decode(ids, skip_special_tokens=False).encode()
