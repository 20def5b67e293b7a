"""Which rests of tokens can matter after a pack's frame returns, and which of them are the same to every caller.

A pack's frames are called from three kinds of places, so a rest is judged by what can follow there:

    after a string,   the caller may be JSON's own syntax or, when the value is embedded in a grammar, anything at all:
    object, array     every rest matters.
    after others      JSON goes on, so the rest begins with a JSON lexeme (behind that, anything again). After white
                      space alone there are 50,000 tokens of Llama 3 that go on with a letter.
    inside a string   after one character (`char`) or a run of counted characters (`exact`, `chunk`): the caller only
                      counts characters. So of all rests without a quote that are m characters long one stands for all,
                      and of those that close the string after n characters one for each rest behind the quote.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from maskwright.compiler.schema.strings import QUOTE, free_body
from maskwright.compiler.tokens import kernels
from maskwright.compiler.tokens.trie import TokenTrie

DROPPED = -1
"""In a table of rests: this one can't matter."""

I64 = npt.NDArray[np.int64]

_STRING = rb'"(?:[^"\\\x00-\x1f]|\\.)*'
_LEXEME = re.compile(
    rb"\s*(?:(?:[,:\[\]{}]|" + _STRING + rb'"|-?[0-9]|true|false|null).*'
    rb"|(?:" + _STRING + rb"\\?|-|t|tr|tru|f|fa|fal|fals|n|nu|nul)?)",
    re.DOTALL,
)


def any_rests(tokens: TokenTrie) -> I64:
    """[suffixes]: each rest stands for itself."""
    return np.arange(tokens.n_suffixes, dtype=np.int64)


def lexical_rests(tokens: TokenTrie) -> I64:
    """[suffixes]: the rest itself where it begins with white space or a JSON lexeme, DROPPED elsewhere."""
    out = np.full(tokens.n_suffixes, DROPPED, dtype=np.int64)
    out[0] = 0
    first = np.zeros(256, dtype=np.bool_)
    first[list(b' \t\n\r,:[]{}"-0123456789tfn')] = True
    if len(tokens.text):
        starts = tokens.text[np.minimum(tokens.suffix_place, len(tokens.text) - 1)]
        for n in np.flatnonzero(first[starts]).tolist():
            if _LEXEME.fullmatch(tokens.suffix(n)):
                out[n] = n
    return out


def inside_rests(tokens: TokenTrie) -> I64:
    """[suffixes]: the rest that stands for each one after a return inside a string, DROPPED where it can't matter."""
    body = free_body(False)
    moves = np.full((body.n_states, 256), -1, dtype=np.int32)
    for state, transitions in enumerate(body.transitions):
        for low, high, target in transitions:
            moves[state, low : high + 1] = target
    characters, rest = kernels.count_characters(
        moves, QUOTE, tokens.text, tokens.suffix_place, tokens.suffix_end, tokens.suffix_of
    )
    key = rest * (tokens.longest + 2) + characters
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.where(rest == kernels.DEAD_REST, DROPPED, first[inverse]).astype(np.int64)
