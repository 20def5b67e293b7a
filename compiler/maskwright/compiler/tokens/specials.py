"""A vocabulary's trie and suffixes with some special tokens in them, spelled as `maskwright.workers.specials` says.

Sources that name special tokens are compiled against it; all others never see one. Bytes of text tokens from 0xf8 on,
which no UTF-8 holds, are replaced by one that no automaton reads, so that nothing but the special tokens themselves
can spell their symbols; text tokens with such bytes leave the trie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from maskwright.compiler.tokens.kernels import fill_trie
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.trie import TokenTrie, Trie
from maskwright.workers.specials import FIRST_MARK, LENGTH, spell_special

UNREADABLE = 0xC0
"""Never a byte of UTF-8, and no marker either."""


def with_specials(prepared: PreparedVocabulary, used: Sequence[int]) -> PreparedVocabulary:
    """The vocabulary with the special tokens `used` as symbols. Cost: about 50 ms for 128k tokens."""
    return replace(prepared, tokens=insert_specials(prepared.tokens, sorted(set(used)))) if used else prepared


def insert_specials(tokens: TokenTrie, used: list[int]) -> TokenTrie:
    """`used`: ids of special tokens, ascending. Their suffixes are numbered after those of text."""
    lengths = np.diff(tokens.text_start)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    new_lengths = lengths.copy()
    new_lengths[used] = LENGTH
    start = np.concatenate([[0], np.cumsum(new_lengths)]).astype(np.int32)
    moved = np.arange(len(owner)) - tokens.text_start[owner] + start[owner]
    kept = ~np.isin(owner, used)
    old = tokens.text[: len(owner)]
    marked = old >= FIRST_MARK
    text = np.zeros(int(start[-1]), dtype=np.uint8)
    suffix_of = np.zeros(int(start[-1]), dtype=np.int32)
    text[moved[kept]] = np.where(marked, UNREADABLE, old)[kept]
    suffix_of[moved[kept]] = tokens.suffix_of[: len(owner)][kept]
    place = np.zeros(tokens.n_suffixes, dtype=np.int32)
    place[1:] = moved[tokens.suffix_place[1:]]
    end = place + (tokens.suffix_end - tokens.suffix_place)
    at = (start[used][:, None] + np.arange(LENGTH)).ravel()
    text[at] = np.frombuffer(b"".join(map(spell_special, used)), dtype=np.uint8)
    suffix_of[at] = tokens.n_suffixes + np.arange(len(at))
    place = np.concatenate([place, at]).astype(np.int32)
    end = np.concatenate([end, np.repeat(start[used] + LENGTH, LENGTH)]).astype(np.int32)
    bad = np.unique(owner[marked & kept])
    order = np.concatenate([tokens.trie.order[~np.isin(tokens.trie.order, bad)], used]).astype(np.int32)
    longest = max(tokens.longest, LENGTH)
    return TokenTrie(Trie(*fill_trie(order, text, start, longest), order), text, start, suffix_of, place, end, longest)
