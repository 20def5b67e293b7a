"""The vocabulary as a byte trie in preorder, and every token suffix as a number.

Walking the trie depth first in preorder needs no stack of nodes: a node's depth says where its parent's state is kept,
and `end` says where its subtree stops, so a dead subtree is skipped by one assignment.

Suffixes. A token that leaves the frame in which its walk began has a rest still to be read. Rests are numbered by
content: `suffix_of[text_start[t] + k]` is the number of token t's bytes from k on, and suffix 0 is the empty rest.
Equal rests of different tokens share a number, so what a stack accepts is a row of bits over few numbers.

Special and unused tokens aren't in the trie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.compiler.tokens.kernels import fill_trie
from maskwright.compiler.tokens.likeness import Heights, measure_heights
from maskwright.compiler.tokens.tables import starts

I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]


class Trie(NamedTuple):
    """Preorder arrays for the kernels; node 0 is the root."""

    byte: U8  # [nodes]
    depth: I32  # [nodes]
    end: I32  # [nodes], the first node after the subtree
    token_start: I32  # [nodes + 1] into order
    order: I32  # text token ids, by bytes, then by id


class RestTries(NamedTuple):
    """Codes (verdict, suffix) of one frame as a trie of suffixes for each verdict, in one set of preorder arrays."""

    root: I32  # [verdicts + 1], the first node of each
    byte: U8
    depth: I32
    end: I32
    code_start: I32  # [nodes + 1] into order
    order: I32  # positions of codes
    place: I32  # [codes], where the suffix begins in the vocabulary's text
    empty: I32  # positions of codes with the empty suffix


@dataclass(frozen=True)
class TokenTrie:
    """The trie, the token bytes and the suffix numbers of one vocabulary."""

    trie: Trie
    text: U8  # all token bytes, joined
    text_start: I32  # [tokens + 1]
    suffix_of: I32  # [len(text)]
    suffix_place: I32  # [suffixes], where in text a suffix begins
    suffix_end: I32  # [suffixes]
    longest: int

    @cached_property
    def heights(self) -> Heights:
        return measure_heights(self.trie)

    @property
    def n_suffixes(self) -> int:
        return len(self.suffix_place)

    def suffix(self, number: int) -> bytes:
        return self.text[self.suffix_place[number] : self.suffix_end[number]].tobytes()


def build_trie(tokens: Sequence[bytes | None], special: Mapping[int, str] | None = None) -> TokenTrie:
    """From the text tokens by id (None: not text). About a second for 128k tokens.

    `special`: names of special tokens; they only keep their place in `text`, which is the pack's `token_blob`.
    """
    blob = [t or b"" for t in tokens]
    for i, name in (special or {}).items():
        blob[i] = name.encode("utf-8", "surrogatepass")
    order = np.array(sorted((i for i, t in enumerate(tokens) if t), key=lambda i: (tokens[i], i)), dtype=np.int32)
    start = starts(map(len, blob)).astype(np.int32)
    text = np.frombuffer(b"".join(blob), dtype=np.uint8)
    longest = max((len(t) for t in tokens if t), default=0)
    byte, depth, end, token_start = fill_trie(order, text, start, longest)
    suffix_of, place, stop = _number_suffixes(tokens, start, len(text))
    return TokenTrie(Trie(byte, depth, end, token_start, order), text, start, suffix_of, place, stop, longest)


def _number_suffixes(tokens: Sequence[bytes | None], start: I32, length: int) -> tuple[I32, I32, I32]:
    numbers: dict[bytes, int] = {b"": 0}
    place, stop = [0], [0]
    out = np.zeros(max(1, length), dtype=np.int32)
    for t, at in zip(tokens, start.tolist(), strict=False):
        if not t:
            continue
        for k in range(len(t)):
            rest = t[k:]
            n = numbers.get(rest)
            if n is None:
                n = numbers[rest] = len(place)
                place.append(at + k)
                stop.append(at + len(t))
            out[at + k] = n
    return out, np.array(place, dtype=np.int32), np.array(stop, dtype=np.int32)


def build_rest_tries(codes: npt.NDArray[np.int64], verdicts: int, tokens: TokenTrie) -> RestTries:
    """For codes that are put to many symbols."""
    verdict, suffix = codes // tokens.n_suffixes, codes % tokens.n_suffixes
    texts = [tokens.suffix(int(n)) for n in suffix]
    text, start = np.frombuffer(b"".join(texts), dtype=np.uint8), starts(map(len, texts)).astype(np.int32)
    roots, parts, orders, nodes, done = [0], [], [], 0, 0
    for v in range(verdicts):
        here = [i for i in np.flatnonzero(verdict == v).tolist() if texts[i]]
        order = np.array(sorted(here, key=texts.__getitem__), dtype=np.int32)
        byte, depth, end, code_start = fill_trie(order, text, start, tokens.longest)
        parts.append((byte, depth, end + nodes, code_start[:-1] + done))
        orders.append(order)
        nodes, done = nodes + len(byte), done + len(order)
        roots.append(nodes)
    byte, depth, end, code_start = (np.concatenate(x) for x in zip(*parts, strict=True))
    return RestTries(
        root=np.array(roots, dtype=np.int32),
        byte=byte,
        depth=depth,
        end=end,
        code_start=np.append(code_start, np.int32(done)),
        order=np.concatenate(orders),
        place=tokens.suffix_place[suffix],
        empty=np.flatnonzero(suffix == 0).astype(np.int32),
    )
