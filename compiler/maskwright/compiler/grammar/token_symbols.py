"""Special tokens as symbols of grammars and of tool calls.

    <|name|>                    the special token with that whole name
    <[128000]>  <[1-5,9]>       special tokens by id: one, a range, a set; any of them may stand there

A symbol is the token itself: a text that spells its name doesn't match. Text tokens can't be symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.vocabulary import Vocabulary
from maskwright.workers.specials import FIRST_MARK, spell_special

IDS = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
MARKERS = (1 << 256) - (1 << FIRST_MARK)
"""The bytes of symbols, as bits."""
Rows = tuple[tuple[tuple[int, int, int], ...], ...]


@dataclass(frozen=True)
class TokenSymbols:
    """The special tokens of a vocabulary by name; `used` collects those that a source names."""

    by_name: Mapping[str, int] = field(default_factory=dict)
    ids: frozenset[int] = frozenset()
    used: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> TokenSymbols:
        """A new collection; of special tokens with one name the lowest id counts."""
        names: dict[str, int] = {}
        for token in sorted(vocabulary.special_ids):
            names.setdefault(vocabulary.special_text(token) or "", token)
        names.pop("", None)
        return cls(names, vocabulary.special_ids)

    def read(self, symbol: str, span: tuple[int, int]) -> tuple[int, ...]:
        """The ids of `<|…|>` or `<[…]>`, ascending. Raises CompileError with the place."""
        found = self._by_id(symbol, span) if symbol.startswith("<[") else self._by_name(symbol, span)
        self.used.update(found)
        return found

    def _by_name(self, symbol: str, span: tuple[int, int]) -> tuple[int, ...]:
        token = self.by_name.get(symbol)
        if token is None:
            message = f"the vocabulary has no special token {symbol}"
            hint = "a text goes in quotes"
            raise _fault(Code.UNSUPPORTED_GRAMMAR, message, symbol, span, hint)
        return (token,)

    def _by_id(self, symbol: str, span: tuple[int, int]) -> tuple[int, ...]:
        found: set[int] = set()
        for part in symbol[2:-2].split(","):
            m = IDS.fullmatch(part)
            low, high = (int(m[1]), int(m[2] or m[1])) if m else (1, 0)
            if low > high:
                message = f"{symbol} isn't a list of token ids and ranges of them"
                raise _fault(Code.INVALID_SOURCE, message, symbol, span)
            inside = {t for t in self.ids if low <= t <= high}
            if not inside:
                message = f"the vocabulary has no special token in {part.strip()}"
                raise _fault(Code.UNSUPPORTED_GRAMMAR, message, symbol, span, "text tokens are no symbols")
            found |= inside
        return tuple(sorted(found))

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """Any name, the longest first."""
        return re.compile("|".join(map(re.escape, sorted(self.by_name, key=len, reverse=True))))

    def spell(self, text: str) -> bytes:
        """A literal's bytes, in which names of special tokens are the tokens."""
        if not self.by_name:
            return text.encode()
        out, at = b"", 0
        for m in self._names.finditer(text):
            token = self.by_name[m.group()]
            self.used.add(token)
            out += text[at : m.start()].encode() + spell_special(token)
            at = m.end()
        return out + text[at:].encode()


def symbol_rows(tokens: Iterable[int]) -> Rows:
    """The automaton that reads any of the tokens: rows of (low, high, row or -1 for the end)."""
    nodes: list[dict[int, int]] = [{}]
    for token in tokens:
        at, spelled = 0, spell_special(token)
        for byte in spelled[:-1]:
            if byte not in nodes[at]:
                nodes[at][byte] = len(nodes)
                nodes.append({})
            at = nodes[at][byte]
        nodes[at][spelled[-1]] = -1
    return tuple(tuple((byte, byte, to) for byte, to in sorted(node.items())) for node in nodes)


def _fault(code: Code, message: str, symbol: str, span: tuple[int, int], hint: str | None = None) -> CompileError:
    return CompileError(Diagnostic(code, message, span=span, detail={"token": symbol}, hint=hint))
