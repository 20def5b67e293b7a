"""Which rests of tokens can matter after a pack's frame returns, and which of them are the same to every caller.

A pack's frames are called from two kinds of places, so a rest is judged by what can follow there:

    between JSON lexemes   after a value, a key, white space: the rest has to begin JSON lexemes. After white space
                           alone there are 50,000 tokens of Llama 3 that go on with a letter; none can matter.
    inside a string        after one character (`char`) or a run of counted characters (`exact`, `chunk`): the caller
                           only counts characters. So of all rests without a quote that are m characters long one
                           stands for all, and of those that close the string after n characters one for each
                           lexical rest behind the quote.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from maskwright.compiler.schema.strings import QUOTE, free_body
from maskwright.compiler.tokens.trie import TokenTrie

DROPPED = -1
"""In a table of rests: this one can't matter."""

I64 = npt.NDArray[np.int64]

_STRING = rb'"(?:[^"\\\x00-\x1f]|\\.)*'
_LEXEMES = re.compile(
    rb"(?:[\s,:\[\]{}]|" + _STRING + rb'"|-?[0-9][0-9.eE+-]*|true|false|null)*'
    rb"(?:" + _STRING + rb"\\?|-|t|tr|tru|f|fa|fal|fals|n|nu|nul)?",
    re.DOTALL,
)


def lexical_rests(tokens: TokenTrie) -> I64:
    """[suffixes]: the rest itself where it begins JSON lexemes, DROPPED elsewhere."""
    out = np.full(tokens.n_suffixes, DROPPED, dtype=np.int64)
    out[0] = 0
    first = np.zeros(256, dtype=np.bool_)
    first[list(b' \t\n\r,:[]{}"-0123456789tfn')] = True
    if len(tokens.text):
        starts = tokens.text[np.minimum(tokens.suffix_place, len(tokens.text) - 1)]
        for n in np.flatnonzero(first[starts]).tolist():
            if _LEXEMES.fullmatch(tokens.suffix(n)):
                out[n] = n
    return out


class InsideRests:
    """Rests after a return inside a string, each mapped to the one that stands for it; computed as they're met."""

    def __init__(self, tokens: TokenTrie, lexical: I64) -> None:
        self.tokens, self.lexical = tokens, lexical
        self.body = free_body(False)
        self.known: dict[int, int] = {}
        self.standing: dict[tuple[int, int], int] = {}

    def of(self, suffixes: I64) -> I64:
        return np.array([self.one(n) for n in suffixes.tolist()], dtype=np.int64)

    def one(self, suffix: int) -> int:
        found = self.known.get(suffix)
        if found is None:
            kind = self.kind(suffix)
            found = self.known[suffix] = DROPPED if kind is None else self.standing.setdefault(kind, suffix)
        return found

    def kind(self, suffix: int) -> tuple[int, int] | None:
        """(characters it needs, -1) without a closing quote, (characters, lexical rest) with one."""
        state = characters = 0
        place = int(self.tokens.suffix_place[suffix])
        for k, byte in enumerate(self.tokens.suffix(suffix)):
            if state == 0 and byte == QUOTE:
                after = place + k + 1
                closed = after == int(self.tokens.suffix_end[suffix])
                rest = 0 if closed else int(self.lexical[self.tokens.suffix_of[after]])
                return None if rest == DROPPED else (characters, rest)
            characters += state == 0
            state = self.body.step(state, byte)
            if state < 0:
                return None
        return characters, -1
